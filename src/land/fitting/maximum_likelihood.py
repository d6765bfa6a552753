"""The default optimizer of one distribution: rival starts, quasi-Newton descent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from land.fitting.descent import MeanSearch, descend
from land.fitting.problem import Estimate, FitProblem
from land.fitting.starts import leaders, rank_starts

Array = NDArray[np.float64]

# So many rivals take part in the rounds of the search, which have so many steps.
_RIVALS = (8, 4)
_SEARCH_STEPS = 4
# The search ends here: its objective is not the one that counts.
_ROUGH_TOL = 5e-3
# Rivals that are so far behind are given up, or not looked at before the others.
_FAR_BEHIND, _BEHIND = 1.0, 0.15
# Steps after which all curves are computed anew: others may be shorter by then.
STEPS_BETWEEN_RENEWALS = 8
# So often a fit that had converged may go on from renewed curves.
MOST_SURPRISES = 4


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
    rivals = _search(problem, weights, start, max(tol, _ROUGH_TOL), rng)
    for search in _in_order(problem, rivals, weights):
        problem.history.clear()
        estimate, converged = _refine(problem, search, max_iter, tol)
        leaving = problem.enclosure.stopped(estimate.mean)
        if not leaving:
            break
    problem.record(estimate.objective, [estimate])
    return estimate, converged and not leaving


def _in_order(
    problem: FitProblem, rivals: list[MeanSearch], weights: Array
) -> Iterator[MeanSearch]:
    """Rivals from the search on all data; the best ones first, others if need be."""
    while rivals:
        best = rivals[0].estimate.objective
        near = [each for each in rivals if each.estimate.objective - best < _BEHIND]
        rivals = rivals[len(near) :]
        yield from _compared(problem, near, weights)


def _compared(
    problem: FitProblem, rivals: list[MeanSearch], weights: Array
) -> list[MeanSearch]:
    """Rivals from the search, evaluated on all data, the best first."""
    means = [each.estimate.mean for each in rivals]
    covariances = [each.estimate.covariance for each in rivals]
    problem.economise(means, covariances)
    estimates = problem.profile(means, len(means) * [weights], covariances)
    searches = [
        search.resumed(estimate, weights)
        for search, estimate in zip(rivals, estimates, strict=True)
    ]
    return sorted(searches, key=lambda search: search.estimate.objective)


def _refine(
    problem: FitProblem, search: MeanSearch, max_iter: int, tol: float
) -> tuple[Estimate, bool]:
    """Descend to the optimum; whether the stopping rule was met.

    A fit that has converged goes on if renewed curves change the objective, but not
    for ever: where two curves are equally short, they may go on changing.
    """
    problem.record(search.estimate.objective, [search.estimate])
    converged, surprises, remaining = False, 0, max_iter
    while remaining > 0 and surprises < MOST_SURPRISES:
        n_steps = len(problem.history)
        turn = min(remaining, STEPS_BETWEEN_RENEWALS)
        converged = descend(problem, [search], turn, tol)
        remaining -= len(problem.history) - n_steps
        last = search.estimate
        (renewed,) = problem.profile([last.mean], [search.weights], [last.covariance])
        search = search.resumed(renewed)
        if converged and abs(renewed.objective - last.objective) < tol:
            break
        surprises += converged
    (verified,) = problem.verify([search.estimate], [search.weights])
    return verified, converged


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
