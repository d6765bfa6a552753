"""Riemannian k-means as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from land._validation import check_count, check_points, check_positive
from land.estimators.base import RiemannianEstimator, warn_about_points
from land.estimators.parallel import spread
from land.estimators.scoring import distances_to
from land.fitting import FitProblem, fit_kmeans, spread_centers

Array = NDArray[np.float64]


class RiemannianKMeans(TransformerMixin, ClusterMixin, RiemannianEstimator):
    """K-means with geodesic distances and intrinsic means.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    sigma, rho, metric
        The metric, see `LAND`.
    init : {"k-means++", "random"} or array_like of shape (n_clusters, D)
        First centres: rows far apart along geodesics, random rows, or given points.
    n_init : int
        Number of runs with different first centres; the best one is kept.
    max_iter : int
        Largest number of steps of a run.
    tol : float
        Stop when no centre moves by more than this share of the clusters' spread.
    random_state : None, int or RandomState
        Randomness of the first centres.
    n_jobs : int or None
        Number of processes that compute distances to new points (see `LAND`) and that
        share the `n_init` runs.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, D)
    labels_ : ndarray of shape (N,)
    inertia_ : float
        Weighted sum of squared geodesic distances to the nearest centre.
    n_iter_ : int
    converged_ : bool
    metric_, sigma_, rho_, n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X, y = land.datasets.make_two_moons(100, random_state=0)
    >>> land.RiemannianKMeans(2, random_state=0).fit(X).labels_.shape
    (100,)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        sigma: float | str = "auto",
        rho: float | str = "auto",
        metric: Any = None,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.sigma = sigma
        self.rho = rho
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array_like of shape (N, D)
            The data.
        y : None
            Ignored.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows.
        """
        max_iter = check_count("max_iter", self.max_iter)
        tol = check_positive("tol", self.tol)
        problem, weights, rng = self._start_fit(X, sample_weight)
        count = check_count("n_clusters", self.n_clusters)
        if count > len(problem.data):
            raise ValueError(
                f"n_clusters={count} must not exceed the number of rows, "
                f"{len(problem.data)}"
            )
        total = float(len(weights))
        if sample_weight is not None:
            total = float(np.asarray(sample_weight, dtype=np.float64).sum())
        starts = [
            self._first_centers(problem, weights, rng)
            for _ in range(check_count("n_init", self.n_init))
        ]
        fit = partial(fit_kmeans, problem, weights * total, max_iter=max_iter, tol=tol)
        found = dict(spread(fit, starts, self.n_jobs))
        best = min(
            (found[k] for k in sorted(found)), key=lambda clusters: clusters.inertia
        )
        self.cluster_centers_ = best.centers
        self.labels_ = best.labels.astype(np.int32)
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        self.converged_ = best.converged
        empty = count - len(np.unique(best.labels))
        if empty:
            warnings.warn(
                f"{empty} of {count} clusters are empty; use fewer clusters",
                RuntimeWarning,
                stacklevel=2,
            )
        if not best.converged:
            warnings.warn(
                f"the clusters did not converge within {max_iter} steps; raise "
                "max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Geodesic distances to the centres, (n, n_clusters).

        NaN, with a warning, where a log map failed.
        """
        check_is_fitted(self)
        distances = self._for_rows(distances_to, X, centers=self.cluster_centers_)
        warn_about_points(distances.sum(axis=1), "their distances are NaN")
        return distances

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Labels of the nearest centres."""
        distances = np.nan_to_num(self.transform(X), nan=np.inf)
        return np.argmin(distances, axis=1).astype(np.int32)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _first_centers(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> Array:
        count = self.n_clusters
        if not isinstance(self.init, str):
            centers = check_points("init", self.init, problem.data.shape[1], ndim=2)
            if len(centers) != count:
                raise ValueError(
                    f"init must have {count} rows, one for each cluster, "
                    f"got {len(centers)}"
                )
            return centers
        if self.init == "random":
            rows = rng.choice(len(problem.data), size=count, replace=False)
            return problem.data[rows]
        if self.init != "k-means++":
            raise ValueError(
                f"init must be 'k-means++', 'random' or centres, got {self.init!r}"
            )
        return spread_centers(problem, weights, count, rng)
