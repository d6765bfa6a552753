"""Synthetic data along curves and sheets.

Every maker draws `n_samples` points along a curve or a sheet, adds isotropic Gaussian
noise of standard deviation `noise`, and returns float64 data ``X`` of shape
(n_samples, D). Makers of two classes return ``(X, y)`` with integer labels ``y``, class
0 first, which has one point more if `n_samples` is odd. The same `random_state` (an
int, a RandomState, a Generator or None) gives the same data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from land._validation import (
    Array,
    RandomState,
    as_generator,
    check_count,
    check_points,
    check_positive,
)

__all__ = [
    "half_ellipse_log_density",
    "make_circle",
    "make_half_ellipse",
    "make_s_curve",
    "make_spiral",
    "make_two_moons",
    "make_wave_and_arc",
]

Labels = NDArray[np.int64]


def make_half_ellipse(
    n_samples: int = 300,
    *,
    n_centers: int | None = 20,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> Array:
    """Draw points along the upper half of an ellipse, (n_samples, 2).

    An equal mixture of `n_centers` Gaussians on the curve (3 cos t, 1.5 sin t), their t
    equally spaced from 0 to pi, ends included. With ``n_centers=None`` t is uniform
    instead. This is the first synthetic set of the paper (section 4.1), which gives
    neither axes nor noise. The density is `half_ellipse_log_density`.

    Examples
    --------
    >>> from land.datasets import make_half_ellipse
    >>> make_half_ellipse(300, random_state=0).shape
    (300, 2)
    """
    n_samples = check_count("n_samples", n_samples)
    generator = as_generator(random_state)
    if n_centers is None:
        points = _half_ellipse(generator.uniform(0.0, np.pi, n_samples))
    else:
        centers = _centers(n_centers)
        points = centers[generator.integers(len(centers), size=n_samples)]
    return _add_noise(points, noise, generator)


def half_ellipse_log_density(
    X: ArrayLike, *, n_centers: int = 20, noise: float = 0.1
) -> Array:
    """Evaluate the log density that `make_half_ellipse` draws from, at points (n, 2).

    Examples
    --------
    >>> from land.datasets import half_ellipse_log_density
    >>> on_curve, inside = half_ellipse_log_density([[-3.0, 0.0], [0.0, 0.0]])
    >>> bool(on_curve > inside)
    True
    """
    points = check_points("X", X, 2, ndim=2, allow_empty=True)
    centers = _centers(n_centers)
    variance = check_positive("noise", noise) ** 2
    squared_distances = np.square(points[:, None] - centers).sum(axis=-1)
    log_kernels = -squared_distances / (2 * variance)
    log_norm = np.log(2 * np.pi * variance * len(centers))
    return np.asarray(logsumexp(log_kernels, axis=1) - log_norm)


def make_circle(
    n_samples: int = 300, *, noise: float = 0.1, random_state: RandomState = None
) -> Array:
    """Draw points around the unit circle, a closed loop; see `land.datasets`."""
    n_samples = check_count("n_samples", n_samples)
    generator = as_generator(random_state)
    angles = generator.uniform(0.0, 2.0 * np.pi, n_samples)
    points = np.column_stack([np.cos(angles), np.sin(angles)])
    return _add_noise(points, noise, generator)


def make_spiral(
    n_samples: int = 300,
    *,
    n_turns: float = 2.0,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> Array:
    """Draw points along an Archimedean spiral, r = 1/2 + angle / (2 pi)."""
    n_samples = check_count("n_samples", n_samples)
    n_turns = check_positive("n_turns", n_turns)
    generator = as_generator(random_state)
    inner, outer = 0.5, 0.5 + n_turns
    # Arc length grows as the squared radius (nearly), so this spreads points evenly.
    radii = np.sqrt(generator.uniform(inner**2, outer**2, n_samples))
    angles = 2.0 * np.pi * (radii - inner)
    points = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    return _add_noise(points, noise, generator)


def make_s_curve(
    n_samples: int = 600, *, noise: float = 0.05, random_state: RandomState = None
) -> Array:
    """Draw points on a sheet bent into an S, (n_samples, 3).

    The sheet is (sin t, w, sign(t) (1 - cos t)), t uniform on [-3 pi / 2, 3 pi / 2] and
    w on [-1, 1]. It is flat: its geodesics are the straight lines of the plane (t, w).
    """
    n_samples = check_count("n_samples", n_samples)
    generator = as_generator(random_state)
    t = generator.uniform(-1.5 * np.pi, 1.5 * np.pi, n_samples)
    width = generator.uniform(-1.0, 1.0, n_samples)
    points = np.column_stack([np.sin(t), width, np.sign(t) * (1.0 - np.cos(t))])
    return _add_noise(points, noise, generator)


def make_two_moons(
    n_samples: int = 600, *, noise: float = 0.1, random_state: RandomState = None
) -> tuple[Array, Labels]:
    """Draw two interleaving half-circles of radius one.

    Class 0 follows (cos t, sin t) and class 1 (1 - cos t, 1/2 - sin t), t uniform on
    [0, pi].

    Examples
    --------
    >>> from land.datasets import make_two_moons
    >>> X, y = make_two_moons(600, random_state=0)
    >>> X.shape, y.sum().item()
    ((600, 2), 300)
    """
    y = _two_classes(n_samples)
    generator = as_generator(random_state)
    t = generator.uniform(0.0, np.pi, len(y))
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.array([1.0, 0.5]) - upper
    points = np.where(y[:, None] == 0, upper, lower)
    return _add_noise(points, noise, generator), y


def make_wave_and_arc(
    n_samples: int = 600, *, noise: float = 0.1, random_state: RandomState = None
) -> tuple[Array, Labels]:
    """Draw a sine wave under an arc that reaches down on both its sides.

    Class 0 is two periods of the wave (1.8 s, sin(2 pi s) / 2), s uniform on [-1, 1].
    Class 1 is the arc (3 cos t, 2.8 sin t - 0.8), t uniform on [0, pi]. It is like the
    second clustering problem of the paper (section 4.1), whose curves are not known.
    """
    y = _two_classes(n_samples)
    generator = as_generator(random_state)
    u = generator.uniform(0.0, 1.0, len(y))
    s, t = 2.0 * u - 1.0, np.pi * u
    wave = np.column_stack([1.8 * s, 0.5 * np.sin(2.0 * np.pi * s)])
    arc = np.column_stack([3.0 * np.cos(t), 2.8 * np.sin(t) - 0.8])
    points = np.where(y[:, None] == 0, wave, arc)
    return _add_noise(points, noise, generator), y


def _half_ellipse(t: Array) -> Array:
    return np.column_stack([3.0 * np.cos(t), 1.5 * np.sin(t)])


def _centers(n_centers: int) -> Array:
    n_centers = check_count("n_centers", n_centers, minimum=2)
    return _half_ellipse(np.linspace(0.0, np.pi, n_centers))


def _two_classes(n_samples: int) -> Labels:
    """The labels of two classes as equal in size as can be."""
    n_samples = check_count("n_samples", n_samples, minimum=2)
    n_second = n_samples // 2
    return np.repeat(np.array([0, 1], dtype=np.int64), [n_samples - n_second, n_second])


def _add_noise(points: Array, noise: float, generator: np.random.Generator) -> Array:
    noise = check_positive("noise", noise, or_zero=True)
    return points + noise * generator.standard_normal(points.shape)
