"""Mixtures by expectation maximisation, on the weighted steps of one distribution.

Between steps of the means, responsibilities and covariances settle, which takes no
geodesics; then every mean takes one quasi-Newton step, all components in one batch. No
part of this raises the expected objective, so EM never raises the negative log
likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.density.constant import squared_lengths
from land.fitting.descent import MeanSearch, Standing, advance
from land.fitting.estimate import Estimate, Snapshot
from land.fitting.least_squares import empirical_covariance
from land.fitting.problem import FitProblem
from land.fitting.progress import keep, restore
from land.fitting.single import FitSettings, fit_one
from land.fitting.starts import rank_starts
from land.fitting.turns import Turn, descend_in_turns, standing_of
from land.geodesics import LogMap

Array = NDArray[np.float64]

# A component whose responsibilities add up to less than this many data is left alone.
_FEWEST_DATA = 1.0
# Components look for their first means among so many data points.
_CANDIDATES = 4
# Rounds of responsibilities and covariances between steps of the means.
_SETTLING_STEPS = 30
# The search ends here: its objective is not the one that counts.
_ROUGH_TOL = 5e-3


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

    def snapshot(self) -> Snapshot:
        """The model itself."""
        return Snapshot(self.estimates, self.proportions, self.objective)

    @property
    def stderr(self) -> float:
        """Standard error of the objective, from those of the constants."""
        errors = [each.log_constant.stderr for each in self.estimates]
        return float(self.proportions @ np.array(errors))

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
    kept = restore(problem)
    if kept is None:
        found = _search(problem, weights, rivals, settings, rng)
        turn = standing_of(problem, found, settings.max_iter)
        for thinned in problem.thinned(weights, rng, rivals[0].shape[1]):
            found, _ = _refine(*thinned, turn, settings.tol)
            turn = standing_of(problem, found, settings.max_iter)
        keep(problem, turn=turn.plain())
    else:
        turn = Turn.from_plain(kept["turn"])
    contender, converged = _refine(problem, weights, turn, settings.tol)
    mixture = contender.mixture
    shares = _component_weights(weights, mixture.responsibilities)
    verified = problem.verify(mixture.estimates, shares)
    mixture = _expect(weights, verified, mixture.proportions)
    problem.record(mixture.objective, mixture.estimates, mixture.proportions)
    return mixture, converged


@dataclass
class _Contender:
    """A mixture on its way, with what the searches for its means have learned."""

    problem: FitProblem
    weights: Array
    mixture: MixtureEstimate
    searches: list[MeanSearch]

    @classmethod
    def on(cls, problem: FitProblem, weights: Array, turn: Turn) -> _Contender:
        """The parameters of a mixture, with everything else computed anew."""
        means = [standing.mean for standing in turn.standings]
        covariances = [standing.covariance for standing in turn.standings]
        problem.economise(means, covariances)
        logs = problem.log_maps(means)
        estimates = problem.evaluate(means, covariances, len(means) * [weights], logs)
        renewed = _expect(weights, estimates, np.asarray(turn.proportions))
        shares = _component_weights(weights, renewed.responsibilities)
        parts = zip(turn.standings, estimates, shares, strict=True)
        searches = [standing.on(new, own) for standing, new, own in parts]
        return cls(problem, weights, renewed, searches)

    @property
    def standings(self) -> list[Standing]:
        return [search.standing() for search in self.searches]

    @property
    def proportions(self) -> list[float]:
        proportions: list[float] = self.mixture.proportions.tolist()
        return proportions

    @property
    def objective(self) -> float:
        return self.mixture.objective

    @property
    def stderr(self) -> float:
        return self.mixture.stderr

    def descend(self, steps: int, tol: float) -> bool:
        """EM steps until one lowers the objective by less than `tol`."""
        for _ in range(steps):
            before = self.objective
            _em_step(self, tol)
            self.record()
            if before - self.objective < tol:
                return True
        return False

    def record(self) -> None:
        """Add a step to the problem's history."""
        mixture = self.mixture
        self.problem.record(mixture.objective, mixture.estimates, mixture.proportions)


def _refine(
    problem: FitProblem, weights: Array, turn: Turn, tol: float
) -> tuple[_Contender, bool]:
    """Descend to the optimum; whether the stopping rule was met."""
    renew = partial(_Contender.on, problem, weights)
    contender = renew(turn)
    if not problem.history:
        contender.record()
    return descend_in_turns(problem, contender, turn, renew, tol)


