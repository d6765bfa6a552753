"""Maximum likelihood for one distribution: candidates, then descent up the ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.fitting.climb import climb
from land.fitting.descent import Search, descend
from land.fitting.estimate import Estimate
from land.fitting.fidelity import Fidelity, ladder
from land.fitting.likelihood import Likelihood
from land.fitting.problem import FitProblem
from land.fitting.starts import cautious_objective, central_points, leaders
from land.geodesics import LogMap

Array = NDArray[np.float64]

# Candidates that descend on the second rung; those that are then compared on all data,
# if they are not farther behind than this.
_CANDIDATES, _COMPARED, _BEHIND = 3, 2, 0.1
_SEARCH_STEPS = 4


def fit_maximum_likelihood(
    problem: FitProblem,
    weights: Array,
    start: Array | None,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Estimate, bool]:
    """Minimise the objective.

    Parameters
    ----------
    problem
        The problem.
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    start : ndarray of shape (D,), optional
        Where to start; without it, candidates are compared.
    max_iter
        Largest number of steps of the mean.
    tol
        Stop when a step is predicted to lower the objective by less than this.
    rng
        Randomness of the candidates.

    Returns
    -------
    The estimate, and whether the stopping rule was met.
    """
    n_rows = int(np.sum(weights > 0.0))
    rungs = ladder(n_rows, 1, problem.metric.dim, problem.points_on_the_way, tol)
    model = climb(
        problem,
        weights,
        rungs[2:],
        lambda: _search(problem, weights, start, rungs[:2], rng),
        _Descent,
        max_iter,
    )
    final = replace(problem, tol=rungs[-1].map_tol)
    (estimate,) = final.verify(model.estimates, [weights])
    problem.record(estimate.objective, [estimate])
    return estimate, model.converged


class _Descent:
    """Candidates for one distribution on a rung of the ladder."""

    def __init__(
        self, problem: FitProblem, weights: Array, state: dict[str, Any]
    ) -> None:
        self.problem, self.weights = problem, weights
        self.likelihood = Likelihood(problem)
        means = [np.asarray(mean) for mean in state["means"]]
        covariances = state["covariances"]
        if covariances is not None:
            covariances = [np.asarray(each) for each in covariances]
        shared = len(means) * [weights]
        searches = self.likelihood.start(means, shared, covariances, state["radii"])
        self.searches = leaders(searches, 1, np.inf)
        self.converged = False
        if not problem.history:
            self.record(self.searches[0].spot)

    @property
    def estimates(self) -> list[Estimate]:
        """The distribution."""
        return [self.searches[0].spot]

    @property
    def shares(self) -> list[Array]:
        """Weights of the data."""
        return [self.weights]

    @property
    def objective(self) -> float:
        """Mean negative log likelihood."""
        return self.searches[0].spot.objective

    def objective_with(self, logs: Sequence[LogMap]) -> float:
        """The same if these were the log maps of the data."""
        spot, (own,) = self.searches[0].spot, logs
        parts = spot.mean, spot.covariance, self.weights, own, spot.cover
        return self.problem.assemble(*parts).objective

    def record(self, spot: Estimate) -> None:
        self.problem.record(spot.objective, [spot])

    def descend(self, steps: int, tol: float) -> int:
        """Take at most so many steps, and say how many."""
        taken = descend(self.likelihood, self.searches, steps, tol, self.record)
        self.converged = self.searches[0].converged
        return taken

    def state(self) -> dict[str, Any]:
        """What it takes to go on."""
        return _state(self.searches)


def _state(searches: Sequence[Search]) -> dict[str, Any]:
    return {
        "means": [search.spot.mean for search in searches],
        "covariances": [search.spot.covariance for search in searches],
        "radii": [search.radius for search in searches],
    }


def _search(
    problem: FitProblem,
    weights: Array,
    start: Array | None,
    rungs: Sequence[Fidelity],
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Central points of a few data, and where they lead on the next rung.

    A given start is where the fit starts, unless a baseline may spare it the fit.
    """
    if start is not None and problem.baseline is None:
        return {"means": [start], "covariances": None, "radii": None}
    ranking, descent = rungs
    if start is None:
        part, own, _ = problem.at(ranking, weights, rng)
        means = list(central_points(part.metric, part.data, own, _CANDIDATES))
    else:
        means = [start]
    part, own, _ = problem.at(descent, weights, rng)
    likelihood = Likelihood(part)
    searches = likelihood.start(means, len(means) * [own])
    descend(
        likelihood,
        searches,
        _SEARCH_STEPS,
        descent.tol,
        lambda spot: part.record(spot.objective, [spot]),
    )
    best = leaders(searches, _COMPARED, _BEHIND)
    part.check_gain(cautious_objective(best[0]), own)
    return _state(best)
