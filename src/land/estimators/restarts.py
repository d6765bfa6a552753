"""Fits that survive an interrupt, and several fits of which the best one counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from land.estimators.guesses import FirstGuesses
from land.estimators.parallel import runs_here, spread
from land.fitting import (
    FitProblem,
    FitSettings,
    MixtureEstimate,
    NotWorthwhileError,
    Snapshot,
    Step,
    fit_kmeans,
    fit_mixture,
    fit_single,
    least_squares_mixture,
)
from land.fitting.estimate import Work

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What one fit has come to.

    Attributes
    ----------
    snapshot : Snapshot
        The model.
    converged, interrupted : bool
        Whether the stopping rule was met; whether an interrupt came before.
    starved : list of int
        Components that have lost their data to others in the course of EM.
    history : list of Step
    work : Work
    gain : float or None
        Over the baseline, if the fit was given up because that is too small.
    """

    snapshot: Snapshot
    converged: bool
    interrupted: bool
    starved: list[int]
    history: list[Step]
    work: Work
    gain: float | None = None


Fit = Callable[[FitProblem], tuple[Snapshot, bool, list[int]]]


def attempt(problem: FitProblem, fit: Fit) -> Outcome:
    """What a fit comes to; an interrupt ends it with what it has reached, if anything.

    `fit` returns the model, whether it converged, and starved components.
    """
    own = replace(problem, work=Work(), history=[], latest=None)
    try:
        snapshot, converged, starved = fit(own)
    except NotWorthwhileError as error:
        assert own.latest is not None  # the search has recorded it
        return Outcome(own.latest, False, False, [], [], own.work, error.gain)
    except KeyboardInterrupt:
        if own.latest is None:
            raise
        return Outcome(own.latest, False, True, [], own.history, own.work)
    return Outcome(snapshot, converged, False, starved, own.history, own.work)


def fit_starts(
    problem: FitProblem,
    weights: Array,
    settings: FitSettings,
    guesses: FirstGuesses,
    rngs: list[np.random.Generator],
    n_jobs: int | None,
) -> list[Outcome]:
    """Fit once with each source of randomness, as many at a time as `n_jobs` says.

    After an interrupt the list is shorter, and one of its entries says so. The callback
    hears of every step of fits in this process, and of the last step of others.
    """
    callback = None if runs_here(rngs, n_jobs) else problem.callback
    if callback is not None:
        problem = replace(problem, callback=None)
    fit = partial(
        fit_start,
        problem=problem,
        weights=weights,
        settings=settings,
        guesses=guesses,
    )
    found: dict[int, Outcome] = {}
    try:
        for position, outcome in spread(fit, rngs, n_jobs):
            found[position] = outcome
            if callback is not None and outcome.history:
                callback(outcome.history[-1])
            if outcome.interrupted:
                break
    except KeyboardInterrupt:
        if not found:
            raise
        position, outcome = found.popitem()
        found[position] = replace(outcome, interrupted=True)
    return [found[position] for position in sorted(found)]


def best_of(outcomes: list[Outcome]) -> Outcome:
    """The outcome with the best model; the work of all of them.

    Fits that were given up count if there are no others.
    """
    ended = [outcome for outcome in outcomes if outcome.gain is None] or outcomes
    best = min(ended, key=lambda outcome: outcome.snapshot.objective)
    work = sum((outcome.work for outcome in outcomes), Work())
    interrupted = any(outcome.interrupted for outcome in outcomes)
    return replace(best, work=work, interrupted=interrupted)


def fit_start(
    rng: np.random.Generator,
    problem: FitProblem,
    weights: Array,
    settings: FitSettings,
    guesses: FirstGuesses,
) -> Outcome:
    """One fit of a mixture."""

    def fit(own: FitProblem) -> tuple[Snapshot, bool, list[int]]:
        mixture, converged = _fit(own, weights, settings, guesses, rng)
        starved = mixture.starved if settings.method == "ml" else []
        return mixture.snapshot(), converged, starved

    return attempt(problem, fit)


def _fit(
    problem: FitProblem,
    weights: Array,
    settings: FitSettings,
    guesses: FirstGuesses,
    rng: np.random.Generator,
) -> tuple[MixtureEstimate, bool]:
    if settings.method == "ml" and guesses.n_components == 1:
        start = guesses.single(problem.data.shape[1])
        return fit_single(problem, weights, start, settings, rng)
    if settings.method == "ml":
        first = guesses.responsibilities(problem, weights, rng)
        return fit_mixture(problem, weights, first, settings, rng)
    centers = guesses.means(problem, weights, rng)
    clusters = fit_kmeans(problem, weights, centers, settings.max_iter, settings.tol)
    mixture = least_squares_mixture(
        problem, weights, list(clusters.centers), clusters.logs, clusters.labels
    )
    return mixture, clusters.converged
