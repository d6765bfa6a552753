"""Intrinsic least squares: the mean of smallest variance, the empirical covariance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land.fitting.estimate import Estimate, usable_tangents
from land.fitting.problem import FitProblem
from land.geodesics import LogMap, exp_map
from land.metrics.host_tensors import invert, lower

Array = NDArray[np.float64]

_MEMORY = 10
_ARMIJO = 1e-4
# Steps along which the gradient hardly changes say nothing about the curvature.
_CURVED = 1e-3
_TRIALS = 8


def fit_least_squares(
    problem: FitProblem,
    weights: Array,
    start: Array,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Estimate, bool]:
    """Karcher mean by descent along geodesics, and the covariance of the tangents.

    Of many data a sample brings the mean near. Returns the estimate and whether the
    mean's last step was below `tol`, relative to the spread of the data.
    """
    thinned = problem.thinned(weights, rng)
    if thinned is not None:
        start, _, _ = intrinsic_mean(*thinned, start, max_iter, tol)
    mean, logs, converged = intrinsic_mean(problem, weights, start, max_iter, tol)
    covariance = empirical_covariance(problem, weights, logs)
    (estimate,) = problem.evaluate([mean], [covariance], [weights], [logs])
    problem.record(estimate.objective, [estimate])
    return estimate, converged


def intrinsic_mean(
    problem: FitProblem, weights: Array, start: Array, max_iter: int, tol: float
) -> tuple[Array, LogMap, bool]:
    """The point of smallest mean squared distance, locally.

    The mean tangent is minus half the gradient of that distance, as a vector: it comes
    with every evaluation, and L-BFGS learns the curvature from its changes.
    """
    here = _evaluate(problem, weights, start)
    memory: deque[tuple[Array, Array]] = deque(maxlen=_MEMORY)
    for _ in range(max_iter):
        spread = np.sqrt(here.variance)
        if here.size <= tol * spread:
            break
        direction = _quasi_newton(memory, here)
        if here.momentum @ direction <= 0.0:
            memory.clear()
            direction = here.direction
        length = np.sqrt(problem.metric.inner(here.mean, direction, direction))
        direction = direction * min(1.0, spread / float(length))
        following = _search_along(problem, weights, here, direction)
        if following is None and not memory:
            break
        if following is None:
            memory.clear()
            continue
        step, change = following.mean - here.mean, here.momentum - following.momentum
        if step @ change > _CURVED * np.linalg.norm(step) * np.linalg.norm(change):
            memory.append((step, change))
        here = following
    return here.mean, here.logs, bool(here.size <= tol * np.sqrt(here.variance))


@dataclass(frozen=True)
class _Spot:
    """A candidate for the mean."""

    mean: Array
    logs: LogMap
    variance: float  # mean squared distance
    direction: Array  # mean tangent
    momentum: Array  # the same as a covector: minus half the gradient of the variance
    inverse_tensor: Array

    @property
    def size(self) -> float:
        """Length of the mean tangent."""
        return float(np.sqrt(self.momentum @ self.direction))


def _evaluate(
    problem: FitProblem, weights: Array, mean: Array, near: LogMap | None = None
) -> _Spot:
    (logs,) = problem.log_maps([mean], None if near is None else [near])
    tangents, usable = usable_tangents(logs, weights)
    direction = usable @ tangents
    tensor = problem.metric.host_tensors(mean[None])
    return _Spot(
        mean=mean,
        logs=logs,
        variance=_variance(logs, weights),
        direction=direction,
        momentum=lower(tensor, direction[None])[0],
        inverse_tensor=invert(tensor, mean[None]),
    )


def _search_along(
    problem: FitProblem, weights: Array, here: _Spot, direction: Array
) -> _Spot | None:
    """Follow a geodesic for as long as the variance falls; None if it does not."""
    slope, length = -2.0 * float(here.momentum @ direction), 1.0
    for _ in range(_TRIALS):
        trial = exp_map(problem.metric, here.mean, length * direction).points
        problem.work.exp_maps += 1
        rise = np.inf
        if np.all(np.isfinite(trial)):
            there = _evaluate(problem, weights, trial, here.logs)
            rise = there.variance - here.variance
            if rise < _ARMIJO * length * slope:
                return there
        # Minimum of the parabola through what is known.
        parabola = -0.5 * slope * length**2 / (rise - slope * length)
        length = float(np.clip(parabola, 0.1 * length, 0.5 * length))
    return None


def _quasi_newton(memory: deque[tuple[Array, Array]], here: _Spot) -> Array:
    """L-BFGS direction; without a memory the mean tangent."""
    vector, shares = here.momentum, []
    for step, change in reversed(memory):
        share = (step @ vector) / (step @ change)
        shares.append(share)
        vector = vector - share * change
    direction = lower(here.inverse_tensor, vector[None])[0]
    for (step, change), share in zip(memory, reversed(shares), strict=True):
        direction = direction + (share - change @ direction / (step @ change)) * step
    return direction


def empirical_covariance(problem: FitProblem, weights: Array, logs: LogMap) -> Array:
    """Second moment of the tangents with the paper's 1 / (N - 1)."""
    effective = 1.0 / float(np.sum(weights**2))
    correction = effective / max(effective - 1.0, 1.0)
    return correction * problem.second_moment(logs, weights)


def _variance(logs: LogMap, weights: Array) -> float:
    finite = np.isfinite(logs.lengths)
    squares = np.where(finite, logs.lengths, 0.0) ** 2
    return float(weights @ squares / max(float(weights @ finite), 1e-300))
