"""Mixtures by expectation maximisation, on the weighted steps of one distribution.

Between steps of the means, responsibilities and covariances settle, which takes no
geodesics; then every mean takes one trust-region step, all components in one batch. No
part of this raises the expected objective, so EM never raises the negative log
likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.density.nodes import invert, squared_lengths
from land.fitting.climb import climb
from land.fitting.descent import Search, advance
from land.fitting.estimate import Component, Estimate, Snapshot
from land.fitting.fidelity import Fidelity, ladder
from land.fitting.least_squares import empirical
from land.fitting.likelihood import Likelihood
from land.fitting.problem import FitProblem
from land.fitting.profile import components_at, evaluate, profile, verify
from land.fitting.pruning import prune
from land.fitting.single import FitSettings, fit_one
from land.fitting.starts import Init, central_rows
from land.geodesics import LogMap
from land.geodesics.graph import graph_distances

Array = NDArray[np.float64]

# A component whose responsibilities add up to less than this many data is left alone.
_FEWEST_DATA = 1.0
# Rounds of responsibilities and covariances between steps of the means, which end when
# one of them gains less than this share of the tolerance.
_SETTLING_STEPS, _SETTLED = 30, 0.1
# Steps of the means within the clusters of a first guess, and steps of EM after which
# guesses are compared: on two moons the best one is ahead after one or two.
_FIRST_STEPS, _TRIAL_STEPS = 3, 2


@dataclass(frozen=True)
class MixtureEstimate:
    """Components, their proportions, and what they say about the data.

    Attributes
    ----------
    estimates : list of Estimate
    proportions : ndarray of shape (K,)
    responsibilities : ndarray of shape (N, K)
    objective : float
        Mean negative log likelihood with respect to the reference.
    """

    estimates: list[Estimate]
    proportions: Array
    responsibilities: Array
    objective: float

    def snapshot(self) -> Snapshot:
        """The model itself."""
        return Snapshot(self.estimates, self.proportions, self.objective)

    @property
    def cautious_objective(self) -> float:
        """The objective if constants were larger by their standard errors.

        A constant that is hardly known may be far too small.
        """
        errors = np.array([each.log_constant.stderr for each in self.estimates])
        return self.objective + float(self.proportions @ errors)

    @property
    def starved(self) -> list[int]:
        """Components that have lost their data."""
        sizes = self.responsibilities.sum(axis=0)
        return [int(k) for k in np.flatnonzero(sizes < _FEWEST_DATA)]


def fit_single(
    problem: FitProblem,
    weights: Array,
    init: Init | Array,
    settings: FitSettings,
    rng: np.random.Generator,
) -> tuple[MixtureEstimate, bool]:
    """One distribution, as a mixture; see `fit_one`."""
    estimate, converged = fit_one(problem, weights, init, settings, rng)
    return _expect(weights, [estimate], np.ones(1)), converged


def fit_mixture(
    problem: FitProblem,
    weights: Array,
    guesses: Sequence[Array],
    settings: FitSettings,
    rng: np.random.Generator,
) -> tuple[MixtureEstimate, bool]:
    """Maximise the likelihood of a mixture.

    Parameters
    ----------
    problem
        Data, metric and numerical settings.
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    guesses : sequence of ndarray of shape (N, K)
        First guesses of the responsibilities, to choose from; rows sum to one.
    settings
        How to fit.
    rng
        Randomness of the starting means.

    Returns
    -------
    The mixture, and whether the stopping rule was met.
    """
    n_rows, count = int(np.sum(weights > 0.0)), guesses[0].shape[1]
    n_points = problem.points_on_the_way
    rungs = ladder(n_rows, count, problem.metric.dim, n_points, settings.tol)
    model = climb(
        problem,
        weights,
        rungs[1:],
        lambda: _search(problem, weights, guesses, rungs, settings, rng),
        _Mixture.on,
        settings.max_iter,
    )
    mixture = model.mixture
    final = replace(problem, tol=rungs[-1].map_tol)
    verified = verify(final, mixture.estimates)
    mixture = _expect(weights, verified, mixture.proportions)
    problem.record(mixture.objective, mixture.estimates, mixture.proportions)
    return mixture, model.converged


class _Mixture:
    """A mixture on a rung of the ladder, with the searches for its means."""

    def __init__(
        self,
        problem: FitProblem,
        weights: Array,
        estimates: list[Estimate],
        proportions: Array,
        radii: Sequence[float],
    ) -> None:
        self.problem, self.weights = problem, weights
        self.mixture = _expect(weights, estimates, proportions)
        pairs = zip(self.mixture.estimates, radii, strict=True)
        self.searches = [Search(*each) for each in pairs]
        self.converged = False

    @classmethod
    def on(cls, problem: FitProblem, weights: Array, state: dict[str, Any]) -> _Mixture:
        """The parameters of a mixture, with everything else computed anew."""
        means = [np.asarray(mean) for mean in state["means"]]
        covariances = [np.asarray(each) for each in state["covariances"]]
        logs = problem.log_maps(means)
        proportions = np.asarray(state["proportions"])
        # Constants of flat space tell well enough where each component has its data.
        joint = log_joint(
            [each.tangents for each in logs],
            [invert(covariance) for covariance in covariances],
            [float(np.linalg.slogdet(each)[1]) / 2.0 for each in covariances],
            proportions,
        )
        top = joint.max(axis=1, keepdims=True)
        near = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
        shares = _component_weights(weights, near)
        components = [
            Component(mean=mean, covariance=covariance, weights=own, logs=log)
            for mean, covariance, own, log in zip(
                means, covariances, shares, logs, strict=True
            )
        ]
        estimates = evaluate(problem, components)
        return cls(problem, weights, estimates, proportions, state["radii"])

    @property
    def estimates(self) -> list[Estimate]:
        """The components."""
        return self.mixture.estimates

    @property
    def objective(self) -> float:
        """Mean negative log likelihood."""
        return self.mixture.objective

    @property
    def proportions(self) -> Array:
        """Shares of the components, (K,)."""
        return self.mixture.proportions

    @property
    def joint(self) -> Array:
        """Log of proportion times density of the data, (N, K)."""
        return _joint(self.estimates, self.proportions)

    def objective_of(self, components: Sequence[Component]) -> float:
        """The same with these for its components."""
        pairs = zip(self.estimates, components, strict=True)
        estimates = [replace(each, logs=other.logs) for each, other in pairs]
        return _expect(self.weights, estimates, self.mixture.proportions).objective

    def descend(self, steps: int, tol: float) -> int:
        """EM steps until one lowers the objective by less than `tol`; how many."""
        for step in range(steps):
            before = self.mixture.objective
            self._em_step(tol)
            self.record()
            self.converged = before - self.mixture.objective < tol
            if self.converged:
                return step + 1
        return steps

    def _em_step(self, tol: float) -> None:
        """Best covariances and a step of every mean, then new responsibilities.

        Responsibilities and covariances first settle for the means as they are, which
        takes no geodesics.
        """
        weights, mixture = self.weights, self.mixture
        for _ in range(_SETTLING_STEPS):
            estimates = _maximise_covariances(self.problem, mixture)
            settled = _expect(weights, estimates, weights @ mixture.responsibilities)
            if mixture.objective - settled.objective < _SETTLED * tol:
                break
            mixture = settled
        pairs = zip(self.searches, estimates, strict=True)
        self.searches = [search.renewed(estimate) for search, estimate in pairs]
        starved = mixture.starved
        fed = [each for k, each in enumerate(self.searches) if k not in starved]
        advance(Likelihood(self.problem), fed, tol)
        self.mixture = _expect(
            weights,
            [search.spot for search in self.searches],
            weights @ mixture.responsibilities,
        )

    def record(self) -> None:
        """Add a step to the problem's history."""
        mixture = self.mixture
        self.problem.record(mixture.objective, mixture.estimates, mixture.proportions)

    def without(self, component: int) -> _Mixture:
        """The same without a component; no geodesics are computed."""
        left = [k for k in range(len(self.searches)) if k != component]
        proportions = self.proportions[left] / self.proportions[left].sum()
        estimates = [self.estimates[k] for k in left]
        radii = [self.searches[k].radius for k in left]
        return _Mixture(self.problem, self.weights, estimates, proportions, radii)

    def renewed(self) -> _Mixture:
        """The same, with all but its parameters computed anew."""
        return _Mixture.on(self.problem, self.weights, self.state())

    def state(self) -> dict[str, Any]:
        """What it takes to go on."""
        return {
            "means": [search.spot.mean for search in self.searches],
            "covariances": [search.spot.covariance for search in self.searches],
            "proportions": self.mixture.proportions,
            "radii": [search.radius for search in self.searches],
        }


