"""The paper's Algorithms 1 and 2, as printed: the reference for the default."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky, invert
from land.density.nodes import volumes_at
from land.fitting.estimate import Estimate, FitProblem
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]

# The paper's step size rule (its appendix on step sizes).
_SHRINK, _GROW = 0.75, 1.1
_MEAN_STEP, _FACTOR_STEP = 0.5, 0.1


def fit_as_in_paper(
    problem: FitProblem, start: Estimate, max_iter: int, tol: float
) -> tuple[Estimate, bool]:
    """Alternate steepest descent in the mean and in the factor A of the precision.

    The constant is the plain Monte Carlo estimate of Eq. 8 with fixed standard normal
    draws, so that objectives of successive steps can be compared. It stops when the
    squared change of the objective is at most `tol`, as the paper does.
    """
    rng = np.random.default_rng(problem.seed)
    normal = rng.standard_normal((problem.n_samples, len(start.mean)))
    mean, logs = start.mean, start.logs
    factor = cholesky(start.precision).T  # precision = A^T A
    samples = _Samples(problem, mean, factor, normal)
    objective = samples.objective(problem.second_moment(logs))
    mean_step, factor_step = _MEAN_STEP, _FACTOR_STEP
    problem.record(_finish(problem, mean, factor, logs))
    converged = False
    for _ in range(max_iter):
        before = objective
        direction = problem.weights @ logs.tangents - samples.first_moment()  # Eq. 11
        mean = exp_map(problem.metric, mean, mean_step * direction).points
        logs = problem.log_maps(mean, logs)
        samples = _Samples(problem, mean, factor, normal)
        middle = samples.objective(problem.second_moment(logs))
        mean_step *= _GROW if middle < before else _SHRINK
        gradient = factor @ (
            problem.second_moment(logs) - samples.second_moment()
        )  # Eq. 12
        factor = factor - factor_step * gradient
        samples = _Samples(problem, mean, factor, normal)
        objective = samples.objective(problem.second_moment(logs))
        factor_step *= _GROW if objective < middle else _SHRINK
        if (objective - before) ** 2 <= tol:
            converged = True
            break
    estimate = _finish(problem, mean, factor, logs)
    problem.record(estimate)
    return estimate, converged


class _Samples:
    """Draws v = A^-1 z from N(0, Sigma), and the volume element at each."""

    def __init__(
        self, problem: FitProblem, mean: Array, factor: Array, normal: Array
    ) -> None:
        self.precision = factor.T @ factor
        self.tangents: Array = np.asarray(np.linalg.solve(factor, normal.T).T, float)
        log_volumes, failed = volumes_at(
            problem.metric, mean, self.tangents, problem.volume, 0.1 * problem.tol
        )
        problem.n_exp_maps += len(normal)
        log_volumes[failed] = -np.inf
        self.shift = float(log_volumes.max())
        self.volumes = np.exp(log_volumes - self.shift)
        log_det = np.linalg.slogdet(self.precision)[1]
        self.log_normaliser = 0.5 * (len(mean) * np.log(2.0 * np.pi) - log_det)

    def objective(self, moment: Array) -> float:
        log_constant = self.log_normaliser + self.shift + np.log(self.volumes.mean())
        return float(0.5 * np.sum(self.precision * moment) + log_constant)

    def first_moment(self) -> Array:
        return np.asarray(self.volumes @ self.tangents / self.volumes.sum())

    def second_moment(self) -> Array:
        weighted = self.volumes[:, None] * self.tangents
        return np.asarray(weighted.T @ self.tangents / self.volumes.sum())


def _finish(problem: FitProblem, mean: Array, factor: Array, logs: LogMap) -> Estimate:
    """The estimate with the accurate constant, comparable to other optimizers'."""
    return problem.evaluate(mean, invert(factor.T @ factor), logs)
