"""Models of standardised columns, and parts of models, in the data's own units."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from land._validation import check_points, shown
from land.density.likelihood import Measure
from land.estimators.rows import check_rows

Array = NDArray[np.float64]
Method = TypeVar("Method", bound=Callable[..., Any])


class Parts(NamedTuple):
    """Weights (K,), means (K, D) and covariances (K, D, D), None for clusters."""

    weights: Array
    means: Array
    covariances: Array | None


def parts_of(model: Any) -> Parts:
    """The parts of a fitted model of this package, or of a GaussianMixture."""
    names = ("means_", "mean_", "cluster_centers_")
    found = [getattr(model, name) for name in names if hasattr(model, name)]
    if not found:
        raise ValueError(
            f"model must be fitted and have means, got {type(model).__name__} without"
        )
    means = np.atleast_2d(found[0])
    count, dim = means.shape
    weights = getattr(model, "weights_", np.full(count, 1.0 / count))
    stored = getattr(model, "covariances_", getattr(model, "covariance_", None))
    if stored is not None and np.shape(stored) != (count, dim, dim):
        stored = np.asarray(stored)  # one matrix, diagonals, or variances
        if hasattr(model, "covariances_") and model.covariance_type != "tied":
            stored = stored.reshape(count, 1, -1) * np.eye(dim)
        stored = np.broadcast_to(stored, (count, dim, dim))
    return Parts(weights, means, stored)


def parts_in_units(scaled: Standardized) -> Parts:
    """The parts of a fitted model in the units of its data."""
    weights, means, covariances = parts_of(scaled.estimator_)
    if covariances is not None:
        covariances = covariances * np.outer(scaled.scale_, scaled.scale_)
    return Parts(weights, means * scaled.scale_ + scaled.center_, covariances)


def responsibilities(model: Any, points: Array) -> Array:
    """Probabilities (n, K) of belonging to the components of a fitted model."""
    model = nameless(model)
    count = len(parts_of(getattr(model, "estimator_", model)).means)
    if count == 1:
        return np.ones((len(points), 1))
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(points))
    return np.asarray(np.eye(count)[model.predict(points)])


def column_names(*sources: Any, dim: int = 0) -> list[str]:
    """Names that models or data frames have for columns, else ``x1`` to ``x<dim>``."""
    for source in sources:
        names = getattr(source, "feature_names_in_", getattr(source, "columns", None))
        if names is not None:
            return [str(name) for name in names]
    return [f"x{k + 1}" for k in range(dim)]


def nameless(model: Any) -> Any:
    """The model for arrays: one that was fitted to a data frame would warn of them."""
    if hasattr(model, "feature_names_in_"):
        model = copy(model)
        del model.feature_names_in_
    return model


def in_units(model: Any) -> Standardized:
    """A fitted model for arrays in the units of its data, standardised or not."""
    if isinstance(model, Standardized):
        return nameless(model)
    dim = model.n_features_in_
    return Standardized.around(model, np.zeros(dim), np.ones(dim))


def _has(name: str) -> Callable[[Method], Method]:
    """Mark methods that the model within must have as well."""
    decorator: Callable[[Method], Method] = available_if(
        lambda self: hasattr(getattr(self, "estimator_", self.estimator), name)
    )
    return decorator


@dataclass(eq=False, repr=False)
class Standardized(BaseEstimator):
    """A model fitted to columns of mean 0 and variance 1, for data in any units.

    Log densities are with respect to the units of the data, unlike those of a
    scikit-learn pipeline, and new points come in these units.

    Parameters
    ----------
    estimator : LAND, LANDMixture or RiemannianKMeans
        The model to be fitted.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model; its means and covariances are of the standardised columns.
    center_, scale_ : ndarray of shape (D,)
        Means and standard deviations of the columns; 1 for one that does not vary.
    n_features_in_, feature_names_in_
        See `LAND`.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(60, random_state=0) * [1.0, 1000.0]
    >>> model = land.LAND(method="least_squares", n_samples=200, random_state=0)
    >>> scaled = land.Standardized(model).fit(X)
    >>> scaled.score_samples(X).shape
    (60,)
    """

    estimator: Any

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Standardise the columns of `X`, (N, D), and fit the model to them."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            raise ValueError(
                f"estimator must be an estimator of land, got {shown(self.estimator)}"
            )
        data = check_rows(self, X, ensure_min_samples=2)
        self.center_ = np.mean(data, axis=0)
        spread = np.std(data, axis=0)
        self.scale_ = np.where(spread > 0.0, spread, 1.0)
        points = (data - self.center_) / self.scale_
        self.estimator_ = clone(self.estimator).fit(points, sample_weight=sample_weight)
        return self

    @classmethod
    def around(cls, model: Any, center: ArrayLike, scale: ArrayLike) -> Self:
        """A fitted model of columns that were standardised by hand."""
        made = cls(model)
        made.estimator_, dim = nameless(model), model.n_features_in_
        made.n_features_in_ = dim
        made.center_ = check_points("center", center, dim, ndim=1)
        made.scale_ = check_points("scale", scale, dim, ndim=1)
        if made.scale_.min() <= 0.0:
            raise ValueError(f"scale must be positive, got {made.scale_.min():g}")
        return made

    @_has("score_samples")
    def score_samples(self, X: ArrayLike, measure: Measure = "lebesgue") -> Array:
        """Log densities (n,), see `LAND`, in the units of the data."""
        points = self._standardized(X)
        values = self.estimator_.score_samples(points, measure)
        # The metric's volume has no units.
        return values - np.log(self.scale_).sum() * (measure == "lebesgue")

    @_has("score_samples")
    def score(
        self, X: ArrayLike, y: Any = None, measure: Measure = "lebesgue"
    ) -> float:
        """Mean log density of the rows of `X`, see `score_samples`."""
        return float(np.mean(self.score_samples(X, measure)))

    @_has("sample")
    def sample(
        self, n: int = 1, random_state: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Draw n points, in the units of the data, and their components; see `LAND`."""
        check_is_fitted(self)
        points, components = self.estimator_.sample(n, random_state)
        return points * self.scale_ + self.center_, components

    @_has("predict")
    def predict(self, X: ArrayLike) -> Any:
        """Labels of the rows, see `LANDMixture`."""
        points = self._standardized(X)
        return self.estimator_.predict(points)

    @_has("predict_proba")
    def predict_proba(self, X: ArrayLike) -> Array:
        """Responsibilities (n, K), see `LANDMixture`."""
        points = self._standardized(X)
        return self.estimator_.predict_proba(points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, see `LAND.save`."""
        check_is_fitted(self)
        extra: dict[str, Any] = {"center": self.center_, "scale": self.scale_}
        if hasattr(self, "feature_names_in_"):
            extra["columns"] = self.feature_names_in_.tolist()
        self.estimator_.save(path, extra)

    def _standardized(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        points = check_rows(self, X, reset=False)
        return np.asarray((points - self.center_) / self.scale_)
