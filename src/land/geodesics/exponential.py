"""The exponential map, where geodesics arrive, and its derivative by Jacobi fields."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import in_float64
from land._validation import check_count, check_points, check_positive
from land.geodesics.equation import check_metric, dimension, pair_up
from land.geodesics.runge_kutta import Arrivals, integrate
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


@dataclass(frozen=True)
class ExpJacobian:
    """Result of `land.exp_jacobian`; leading axes follow the tangents handed in.

    Attributes
    ----------
    jacobians : ndarray of shape (..., D, D)
        DExp_base(v); column j is the derivative along coordinate j of v.
    log_dets : ndarray of shape (...)
        log|det DExp_base(v)|.
    signs : ndarray of shape (...)
        Sign of the determinant. It is +1 near the base and changes where the geodesic
        passes a conjugate point.
    points : ndarray of shape (..., D)
        Exp_base(v), which comes for free.
    converged : ndarray of shape (...)
        Whether the integration reached t = 1 within the tolerance.
    """

    jacobians: Array
    log_dets: Array
    signs: Array
    points: Array
    converged: NDArray[np.bool_]


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
    starts, flat, shape = _checked(metric, base, tangents)
    moments = np.empty(0) if times is None else _check_times(times)
    metric, center = metric.centred()
    position, velocity = (starts - center)[:, None], flat[:, None]
    tol, max_steps = check_positive("tol", tol), check_count("max_steps", max_steps)
    state = integrate(metric, position, velocity, moments, tol, max_steps)
    rays = center + state.samples[:, :, 0]
    return ExpMap(
        points=(center + state.position[:, 0]).reshape(shape),
        velocities=state.velocity[:, 0].reshape(shape),
        converged=~state.failed.reshape(shape[:-1]),
        rays=None if times is None else rays.reshape(*shape[:-1], *rays.shape[1:]),
        n_steps=state.attempts.reshape(shape[:-1]),
    )


@in_float64
def exp_jacobian(
    metric: Metric,
    base: ArrayLike,
    tangents: ArrayLike,
    *,
    tol: float = 1e-7,
    max_steps: int = MAX_STEPS,
) -> ExpJacobian:
    """Derivative of the exponential map at every tangent v.

    Parameters are those of `land.exp_map`. The Jacobian solves the linearised geodesic
    equation beside the geodesic itself, J(0) = 0, J'(0) = I, DExp(v) = J(1).

    Returns
    -------
    ExpJacobian
        Jacobians, their determinants and a verdict for each tangent.
    """
    starts, flat, shape = _checked(metric, base, tangents)
    tol, max_steps = check_positive("tol", tol), check_count("max_steps", max_steps)
    metric, center = metric.centred()
    jacobians, arrivals = integrate_fields(
        metric, starts - center, flat, tol, max_steps
    )
    signs, log_dets = np.linalg.slogdet(jacobians)
    return ExpJacobian(
        jacobians=jacobians.reshape(*shape, shape[-1]),
        log_dets=log_dets.reshape(shape[:-1]),
        signs=signs.reshape(shape[:-1]),
        points=(center + arrivals.position[:, 0]).reshape(shape),
        converged=~arrivals.failed.reshape(shape[:-1]),
    )


def exp_log_det(
    metric: Metric,
    base: ArrayLike,
    tangents: ArrayLike,
    *,
    return_sign: bool = False,
    tol: float = 1e-7,
    max_steps: int = MAX_STEPS,
) -> Array | tuple[Array, Array]:
    """log|det DExp_base(v)| for every tangent v.

    Parameters
    ----------
    metric, base, tangents, tol, max_steps
        As for `land.exp_map`.
    return_sign : bool
        Return the signs of the determinants as well; they change at conjugate points.

    Returns
    -------
    log_dets : ndarray of shape (...)
        NaN, with a `RuntimeWarning` that counts them, where the integration failed.
    signs : ndarray of shape (...)
        Only with `return_sign`.

    See Also
    --------
    exp_jacobian : the full matrices, with a verdict for each.

    Examples
    --------
    >>> import land
    >>> flat = land.metrics.EuclideanMetric(3)
    >>> abs(land.exp_log_det(flat, [0.0, 0.0, 0.0], [[1.0, 2.0, 3.0]])) < 1e-12
    array([ True])
    """
    result = exp_jacobian(metric, base, tangents, tol=tol, max_steps=max_steps)
    failed = int(np.sum(~result.converged))
    if failed:
        warnings.warn(
            f"{failed} of {result.converged.size} integrations of DExp failed and are "
            "returned as NaN; try shorter tangents or a larger tol",
            RuntimeWarning,
            stacklevel=2,
        )
    log_dets = np.where(result.converged, result.log_dets, np.nan)
    return (log_dets, result.signs) if return_sign else log_dets


def integrate_fields(
    metric: Metric, starts: Array, tangents: Array, tol: float, max_steps: int
) -> tuple[Array, Arrivals]:
    """DExp at tangents (n, D), from the Jacobi fields along the geodesics."""
    n, dim = starts.shape
    position, velocity = np.zeros((2, n, dim + 1, dim))
    position[:, 0], velocity[:, 0] = starts, tangents
    velocity[:, 1:] = np.eye(dim)
    arrivals = integrate(metric, position, velocity, np.empty(0), tol, max_steps)
    return arrivals.position[:, 1:].transpose(0, 2, 1), arrivals


def _checked(
    metric: Metric, base: ArrayLike, tangents: ArrayLike
) -> tuple[Array, Array, tuple[int, ...]]:
    """Bases and tangents, flat, and the shape of the tangents."""
    dim = dimension(metric)
    base_points = check_points("base", base, dim)
    vectors = check_points("tangents", tangents, dim, allow_empty=True)
    starts, flat, shape = pair_up("base", base_points, "tangents", vectors)
    check_metric(metric, base=base_points)
    return starts, flat, (*shape, dim)


def _check_times(times: ArrayLike) -> Array:
    values = check_points("times", times, ndim=1)
    if values.min() < 0.0 or values.max() > 1.0:
        raise ValueError(
            f"times must lie in [0, 1], got [{values.min():g}, {values.max():g}]; "
            "scale the tangents to go further"
        )
    return values
