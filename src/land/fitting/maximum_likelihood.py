"""The default optimizer of one distribution: rival starts, quasi-Newton descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.fitting.descent import MeanSearch, Standing, descend
from land.fitting.estimate import Estimate
from land.fitting.problem import FitProblem
from land.fitting.progress import Plain, keep, restore, unpack_standings
from land.fitting.starts import leaders, rank_starts
from land.fitting.turns import Turn, descend_in_turns, standing_of

Array = NDArray[np.float64]

# So many rivals take part in the rounds of the search, which have so many steps.
_RIVALS = (8, 4)
_SEARCH_STEPS = 4
# The search ends here: its objective is not the one that counts.
_ROUGH_TOL = 5e-3
# Rivals that are so far behind are given up, or not looked at before the others.
_FAR_BEHIND, _BEHIND = 1.0, 0.15


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
        Where to start; without it, rival starts are tried.
    max_iter
        Largest number of steps of the mean.
    tol
        Stop when a step is predicted to lower the objective by less than this.
    rng
        Randomness of the starts.

    Returns
    -------
    The estimate, and whether the stopping rule was met.
    """
    kept = restore(problem)
    if kept is None:
        found = _search(problem, weights, start, max(tol, _ROUGH_TOL), rng)
        rivals = [search.standing() for search in found]
        for thinned in problem.thinned(weights, rng):
            ahead, _ = _pursue(*thinned, rivals, max_iter, tol)
            rivals = [ahead.standing()]
    else:
        rivals = unpack_standings(kept["rivals"])
    search, converged = _pursue(problem, weights, rivals, max_iter, tol, kept)
    (estimate,) = problem.verify([search.estimate], [weights])
    problem.record(estimate.objective, [estimate])
    return estimate, converged


def _pursue(
    problem: FitProblem,
    weights: Array,
    rivals: list[Standing],
    max_iter: int,
    tol: float,
    kept: Plain | None = None,
) -> tuple[MeanSearch, bool]:
    """The first rival that does not leave the data on its way to an optimum.

    Also whether the stopping rule was met. What was `kept` of an earlier fit tells
    which rival was on its way.
    """
    for place, search in enumerate(_in_order(problem, rivals, weights)):
        turn = None
        if kept is not None and place < kept["place"]:
            continue  # it was leaving the data
        if kept is not None and place == kept["place"]:
            restore(problem)  # comparing the rivals anew has been counted before
            turn = Turn.from_plain(kept["turn"]) if kept["turn"] else None
        if turn is None:
            problem.history.clear()
        known = {"rivals": [asdict(each) for each in rivals], "place": place}
        search, converged = _refine(problem, search, max_iter, tol, known, turn)
        leaving = problem.enclosure.stopped(search.estimate.mean)
        if not leaving:
            break
    return search, converged and not leaving


def _in_order(
    problem: FitProblem, rivals: list[Standing], weights: Array
) -> Iterator[MeanSearch]:
    """Rivals from the search on all data; the best ones first, others if need be."""
    while rivals:
        near = [
            each for each in rivals if each.objective - rivals[0].objective < _BEHIND
        ]
        rivals = rivals[len(near) :]
        yield from _compared(problem, near, weights)


def _compared(
    problem: FitProblem, rivals: list[Standing], weights: Array
) -> list[MeanSearch]:
    """Rivals from the search, evaluated on all data, the best first."""
    means = [each.mean for each in rivals]
    covariances = [each.covariance for each in rivals]
    problem.economise(means, covariances)
    estimates = problem.profile(means, len(means) * [weights], covariances)
    searches = [
        standing.on(estimate, weights)
        for standing, estimate in zip(rivals, estimates, strict=True)
    ]
    return sorted(searches, key=lambda search: search.estimate.objective)


@dataclass
class _Descent:
    """One distribution on its way down."""

    problem: FitProblem
    search: MeanSearch
    proportions: list[float] = field(default_factory=lambda: [1.0])

    @property
    def standings(self) -> list[Standing]:
        return [self.search.standing()]

    @property
    def objective(self) -> float:
        return self.search.estimate.objective

    @property
    def stderr(self) -> float:
        return self.search.estimate.log_constant.stderr

    def descend(self, steps: int, tol: float) -> bool:
        return descend(self.problem, [self.search], steps, tol)


def _refine(
    problem: FitProblem,
    search: MeanSearch,
    max_iter: int,
    tol: float,
    known: dict[str, Any],
    turn: Turn | None,
) -> tuple[MeanSearch, bool]:
    """Descend to the optimum; whether the stopping rule was met.

    `known` is kept beside each `turn`; one of an earlier fit is where this one goes on.
    """
    weights = search.weights

    def renew(turn: Turn) -> _Descent:
        (standing,) = turn.standings
        (estimate,) = problem.profile([standing.mean], [weights], [standing.covariance])
        return _Descent(problem, standing.on(estimate, weights))

    if turn is None:
        keep(problem, **known, turn=None)
        problem.record(search.estimate.objective, [search.estimate])
        descent = _Descent(problem, search)
        turn = standing_of(problem, descent, max_iter)
    else:
        descent = renew(turn)
    descent, converged = descend_in_turns(problem, descent, turn, renew, tol, **known)
    return descent.search, converged


def _search(
    problem: FitProblem,
    weights: Array,
    start: Array | None,
    tol: float,
    rng: np.random.Generator,
) -> list[MeanSearch]:
    """Where descents on a rough version of the problem end, as far as it matters."""
    rough, own, _ = problem.sample(weights, rng)
    if start is None:
        estimates = rank_starts(rough, own, rng)
    else:
        estimates = rough.profile([start], [own])
    searches = [MeanSearch(estimate, own) for estimate in estimates]
    for count in _RIVALS:
        searches = _leaders(rough, searches, count)
        renewed = rough.profile(
            [search.estimate.mean for search in searches],
            len(searches) * [own],
            [search.estimate.covariance for search in searches],
        )
        searches = [
            search.resumed(estimate)
            for search, estimate in zip(searches, renewed, strict=True)
        ]
        descend(rough, searches, _SEARCH_STEPS, tol)
    return _leaders(rough, searches, _RIVALS[-1])


def _leaders(
    rough: FitProblem, searches: list[MeanSearch], count: int
) -> list[MeanSearch]:
    """Searches that may still win."""
    places = {id(search.estimate): search for search in searches}
    best = leaders(rough, [search.estimate for search in searches], count)
    close = [each for each in best if each.objective - best[0].objective < _FAR_BEHIND]
    return [places[id(estimate)] for estimate in close]
