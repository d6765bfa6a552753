"""The derivative of the exponential map, from Jacobi fields."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import Mask, in_lockstep
from land._precision import in_float64
from land._validation import check_count, check_points, check_positive
from land.geodesics.equation import check_metric, dimension, linearised, pair_up
from land.geodesics.exponential import MAX_STEPS
from land.geodesics.newton import finish_curves
from land.geodesics.runge_kutta import Arrivals, integrate
from land.geodesics.solution import Connections
from land.metrics import Metric

Array = NDArray[np.float64]

# Along known geodesics: relative size of Newton's last step, or error of integration.
_TOLERANCE = 1e-6


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
    dim = dimension(metric)
    base_points = check_points("base", base, dim)
    vectors = check_points("tangents", tangents, dim, allow_empty=True)
    tol = check_positive("tol", tol)
    max_steps = check_count("max_steps", max_steps)
    starts, flat, shape = pair_up("base", base_points, "tangents", vectors)
    check_metric(metric, base=base_points)
    metric, center = metric.centred()
    jacobians, arrivals = _integrate_fields(
        metric, starts - center, flat, tol, max_steps
    )
    signs, log_dets = np.linalg.slogdet(jacobians)
    return ExpJacobian(
        jacobians=jacobians.reshape(*shape, dim, dim),
        log_dets=log_dets.reshape(shape),
        signs=signs.reshape(shape),
        points=(center + arrivals.position[:, 0]).reshape(*shape, dim),
        converged=~arrivals.failed.reshape(shape),
    )


def _integrate_fields(
    metric: Metric, starts: Array, tangents: Array, tol: float, max_steps: int
) -> tuple[Array, Arrivals]:
    """DExp at tangents (n, D), from the Jacobi fields along the geodesics."""
    n, dim = starts.shape
    position, velocity = np.zeros((2, n, dim + 1, dim))
    position[:, 0], velocity[:, 0] = starts, tangents
    velocity[:, 1:] = np.eye(dim)
    arrivals = integrate(metric, position, velocity, np.empty(0), tol, max_steps)
    return arrivals.position[:, 1:].transpose(0, 2, 1), arrivals


def jacobians_along(metric: Metric, solution: Connections, targets: Array) -> Array:
    """DExp at the tangents of known geodesics, (n, D, D); NaN where it is not found.

    It comes with a step of Newton's method, along a curve that ends at the target.
    Integration starts from a tangent that is never exact, and on a long way errors
    grow; it is what is left in many dimensions.
    """
    jacobians, _ = _newton_derivatives(
        metric, solution, targets, solution.converged & solution.has_responses
    )
    known = np.isfinite(jacobians).all(axis=(1, 2))
    left = np.flatnonzero(solution.converged & ~known)
    starts, tangents = solution.bases[left], solution.tangents[left]
    found, arrivals = _integrate_fields(metric, starts, tangents, _TOLERANCE, MAX_STEPS)
    found[arrivals.failed] = np.nan
    jacobians[left] = found
    return jacobians


def responses_along(metric: Metric, solution: Connections, targets: Array) -> Array:
    """Minus the derivatives of tangents in their bases, (n, D, D); NaN if not found.

    Most come with the solution, from the last step of Newton's method.
    """
    known = np.isfinite(solution.responses).all(axis=(1, 2))
    missing = solution.converged & ~known
    _, found = _newton_derivatives(metric, solution, targets, missing)
    return np.where(missing[:, None, None], found, solution.responses)


@np.errstate(all="ignore")  # where it fails; NaN says so
def _newton_derivatives(
    metric: Metric, solution: Connections, targets: Array, wanted: Mask
) -> tuple[Array, Array]:
    """Jacobians and responses of the wanted geodesics, by a step of Newton's method."""
    n, dim = targets.shape
    jacobians, responses = np.full((2, n, dim, dim), np.nan)
    for which, curves in solution.final_meshes():
        rows = np.flatnonzero(wanted[which])
        if not len(rows):
            continue
        kept, own = curves.take(rows), which[rows]
        ends = solution.bases[own], targets[own]
        solver = finish_curves(*ends, kept.rates, kept.widths, _TOLERANCE)
        (done,) = in_lockstep(partial(linearised, metric), [solver])
        jacobians[own[done.found]] = done.jacobians[done.found]
        responses[own[done.found]] = done.responses[done.found]
    at_rest = wanted & (solution.lengths == 0.0)
    jacobians[at_rest] = responses[at_rest] = np.eye(dim)
    return jacobians, responses


@overload
def exp_log_det(
    metric: Metric,
    base: ArrayLike,
    tangents: ArrayLike,
    *,
    return_sign: Literal[False] = ...,
    tol: float = ...,
    max_steps: int = ...,
) -> Array: ...


@overload
def exp_log_det(
    metric: Metric,
    base: ArrayLike,
    tangents: ArrayLike,
    *,
    return_sign: Literal[True],
    tol: float = ...,
    max_steps: int = ...,
) -> tuple[Array, Array]: ...


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
