"""Mixtures of locally adaptive normal distributions, and the runs of their fits."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.mixture import GaussianMixture

from land._validation import shown
from land.estimators.base import check_init, check_parts
from land.estimators.density import LEFT_OUT, RiemannianDensity
from land.estimators.first_clusters import first_clusters
from land.estimators.health import Outcome, attempt
from land.estimators.scoring import (
    Component,
    log_shares,
    runs_here,
    spread,
    warn_about_points,
)
from land.fitting import (
    FitProblem,
    FitSettings,
    MixtureEstimate,
    Snapshot,
    fit_kmeans,
    fit_mixture,
    fit_single,
    least_squares_mixture,
    spread_centers,
)
from land.fitting.estimate import Work
from land.fitting.pruning import component_charge

Array = NDArray[np.float64]

_INITS = ("auto", "gmm", "least_squares", "random")
# Starts of a Gaussian mixture, the best of which counts: they take milliseconds.
_GAUSSIAN_STARTS = 3
# Steps and tolerance of k-means for first clusters, which need not be accurate.
_FIRST_KMEANS = 30, 1e-2


@dataclass(eq=False, repr=False)
class LANDMixture(RiemannianDensity):
    """Mixture of locally adaptive normal distributions.

    All components share one metric, learned from all data; each has its own mean,
    covariance and normalisation constant. The mixture is fitted by expectation
    maximisation, as in the paper's appendix.

    Parameters
    ----------
    n_components : int
        Number of components; the largest number with ``prune=True``.
    prune : bool
        Whether to remove the components that the density can do without, one at a time,
        as long as that lowers BIC: instead of a fit for each number of components.
    sigma, rho, metric, volume, reference, covariance_type
        See `LAND`. The automatic sigma and rho of several components are smaller: gaps
        between them are not to look like data.
    method : {"ml", "least_squares"}
        Maximum likelihood by EM, or the least-squares baseline: Riemannian k-means,
        empirical covariances and their constants.
    init : {"auto", "gmm", "least_squares", "random"} or array_like of shape (K, D)
        First clusters: the best of several clusterings that follow curves, each tried
        in a few steps; those of a Gaussian mixture; of Riemannian k-means; of random
        rows, or of given means, to the nearest of which, along geodesics, each row
        belongs.
    n_init : int
        Number of fits with different randomness; the best one is kept.
    n_samples, max_iter, tol, random_state, warm_start, verbose, callback
        See `LAND`; `tol` applies to the fall of the objective in EM steps.
    n_jobs : int or None
        Number of processes that score points, see `LAND`, and that share the `n_init`
        fits. Callbacks see the last step only of fits in other processes.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
    means_ : ndarray of shape (K, D)
    covariances_, precisions_ : ndarray of shape (K, D, D)
        In tangent coordinates at the means; matrices for every `covariance_type`.
    log_constants_, log_constants_stderr_ : ndarray of shape (K,)
        See `LAND`.
    objective_, history_, converged_, interrupted_, n_iter_, n_failed_log_maps_
        See `LAND`, as for `n_log_maps_`, `metric_`, `sigma_`, `rho_`,
        `geometry_gain_`, `health_`, `n_features_in_` and `feature_names_in_`.

    Examples
    --------
    >>> import land
    >>> X, y = land.datasets.make_two_moons(50, random_state=0)
    >>> model = land.LANDMixture(2, sigma=0.5, n_samples=200, tol=0.01).fit(X)
    >>> model.predict(X).shape
    (50,)
    """

    n_components: int = 1
    _: KW_ONLY
    prune: bool = False
    init: Any = "auto"
    n_init: int = 1

    @property
    def n_components_(self) -> int:
        """Number of components of the fitted model, fewer where some were pruned."""
        return len(self.weights_)

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and label the rows."""
        return self.fit(X, y, **fit_params).predict(X)

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Labels of the most responsible components."""
        return np.argmax(self._log_joint(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Responsibilities of the components, (n, K).

        With ``volume="paper"`` they weigh densities with respect to the metric's
        volume, as EM does.
        """
        # A row that no component reaches belongs to all alike.
        return np.exp(log_shares(self._log_joint(X), -np.log(self.n_components_)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.prune, (bool, np.bool_)):
            raise ValueError(f"prune must be True or False, got {shown(self.prune)}")
        if self.prune and self.method != "ml":
            raise ValueError("prune=True goes by the likelihood, and needs method='ml'")

    def _run(self, problem, weights, settings, rng) -> Outcome:
        n, dim = problem.data.shape
        count = check_parts("n_components", self.n_components, n)
        init = self.init
        if self._goes_on:
            init = self.means_
            count = self.n_components_ if self.prune else count
        init = check_init(init, _INITS, "means", (count, dim))
        settings = replace(settings, prune=bool(self.prune))
        start = init, count, self.covariance_type
        run = MixtureRun(problem, weights, settings, *start)
        rngs = [rng, *rng.spawn(self.n_init - 1)]
        charge = component_charge(problem, weights)
        return _best_of(_run_all(run, rngs, self.n_jobs), charge)

    def _store(self, snapshot: Snapshot) -> None:
        estimates = snapshot.estimates
        self.weights_ = snapshot.proportions / snapshot.proportions.sum()
        self.means_ = np.stack([each.mean for each in estimates])
        self.covariances_ = np.stack([each.covariance for each in estimates])
        self.precisions_ = np.stack([each.precision for each in estimates])
        constants = [each.log_constant for each in estimates]
        self.log_constants_ = np.array([each.value for each in constants])
        self.log_constants_stderr_ = np.array([each.stderr for each in constants])

    def _components(self) -> list[Component]:
        matrices = self.covariances_, self.precisions_
        parts = self.weights_, self.means_, *matrices, self.log_constants_
        return [Component(*part) for part in zip(*parts, strict=True)]

    def _log_joint(self, X: ArrayLike) -> Array:
        """Log of weight times density, (n, K), with respect to the metric's volume."""
        densities = self._log_densities(X, "riemannian")
        warn_about_points(densities.sum(axis=1), LEFT_OUT, stacklevel=4)
        return self._weighted(densities)


@dataclass(frozen=True)
class MixtureRun:
    """The fit of a mixture, a run for each generator that it is called with."""

    problem: FitProblem
    weights: Array
    settings: FitSettings
    init: Any
    n_components: int
    covariance_type: str

    @property
    def _word(self) -> str:
        return self.init if isinstance(self.init, str) else "given"

    def __call__(self, rng: np.random.Generator) -> Outcome:
        """Run the fit."""

        def fit(own: FitProblem) -> Outcome:
            mixture, converged = replace(self, problem=own)._fit(rng)
            starved = mixture.starved if self.settings.method == "ml" else []
            return Outcome(mixture.snapshot(), converged, starved)

        return attempt(self.problem, fit)

    def _fit(self, rng: np.random.Generator) -> tuple[MixtureEstimate, bool]:
        problem, weights, settings = self.problem, self.weights, self.settings
        if settings.method == "least_squares":
            limits = settings.max_iter, settings.tol
            found = fit_kmeans(problem, weights, self._means(rng), *limits)
            parts = list(found.centers), found.logs, found.labels
            return least_squares_mixture(problem, weights, *parts), found.converged
        if self.n_components > 1:
            guesses = self._guesses(rng)
            return fit_mixture(problem, weights, guesses, settings, rng)
        start: Any = "random" if self._word == "random" else "least_squares"
        if self._word == "given":
            start = self.init[0]
        return fit_single(problem, weights, start, settings, rng)

    def _guesses(self, rng: np.random.Generator) -> list[Array]:
        """First responsibilities to choose from, (N, K) each."""
        problem, count = self.problem, self.n_components
        data, ridge = problem.data, problem.ridge
        if self._word == "auto" and count < len(data) and not problem.is_flat:
            seed = int(rng.integers(2**31))
            return first_clusters(problem.metric, data, count, ridge, seed)
        if self._word in ("auto", "gmm"):  # in flat space it is the model
            return [self._gaussian_mixture(rng).predict_proba(data)]
        centers = self._means(rng)
        if self._word == "least_squares":
            found = fit_kmeans(problem, self.weights, centers, *_FIRST_KMEANS)
            return [np.eye(count)[found.labels]]
        logs = problem.log_maps(list(centers))
        lengths = np.stack([np.nan_to_num(log.lengths, nan=np.inf) for log in logs])
        return [np.eye(count)[np.argmin(lengths, axis=0)]]

    def _means(self, rng: np.random.Generator) -> Array:
        """First means, (K, D)."""
        data, count = self.problem.data, self.n_components
        if self._word == "given":
            return self.init
        if self._word in ("auto", "gmm"):
            labels = self._gaussian_mixture(rng).predict(data)
            members = [data[labels == k] for k in range(count)]
            return np.stack([_medoid(own, data, rng) for own in members])
        if self._word == "random":
            return data[rng.choice(len(data), size=count, replace=False)]
        return spread_centers(self.problem, self.weights, count, rng)

    def _gaussian_mixture(self, rng: np.random.Generator) -> GaussianMixture:
        gaussian = GaussianMixture(
            self.n_components,
            covariance_type=self.covariance_type,
            n_init=_GAUSSIAN_STARTS,
            reg_covar=self.problem.ridge,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is only a start
            return gaussian.fit(self.problem.data)


def _run_all(
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


def _best_of(outcomes: list[Outcome], charge: float) -> Outcome:
    """The outcome with the best model; the work of all of them.

    Runs that were given up count if there are no others. Each component is charged for:
    there may be fewer in some.
    """
    ended = [outcome for outcome in outcomes if outcome.gain is None] or outcomes
    best = min(ended, key=lambda outcome: outcome.snapshot.charged(charge))
    work = sum((outcome.work for outcome in outcomes), Work())
    interrupted = any(outcome.interrupted for outcome in outcomes)
    return replace(best, work=work, interrupted=interrupted)


def _medoid(members: Array, data: Array, rng: np.random.Generator) -> Array:
    """The member closest to the members' mean; any row if there are none."""
    if not len(members):
        return np.asarray(data[rng.integers(len(data))])
    distances = np.linalg.norm(members - members.mean(axis=0), axis=1)
    return np.asarray(members[int(np.argmin(distances))])
