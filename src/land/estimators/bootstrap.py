"""Confidence regions of means and covariances, by the bootstrap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2, f
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count, check_positive, shown
from land.estimators.density import LAND
from land.estimators.scoring import (
    arrivals_from,
    spread,
    tangents_at,
    warn_about_points,
)
from land.fitting import COVARIANCE_TYPES, FitProblem, normal_frame
from land.fitting.descent import Search, advance
from land.fitting.estimate import Estimate
from land.fitting.likelihood import Likelihood
from land.fitting.profile import components_at

Array = NDArray[np.float64]

# Resampled fits that advance together, the steps they may take, and the fall of the
# log likelihood below which they end; the relative error of their geodesics.
_TOGETHER, _STEPS, _SHARE, _MAP_TOL = 25, 20, 1e-3, 1e-4


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Means and covariances of a model that was refitted to resampled rows.

    Attributes
    ----------
    model : LAND
        The model of all rows.
    means : ndarray of shape (n_boot, D)
    offsets : ndarray of shape (n_boot, D)
        How far they are from the mean for the rows as they are, in normal coordinates.
    covariances : ndarray of shape (n_boot, D, D)
        In normal coordinates at their means.
    n_rows : int
        Number of rows of the data.
    """

    model: LAND
    means: Array
    offsets: Array
    covariances: Array
    n_rows: int

    def mean_region(self, level: float = 0.95, n_points: int = 200) -> Array:
        """The border of the confidence region of the mean, in two dimensions.

        It is a closed curve (n_points, 2): Exp of an ellipse in normal coordinates
        around the mean, whose shape is the covariance of the `offsets`. It contains a
        share `level` of them, and is wider for few rows: by as much as Hotelling's T²
        has larger quantiles than chi-squared.
        """
        if self.offsets.shape[1] != 2:
            raise ValueError(
                "mean_region needs a model of 2 columns, got "
                f"{self.offsets.shape[1]}; `contains` works for any number"
            )
        angles = np.linspace(0.0, 2.0 * np.pi, check_count("n_points", n_points))
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ellipse = self._radius(level) * circle @ np.linalg.cholesky(self._spread).T
        _, inverse = normal_frame(self.model.metric_, self.model.mean_)
        return arrivals_from(ellipse @ inverse, self.model.metric_, self.model.mean_)

    def contains(self, points: ArrayLike, level: float = 0.95) -> NDArray[np.bool_]:
        """Whether points (n, D) are in the confidence region of the mean, (n,)."""
        root, _ = normal_frame(self.model.metric_, self.model.mean_)
        coordinates = self.model.tangents(points) @ root
        return np.asarray(self._lengths(coordinates) <= self._radius(level))

    def covariance_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Smallest and largest values of the entries of the covariance, (D, D) each.

        The covariance is that in normal coordinates at the mean. They are quantiles of
        the resampled covariances, for each entry by itself.
        """
        tail = 0.5 * (1.0 - _check_level(level))
        low, high = np.quantile(self.covariances, [tail, 1.0 - tail], axis=0)
        return low, high

    @property
    def _spread(self) -> Array:
        return self.offsets.T @ self.offsets / len(self.offsets)

    def _lengths(self, coordinates: Array) -> Array:
        whitened = np.linalg.solve(np.linalg.cholesky(self._spread), coordinates.T)
        return np.linalg.norm(whitened, axis=0)

    def _radius(self, level: float) -> float:
        level, dim = _check_level(level), self.offsets.shape[1]
        free = max(self.n_rows - dim, 1)
        few = dim * self.n_rows / free * f.ppf(level, dim, free) / chi2.ppf(level, dim)
        return float(np.sqrt(few) * np.quantile(self._lengths(self.offsets), level))


def bootstrap(
    model: LAND,
    X: ArrayLike,
    n_boot: int = 200,
    *,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Bootstrap:
    """Confidence regions of the mean and the covariance, by the bootstrap.

    The model is refitted to rows drawn with replacement. The metric stays as it is, so
    that the regions are those of the mean and covariance under this metric; and each
    fit starts from the model, so that it finds the optimum near it.

    Parameters
    ----------
    model : LAND
        A model fitted with ``method="ml"``.
    X : array_like of shape (N, D)
        The rows it was fitted to.
    n_boot : int
        Number of refits, at least D + 1.
    random_state : None, int, RandomState or Generator
        Randomness of the draws.
    n_jobs : int or None
        Number of processes that share the refits, see `LAND`.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(50, random_state=0)
    >>> model = land.LAND(sigma=0.8, rho=0.5, n_samples=200, tol=0.01).fit(X)
    >>> found = land.inference.bootstrap(model, X, 10, random_state=0)
    >>> found.mean_region(0.9).shape
    (200, 2)
    """
    if not isinstance(model, LAND) or model.method != "ml":
        raise ValueError(
            f"model must be a land.LAND with method='ml', got {model!r:.80}"
        )
    check_is_fitted(model)
    data = model._check_rows(X, reset=False, ensure_min_samples=2)
    n, dim = data.shape
    n_boot = check_count("n_boot", n_boot, minimum=dim + 1)
    rng = as_generator(random_state)
    problem = FitProblem(
        model.metric_,
        data,
        law=model._law,
        covariance_type=COVARIANCE_TYPES[model.covariance_type],
        n_samples=model.n_samples,
        seed=int(rng.integers(2**31)),
        tol=_MAP_TOL,
    )
    even = np.full(n, 1.0 / n)
    weights = rng.multinomial(n, even, size=n_boot) / n
    likelihood = _Precisely(problem)
    (component,) = components_at(problem, [model.mean_], [even])
    first = likelihood.searches([replace(component, covariance=model.covariance_)])
    _descend(likelihood, first)
    refit = partial(_refit, likelihood, first[0].spot)
    parts = np.array_split(weights, -(-n_boot // _TOGETHER))
    found = dict(spread(refit, parts, n_jobs))
    each = zip(*(found[k] for k in range(len(parts))), strict=True)
    means, offsets, covariances = (np.concatenate(own) for own in each)
    warn_about_points(offsets[:, 0], "these refits are left out")
    kept = np.isfinite(offsets).all(axis=1)
    return Bootstrap(model, means[kept], offsets[kept], covariances[kept], n)


class _Precisely(Likelihood):
    """Steps end where they are small beside the differences between resampled rows.

    The errors of the constant are nearly the same for all of them, as they share its
    quadrature points.
    """

    def negligible(self, spot: Estimate, tol: float) -> float:
        """The tolerance, whatever the error of the constant."""
        return tol


def _descend(likelihood: Likelihood, searches: list[Search]) -> None:
    """Steps of all means until each has converged."""
    # Resampling raises the optimum by about D / (2 N).
    tol = _SHARE / len(likelihood.problem.data)
    for _ in range(_STEPS):
        advance(likelihood, searches, tol)
        if all(search.converged for search in searches):
            break


def _refit(
    likelihood: Likelihood, spot: Estimate, weights: Array
) -> tuple[Array, Array, Array]:
    """Means, offsets from that of `spot`, and covariances for weights of rows, (B, N).

    All start from the geodesics and quadrature points of `spot`.
    """
    problem = likelihood.problem
    searches = likelihood.searches([replace(spot, weights=own) for own in weights])
    _descend(likelihood, searches)
    means = np.stack([search.spot.mean for search in searches])
    root, _ = normal_frame(problem.metric, spot.mean)
    offsets = tangents_at(means, problem.metric, spot.mean) @ root
    covariances = []
    for search in searches:
        root, _ = normal_frame(problem.metric, search.spot.mean)
        covariances.append(root @ search.spot.covariance @ root)
    return means, offsets, np.stack(covariances)


def _check_level(level: Any) -> float:
    """A probability."""
    value = check_positive("level", level)
    if value >= 1.0:
        raise ValueError(f"level must be between 0 and 1, got {shown(level)}")
    return value