def _search(
    problem: FitProblem,
    weights: Array,
    rivals: Sequence[Array],
    settings: FitSettings,
    rng: np.random.Generator,
) -> _Contender:
    """The first guess that leads to the best mixture, on a rough version."""
    n_components = rivals[0].shape[1]
    rough, own, rows = problem.sample(weights, rng, n_components)
    contenders = [
        _first_mixture(rough, own, responsibilities[rows], rng)
        for responsibilities in rivals
    ]
    tol = max(settings.tol, _ROUGH_TOL)
    for contender in contenders:
        contender.record()
        contender.descend(settings.max_iter, tol)
    if len(contenders) == 1:
        return contenders[0]
    return min(contenders, key=lambda each: _exact_objective(rough, own, each.mixture))


def _exact_objective(
    problem: FitProblem, weights: Array, mixture: MixtureEstimate
) -> float:
    """The objective under the exact volume element, which tells rivals apart.

    The paper's volume element leaves out how the exponential map stretches. Its
    objective falls where means leave the data for places from which much is stretched:
    it serves to refine a mixture, and misleads in a choice between different ones.
    """
    exact = replace(problem, volume="exact")
    estimates = exact.evaluate(
        [each.mean for each in mixture.estimates],
        [each.covariance for each in mixture.estimates],
        len(mixture.estimates) * [weights],
        [each.logs for each in mixture.estimates],
    )
    return _expect(weights, estimates, mixture.proportions).objective


def _first_mixture(
    rough: FitProblem,
    weights: Array,
    responsibilities: Array,
    rng: np.random.Generator,
) -> _Contender:
    """A mixture from a guess of the responsibilities."""
    shares = _component_weights(weights, responsibilities)
    means = []
    for share in shares:
        part, own = rough.restricted(share, rng)
        means.append(rank_starts(part, own, rng, _CANDIDATES)[0].mean)
    estimates = rough.profile(means, shares)
    mixture = _expect(weights, estimates, weights @ responsibilities)
    searches = [MeanSearch(*part) for part in zip(estimates, shares, strict=True)]
    return _Contender(rough, weights, mixture, searches)


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
        values = -0.5 * squared_lengths(own, precision) - constant
        columns.append(np.where(np.isfinite(values), values, -np.inf))
    with np.errstate(divide="ignore"):
        return np.stack(columns, axis=1) + np.log(proportions)


def _em_step(contender: _Contender, tol: float) -> None:
    """Best covariances and a step of every mean, then new responsibilities.

    Responsibilities and covariances first settle for the means as they are, which takes
    no geodesics.
    """
    problem, weights = contender.problem, contender.weights
    mixture = contender.mixture
    for _ in range(_SETTLING_STEPS):
        shares = _component_weights(weights, mixture.responsibilities)
        estimates = _maximise_covariances(problem, shares, mixture)
        settled = _expect(weights, estimates, weights @ mixture.responsibilities)
        if mixture.objective - settled.objective < 0.1 * tol:
            break
        mixture = settled
    searches = _resumed(contender.searches, estimates, shares)
    starved = mixture.starved
    fed = [search for k, search in enumerate(searches) if k not in starved]
    advance(problem, fed, 0.1 * tol)
    contender.searches = searches
    contender.mixture = _expect(
        weights,
        [search.estimate for search in searches],
        weights @ mixture.responsibilities,
    )


def _resumed(
    searches: Sequence[MeanSearch],
    estimates: Sequence[Estimate],
    shares: Sequence[Array],
) -> list[MeanSearch]:
    return [
        search.resumed(estimate, own)
        for search, estimate, own in zip(searches, estimates, shares, strict=True)
    ]


def _maximise_covariances(
    problem: FitProblem, shares: Sequence[Array], mixture: MixtureEstimate
) -> list[Estimate]:
    """Best covariances for the current means; starved components stay as they are."""
    fed = [k for k in range(len(shares)) if k not in mixture.starved]
    old = [mixture.estimates[k] for k in fed]
    solved = problem.profile_covariances(
        [each.mean for each in old],
        [shares[k] for k in fed],
        [each.logs for each in old],
        [each.covariance for each in old],
        [each.nodes for each in old],
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
