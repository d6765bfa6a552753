"""Mixtures of locally adaptive normal distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._validation import check_count
from land.density.nodes import Reference, Volume
from land.estimators.base import warn_about_points
from land.estimators.density import LEFT_OUT, RiemannianDensity
from land.estimators.runs import MixtureRun, MixtureStart, Outcome, best_of, run_all
from land.estimators.scoring import Component
from land.fitting import FitProblem, FitSettings, Snapshot

Array = NDArray[np.float64]


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
    objective_ : float
        Mean negative log likelihood with respect to the reference.
    history_, converged_, interrupted_, n_iter_, n_failed_log_maps_, n_log_maps_
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
        joint = self._log_joint(X)
        top = joint.max(axis=1, keepdims=True)
        # A row that no component reaches belongs to all alike.
        shares = np.exp(joint - np.where(np.isfinite(top), top, 0.0))
        shares = np.where(np.isfinite(top), shares, 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _run(
        self,
        problem: FitProblem,
        weights: Array,
        settings: FitSettings,
        rng: np.random.Generator,
    ) -> Outcome:
        count = check_count("n_components", self.n_components)
        if count > len(problem.data):
            raise ValueError(
                f"n_components={count} must not exceed the number of rows, "
                f"{len(problem.data)}"
            )
        start = MixtureStart(self.init, count, self.covariance_type)
        run = MixtureRun(problem, weights, settings, start)
        rngs = [rng, *rng.spawn(self.n_init - 1)]
        return best_of(run_all(run, rngs, self.n_jobs))

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
        parts = (
            self.weights_,
            self.means_,
            self.covariances_,
            self.precisions_,
            self.log_constants_,
        )
        return [Component(*part) for part in zip(*parts, strict=True)]

    def _log_joint(self, X: ArrayLike) -> Array:
        """Log of weight times density, (n, K), with respect to the metric's volume."""
        densities = self._log_densities(X, "riemannian")
        warn_about_points(densities.sum(axis=1), LEFT_OUT, stacklevel=4)
        return self._weighted(densities)
