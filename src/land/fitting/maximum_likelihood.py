"""Maximum likelihood for one distribution: candidates, then descent up the ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import cholesky
from land.fitting.climb import climb
from land.fitting.descent import Search, descend
from land.fitting.estimate import Component, Estimate
from land.fitting.fidelity import Fidelity, ladder
from land.fitting.likelihood import Likelihood
from land.fitting.problem import FitProblem
from land.fitting.profile import assemble, components_at, verify
from land.fitting.starts import central_points

Array = NDArray[np.float64]

# Candidates that descend on the second rung; those that are then compared on all data,
# if they are not farther behind than this.
_CANDIDATES, _COMPARED, _BEHIND = 3, 2, 0.1
_SEARCH_STEPS = 4
# Means that are so near each other, in standard deviations, are the same.
_SAME = 0.3


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
    (estimate,) = verify(final, model.estimates)
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
        parts = components_at(problem, means, len(means) * [weights], covariances)
        searches = self.likelihood.searches(parts, state["radii"])
        self.search = min(searches, key=_cautious_objective)
        self.converged = False

    @property
    def estimates(self) -> list[Estimate]:
        """The distribution."""
        return [self.search.spot]

    @property
    def objective(self) -> float:
        """Mean negative log likelihood."""
        return float(self.search.spot.objective)

    def objective_of(self, components: Sequence[Component]) -> float:
        """The same with these for the components."""
        return assemble(self.problem, components[0]).objective

    def record(self) -> None:
        """Add a step to the problem's history."""
        self.problem.record(self.objective, self.estimates)

    def descend(self, steps: int, tol: float) -> int:
        """Take at most so many steps, and say how many."""
        taken = descend(
            self.likelihood, [self.search], steps, tol, lambda _: self.record()
        )
        self.converged = self.search.converged
        return taken

    def state(self) -> dict[str, Any]:
        """What it takes to go on."""
        return _state([self.search])


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
    searches = likelihood.searches(components_at(part, means, len(means) * [own]))
    descend(
        likelihood,
        searches,
        _SEARCH_STEPS,
        descent.tol,
        lambda spot: part.record(spot.objective, [spot]),
    )
    best = _leaders(searches)
    part.check_gain(_cautious_objective(best[0]), own)
    return _state(best)


def _leaders(searches: Sequence[Search]) -> list[Search]:
    """The best searches, one in each place, none far behind.

    A constant that is not known well may be too small: its error counts.
    """
    ranked = sorted(searches, key=_cautious_objective)
    chosen: list[Search] = []
    for search in ranked:
        behind = _cautious_objective(search) - _cautious_objective(ranked[0])
        if behind <= _BEHIND and not any(_same_place(search, one) for one in chosen):
            chosen.append(search)
    return chosen[:_COMPARED]


def _cautious_objective(search: Search) -> float:
    """The objective if the constant were larger by its standard error."""
    return float(search.spot.objective + search.spot.log_constant.stderr)


def _same_place(one: Search, other: Search) -> bool:
    factor = cholesky(other.spot.covariance)
    shift = np.linalg.solve(factor, one.spot.mean - other.spot.mean)
    return bool(np.linalg.norm(shift) < _SAME)
