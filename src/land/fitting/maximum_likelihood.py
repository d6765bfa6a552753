"""The default optimizer of one distribution: rival starts, quasi-Newton descent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from land.fitting.descent import MeanSearch, descend
from land.fitting.problem import Estimate, FitProblem

Array = NDArray[np.float64]

_ROUNDS = 3
# First, the optimum of a rougher objective is approached: fewer rays, larger tolerance.
_ROUGHER, _ROUGH_TOL = 4, 5e-3


def fit_maximum_likelihood(
    problem: FitProblem,
    weights: Array,
    starts: Sequence[Array],
    max_iter: int,
    tol: float,
) -> tuple[Estimate, bool]:
    """Minimise the objective from several starting means; keep the best.

    Parameters
    ----------
    problem
        The problem.
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    starts : arrays of shape (D,)
        Starting means.
    max_iter
        Largest number of steps of the mean.
    tol
        Stop when a step is predicted to lower the objective by less than this.

    Returns
    -------
    The estimate, and whether the stopping rule was met.
    """
    with problem.rougher(_ROUGHER):
        estimates = problem.profile(list(starts), len(starts) * [weights])
        searches = [MeanSearch(estimate, weights) for estimate in estimates]
        descend(problem, searches, max_iter, max(tol, _ROUGH_TOL))
    search = min(searches, key=lambda search: search.estimate.objective)
    best = search.estimate
    (best,) = problem.profile_covariances(
        [best.mean], [weights], [best.logs], [best.covariance]
    )
    search = search.resumed(best)
    for _ in range(_ROUNDS):
        remaining = max(1, max_iter - len(problem.history))
        converged = descend(problem, [search], remaining, tol)
        best = search.estimate
        # Curves were carried along with the mean: others may be shorter now.
        (fresh,) = problem.profile([best.mean], [weights], [best.covariance])
        if abs(fresh.objective - best.objective) < tol or not converged:
            break
        search = MeanSearch(fresh, weights)
    (verified,) = problem.verify([fresh], [weights])
    problem.record(verified.objective, [verified])
    return verified, converged
