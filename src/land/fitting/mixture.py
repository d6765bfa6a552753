"""Mixtures by expectation maximisation, on the weighted steps of one distribution.

An M-step solves for every covariance exactly and takes one quasi-Newton step of every
mean, all components in one batch. It never raises the expected objective, so EM never
raises the negative log likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.fitting.descent import MeanSearch, advance
from land.fitting.least_squares import empirical_covariance
from land.fitting.problem import Estimate, FitProblem
from land.fitting.single import FitSettings, fit_one
from land.fitting.starts import rank_starts, sample_rows
from land.geodesics import LogMap

Array = NDArray[np.float64]

# A component whose responsibilities add up to less than this many data is left alone.
_FEWEST_DATA = 1.0
# First, the optimum of a rougher objective is approached: fewer rays, larger tolerance.
_ROUGHER, _ROUGH_TOL = 4, 5e-3
# Rival first guesses take so many steps on so many data.
_RACE_STEPS, _RACE_DATA = 4, 200


@dataclass(frozen=True)
class MixtureEstimate:
    """Components, their proportions, and what they say about the data.

    Attributes
    ----------
    estimates : list of Estimate
    proportions : ndarray of shape (K,)
    responsibilities : ndarray of shape (N, K)
    objective : float
        Mean negative log likelihood with respect to the metric's volume.
    """

    estimates: list[Estimate]
    proportions: Array
    responsibilities: Array
    objective: float

    @property
    def starved(self) -> list[int]:
        """Components that have lost their data."""
        sizes = self.responsibilities.sum(axis=0)
        return [int(k) for k in np.flatnonzero(sizes < _FEWEST_DATA)]


def fit_mixture(
    problem: FitProblem,
    weights: Array,
    rivals: Sequence[Array],
    settings: FitSettings,
    rng: np.random.Generator,
) -> tuple[MixtureEstimate, bool]:
    """Maximise the likelihood of a mixture, from the best of several first guesses.

    Parameters
    ----------
    problem
        Data, metric and numerical settings.
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    rivals : arrays of shape (N, K)
        First guesses of the responsibilities; rows sum to one.
    settings
        How to fit.
    rng
        Randomness of the starting means.

    Returns
    -------
    The mixture, and whether the stopping rule was met.
    """
    if rivals[0].shape[1] == 1:
        estimate, converged = fit_one(problem, weights, "least_squares", settings, rng)
        return _expect(weights, [estimate], np.ones(1)), converged
    with problem.rougher(_ROUGHER):
        mixture = _race(problem, weights, rivals, rng)
        problem.record(mixture.objective, mixture.estimates, mixture.proportions)
        shares = _component_weights(weights, mixture.responsibilities)
        searches = [
            MeanSearch(estimate, own)
            for estimate, own in zip(mixture.estimates, shares, strict=True)
        ]
        tol = max(settings.tol, _ROUGH_TOL)
        mixture, searches, _ = _iterate(
            problem, weights, mixture, searches, settings.max_iter, tol
        )
    refined = _maximise_covariances(problem, weights, mixture, reuse=False)
    mixture = _expect(weights, refined, mixture.proportions)
    remaining = max(1, settings.max_iter - len(problem.history))
    mixture, _, converged = _iterate(
        problem, weights, mixture, searches, remaining, settings.tol
    )
    shares = _component_weights(weights, mixture.responsibilities)
    verified = problem.verify(mixture.estimates, shares)
    mixture = _expect(weights, verified, mixture.proportions)
    problem.record(mixture.objective, mixture.estimates, mixture.proportions)
    return mixture, converged


def _race(
    problem: FitProblem,
    weights: Array,
    rivals: Sequence[Array],
    rng: np.random.Generator,
) -> MixtureEstimate:
    """The first guess that is best after a few EM steps on a sample of the data."""
    rows = sample_rows(weights, _RACE_DATA, rng)
    rough = problem.subset(rows, problem.n_samples)
    own = weights[rows] if len(rows) == np.sum(weights > 0.0) else np.ones(len(rows))
    own = own / own.sum()
    outcomes = []
    for responsibilities in rivals:
        shares = _component_weights(own, responsibilities[rows])
        means = [rank_starts(rough, share, rng)[0] for share in shares]
        estimates = rough.profile(means, shares)
        mixture = _expect(own, estimates, own @ responsibilities[rows])
        if len(rivals) > 1:
            searches = [
                MeanSearch(*part) for part in zip(estimates, shares, strict=True)
            ]
            mixture, _, _ = _iterate(
                rough, own, mixture, searches, _RACE_STEPS, _ROUGH_TOL
            )
        outcomes.append(mixture)
    problem.count(rough)
    winner = min(outcomes, key=lambda mixture: mixture.objective)
    means = [estimate.mean for estimate in winner.estimates]
    covariances = [estimate.covariance for estimate in winner.estimates]
    logs = problem.log_maps(means)
    uniform = len(means) * [weights]
    estimates = problem.evaluate(means, covariances, uniform, logs)
    return _expect(weights, estimates, winner.proportions)


def least_squares_mixture(
    problem: FitProblem,
    weights: Array,
    means: Sequence[Array],
    logs: Sequence[LogMap],
    labels: NDArray[np.intp],
) -> MixtureEstimate:
    """The baseline: clusters' empirical covariances, each with its constant."""
    hard = np.eye(len(means))[labels]
    shares = _component_weights(weights, hard)
    covariances = [
        empirical_covariance(problem, own, log)
        for own, log in zip(shares, logs, strict=True)
    ]
    estimates = problem.evaluate(means, covariances, shares, logs)
    mixture = _expect(weights, estimates, weights @ hard)
    problem.record(mixture.objective, mixture.estimates, mixture.proportions)
    return mixture


