"""Checks on what users hand in; every message names the argument and the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RandomState = int | np.random.RandomState | np.random.Generator | None


# Beyond, squares overflow or memory does not suffice.
_LARGEST, _MOST = 1e150, 10**8

_short = Repr()
_short.maxstring = _short.maxother = 80


def shown(value: Any) -> str:
    """A value in one line of a message, shortened if it is long."""
    return " ".join(_short.repr(value).split())


def refuse(
    name: str, words: Iterable[str], others: Iterable[str], value: Any
) -> NoReturn:
    """Say what an argument may be, words and other things, and what came."""
    *allowed, last = [*map(repr, words), *others]
    expected = f"{', '.join(allowed)} or {last}" if allowed else last
    raise ValueError(f"{name} must be {expected}, got {shown(value)}")


def check_word(name: str, value: Any, words: Iterable[str]) -> None:
    """Refuse what is not one of the words allowed for `name`."""
    if not isinstance(value, str) or value not in words:
        refuse(name, words, (), value)


def real_numbers(name: str, error: Exception) -> ValueError:
    """What to raise where NumPy says that something is no array of real numbers."""
    reason = str(error)
    reason = reason if len(reason) <= 200 else f"{reason[:200]} ..."
    return ValueError(f"{name} must be an array of real numbers: {reason}")


def check_kind(name: str, value: Any) -> NDArray[Any]:
    """Return `value` as an array; refuse what only looks like numbers to NumPy."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise real_numbers(name, error) from None
    if np.ma.is_masked(value):
        raise ValueError(f"{name} has masked values; drop or impute them first")
    if array.dtype.kind in "mM":
        raise ValueError(f"{name} has dates or times; turn them into numbers first")
    return array


def check_points(
    name: str,
    value: Any,
    dim: int | None = None,
    *,
    ndim: int | None = None,
    allow_empty: bool = False,
) -> Array:
    """Return `value` as a finite float64 array whose last axis holds coordinates.

    The last axis must have length `dim`, and there must be `ndim` axes; None accepts
    any positive number.
    """
    array = check_kind(name, value)
    try:
        if np.iscomplexobj(array):
            raise ValueError("got complex ones")
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise real_numbers(name, error) from None
    if array.ndim == 0 or (ndim is not None and array.ndim != ndim):
        expected = "at least one axis" if ndim is None else f"{ndim} axes"
        raise ValueError(
            f"{name} must have {expected} (the last one holds the coordinates), "
            f"got shape {array.shape}"
        )
    if array.shape[-1] == 0 or (dim is not None and array.shape[-1] != dim):
        expected = "at least 1" if dim is None else str(dim)
        raise ValueError(
            f"{name} must have {expected} coordinates on its last axis, "
            f"got {array.shape[-1]} (shape {array.shape})"
        )
    if array.size == 0 and not allow_empty:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        bad = int(np.sum(~np.isfinite(array)))
        raise ValueError(
            f"{name} must be finite, got {bad} NaN or infinite values; "
            "drop or impute them first"
        )
    if np.any(np.abs(array) > _LARGEST):
        raise ValueError(
            f"{name} must be at most {_LARGEST:g} in size, got "
            f"{np.abs(array).max():g}; use other units"
        )
    return array


def check_positive(name: str, value: Any, *, or_zero: bool = False) -> float:
    """Return `value` as a positive finite float, or zero if that is allowed."""
    expected = "zero or positive" if or_zero else "positive"
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)) or np.iscomplexobj(value):
            raise TypeError
        # Zero-dimensional NumPy and JAX arrays are fine.
        number = float(np.asarray(value, dtype=np.float64).reshape(()))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} must be a number, {expected}, got {shown(value)}"
        ) from None
    if not np.isfinite(number) or number < 0.0 or (number == 0.0 and not or_zero):
        raise ValueError(f"{name} must be {expected} and finite, got {shown(value)}")
    if number > 0.0 and not 1.0 / _LARGEST <= number <= _LARGEST:
        raise ValueError(
            f"{name} must be between {1.0 / _LARGEST:g} and {_LARGEST:g}, "
            f"got {number!r}; use other units"
        )
    return number


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an integer of at least `minimum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer, got {shown(value)}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    if number > _MOST:
        raise ValueError(f"{name} must be at most {_MOST}, got {shown(number)}")
    return number


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return the NumPy generator that `random_state` stands for.

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
        "random_state must be None, an integer >= 0, a NumPy RandomState or a NumPy "
        f"Generator, got {shown(random_state)}"
    )


def check_covariance(name: str, value: Any, dim: int) -> Array:
    """Return `value` as a symmetric positive definite matrix."""
    matrix = check_points(name, value, dim, ndim=2)
    if matrix.shape != (dim, dim):
        raise ValueError(f"{name} must have shape {(dim, dim)}, got {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(f"{name} must be symmetric")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= 0.0:
        raise ValueError(
            f"{name} must be positive definite, its smallest eigenvalue is {smallest:g}"
        )
    return matrix
