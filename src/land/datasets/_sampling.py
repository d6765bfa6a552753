"""What every maker shares: argument checks, a random generator, noise."""

import math
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
RandomState = int | np.random.RandomState | np.random.Generator | None


def check_count(value: object, name: str, *, minimum: int = 1) -> int:
    """Return ``value`` as an int of at least ``minimum``, or raise ValueError."""
    if (
        not isinstance(value, Integral)
        or isinstance(value, bool)
        or int(value) < minimum
    ):
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}.")
    return int(value)


def check_scale(value: object, name: str, *, positive: bool = False) -> float:
    """Return ``value`` as a finite float, not negative (or positive), or raise."""
    expected = "a finite number > 0" if positive else "a finite number >= 0"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name} must be {expected}, got {value!r}.")
    number = float(value)
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        raise ValueError(f"{name} must be {expected}, got {value!r}.")
    return number


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the NumPy generator that ``random_state`` stands for.

    A Generator is used, and advanced, as it is. A RandomState seeds a new generator
    with its next draws, so that it advances too. None takes fresh entropy: NumPy's
    global state is neither read nor changed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(2**32, size=4, dtype=np.uint32)
        return np.random.default_rng(words)
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(
        "random_state must be None, an integer >= 0, a numpy RandomState or a numpy "
        f"Generator, got {random_state!r}."
    )


def add_noise(
    points: FloatArray, noise: float, generator: np.random.Generator
) -> FloatArray:
    """Return ``points`` plus isotropic Gaussian noise of that standard deviation."""
    return points + noise * generator.standard_normal(points.shape)
