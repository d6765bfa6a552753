"""The exponential map: where geodesics with given initial velocities arrive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._precision import in_float64
from land._validation import check_count, check_points, check_positive
from land.geodesics.equation import check_metric, dimension, pair_up
from land.geodesics.runge_kutta import integrate
from land.metrics import Metric

Array = NDArray[np.float64]

MAX_STEPS = 10_000


@dataclass(frozen=True)
class ExpMap:
    """Result of `land.exp_map`; leading axes follow the tangents handed in.

    Attributes
    ----------
    points : ndarray of shape (..., D)
        Exp(v). Where an integration failed: the last point that was reached.
    velocities : ndarray of shape (..., D)
        Velocities at those points.
    converged : ndarray of shape (...)
        Whether the integration reached t = 1 within the tolerance.
    rays : ndarray of shape (..., n_times, D) or None
        Points at the requested `times`, Exp(t v).
    n_steps : ndarray of shape (...)
        Steps that were tried.
    """

    points: Array
    velocities: Array
    converged: NDArray[np.bool_]
    rays: Array | None
    n_steps: NDArray[np.int64]


@in_float64
def exp_map(
    metric: Metric,
    base: ArrayLike,
    tangents: ArrayLike,
    *,
    times: ArrayLike | None = None,
    tol: float = 1e-7,
    max_steps: int = MAX_STEPS,
) -> ExpMap:
    """Follow geodesics from `base` with initial velocities `tangents` for unit time.

    Parameters
    ----------
    metric : Metric
        The metric.
    base : array_like of shape (D,) or (..., D)
        Where the geodesics start; one point for all, or one for each tangent.
    tangents : array_like of shape (..., D)
        Initial velocities in coordinates, gamma'(0). The length of the geodesic is
        sqrt(v^T M(base) v).
    times : array_like of shape (n_times,), optional
        Times in [0, 1] at which the whole ray is wanted. One solve serves them all.
    tol : float
        Error allowed in each step, in the metric's norm and relative to the length.
    max_steps : int
        Steps after which an integration is given up.

    Returns
    -------
    ExpMap
        Points, velocities and a verdict for each tangent.

    Examples
    --------
    >>> import land
    >>> flat = land.metrics.EuclideanMetric(2)
    >>> land.exp_map(flat, [1.0, 0.0], [[0.0, 2.0]]).points.round(9).tolist()
    [[1.0, 2.0]]
    """
    dim = dimension(metric)
    base_points = check_points("base", base, dim)
    vectors = check_points("tangents", tangents, dim, allow_empty=True)
    tol = check_positive("tol", tol)
    max_steps = check_count("max_steps", max_steps)
    moments = _check_times(times)
    starts, flat, shape = pair_up("base", base_points, "tangents", vectors)
    check_metric(metric, base=base_points)
    metric, center = metric.centred()
    position, velocity = (starts - center)[:, None], flat[:, None]
    state = integrate(metric, position, velocity, moments, tol, max_steps)
    rays = center + state.samples[:, :, 0]
    return ExpMap(
        points=(center + state.position[:, 0]).reshape(*shape, dim),
        velocities=state.velocity[:, 0].reshape(*shape, dim),
        converged=~state.failed.reshape(shape),
        rays=None if times is None else rays.reshape(*shape, -1, dim),
        n_steps=state.attempts.reshape(shape),
    )


def _check_times(times: ArrayLike | None) -> Array:
    if times is None:
        return np.empty(0)
    values = check_points("times", times, ndim=1)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(
            f"times must lie in [0, 1], got [{values.min():g}, {values.max():g}]; "
            "scale the tangents to go further"
        )
    return values
