"""Runs of a fit: where they start, what they come to, and the best of several."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.cluster import SpectralClustering
from sklearn.mixture import GaussianMixture

from land._validation import check_points
from land.estimators.scoring import runs_here, spread
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
    spread_centers,
)
from land.fitting.estimate import Work

Array = NDArray[np.float64]

_INITS = ("gmm", "least_squares", "random")


@dataclass(frozen=True)
class _Settings:
    """How first clusters are found; they need not be accurate."""

    spectral_rows: int = 2000  # its time grows with the square of the rows
    neighbours: int = 10  # scikit-learn's default
    kmeans_steps: int = 30
    kmeans_tol: float = 1e-2


_SETTINGS = _Settings()


@dataclass(frozen=True)
class Outcome:
    """What one run has come to.

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
        Over the baseline, if the run was given up because that is too small.
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
    """Run a fit; an interrupt ends it with what it has reached, if anything.

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


@dataclass(frozen=True)
class MixtureStart:
    """Where a mixture starts, see the parameters of `land.LANDMixture`."""

    init: Any
    n_components: int
    covariance_type: str

    def responsibilities(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> list[Array]:
        """Candidates for the first responsibilities, (N, K) each."""
        if isinstance(self.init, str) and self.init == "gmm":
            gaussian = self._gaussian_mixture(problem, rng)
            candidates = [gaussian.predict_proba(problem.data)]
            if 1 < self.n_components < len(problem.data):
                candidates.append(spectral_clusters(problem.data, self.n_components))
            return candidates
        centers = self.means(problem, weights, rng)
        if isinstance(self.init, str) and self.init == "least_squares":
            limits = _SETTINGS.kmeans_steps, _SETTINGS.kmeans_tol
            clusters = fit_kmeans(problem, weights, centers, *limits)
            return [np.eye(len(centers))[clusters.labels]]
        logs = problem.log_maps(list(centers))
        lengths = np.stack([np.nan_to_num(log.lengths, nan=np.inf) for log in logs])
        return [np.eye(len(centers))[np.argmin(lengths, axis=0)]]

    def single(self, dim: int) -> Any:
        """Where a single component starts, see the parameters of `land.LAND`."""
        if not isinstance(self.init, str):
            return self._given(dim)[0]
        self._check_word()
        return "random" if self.init == "random" else "least_squares"

    def means(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> Array:
        """First means, (K, D)."""
        data, count = problem.data, self.n_components
        if not isinstance(self.init, str):
            return self._given(data.shape[1])
        self._check_word()
        if self.init == "gmm":
            labels = self._gaussian_mixture(problem, rng).predict(data)
            members = [data[labels == k] for k in range(count)]
            return np.stack([_medoid(own, data, rng) for own in members])
        if self.init == "random":
            return data[rng.choice(len(data), size=count, replace=False)]
        return spread_centers(problem, weights, count, rng)

    def _given(self, dim: int) -> Array:
        means = check_points("init", self.init, dim, ndim=2)
        if len(means) != self.n_components:
            raise ValueError(
                f"init must have {self.n_components} rows, one for each component, "
                f"got {len(means)}"
            )
        return means

    def _check_word(self) -> None:
        if self.init not in _INITS:
            words = ", ".join(repr(word) for word in _INITS)
            raise ValueError(f"init must be {words} or means, got {self.init!r}")

    def _gaussian_mixture(
        self, problem: FitProblem, rng: np.random.Generator
    ) -> GaussianMixture:
        gaussian = GaussianMixture(
            self.n_components,
            covariance_type=self.covariance_type,
            reg_covar=problem.ridge,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is only a start
            return gaussian.fit(problem.data)


@dataclass(frozen=True)
class MixtureRun:
    """The fit of a mixture, a run for each generator that it is called with."""

    problem: FitProblem
    weights: Array
    settings: FitSettings
    start: MixtureStart

    def __call__(self, rng: np.random.Generator) -> Outcome:
        """Run the fit."""

        def fit(own: FitProblem) -> tuple[Snapshot, bool, list[int]]:
            mixture, converged = self._fit(own, rng)
            starved = mixture.starved if self.settings.method == "ml" else []
            return mixture.snapshot(), converged, starved

        return attempt(self.problem, fit)

    def _fit(
        self, problem: FitProblem, rng: np.random.Generator
    ) -> tuple[MixtureEstimate, bool]:
        weights, settings, start = self.weights, self.settings, self.start
        if settings.method == "ml" and start.n_components == 1:
            mean = start.single(problem.data.shape[1])
            return fit_single(problem, weights, mean, settings, rng)
        if settings.method == "ml":
            first = start.responsibilities(problem, weights, rng)
            return fit_mixture(problem, weights, first, settings, rng)
        centers = start.means(problem, weights, rng)
        limits = settings.max_iter, settings.tol
        clusters = fit_kmeans(problem, weights, centers, *limits)
        mixture = least_squares_mixture(
            problem, weights, list(clusters.centers), clusters.logs, clusters.labels
        )
        return mixture, clusters.converged


def run_all(
    run: MixtureRun, rngs: list[np.random.Generator], n_jobs: int | None
) -> list[Outcome]:
    """Run once with each generator, `n_jobs` at a time.

    After an interrupt the list is shorter, and one of its entries says so. The callback
    is called with every step of runs in this process, and with the last step of others.
    """
    callback = None if runs_here(rngs, n_jobs) else run.problem.callback
    if callback is not None:
        run = replace(run, problem=replace(run.problem, callback=None))
    found: dict[int, Outcome] = {}
    try:
        for position, outcome in spread(run, rngs, n_jobs):
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

    Runs that were given up count if there are no others.
    """
    ended = [outcome for outcome in outcomes if outcome.gain is None] or outcomes
    best = min(ended, key=lambda outcome: outcome.snapshot.objective)
    work = sum((outcome.work for outcome in outcomes), Work())
    interrupted = any(outcome.interrupted for outcome in outcomes)
    return replace(best, work=work, interrupted=interrupted)


def spectral_clusters(data: Array, count: int) -> Array:
    """Responsibilities (N, count), zero or one, of a spectral clustering.

    Clusters are parts of the graph of nearest neighbours that few edges connect.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(data))[: _SETTINGS.spectral_rows])
    spectral = SpectralClustering(
        count,
        affinity="nearest_neighbors",
        n_neighbors=min(_SETTINGS.neighbours, len(rows) - 1),
        assign_labels="cluster_qr",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in several parts is fine
        labels = spectral.fit_predict(data[rows])
    _, nearest = KDTree(data[rows]).query(data)
    return np.asarray(np.eye(count)[labels[nearest]])


def _medoid(members: Array, data: Array, rng: np.random.Generator) -> Array:
    """The member closest to the members' mean; any row if there are none."""
    if not len(members):
        return np.asarray(data[rng.integers(len(data))])
    distances = np.linalg.norm(members - members.mean(axis=0), axis=1)
    return np.asarray(members[int(np.argmin(distances))])
