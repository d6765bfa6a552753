"""The paper's first synthetic set: Gaussians along a half-ellipse."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from land.datasets._sampling import (
    FloatArray,
    RandomState,
    add_noise,
    as_generator,
    check_count,
    check_scale,
)


def make_half_ellipse(
    n_samples: int = 300,
    *,
    n_centers: int | None = 20,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> FloatArray:
    """Draw points along the upper half of an ellipse.

    The first synthetic set of the paper (section 4.1): an equal mixture of
    ``n_centers`` isotropic Gaussians on the curve (3 cos t, 1.5 sin t), their t
    equally spaced from 0 to pi, both ends included. The paper gives neither the
    axes of the ellipse nor the width of the Gaussians; these are ours.

    Parameters
    ----------
    n_samples : int
        Number of points.
    n_centers : int or None
        Number of Gaussians, at least 2. None draws t uniformly from [0, pi] instead:
        a continuous curve.
    noise : float
        Standard deviation of each Gaussian.
    random_state : None, int, RandomState or Generator
        Source of randomness; the same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.

    See Also
    --------
    half_ellipse_log_density : The density these points were drawn from.

    Examples
    --------
    >>> from land.datasets import make_half_ellipse
    >>> make_half_ellipse(300, random_state=0).shape
    (300, 2)
    """
    n_samples = check_count(n_samples, "n_samples")
    noise = check_scale(noise, "noise")
    generator = as_generator(random_state)
    if n_centers is None:
        points = _half_ellipse(generator.uniform(0.0, np.pi, n_samples))
    else:
        centers = _centers(n_centers)
        points = centers[generator.integers(len(centers), size=n_samples)]
    return add_noise(points, noise, generator)


def half_ellipse_log_density(
    X: ArrayLike, *, n_centers: int = 20, noise: float = 0.1
) -> FloatArray:
    """Evaluate the log density that `make_half_ellipse` draws from.

    Parameters
    ----------
    X : array-like of shape (n, 2)
        Points, finite.
    n_centers : int
        Number of Gaussians, at least 2. The continuous curve (None) has no density
        in closed form.
    noise : float
        Standard deviation of each Gaussian, positive.

    Returns
    -------
    log_density : ndarray of shape (n,)
        Logarithm of the density with respect to Lebesgue measure.

    Examples
    --------
    >>> from land.datasets import half_ellipse_log_density
    >>> on_curve, inside = half_ellipse_log_density([[-3.0, 0.0], [0.0, 0.0]])
    >>> bool(on_curve > inside)
    True
    """
    points = _check_points(X)
    centers = _centers(n_centers)
    variance = check_scale(noise, "noise", positive=True) ** 2
    squared_distances = np.square(points[:, None] - centers).sum(axis=-1)
    log_kernels = -squared_distances / (2 * variance)
    log_norm = np.log(2 * np.pi * variance * len(centers))
    return np.asarray(logsumexp(log_kernels, axis=1) - log_norm)


def _half_ellipse(t: FloatArray) -> FloatArray:
    return np.column_stack([3.0 * np.cos(t), 1.5 * np.sin(t)])


def _centers(n_centers: int) -> FloatArray:
    n_centers = check_count(n_centers, "n_centers", minimum=2)
    return _half_ellipse(np.linspace(0.0, np.pi, n_centers))


def _check_points(X: ArrayLike) -> FloatArray:
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"X must have shape (n, 2), got {points.shape}.")
    if not np.isfinite(points).all():
        bad_rows = np.flatnonzero(~np.isfinite(points).all(axis=1))
        raise ValueError(
            f"X must be finite, got NaN or infinity in {bad_rows.size} of "
            f"{len(points)} rows, the first at index {bad_rows[0]}."
        )
    return points
