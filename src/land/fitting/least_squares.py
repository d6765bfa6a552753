"""Intrinsic least squares: the mean of smallest variance, the empirical covariance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land.fitting.estimate import Estimate, usable_tangents
from land.fitting.problem import FitProblem
from land.geodesics import LogMap, exp_map
from land.metrics.host_tensors import invert, lower, norms

Array = NDArray[np.float64]
Memory = deque[tuple[Array, Array]]  # steps, and what they changed in the momentum

_MEMORY = 10
_ARMIJO = 1e-4
# Steps along which the gradient hardly changes say nothing about the curvature.
_CURVED = 1e-3
_TRIALS = 8
# What was learned is forgotten when so many steps in a row come out this short.
_MISLED, _SHORT = 2, 0.3
_ROUNDING = 1e-12


def fit_least_squares(
    problem: FitProblem,
    weights: Array,
    start: Array,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Estimate, bool]:
    """Karcher mean by descent along geodesics, and the covariance of the tangents.

    Of many data samples bring the mean near. Returns the estimate and whether the mean
    tangent is shorter than `tol`, relative to the spread of the data.
    """
    memory: Memory = deque(maxlen=_MEMORY)
    for thinned in problem.thinned(weights, rng) if max_iter else ():
        start, _, _ = intrinsic_mean(*thinned, start, max_iter, tol, memory)
    mean, logs, converged = intrinsic_mean(
        problem, weights, start, max_iter, tol, memory
    )
    covariance = empirical_covariance(problem, weights, logs)
    (estimate,) = problem.evaluate([mean], [covariance], [weights], [logs])
    problem.record(estimate.objective, [estimate])
    return estimate, converged


def intrinsic_mean(
    problem: FitProblem,
    weights: Array,
    start: Array,
    max_iter: int,
    tol: float,
    memory: Memory | None = None,
) -> tuple[Array, LogMap, bool]:
    """The point of smallest mean squared distance, locally.

    The mean tangent is minus half the gradient of that distance, as a vector: it comes
    with every evaluation, and L-BFGS learns the curvature from its changes. It goes on
    from the `memory` of an earlier descent.
    """
    memory = deque(maxlen=_MEMORY) if memory is None else memory
    here = _evaluate(problem, weights, start, *problem.log_maps([start]))
    shortened = 0
    for _ in range(max_iter):
        spread = np.sqrt(here.variance)
        if here.size <= tol * spread:
            break
        direction = _quasi_newton(memory, here)
        if here.momentum @ direction <= 0.0:
            memory.clear()
            direction = here.direction
        length = float(np.sqrt(problem.metric.inner(here.mean, direction, direction)))
        direction = direction * min(1.0, spread / length)
        following = _search_along(problem, weights, here, direction)
        if following is None and not memory:
            break
        if following is None:
            memory.clear()
            continue
        step, change = following.mean - here.mean, here.momentum - following.momentum
        taken = np.sqrt(problem.metric.inner(here.mean, step, step))
        shortened = shortened + 1 if taken < _SHORT * min(length, spread) else 0
        if shortened >= _MISLED:
            memory.clear()
            shortened = 0
        if _is_curved(here, step, change):
            memory.append((step, change))
        here = following
    return here.mean, here.logs, bool(here.size <= tol * np.sqrt(here.variance))


@dataclass(frozen=True)
class _Spot:
    """A candidate for the mean."""

    mean: Array
    logs: LogMap
    reached: float  # weight of the data to which there is a geodesic
    variance: float  # mean squared distance
    direction: Array  # mean tangent
    momentum: Array  # the same as a covector: minus half the gradient of the variance
    tensor: Array  # (1, D) or (1, D, D)

    @property
    def size(self) -> float:
        """Length of the mean tangent."""
        return float(np.sqrt(self.momentum @ self.direction))


def _evaluate(problem: FitProblem, weights: Array, mean: Array, logs: LogMap) -> _Spot:
    tangents, usable = usable_tangents(logs, weights)
    direction = usable @ tangents
    tensor = problem.metric.host_tensors(mean[None])
    return _Spot(
        mean=mean,
        logs=logs,
        reached=_reached(logs, weights),
        variance=_variance(logs, weights),
        direction=direction,
        momentum=lower(tensor, direction[None])[0],
        tensor=tensor,
    )


def _search_along(
    problem: FitProblem, weights: Array, here: _Spot, direction: Array
) -> _Spot | None:
    """Where a geodesic leads, after a full step or a shorter one that helps.

    None if none does.
    """
    slope, length = -2.0 * float(here.momentum @ direction), 1.0
    for _ in range(_TRIALS):
        trial = exp_map(problem.metric, here.mean, length * direction).points
        problem.work.exp_maps += 1
        rise = np.inf
        if np.all(np.isfinite(trial)):
            (logs,) = problem.log_maps([trial], [here.logs])
            if _reached(logs, weights) >= here.reached - _ROUNDING:
                there = _evaluate(problem, weights, trial, logs)
                rise = there.variance - here.variance
                if rise < _ARMIJO * length * slope:
                    return there
                # Where the errors of lengths hide the fall, the gradient still tells.
                if rise < problem.tol * here.variance and there.size < here.size:
                    return there
        # Minimum of the parabola through what is known.
        parabola = -0.5 * slope * length**2 / (rise - slope * length)
        length = float(np.clip(parabola, 0.1 * length, 0.5 * length))
    return None


def _is_curved(here: _Spot, step: Array, change: Array) -> bool:
    """Whether the gradient changes along a step so that it says something."""
    inverse = invert(here.tensor, step[None])
    sizes = norms(here.tensor, step[None]) * norms(inverse, change[None])
    return bool(step @ change > _CURVED * sizes[0])


def _quasi_newton(memory: Memory, here: _Spot) -> Array:
    """L-BFGS direction; without a memory the mean tangent."""
    vector, shares = here.momentum, []
    for step, change in reversed(memory):
        share = (step @ vector) / (step @ change)
        shares.append(share)
        vector = vector - share * change
    direction = lower(invert(here.tensor, vector[None]), vector[None])[0]
    for (step, change), share in zip(memory, reversed(shares), strict=True):
        direction = direction + (share - change @ direction / (step @ change)) * step
    return direction


def empirical_covariance(problem: FitProblem, weights: Array, logs: LogMap) -> Array:
    """Second moment of the tangents with the paper's 1 / (N - 1)."""
    effective = 1.0 / float(np.sum(weights**2))
    correction = effective / max(effective - 1.0, 1.0)
    return correction * problem.second_moment(logs, weights)


def _reached(logs: LogMap, weights: Array) -> float:
    return float(weights @ np.all(np.isfinite(logs.tangents), axis=1))


def _variance(logs: LogMap, weights: Array) -> float:
    finite = np.isfinite(logs.lengths)
    squares = np.where(finite, logs.lengths, 0.0) ** 2
    return float(weights @ squares / max(float(weights @ finite), 1e-300))
