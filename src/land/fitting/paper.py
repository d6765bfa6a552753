"""The paper's Algorithms 1 and 2, as printed: the reference for the default."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.density.constant import monte_carlo_nodes
from land.density.nodes import cholesky, invert, model_shares
from land.fitting.estimate import Component, Estimate
from land.fitting.problem import FitProblem
from land.fitting.profile import assemble, evaluate, second_moment
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]

# The paper's step size rule (its appendix on step sizes).
_SHRINK, _GROW = 0.75, 1.1
_MEAN_STEP, _FACTOR_STEP = 0.5, 0.1


def fit_as_in_paper(
    problem: FitProblem, weights: Array, start: Estimate, max_iter: int, tol: float
) -> tuple[Estimate, bool]:
    """Alternate steepest descent in the mean and in the factor A of the precision.

    The constant is the plain Monte Carlo estimate of Eq. 8 with fixed standard normal
    draws, so that objectives of successive steps can be compared. It stops when the
    squared change of the objective is at most `tol`, as the paper does.
    """
    rng = np.random.default_rng(problem.seed)
    normal = rng.standard_normal((problem.n_samples, len(start.mean)))

    def sampled(mean: Array, factor: Array, logs: LogMap) -> Estimate:
        """The estimate with precision A^T A and the plain estimate of the constant."""
        covariance = invert(factor.T @ factor)
        nodes = monte_carlo_nodes(
            problem.metric,
            mean,
            cholesky(covariance),
            normal,
            problem.law,
            problem.tol,
        )
        component = Component(
            mean=mean, covariance=covariance, weights=weights, logs=logs
        )
        return assemble(problem, component, nodes)

    factor = cholesky(start.precision).T
    current = sampled(start.mean, factor, start.logs)
    mean_step, factor_step = _MEAN_STEP, _FACTOR_STEP
    problem.record(current.objective, [current])
    converged = False
    for _ in range(max_iter):
        before = current.objective
        assert current.nodes is not None
        shares = model_shares(current.nodes, current.precision)
        direction = weights @ current.logs.tangents - shares @ current.nodes.tangents
        mean = exp_map(problem.metric, current.mean, mean_step * direction).points
        (logs,) = problem.map_points([mean], [problem.data], [current.logs])  # Eq. 11
        middle = sampled(mean, factor, logs)
        mean_step *= _GROW if middle.objective < before else _SHRINK
        assert middle.nodes is not None
        shares = model_shares(middle.nodes, middle.precision)
        modelled = (shares[:, None] * middle.nodes.tangents).T @ middle.nodes.tangents
        modelled = problem.covariance_type.restrict(modelled)
        gradient = factor @ (second_moment(problem, logs, weights) - modelled)  # Eq. 12
        factor = factor - factor_step * gradient
        current = sampled(mean, factor, logs)
        factor_step *= _GROW if current.objective < middle.objective else _SHRINK
        problem.record(current.objective, [current])
        if (current.objective - before) ** 2 <= tol:
            converged = True
            break
    # The accurate constant makes the objective comparable to other optimizers'.
    (estimate,) = evaluate(problem, [current])
    problem.record(estimate.objective, [estimate])
    return estimate, converged
