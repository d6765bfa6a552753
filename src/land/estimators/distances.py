"""Matrices of geodesic distances, for methods that take distances."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._validation import check_points, check_positive
from land.estimators.base import warn_about_points
from land.estimators.scoring import in_chunks
from land.geodesics import log_map
from land.metrics import Metric

Array = NDArray[np.float64]


def pairwise_distances(
    metric: Metric,
    points: ArrayLike,
    others: ArrayLike | None = None,
    *,
    tol: float = 1e-6,
    n_jobs: int | None = None,
) -> Array:
    """Geodesic distances between all points, or from all points to all others.

    The matrix is what scikit-learn's methods take with ``metric="precomputed"``. NaN,
    with a warning, where a geodesic did not converge.

    Parameters
    ----------
    metric : Metric
        The metric: one of `land.metrics`, or `metric_` of a fitted model.
    points : array_like of shape (n, D)
        Where the geodesics start.
    others : array_like of shape (m, D), optional
        Where they end. Left out, it is `points` again: each pair is then computed once,
        and the matrix is symmetric with zeros on its diagonal.
    tol : float
        Relative error allowed in the distances.
    n_jobs : int or None
        Number of processes, see `LAND`. They share chunks of 4096 pairs.

    Returns
    -------
    ndarray of shape (n, n) or (n, m)

    Examples
    --------
    >>> import land
    >>> flat = land.metrics.EuclideanMetric(2)
    >>> land.pairwise_distances(flat, [[0, 0], [3, 4], [0, 1]], [[0, 0]]).round(9)
    array([[0.],
           [5.],
           [1.]])
    """
    tol = check_positive("tol", tol)
    starts = check_points("points", points, metric.dim, ndim=2)
    if others is None:
        ends = starts
        rows, columns = np.triu_indices(len(starts), 1)
    else:
        ends = check_points("others", others, metric.dim, ndim=2)
        rows, columns = np.indices((len(starts), len(ends))).reshape(2, -1)
    distances = np.zeros((len(starts), len(ends)))
    if not len(rows):  # one point only
        return distances
    pairs = np.concatenate([starts[rows], ends[columns]], axis=1)
    lengths = in_chunks(partial(_lengths, metric=metric, tol=tol), pairs, n_jobs)
    warn_about_points(lengths, "their distances are NaN")
    distances[rows, columns] = lengths
    return distances + distances.T if others is None else distances


def _lengths(pairs: Array, metric: Metric, tol: float) -> Array:
    """Distances (n,) between pairs of points (n, 2 D); NaN where a log map failed."""
    starts, ends = np.split(pairs, 2, axis=1)
    logs = log_map(metric, starts, ends, tol=tol)
    return np.where(logs.converged, logs.lengths, np.nan)
