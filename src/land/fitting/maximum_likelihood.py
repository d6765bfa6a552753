"""The default optimizer: quasi-Newton for the mean, the covariance profiled out.

For every mean the best covariance is found exactly (`FitProblem.profile`), so only D
parameters remain. The gradient of what remains needs the covariance held fixed (it is
at its optimum), and is taken by differences of the deterministic objective.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky
from land.fitting.estimate import Estimate, FitProblem

Array = NDArray[np.float64]

# Difference step, in standard deviations of the fitted normal distribution.
_DIFFERENCE = 0.01
_LONGEST_STEP = 1.0
_ARMIJO = 1e-4


def fit_maximum_likelihood(
    problem: FitProblem, starts: list[Estimate], max_iter: int, tol: float
) -> tuple[Estimate, bool]:
    """Minimise the objective from the best of several starts.

    Parameters
    ----------
    problem
        The problem.
    starts
        Candidates; their covariances are improved first, and the best one is taken.
    max_iter
        Largest number of steps of the mean.
    tol
        Stop when a step is predicted to lower the objective by less than this.

    Returns
    -------
    The estimate, and whether the stopping rule was met.
    """
    best = min(starts, key=lambda start: start.objective)
    problem.record(best)
    gradient, frame = _gradient(problem, best)
    inverse_hessian = np.eye(len(gradient))
    fresh = True  # no curvature has been learned yet
    for _ in range(max_iter):
        direction = -inverse_hessian @ gradient
        slope = float(gradient @ direction)
        if -0.5 * slope < tol and fresh:
            return best, True
        following, step = _line_search(problem, best, frame, direction, slope)
        if following is None or best.objective - following.objective < tol:
            best = best if following is None else following
            if fresh:
                return best, True
            # Curvature may have misled the search: make sure with a plain gradient.
            gradient, frame = _gradient(problem, best)
            inverse_hessian, fresh = np.eye(len(gradient)), True
            continue
        old_gradient, old_frame = gradient, frame
        best = following
        problem.record(best)
        gradient, frame = _gradient(problem, best)
        # Both gradients in the old frame, where the step was taken.
        change = old_frame.T @ np.linalg.solve(frame.T, gradient) - old_gradient
        turn = np.linalg.solve(frame, old_frame)
        updated = _bfgs(inverse_hessian, step * direction, change)
        inverse_hessian = turn @ updated @ turn.T
        fresh = False
    return best, False


def _gradient(problem: FitProblem, at: Estimate) -> tuple[Array, Array]:
    """Gradient of the profiled objective in units of the covariance, and that frame."""
    frame = cholesky(at.covariance)
    values = [
        problem.shifted_objective(at, at.mean + _DIFFERENCE * column)
        for column in frame.T
    ]
    return (np.array(values) - at.objective) / _DIFFERENCE, frame


def _line_search(
    problem: FitProblem, at: Estimate, frame: Array, direction: Array, slope: float
) -> tuple[Estimate | None, float]:
    """Backtrack from the full step until the objective falls."""
    step = min(1.0, _LONGEST_STEP / float(np.linalg.norm(direction)))
    for _ in range(8):
        mean = at.mean + step * frame @ direction
        trial = problem.profile(mean, at.covariance, at.logs)
        if trial.objective < at.objective + _ARMIJO * step * slope:
            return trial, step
        step *= 0.35
    return None, 0.0


def _bfgs(inverse: Array, step: Array, change: Array) -> Array:
    """BFGS update of the inverse Hessian; unchanged where curvature is not positive."""
    product = float(step @ change)
    if product <= 1e-8 * float(step @ step):
        return inverse
    left = np.eye(len(step)) - np.outer(step, change) / product
    return np.asarray(left @ inverse @ left.T + np.outer(step, step) / product)