def log_joint(
    tangents: Sequence[Array],
    precisions: Sequence[Array],
    log_constants: Sequence[float],
    proportions: Array,
) -> Array:
    """Log of proportion times density, (n, K), with respect to the metric's volume.

    A component that a point cannot be connected to has no density there.
    """
    columns = []
    for own, precision, constant in zip(
        tangents, precisions, log_constants, strict=True
    ):
        values = -0.5 * np.einsum("ni,ij,nj->n", own, precision, own) - constant
        columns.append(np.where(np.isfinite(values), values, -np.inf))
    with np.errstate(divide="ignore"):
        return np.stack(columns, axis=1) + np.log(proportions)


def _iterate(
    problem: FitProblem,
    weights: Array,
    mixture: MixtureEstimate,
    searches: list[MeanSearch],
    max_iter: int,
    tol: float,
) -> tuple[MixtureEstimate, list[MeanSearch], bool]:
    """EM steps until one lowers the objective by less than `tol`."""
    for _ in range(max_iter):
        shares = _component_weights(weights, mixture.responsibilities)
        estimates = _maximise_covariances(problem, weights, mixture, reuse=True)
        searches = [
            search.resumed(estimate, own)
            for search, estimate, own in zip(searches, estimates, shares, strict=True)
        ]
        starved = mixture.starved
        fed = [search for k, search in enumerate(searches) if k not in starved]
        advance(problem, fed, 0.1 * tol)
        before = mixture.objective
        mixture = _expect(
            weights,
            [search.estimate for search in searches],
            weights @ mixture.responsibilities,
        )
        problem.record(mixture.objective, mixture.estimates, mixture.proportions)
        if before - mixture.objective < tol:
            return mixture, searches, True
    return mixture, searches, False


def _maximise_covariances(
    problem: FitProblem, weights: Array, mixture: MixtureEstimate, *, reuse: bool
) -> list[Estimate]:
    """Best covariances for the current means; starved components stay as they are."""
    shares = _component_weights(weights, mixture.responsibilities)
    fed = [k for k in range(len(shares)) if k not in mixture.starved]
    old = [mixture.estimates[k] for k in fed]
    solved = problem.profile_covariances(
        [each.mean for each in old],
        [shares[k] for k in fed],
        [each.logs for each in old],
        [each.covariance for each in old],
        [each.nodes for each in old] if reuse else None,
    )
    estimates = list(mixture.estimates)
    for k, estimate in zip(fed, solved, strict=True):
        estimates[k] = estimate
    return estimates


def _expect(
    weights: Array, estimates: list[Estimate], proportions: Array
) -> MixtureEstimate:
    """The E-step."""
    joint = log_joint(
        [each.logs.tangents for each in estimates],
        [each.precision for each in estimates],
        [each.log_constant.value for each in estimates],
        proportions,
    )
    total = logsumexp(joint, axis=1)
    reached = np.isfinite(total)
    spread = np.where(
        reached[:, None], joint - np.where(reached, total, 0.0)[:, None], 0
    )
    responsibilities = np.where(reached[:, None], np.exp(spread), 1.0 / len(estimates))
    used = np.where(reached, weights, 0.0)
    return MixtureEstimate(
        estimates=estimates,
        proportions=proportions,
        responsibilities=responsibilities,
        objective=-float(used @ np.where(reached, total, 0.0) / used.sum()),
    )


def _component_weights(weights: Array, responsibilities: Array) -> list[Array]:
    """Weights of the data within each component, which sum to one.

    A component without any data looks at all of them.
    """
    shares = weights[:, None] * responsibilities
    totals = shares.sum(axis=0)
    shares = np.where(totals > 0.0, shares, weights[:, None])
    return list((shares / shares.sum(axis=0)).T)
