"""Mixtures of locally adaptive normal distributions."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count
from land.density.likelihood import Measure
from land.density.nodes import Reference, Volume, cholesky
from land.density.sampling import draw
from land.estimators.archive import PathLike
from land.estimators.base import RiemannianDensity, warn_about_points
from land.estimators.guesses import FirstGuesses
from land.estimators.restarts import Outcome, best_of, fit_starts
from land.estimators.scoring import Component
from land.fitting import Estimate, FitProblem, Snapshot

Array = NDArray[np.float64]

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
        The metric, see `LAND`. The automatic sigma of several components is smaller:
        a wider kernel would see the gaps between them as data.
    method : {"ml", "least_squares"}
        Maximum likelihood by EM, or the least-squares baseline: Riemannian k-means,
        empirical covariances and their constants.
    optimizer : {"auto"}
        Only the default optimizer is available for mixtures.
    volume, reference
        See `LAND`.
    covariance_type : {"full", "diag", "spherical"}
        Which covariances the components may have, see `LAND`.
    init : {"gmm", "least_squares", "random"} or array_like of shape (K, D)
        First clusters: of a Gaussian mixture or a spectral clustering of the neighbour
        graph, whichever turns out better; of Riemannian k-means; of random rows, or of
        given means, to the nearest of which, along geodesics, each row belongs.
    n_init : int
        Number of fits with different randomness; the best one is kept, with its
        history.
    n_samples, max_iter, tol, random_state, verbose, callback
        See `LAND`; `tol` applies to the fall of the objective in EM steps.
    n_jobs : int or None
        Number of processes that score points (see `LAND`) and that share the `n_init`
        fits. Fits in other processes report their last step only.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
    means_ : ndarray of shape (K, D)
    covariances_, precisions_ : ndarray of shape (K, D, D)
        In tangent coordinates at the means; matrices for every `covariance_type`.
    log_constants_, log_constants_stderr_ : ndarray of shape (K,)
        See `LAND`.
    objective_ : float
        Mean negative log likelihood with respect to the reference.
    history_, converged_, interrupted_, n_iter_, n_failed_log_maps_
        See `LAND`.
    n_log_maps_
        See `LAND`.
    metric_, sigma_, rho_, geometry_gain_, n_features_in_, feature_names_in_
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
        volume: Volume = "exact",
        reference: Reference = "lebesgue",
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
        self.reference = reference
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
        guesses = FirstGuesses(self.init, count, self.covariance_type)

        def run(problem: FitProblem, rng: np.random.Generator) -> Outcome:
            rngs = [rng, *rng.spawn(n_init - 1)]
            found = fit_starts(problem, weights, settings, guesses, rngs, self.n_jobs)
            return best_of(found)

        outcome = self._fit_metric(problem, weights, rng, run)
        self.objective_ = outcome.snapshot.objective
        self._store(outcome.snapshot)
        if outcome.starved:
            warnings.warn(
                f"component(s) {outcome.starved} have lost their data; "
                "use fewer components, or another init or random_state",
                RuntimeWarning,
                stacklevel=2,
            )
        self._store_progress(outcome, checkpoint)
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

        With ``volume="paper"`` they weigh densities with respect to the metric's
        volume, as EM does.
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
                self._law,
                rng,
            ).points
            for k, own in enumerate(counts)
            if own
        ]
        return np.concatenate(points), np.repeat(np.arange(len(counts)), counts)

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
