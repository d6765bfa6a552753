"""Intrinsic least squares: the mean of smallest variance, the empirical covariance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.fitting.problem import Estimate, FitProblem, usable_tangents
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]


def fit_least_squares(
    problem: FitProblem, weights: Array, start: Array, max_iter: int, tol: float
) -> tuple[Estimate, bool]:
    """Karcher mean by descent along geodesics, and the covariance of the tangents.

    Returns the estimate and whether the mean's last step was below `tol`, relative to
    the spread of the data.
    """
    mean, logs, converged = intrinsic_mean(problem, weights, start, max_iter, tol)
    covariance = empirical_covariance(problem, weights, logs)
    (estimate,) = problem.evaluate([mean], [covariance], [weights], [logs])
    problem.record(estimate.objective, [estimate])
    return estimate, converged


def intrinsic_mean(
    problem: FitProblem, weights: Array, start: Array, max_iter: int, tol: float
) -> tuple[Array, LogMap, bool]:
    """The point of smallest mean squared distance, locally."""
    mean = start
    (logs,) = problem.log_maps([start])
    variance = _variance(logs, weights)
    step = 1.0
    for _ in range(max_iter):
        tangents, usable = usable_tangents(logs, weights)
        direction = usable @ tangents
        size = np.sqrt(problem.metric.inner(mean, direction, direction))
        if size <= tol * np.sqrt(variance) or step < 1e-4:
            return mean, logs, bool(size <= tol * np.sqrt(variance))
        trial = exp_map(problem.metric, mean, step * direction).points
        problem.work.exp_maps += 1
        (trial_logs,) = problem.log_maps([trial], [logs])
        trial_variance = _variance(trial_logs, weights)
        if trial_variance < variance:
            mean, logs, variance = trial, trial_logs, trial_variance
            step = min(1.0, 1.5 * step)
        else:
            step *= 0.4
    return mean, logs, False


def empirical_covariance(problem: FitProblem, weights: Array, logs: LogMap) -> Array:
    """Second moment of the tangents with the paper's 1 / (N - 1)."""
    effective = 1.0 / float(np.sum(weights**2))
    correction = effective / max(effective - 1.0, 1.0)
    return correction * problem.second_moment(logs, weights)


def _variance(logs: LogMap, weights: Array) -> float:
    finite = np.isfinite(logs.lengths)
    squares = np.where(finite, logs.lengths, 0.0) ** 2
    return float(weights @ squares / max(float(weights @ finite), 1e-300))
