"""Principal geodesic analysis as a scikit-learn transformer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from land._device import device
from land._validation import check_count, check_points
from land.estimators.base import (
    RiemannianEstimator,
    is_learned,
    warn_unless_converged,
)
from land.estimators.scoring import (
    arrivals_from,
    in_chunks,
    tangents_at,
    warn_about_points,
)
from land.fitting import Principal, fit_principal, normal_frame
from land.metrics import KINDS, EuclideanMetric, Metric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]

# The sharp metric has this share of the sharp rho of mixtures: one component has to
# follow an S all the way.
_SHARPER = 1.0 / 3.0
# Share of the flat metric's error that a curved one must reach: by chance its error of
# the data that it was learned from is less by a few per cent.
_WORTHWHILE = 0.9


@dataclass(eq=False, repr=False)
class GeodesicPCA(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RiemannianEstimator
):
    """Principal components along geodesics: PCA that follows curved data.

    A datum is described by normal coordinates, those of the geodesic from the mean to
    it. A few directions in them, the components, describe most of it; the exponential
    map leads back to the data. With a flat metric this is scikit-learn's `PCA`.

    The components are those whose image under the exponential map is nearest to the
    data, and the mean is the intrinsic mean, moved across them to the same end. In more
    than six dimensions, or with as many components as dimensions, they are the
    principal directions at the intrinsic mean itself.

    Parameters
    ----------
    n_components : int or None
        Number of components; None keeps all dimensions.
    tol : float
        Stop when a step lowers the squared error by a smaller share than this.
    sigma, rho, metric
        See `LAND`. If sigma and rho are both automatic, a smooth metric, a sharp one
        and the flat one are compared, and the one with the smallest squared error of
        the data is kept.
    max_iter, random_state, n_jobs
        See `LAND`.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
    components_ : ndarray of shape (n_components, D)
        Orthonormal directions in normal coordinates at the mean, the one of largest
        variance first. ``M(mean_)^(1/2)``, the symmetric root, leads from tangents to
        normal coordinates.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variances along the components, of squared geodesic length; and as shares of the
        variance in all directions.
    n_components_ : int
    n_iter_, converged_, metric_, sigma_, rho_, n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(60, random_state=0)
    >>> pca = land.GeodesicPCA(1, random_state=0).fit(X)
    >>> along = pca.transform(X)  # geodesic lengths from the mean, with signs
    >>> pca.inverse_transform(along).shape
    (60, 2)
    """

    n_components: int | None = None
    _: KW_ONLY
    tol: float = 1e-3

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the components of the rows of `X`, (N, D); `y` is ignored."""
        self._check_parameters()
        problem, weights, rng = self._start_fit(X, None)
        n, dim = problem.data.shape
        count = dim
        if self.n_components is not None:
            count = check_count("n_components", self.n_components)
        if count > dim:
            raise ValueError(
                f"n_components={count} must not exceed the number of columns, {dim}"
            )
        limits = self.max_iter, self.tol
        found = fit_principal(problem, weights, count, *limits, rng)
        if self._compares_metrics and count < dim:
            error = _error(self.metric_, problem.data, found)
            for metric, *sizes in self._candidates(problem.data):
                own = replace(problem, metric=metric)
                other = fit_principal(own, weights, count, *limits, rng)
                share = _WORTHWHILE if metric.is_flat else 1.0
                missed = share * _error(metric, problem.data, other)
                if missed < error:
                    error, found, self.metric_ = missed, other, metric
                    self.sigma_, self.rho_ = sizes
        self.mean_ = found.mean
        self.components_ = found.components
        self.explained_variance_ = found.variances * n / (n - 1)
        self.explained_variance_ratio_ = found.variances / max(found.total, 1e-300)
        self.n_components_ = count
        self.n_iter_ = found.n_iter
        self.converged_ = found.converged
        warn_unless_converged(found.converged, self.max_iter)
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Normal coordinates along the components, (n, n_components).

        NaN, with a warning, where a log map failed.
        """
        check_is_fitted(self)
        tangents = self._for_rows(tangents_at, X, mean=self.mean_)
        warn_about_points(tangents[:, 0], "their coordinates are NaN")
        root, _ = normal_frame(self.metric_, self.mean_)
        return tangents @ root @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Points (n, D) with coordinates `X`, (n, n_components), along the components.

        They are the ends of geodesics from the mean. Coordinates along a line through
        zero give the curve of that direction. NaN, with a warning, where an
        exponential map failed.
        """
        check_is_fitted(self)
        coordinates = check_points("X", X, self.n_components_, ndim=2)
        _, inverse = normal_frame(self.metric_, self.mean_)
        tangents = coordinates @ self.components_ @ inverse
        ends = partial(arrivals_from, metric=self.metric_, mean=self.mean_)
        points = in_chunks(ends, tangents, self.n_jobs)
        warn_about_points(points[:, 0], "they are NaN")
        return points

    @property
    def _parts(self) -> int:
        """Curves are to be followed all the way, as those of clusters."""
        return 2

    @property
    def _compares_metrics(self) -> bool:
        automatic = self.sigma == "auto" and self.rho == "auto"
        return automatic and is_learned(self.metric)

    def _candidates(self, data: Array) -> Iterator[tuple[Metric, float, float]]:
        """Other metrics that may suit the data better, with their sigma and rho.

        A sharp one, whose geodesics follow curves that come near each other, and the
        noise as well; and the flat one.
        """
        kind = KINDS[self.metric or "diagonal"]
        sigma = automatic_sigma(data, self._parts, sharp=True)
        rho = automatic_rho(data, sigma, self._parts, kind=kind, sharp=True)
        sharp = kind(data, sigma, _SHARPER * rho)
        if len(data) > device().few_tabulated:
            sharp = sharp.tabulated()
        yield sharp, sigma, _SHARPER * rho
        yield EuclideanMetric(data.shape[1]), math.inf, math.inf

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _error(metric: Metric, data: Array, found: Principal) -> float:
    """Mean squared error of the data as the components describe them.

    Data that no geodesic reaches are described by the mean.
    """
    root, inverse = normal_frame(metric, found.mean)
    coordinates = tangents_at(data, metric, found.mean) @ root @ found.components.T
    tangents = np.nan_to_num(coordinates) @ found.components @ inverse
    again = arrivals_from(tangents, metric, found.mean)
    again = np.where(np.isfinite(again), again, found.mean)
    return float(np.mean(np.sum((data - again) ** 2, axis=1)))
