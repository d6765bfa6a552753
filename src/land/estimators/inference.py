"""Statistical inference: bootstrap regions, and tests by permutation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import csgraph_from_dense, shortest_path
from scipy.stats import chi2, f
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count, check_points, check_positive
from land.estimators.base import check_choice
from land.estimators.density import RiemannianDensity
from land.estimators.distances import pairwise_distances
from land.estimators.distribution import LAND
from land.estimators.scoring import arrivals_from, spread, tangents_at
from land.fitting import COVARIANCE_TYPES, FitProblem, normal_frame
from land.fitting.descent import Search, advance
from land.fitting.estimate import Estimate
from land.fitting.likelihood import Likelihood
from land.metrics import Metric

Array = NDArray[np.float64]
# A statistic of many labellings at once.
Measure = Callable[[Array], Array]

# Resampled fits that advance together, the steps they may take, and the fall of the
# log likelihood below which they end; the relative error of their geodesics.
_TOGETHER, _STEPS, _SHARE, _MAP_TOL = 25, 20, 1e-3, 1e-4
# Share of the pooled variance that is added to covariances: few rows may have none.
_RIDGE = 1e-6
# Relative error of distances: far below what the permutations leave open.
_DISTANCE_TOL = 1e-3


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
    >>> found = land.inference.bootstrap(model, X, 30, random_state=0)
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
    first = likelihood.start([model.mean_], [even], [model.covariance_])
    _descend(likelihood, first)
    refit = partial(_refit, likelihood, first[0].spot)
    parts = np.array_split(weights, -(-n_boot // _TOGETHER))
    found = dict(spread(refit, parts, n_jobs))
    each = zip(*(found[k] for k in range(len(parts))), strict=True)
    means, offsets, covariances = (np.concatenate(own) for own in each)
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
    problem, count, own = likelihood.problem, len(weights), list(weights)
    covers = None if spot.cover is None else count * [spot.cover]
    shared = count * [spot.logs], count * [spot.covariance], covers
    estimates = problem.profile(count * [spot.mean], own, *shared)
    searches = likelihood.searches(estimates, own)
    _descend(likelihood, searches)
    means = np.stack([search.spot.mean for search in searches])
    root, _ = normal_frame(problem.metric, spot.mean)
    offsets = tangents_at(means, problem.metric, spot.mean) @ root
    covariances = []
    for search in searches:
        root, _ = normal_frame(problem.metric, search.spot.mean)
        covariances.append(root @ search.spot.covariance @ root)
    return means, offsets, np.stack(covariances)


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """Outcome of a permutation test.

    Attributes
    ----------
    statistic : float
        Its value for the samples as they are; large where they differ.
    pvalue : float
        Share of the permutations, the samples as they are among them, in which the
        statistic is at least as large.
    null : ndarray of shape (n_permutations,)
        Its values for permuted samples.
    """

    statistic: float
    pvalue: float
    null: Array


def two_sample_test(
    X: ArrayLike,
    Y: ArrayLike,
    statistic: Literal["energy", "likelihood_ratio"] = "energy",
    *,
    n_permutations: int = 999,
    metric: Metric | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    r"""Test whether two samples are from the same distribution, by permutation.

    The level is exact for any two samples of independent rows: the metric is learned
    from all rows together, and nothing but the labels of the rows is permuted.

    Parameters
    ----------
    X, Y : array_like of shape (n, D) and (m, D)
        The samples, of more than D rows each.
    statistic : {"energy", "likelihood_ratio"}
        ``"energy"`` is the energy distance, twice the mean distance between the
        samples, less the mean distances within them, times n m / (n + m); distances are
        geodesic. All (n + m) (n + m - 1) / 2 of them are computed once, and serve all
        permutations. ``"likelihood_ratio"`` is twice the log likelihood ratio of two
        normal distributions against one, in normal coordinates at the intrinsic mean of
        all rows: n + m geodesics. It sees means and covariances, not other shapes.
    n_permutations : int
        Number of permutations.
    metric : {"diagonal", "full", "density"}, Metric or None
        See `LAND`. One of your own must not be learned from one of the samples.
    random_state : None, int, RandomState or Generator
        Randomness of the permutations.
    n_jobs : int or None
        Number of processes that share the geodesics, see `LAND`.

    Returns
    -------
    PermutationTest
        The p-value is (1 + k) / (1 + n_permutations) if k permutations have a statistic
        at least as large.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(12, random_state=0)
    >>> Y = land.datasets.make_half_ellipse(12, random_state=1) + [2.0, 0.0]
    >>> land.inference.two_sample_test(X, Y, random_state=0).pvalue < 0.05
    True
    """
    check_choice("statistic", statistic)
    n_permutations = check_count("n_permutations", n_permutations)
    model = LAND(metric=metric, n_samples=100, random_state=0, n_jobs=n_jobs)
    samples = _samples(X, Y)
    pooled = np.concatenate(samples)
    learned = model._learn_metric(pooled)
    if statistic == "energy":
        measure = _energy(learned, pooled, n_jobs)
    else:
        model.set_params(metric=learned, method="least_squares")
        measure = _likelihood_ratio(model, pooled)
    labels = np.repeat([1.0, 0.0], [len(each) for each in samples])
    rng = as_generator(random_state)
    null = measure(rng.permuted(np.tile(labels, (n_permutations, 1)), axis=1))
    (value,) = measure(labels[None])
    # Permutations that leave the samples as they are may differ by rounding.
    above = np.sum(null >= value - 1e-6 * np.abs(null).max())
    pvalue = float((1.0 + above) / (1.0 + n_permutations))
    return PermutationTest(float(value), pvalue, null)


def goodness_of_fit(
    model: RiemannianDensity,
    X: ArrayLike,
    *,
    n_draws: int | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    """Test whether rows are from a fitted model.

    The rows are compared with draws from the model by the permutation test of
    `two_sample_test`, with the geodesic energy distance under the model's metric.

    Parameters
    ----------
    model : LAND or LANDMixture
        A fitted model.
    X : array_like of shape (n, D)
        Rows that the model has not been fitted to. For others the p-value is too large,
        as model and metric have adapted themselves to them.
    n_draws : int or None
        Number of draws; None takes n, at least 100.
    n_permutations, random_state, n_jobs
        See `two_sample_test`; draws are random as well.

    Notes
    -----
    The level is exact for rows of just this model. A model that was fitted to N rows is
    not the truth: with far more than N new rows the test finds the difference.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(50, random_state=0)
    >>> model = land.LAND(sigma=0.8, rho=0.5, n_samples=200, tol=0.01).fit(X)
    >>> far = model.sample(10, random_state=0)[0] + [0.0, 2.0]
    >>> land.inference.goodness_of_fit(model, far, n_draws=20).pvalue < 0.05
    True
    """
    if not isinstance(model, RiemannianDensity):
        raise ValueError(
            f"model must be a land.LAND or land.LANDMixture, got {model!r:.80}"
        )
    check_is_fitted(model)
    rows = model._check_rows(X, reset=False)
    n_draws = (
        max(len(rows), 100) if n_draws is None else check_count("n_draws", n_draws)
    )
    rng = as_generator(random_state)
    draws, _ = model.sample(n_draws, rng)
    return two_sample_test(
        rows,
        draws,
        n_permutations=n_permutations,
        metric=model.metric_,
        random_state=rng,
        n_jobs=n_jobs,
    )


def _samples(X: ArrayLike, Y: ArrayLike) -> list[Array]:
    """Both samples, if they can be compared."""
    samples = [check_points("X", X, ndim=2), check_points("Y", Y, ndim=2)]
    (n, dim), (m, other) = (each.shape for each in samples)
    if dim != other:
        raise ValueError(
            f"X and Y must have the same number of columns, got {dim} and {other}"
        )
    if min(n, m) <= dim:
        raise ValueError(
            f"X and Y must have more rows than columns, {dim}, got {n} and {m} rows"
        )
    return samples


def _energy(metric: Metric, pooled: Array, n_jobs: int | None) -> Measure:
    """The energy distance for labels (P, N), one where a row is in the first sample."""
    distances = pairwise_distances(metric, pooled, tol=_DISTANCE_TOL, n_jobs=n_jobs)
    # A geodesic that was not found, or is not the shortest one, is replaced by a way
    # through other rows.
    known = csgraph_from_dense(distances, null_value=np.nan)
    distances = shortest_path(known, directed=False)
    sums = distances.sum(axis=1)

    def measure(labels: Array) -> Array:
        n = float(labels[0].sum())
        m = len(pooled) - n
        first = np.einsum("pi,pi->p", labels @ distances, labels)
        both = labels @ sums - first
        second = float(sums.sum()) - 2.0 * both - first
        return (2.0 * both - first * m / n - second * n / m) / (n + m)

    return measure


def _likelihood_ratio(model: LAND, pooled: Array) -> Measure:
    """Twice the log likelihood ratio of two normal distributions against one."""
    model.fit(pooled)
    root, _ = normal_frame(model.metric_, model.mean_)
    rows = np.nan_to_num(model.tangents(pooled) @ root)
    rows /= rows.std(axis=0)  # the ratio does not depend on units
    products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)

    def measure(labels: Array) -> Array:
        def term(own: Array) -> Array:
            counts = own.sum(axis=1)[:, None]
            means = own @ rows / counts
            shape = len(own), rows.shape[1], rows.shape[1]
            moments = (own @ products / counts).reshape(shape)
            moments -= means[:, :, None] * means[:, None, :]
            moments += _RIDGE * np.eye(shape[1])
            return counts[:, 0] * np.linalg.slogdet(moments)[1]

        whole = term(np.ones((1, len(rows))))
        return whole - term(labels) - term(1.0 - labels)

    return measure


def _check_level(level: Any) -> float:
    """A probability."""
    value = check_positive("level", level)
    if value >= 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    return value
