"""Tests by permutation: of two samples, and of the fit of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import csgraph_from_dense, shortest_path
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count, check_points
from land.estimators.base import check_choice
from land.estimators.density import LAND, RiemannianDensity
from land.estimators.scoring import pairwise_distances
from land.fitting import normal_frame
from land.metrics import Metric

Array = NDArray[np.float64]
# A statistic of many labellings at once.
Measure = Callable[[Array], Array]

# Share of the pooled variance that is added to covariances: few rows may have none.
_RIDGE = 1e-6
# Relative error of distances: far below what the permutations leave open.
_DISTANCE_TOL = 1e-3


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
    >>> Y = land.datasets.make_half_ellipse(12, random_state=1) + [0.0, 4.0]
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
    >>> model = land.LAND(sigma=0.8, rho=0.5, n_samples=200, random_state=0).fit(X)
    >>> far = model.sample(10, random_state=0)[0] + [0.0, 4.0]
    >>> tested = land.inference.goodness_of_fit(model, far, n_draws=20, random_state=0)
    >>> tested.pvalue < 0.05
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