def _search(
    problem: FitProblem,
    weights: Array,
    guesses: Sequence[Array],
    rungs: Sequence[Fidelity],
    settings: FitSettings,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Where the best of the first guesses leads, with fewer components if they do.

    What they lead to is compared on the rung on which the fit goes on: a few data do
    not tell which of two is better.
    """
    states = _first_states(problem, weights, guesses, rungs[0], rng)
    if len(states) == 1 and not settings.prune:
        return states[0]
    part, own, _ = problem.at(rungs[1], weights, rng)
    part = replace(part, stage="search", history=[])
    models = [_Mixture.on(part, own, state) for state in states]
    for model in models:
        model.descend(_TRIAL_STEPS, rungs[0].tol)
    best = min(models, key=lambda model: model.mixture.cautious_objective)
    if not settings.prune:
        return best.state()
    return prune(best, part, settings.max_iter, settings.tol)


def _first_states(
    problem: FitProblem,
    weights: Array,
    guesses: Sequence[Array],
    rung: Fidelity,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """Mixtures within the clusters of the guesses, on a rung of few data."""
    rough, own, rows = problem.at(rung, weights, rng)
    distances = graph_distances(rough.metric, rough.data)
    shares = [s for guess in guesses for s in _component_weights(own, guess[rows])]
    means = [rough.data[central_rows(distances, share, 1)[0]] for share in shares]
    searches = Likelihood(rough).searches(components_at(rough, means, shares))
    # Only within the clusters: few data are no place for EM, in which components shrink
    # to needles between them.
    for _ in range(_FIRST_STEPS):
        advance(Likelihood(rough), searches, rung.tol)
    models = []
    for guess in guesses:
        mine, searches = searches[: guess.shape[1]], searches[guess.shape[1] :]
        estimates, radii = [s.spot for s in mine], [s.radius for s in mine]
        models.append(_Mixture(rough, own, estimates, own @ guess[rows], radii))
    best = min(models, key=lambda model: model.mixture.cautious_objective)
    best.record()
    rough.check_gain(best.mixture.cautious_objective, own)
    return [model.state() for model in models]


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
    parts = zip(means, shares, logs, strict=True)
    estimates = evaluate(problem, [empirical(problem, *part) for part in parts])
    mixture = _expect(weights, estimates, weights @ hard)
    problem.record(mixture.objective, mixture.estimates, mixture.proportions)
    return mixture


def log_joint(
    tangents: Sequence[Array],
    precisions: Sequence[Array],
    log_constants: Sequence[float],
    proportions: Array,
) -> Array:
    """Log of proportion times density, (n, K), with respect to the reference.

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


def log_densities(model: Snapshot) -> Array:
    """Of the data that a model was fitted to, with respect to the reference."""
    return np.asarray(logsumexp(_joint(model.estimates, model.proportions), axis=1))


def _joint(estimates: Sequence[Estimate], proportions: Array) -> Array:
    return log_joint(
        [each.logs.tangents for each in estimates],
        [each.precision for each in estimates],
        [each.log_constant.value for each in estimates],
        proportions,
    )


def _maximise_covariances(
    problem: FitProblem, mixture: MixtureEstimate
) -> list[Estimate]:
    """Best covariances for the current means; starved components stay as they are."""
    estimates = list(mixture.estimates)
    fed = [k for k in range(len(estimates)) if k not in mixture.starved]
    solved = profile(problem, [estimates[k] for k in fed])
    for k, estimate in zip(fed, solved, strict=True):
        estimates[k] = estimate
    return estimates


def _expect(
    weights: Array, estimates: list[Estimate], proportions: Array
) -> MixtureEstimate:
    """The E-step; components get the weights of the data that it finds."""
    joint = _joint(estimates, proportions)
    total = logsumexp(joint, axis=1)
    reached = np.isfinite(total)
    spread = np.where(
        reached[:, None], joint - np.where(reached, total, 0.0)[:, None], 0
    )
    responsibilities = np.where(reached[:, None], np.exp(spread), 1.0 / len(estimates))
    used = np.where(reached, weights, 0.0)
    shares = _component_weights(weights, responsibilities)
    pairs = zip(estimates, shares, strict=True)
    return MixtureEstimate(
        estimates=[replace(each, weights=own) for each, own in pairs],
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
