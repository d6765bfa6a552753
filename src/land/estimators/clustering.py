"""Clusters: Riemannian k-means, and how well clusters agree with known classes."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from land.estimators.base import (
    RiemannianEstimator,
    check_init,
    check_parts,
    check_weights,
    warn_unless_converged,
)
from land.estimators.scoring import distances_to, spread, warn_about_points
from land.fitting import fit_kmeans, spread_centers

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class RiemannianKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, RiemannianEstimator
):
    """K-means with geodesic distances and intrinsic means.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    init : {"k-means++", "random"} or array_like of shape (n_clusters, D)
        First centres: rows far apart along geodesics, random rows, or given points.
    n_init : int
        Number of runs with different first centres; the best one is kept.
    tol : float
        Stop when no centre moves by more than this share of the clusters' spread.
    sigma, rho, metric, max_iter, random_state, n_jobs
        See `LAND`. Processes share the `n_init` runs as well.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, D)
    labels_ : ndarray of shape (N,)
    inertia_ : float
        Weighted sum of squared geodesic distances to the nearest centre.
    n_iter_, converged_, metric_, sigma_, rho_, n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X, y = land.datasets.make_two_moons(50, random_state=0)
    >>> land.RiemannianKMeans(2, random_state=0).fit(X).labels_.shape
    (50,)
    """

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int = 1

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of the rows of `X`, (N, D), with weights (N,) if given."""
        self._check_parameters()
        problem, weights, rng = self._start_fit(X, sample_weight)
        n, dim = problem.data.shape
        count = check_parts("n_clusters", self.n_clusters, n)
        words = ("k-means++", "random")
        init = check_init(self.init, words, "centres", (count, dim))

        def first_centers() -> Array:
            if not isinstance(init, str):
                return init
            if init == "random":
                return problem.data[rng.choice(n, size=count, replace=False)]
            return spread_centers(problem, weights, count, rng)

        starts = [first_centers() for _ in range(self.n_init)]
        # The weights of the fit sum to one.
        total = n if sample_weight is None else np.asarray(sample_weight).sum()
        limits: Any = {"max_iter": self.max_iter, "tol": self.tol}
        fit = partial(fit_kmeans, problem, weights * total, **limits)
        found = dict(spread(fit, starts, self.n_jobs))
        # The first of equals, whichever process was ready first.
        best = min((found[k] for k in sorted(found)), key=lambda each: each.inertia)
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
        warn_unless_converged(best.converged, self.max_iter)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Geodesic distances to the centres, (n, n_clusters).

        NaN, with a warning, where a log map failed.
        """
        return self._distances(X, "their distances are NaN")

    def predict(self, X: ArrayLike) -> NDArray[np.int32]:
        """Labels of the nearest centres that a geodesic reaches."""
        distances = self._distances(X, "the centres concerned are left out there")
        nearest = np.argmin(np.nan_to_num(distances, nan=np.inf), axis=1)
        return nearest.astype(np.int32)

    def score(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the (weighted) sum of squared distances to the nearest centres.

        That is ``-inertia_`` for the data of the fit. NaN if a log map failed.
        """
        squares = self._distances(X, "the score is NaN").min(axis=1) ** 2
        return -float(check_weights(sample_weight, len(squares)) @ squares)

    def _distances(self, X: ArrayLike, consequence: str) -> Array:
        check_is_fitted(self)
        distances = self._for_rows(distances_to, X, centers=self.cluster_centers_)
        warn_about_points(distances.sum(axis=1), consequence)
        return distances

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


def f_measure(labels_true: Any, labels_pred: Any) -> float:
    r"""F-measure of a clustering against known classes.

    Every class is matched with the cluster that recovers it best, and the scores of
    the classes are averaged with their sizes as weights:

    .. math::

        F = \sum_c \frac{n_c}{n} \max_k \frac{2 n_{ck}}{n_c + n_k}

    where :math:`n_{ck}` rows of class :math:`c` lie in cluster :math:`k`; the fraction
    is the harmonic mean of precision :math:`n_{ck} / n_k` and recall
    :math:`n_{ck} / n_c`.

    It is 1 if and only if clusters and classes are the same groups. The two arguments
    cannot be exchanged. The value is not corrected for chance: a single cluster reaches
    2/3 for two classes of the same size.

    Parameters
    ----------
    labels_true, labels_pred : sequences of length n
        The class and the cluster of each row: numbers or words.

    References
    ----------
    R. Marxer, H. Purwins, A. Hazan. "An F-measure for evaluation of unsupervised
    clustering with non-determined number of clusters". Report of the EmCAP project,
    2008. The LAND paper cites it for its sleep stages.

    Examples
    --------
    >>> from land import f_measure
    >>> f_measure(["a", "a", "a", "b", "b"], [0, 0, 1, 1, 1])
    0.8
    """
    classes = _codes("labels_true", labels_true)
    clusters = _codes("labels_pred", labels_pred)
    if len(classes) != len(clusters):
        raise ValueError(
            "labels_true and labels_pred must have the same length, "
            f"got {len(classes)} and {len(clusters)}"
        )
    # Sparse: with as many clusters as rows, a full table has n^2 entries.
    shared = contingency_matrix(classes, clusters, sparse=True).tocoo()
    class_sizes, cluster_sizes = np.bincount(classes), np.bincount(clusters)
    scores = 2.0 * shared.data / (class_sizes[shared.row] + cluster_sizes[shared.col])
    best = np.zeros(len(class_sizes))
    np.maximum.at(best, shared.row, scores)
    return float(class_sizes @ best / len(classes))


def _codes(name: str, value: Any) -> NDArray[np.intp]:
    """Labels as numbers from zero."""
    try:
        labels = check_array(value, ensure_2d=False, dtype=None, input_name=name)
        codes = np.unique(labels, return_inverse=True)[1]
    except (TypeError, ValueError) as error:
        reason = str(error).split("\n")[0][:200]
        raise ValueError(f"{name} must be numbers or words: {reason}") from None
    if labels.ndim != 1:
        raise ValueError(
            f"{name} must be a sequence, one label for each row, got shape "
            f"{labels.shape}"
        )
    return codes
