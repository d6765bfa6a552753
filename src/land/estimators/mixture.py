"""Mixtures of locally adaptive normal distributions."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from scipy.special import logsumexp
from sklearn.cluster import SpectralClustering
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from land._validation import check_count, check_points
from land.density.constant import as_generator, cholesky
from land.density.likelihood import Measure
from land.density.nodes import Volume
from land.density.sampling import draw
from land.estimators.base import (
    RiemannianDensity,
    keep_latest,
    warn_about_points,
)
from land.estimators.checkpoint import PathLike
from land.estimators.scoring import Component
from land.fitting import (
    Estimate,
    FitProblem,
    FitSettings,
    MixtureEstimate,
    Snapshot,
    fit_kmeans,
    fit_mixture,
    least_squares_mixture,
    spread_centers,
)

Array = NDArray[np.float64]

_MOST_SPECTRAL, _NEIGHBOURS = 2000, 10
_INITS = ("gmm", "least_squares", "random")
_LEFT_OUT = "the components concerned are left out there"


class LANDMixture(RiemannianDensity):
    """Mixture of locally adaptive normal distributions.

    All components share one metric, learned from all data; each has its own mean,
    covariance and normalisation constant. The mixture is fitted by expectation
    maximisation, as in the paper's appendix.

    Parameters
    ----------
    n_components : int
        Number of components.
    sigma, rho, metric
        The metric, see `LAND`.
    method : {"ml", "least_squares"}
        Maximum likelihood by EM, or the least-squares baseline: Riemannian k-means,
        empirical covariances and their constants.
    optimizer : {"auto"}
        Only the default optimizer is available for mixtures.
    volume : {"paper", "exact"}
        See `LAND`.
    covariance_type : {"full", "diag", "spherical"}
        Which covariances the components may have, see `LAND`.
    init : {"gmm", "least_squares", "random"} or array_like of shape (K, D)
        First clusters: of a Gaussian mixture (with a spectral clustering of the
        neighbour graph as its rival; the better one after a few steps is pursued), of
        Riemannian k-means, of random rows, or of given means (each row belongs to the
        nearest along geodesics).
    n_init : int
        Number of fits with different randomness; the best one is kept.
    n_samples, max_iter, tol, random_state, verbose, callback, n_jobs
        See `LAND`; `tol` applies to the fall of the objective in EM steps.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
    means_ : ndarray of shape (K, D)
    covariances_, precisions_ : ndarray of shape (K, D, D)
        In tangent coordinates at the means; matrices for every `covariance_type`.
    log_constants_, log_constants_stderr_ : ndarray of shape (K,)
    objective_ : float
        Mean negative log likelihood with respect to the metric's volume.
    history_, converged_, interrupted_, n_iter_, n_failed_log_maps_
        See `LAND`.
    n_log_maps_, n_exp_maps_
        See `LAND`.
    metric_, sigma_, rho_, n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X, y = land.datasets.make_two_moons(100, random_state=0)
    >>> model = land.LANDMixture(2, random_state=0, n_samples=500).fit(X)
    >>> model.predict(X).shape
    (100,)
    """

    def __init__(
        self,
        n_components: int = 1,
        sigma: float | str = "auto",
        rho: float | str = "auto",
        metric: Any = None,
        method: str = "ml",
        optimizer: str = "auto",
        volume: Volume = "paper",
        covariance_type: str = "full",
        init: Any = "gmm",
        n_init: int = 1,
        n_samples: int = 3000,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.rho = rho
        self.metric = metric
        self.method = method
        self.optimizer = optimizer
        self.volume = volume
        self.covariance_type = covariance_type
        self.init = init
        self.n_init = n_init
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: PathLike | None = None,
    ) -> Self:
        """Fit the mixture.

        An interrupt (Ctrl-C) ends the fit early and keeps the model reached so far.

        Parameters
        ----------
        X : array_like of shape (N, D)
            The data.
        y : None
            Ignored.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows in the likelihood. The metric is learned from the rows
            as they are.
        checkpoint : path-like, optional
            File in which the progress of a long fit is kept. If it exists, a fit of the
            same data with the same parameters goes on from there, and ends with the
            same model as one that was never interrupted. It is deleted when the fit
            has ended. Maximum likelihood with the default optimizer keeps its progress
            after the search for a start and every few steps; others start anew.
            With ``n_init`` above 1 there is none.
        """
        n_init = check_count("n_init", self.n_init)
        if checkpoint is not None and n_init > 1:
            raise ValueError(
                "checkpoint needs n_init=1; fit once for each random_state instead"
            )
        problem, weights, settings, rng = self._start_distribution(
            X, sample_weight, checkpoint
        )
        if self.optimizer != "auto":
            raise ValueError(
                "optimizer='paper' is available for land.LAND only; "
                "use optimizer='auto' for mixtures"
            )
        count = check_count("n_components", self.n_components)
        if count > len(problem.data):
            raise ValueError(
                f"n_components={count} must not exceed the number of rows, "
                f"{len(problem.data)}"
            )
        found: list[tuple[Snapshot, bool]] = []
        interrupted = False
        for _ in range(n_init):
            problem.restart()
            try:
                mixture, converged = self._fit_once(problem, weights, settings, rng)
            except KeyboardInterrupt as interrupt:
                if problem.latest is None and found:
                    problem.latest = found[-1][0]
                found.append((keep_latest(problem, interrupt), False))
                interrupted = True
                break
            found.append((mixture.snapshot(), converged))
        problem.latest, converged = min(found, key=lambda each: each[0].objective)
        self.objective_ = problem.latest.objective
        self._store(problem.latest)
        self._store_progress(problem, converged, interrupted, checkpoint)
        return self

    def fit_predict(self, X: ArrayLike, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and label the rows."""
        return self.fit(X, y, **fit_params).predict(X)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, as AIC and BIC count them.

        Those of the means, the covariances and the weights.
        """
        check_is_fitted(self)
        count, dim = self.means_.shape
        return count * self._n_parameters_each(dim) + count - 1

    def predict(self, X: ArrayLike) -> NDArray[np.intp]:
        """Labels of the most responsible components."""
        return np.argmax(self._log_joint(X), axis=1)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Responsibilities of the components, (n, K).

        They weigh densities with respect to the metric's volume, as EM does.
        """
        joint = self._log_joint(X)
        top = joint.max(axis=1, keepdims=True)
        # A row that no component reaches belongs to all alike.
        shares = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
        shares = np.where(np.isfinite(top), shares, 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def score_samples(self, X: ArrayLike, measure: Measure = "lebesgue") -> Array:
        """Log densities, see `LAND.score_samples`.

        A component that a point cannot be connected to is left out there, as in
        `predict`; where that is so for all of them, the log density is NaN.
        """
        densities = self._log_densities(X, measure)
        lost = np.isnan(densities)
        some = lost.any(axis=1) & ~lost.all(axis=1)
        warn_about_points(np.where(some, np.nan, 0.0), _LEFT_OUT)
        values = logsumexp(self._weighted(densities), axis=1)
        values = np.where(lost.all(axis=1), np.nan, values)
        warn_about_points(values, "their log density is NaN")
        return values

    def sample(
        self, n_samples: int = 1, random_state: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Draw independent points from the fitted mixture, exactly, by rejection.

        Returns
        -------
        points : ndarray of shape (n_samples, D)
        labels : ndarray of shape (n_samples,)
            The components the points were drawn from, in ascending order.
        """
        check_is_fitted(self)
        count = check_count("n_samples", n_samples)
        rng = as_generator(random_state)
        counts = rng.multinomial(count, self.weights_)
        points = [
            draw(
                self.metric_,
                self.means_[k],
                cholesky(self.covariances_[k]),
                int(own),
                self.volume,
                rng,
            ).points
            for k, own in enumerate(counts)
            if own
        ]
        return np.concatenate(points), np.repeat(np.arange(len(counts)), counts)

    def _fit_once(
        self,
        problem: FitProblem,
        weights: Array,
        settings: FitSettings,
        rng: np.random.Generator,
    ) -> tuple[MixtureEstimate, bool]:
        if settings.method == "least_squares":
            centers = self._first_means(problem, weights, rng)
            clusters = fit_kmeans(
                problem, weights, centers, settings.max_iter, settings.tol
            )
            mixture = least_squares_mixture(
                problem, weights, list(clusters.centers), clusters.logs, clusters.labels
            )
            return mixture, clusters.converged
        rivals = self._first_guesses(problem, weights, rng)
        mixture, converged = fit_mixture(problem, weights, rivals, settings, rng)
        if mixture.starved:
            warnings.warn(
                f"component(s) {mixture.starved} have lost their data; "
                "use fewer components, or another init or random_state",
                RuntimeWarning,
                stacklevel=4,
            )
        return mixture, converged

    def _first_guesses(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> list[Array]:
        """First guesses of the responsibilities, which compete."""
        if isinstance(self.init, str) and self.init == "gmm":
            gaussian = self._gaussian_mixture(problem, rng)
            guesses = [gaussian.predict_proba(problem.data)]
            if 1 < self.n_components < len(problem.data):
                guesses.append(neighbour_clusters(problem.data, self.n_components))
            return guesses
        centers = self._first_means(problem, weights, rng)
        if isinstance(self.init, str) and self.init == "least_squares":
            clusters = fit_kmeans(problem, weights, centers, 30, 1e-2)
            return [np.eye(len(centers))[clusters.labels]]
        logs = problem.log_maps(list(centers))
        lengths = np.stack([np.nan_to_num(log.lengths, nan=np.inf) for log in logs])
        return [np.eye(len(centers))[np.argmin(lengths, axis=0)]]

    def _first_means(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> Array:
        count, dim = self.n_components, problem.data.shape[1]
        if not isinstance(self.init, str):
            means = check_points("init", self.init, dim, ndim=2)
            if len(means) != count:
                raise ValueError(
                    f"init must have {count} rows, one for each component, "
                    f"got {len(means)}"
                )
            return means
        if self.init not in _INITS:
            words = ", ".join(repr(word) for word in _INITS)
            raise ValueError(f"init must be {words} or means, got {self.init!r}")
        if self.init == "gmm":
            labels = self._gaussian_mixture(problem, rng).predict(problem.data)
            return np.stack(
                [
                    _medoid(problem.data[labels == k], problem.data, rng)
                    for k in range(count)
                ]
            )
        if self.init == "random":
            rows = rng.choice(len(problem.data), size=count, replace=False)
            return problem.data[rows]
        return spread_centers(problem, weights, count, rng)

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

    def _store(self, snapshot: Snapshot) -> None:
        estimates: list[Estimate] = snapshot.estimates
        self.weights_ = snapshot.proportions / snapshot.proportions.sum()
        self.means_ = np.stack([each.mean for each in estimates])
        self.covariances_ = np.stack([each.covariance for each in estimates])
        self.precisions_ = np.stack([each.precision for each in estimates])
        constants = [each.log_constant for each in estimates]
        self.log_constants_ = np.array([each.value for each in constants])
        self.log_constants_stderr_ = np.array([each.stderr for each in constants])

    def _components(self) -> list[Component]:
        parts = zip(self.means_, self.precisions_, self.log_constants_, strict=True)
        return [Component(*part) for part in parts]

    def _log_joint(self, X: ArrayLike) -> Array:
        """Log of weight times density, (n, K), with respect to the metric's volume."""
        densities = self._log_densities(X, "riemannian")
        warn_about_points(densities.sum(axis=1), _LEFT_OUT)
        return self._weighted(densities)

    def _weighted(self, densities: Array) -> Array:
        """Log of weight times density; no density where a geodesic failed."""
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_)
        return np.where(np.isnan(densities), -np.inf, densities) + log_weights


def neighbour_clusters(data: Array, count: int) -> Array:
    """Responsibilities (N, count), zero or one, of a spectral clustering.

    Clusters are parts of the graph of nearest neighbours that few edges connect.
    """
    rng = np.random.default_rng(0)
    n = len(data)
    rows = np.sort(rng.permutation(n)[:_MOST_SPECTRAL])
    spectral = SpectralClustering(
        count,
        affinity="nearest_neighbors",
        n_neighbors=min(_NEIGHBOURS, len(rows) - 1),
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
