"""Two curved clusters, with labels."""

import numpy as np
from numpy.typing import NDArray

from land.datasets._sampling import (
    FloatArray,
    RandomState,
    add_noise,
    as_generator,
    check_count,
    check_scale,
)

Labels = NDArray[np.int64]


def make_two_moons(
    n_samples: int = 600, *, noise: float = 0.1, random_state: RandomState = None
) -> tuple[FloatArray, Labels]:
    """Draw two interleaving half-circles of radius one.

    Class 0 follows (cos t, sin t) and class 1 follows (1 - cos t, 1/2 - sin t), with
    t uniform on [0, pi].

    Parameters
    ----------
    n_samples : int
        Number of points, at least 2; class 0 has one more when it is odd.
    noise : float
        Standard deviation of the isotropic Gaussian noise.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, class 0 first.
    y : ndarray of shape (n_samples,)
        The class of each point, 0 or 1.

    Examples
    --------
    >>> from land.datasets import make_two_moons
    >>> X, y = make_two_moons(600, random_state=0)
    >>> X.shape, y.sum().item()
    ((600, 2), 300)
    """
    y = _two_classes(n_samples)
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    t = generator.uniform(0.0, np.pi, len(y))
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.array([1.0, 0.5]) - upper
    points = np.where(y[:, None] == 0, upper, lower)
    return add_noise(points, noise, generator), y


def make_wave_and_arc(
    n_samples: int = 600, *, noise: float = 0.1, random_state: RandomState = None
) -> tuple[FloatArray, Labels]:
    """Draw a sine wave under an arc that reaches down on both its sides.

    A set like the paper's second clustering problem (section 4.1): two curved
    clusters that no pair of ellipses describes. Class 0 is two periods of the wave
    (1.8 s, sin(2 pi s) / 2), s uniform on [-1, 1]. Class 1 is the arc
    (3 cos t, 2.8 sin t - 0.8), t uniform on [0, pi]. The paper does not give its
    curves; these are ours.

    Parameters
    ----------
    n_samples : int
        Number of points, at least 2; class 0 has one more when it is odd.
    noise : float
        Standard deviation of the isotropic Gaussian noise.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points, class 0 first.
    y : ndarray of shape (n_samples,)
        The class of each point: 0 for the wave, 1 for the arc.

    Examples
    --------
    >>> from land.datasets import make_wave_and_arc
    >>> X, y = make_wave_and_arc(600, random_state=0)
    >>> X.shape, y.sum().item()
    ((600, 2), 300)
    """
    y = _two_classes(n_samples)
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    u = generator.uniform(0.0, 1.0, len(y))
    s, t = 2.0 * u - 1.0, np.pi * u
    wave = np.column_stack([1.8 * s, 0.5 * np.sin(2.0 * np.pi * s)])
    arc = np.column_stack([3.0 * np.cos(t), 2.8 * np.sin(t) - 0.8])
    points = np.where(y[:, None] == 0, wave, arc)
    return add_noise(points, noise, generator), y


def _two_classes(n_samples: int) -> Labels:
    """Return the labels of two classes as equal in size as can be."""
    n_samples = check_count(n_samples, "n_samples", minimum=2)
    n_second = n_samples // 2
    return np.repeat(np.array([0, 1], dtype=np.int64), [n_samples - n_second, n_second])
