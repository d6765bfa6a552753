"""Maximum likelihood for one distribution: candidates, then descent up the ladder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.fitting.climb import climb
from land.fitting.descent import Search, descend
from land.fitting.estimate import Component, Estimate
from land.fitting.fidelity import Fidelity, ladder
from land.fitting.likelihood import Likelihood
from land.fitting.problem import FitProblem
from land.fitting.profile import assemble, components_at, verify
from land.fitting.starts import central_rows
from land.geodesics.graph import graph_distances

Array = NDArray[np.float64]

# Candidates for the mean, and the steps by which they are compared.
_CANDIDATES, _SEARCH_STEPS = 3, 4


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
        rungs[-1:] if problem.is_flat else rungs[1:],
        lambda: _search(problem, weights, start, rungs[0], rng),
        _Descent,
        max_iter,
    )
    final = replace(problem, tol=rungs[-1].map_tol)
    (estimate,) = verify(final, model.estimates)
    problem.record(estimate.objective, [estimate])
    return estimate, model.converged


class _Descent:
    """One distribution on a rung of the ladder."""

    def __init__(
        self, problem: FitProblem, weights: Array, state: dict[str, Any]
    ) -> None:
        self.problem, self.weights = problem, weights
        self.likelihood = Likelihood(problem)
        mean, covariance = np.asarray(state["mean"]), state["covariance"]
        (part,) = components_at(problem, [mean], [weights])
        if covariance is not None:
            part = replace(part, covariance=np.asarray(covariance))
        radii = None if state["radius"] is None else [state["radius"]]
        (self.search,) = self.likelihood.searches([part], radii)
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
        return _state(self.search)


def _state(search: Search) -> dict[str, Any]:
    spot = search.spot
    return {"mean": spot.mean, "covariance": spot.covariance, "radius": search.radius}


def _search(
    problem: FitProblem,
    weights: Array,
    start: Array | None,
    rung: Fidelity,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Central points of a few data, and where the best of them leads.

    A given start is where the fit starts, unless a baseline may spare it the fit. In
    flat space the optimum is known.
    """
    if problem.is_flat:
        start = weights @ problem.data
    if start is not None and problem.baseline is None:
        return {"mean": start, "covariance": None, "radius": None}
    part, own, _ = problem.at(rung, weights, rng)
    if start is None:
        distances = graph_distances(part.metric, part.data)
        means = list(part.data[central_rows(distances, own, _CANDIDATES)])
    else:
        means = [start]
    likelihood = Likelihood(part)
    searches = likelihood.searches(components_at(part, means, len(means) * [own]))
    descend(
        likelihood,
        searches,
        _SEARCH_STEPS,
        rung.tol,
        lambda spot: part.record(spot.objective, [spot]),
    )
    best = min(searches, key=_cautious_objective)
    part.check_gain(_cautious_objective(best), own)
    return _state(best)


def _cautious_objective(search: Search) -> float:
    """The objective if the constant were larger by its standard error.

    A constant that is not known well may be too small.
    """
    return float(search.spot.objective + search.spot.log_constant.stderr)
