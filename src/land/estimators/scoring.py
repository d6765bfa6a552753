"""Work on many rows or many jobs: in chunks, in other processes, with progress.

Functions of points return small arrays: the curves of geodesics are large, and gone
when they return. Many points are taken in chunks, so that memory is bounded, work can
be shared and progress be reported. Jobs run in other processes or on other machines, as
joblib is configured.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import (  # type: ignore[import-untyped]
    effective_n_jobs,
    parallel_config,
    wrap_non_picklable_objects,
)
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils.parallel import Parallel, delayed

from land._validation import check_count, check_points, check_positive, shown
from land.density.likelihood import Measure, log_density
from land.density.nodes import Law
from land.geodesics import LogMap, exp_map, log_map
from land.geodesics.equation import dimension
from land.geodesics.logarithm import MAX_ITER
from land.metrics import Metric

Array = NDArray[np.float64]
Report = Callable[[int, int], None]

# Rows of a chunk: work for a few seconds, and enough for geodesics to share.
CHUNK_ROWS = 4096
# Numbers of a chunk: in many dimensions each row takes more memory.
_CHUNK_VALUES = 2**18

# Distances are looked at again, so often, if a way by another point is shorter by this
# share.
_ROUNDS, _WORTHWHILE = 4, 1e-3

_report: ContextVar[Report | None] = ContextVar("report", default=None)


# Functions of points.


class Component(NamedTuple):
    """A distribution: one of a mixture, or the only one."""

    weight: float
    mean: Array
    covariance: Array
    precision: Array
    log_constant: float


def tangents_at(points: Array, metric: Metric, mean: Array) -> Array:
    """Tangents Log(x) at the mean, (n, D); NaN where a log map failed."""
    logs = log_map(metric, mean, points)
    return np.where(logs.converged[:, None], logs.tangents, np.nan)


def arrivals_from(tangents: Array, metric: Metric, mean: Array) -> Array:
    """Points Exp(v) from the mean, (n, D); NaN where an exponential map failed."""
    found = exp_map(metric, mean, tangents)
    return np.where(found.converged[:, None], found.points, np.nan)


def distances_to(points: Array, metric: Metric, centers: Array) -> Array:
    """Geodesic distances to centres, (n, K); NaN where a log map failed."""
    columns = [_lengths(log_map(metric, center, points)) for center in centers]
    return np.stack(columns, axis=1)


def component_log_densities(
    points: Array,
    metric: Metric,
    components: Sequence[Component],
    law: Law,
    measure: Measure,
) -> Array:
    """Log densities of components at points, (n, K); NaN where a geodesic failed."""
    columns = []
    for _, mean, _, precision, log_constant in components:
        logs = log_map(metric, mean, points)
        model = metric, mean, precision, log_constant
        columns.append(log_density(*model, points, logs, law, measure))
    return np.stack(columns, axis=1)


def log_joint(densities: Array, weights: Any) -> Array:
    """Log of weight times density, (n, K); no density where a geodesic failed."""
    with np.errstate(divide="ignore"):
        return np.where(np.isnan(densities), -np.inf, densities) + np.log(weights)


def log_shares(joint: Array, otherwise: Any) -> Array:
    """Log of each one's share of the sum, (n, K); `otherwise` where none is reached."""
    total = logsumexp(joint, axis=1, keepdims=True)
    reached = np.isfinite(total)
    return np.where(reached, joint - np.where(reached, total, 0.0), otherwise)


def pairwise_distances(
    metric: Metric,
    points: ArrayLike,
    others: ArrayLike | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = MAX_ITER,
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
    max_iter : int
        Iterations after which a geodesic is given up.
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
    dim, tol = dimension(metric), check_positive("tol", tol)
    max_iter = check_count("max_iter", max_iter)
    starts = ends = check_points("points", points, dim, ndim=2)
    if others is not None:
        ends = check_points("others", others, dim, ndim=2)
        if len(ends) < len(starts):  # geodesics from one base share more work
            options: Any = {"tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
            return pairwise_distances(metric, ends, starts, **options).T
    rows, columns = np.triu_indices(len(starts), 1)
    if others is not None:
        rows, columns = np.indices((len(starts), len(ends))).reshape(2, -1)
    distances = np.zeros((len(starts), len(ends)))
    if not len(rows):  # one point only
        return distances
    pairs = np.concatenate([starts[rows], ends[columns]], axis=1)
    between = partial(_between, metric=metric, tol=tol, max_iter=max_iter)
    distances[rows, columns] = in_chunks(between, pairs, n_jobs)
    if others is None:
        distances = distances + distances.T
        _shorten_by_others(distances, starts, metric, tol, max_iter)
    warn_about_points(distances[rows, columns], "their distances are NaN")
    return distances


def _shorten_by_others(
    distances: Array, points: Array, metric: Metric, tol: float, max_iter: int
) -> None:
    """Look again where a way by another point is shorter, starting from that way."""
    options: Any = {"tol": tol, "max_iter": max_iter}
    n = len(points)
    for _ in range(_ROUNDS):
        known = np.where(np.isnan(distances), np.inf, distances)
        shortest, by = known.copy(), np.full((n, n), -1)
        for k in range(n):
            detours = known[:, k, None] + known[k]
            better = detours < (1.0 - _WORTHWHILE) * shortest
            shortest[better], by[better] = detours[better], k
        rows, columns = np.nonzero(np.triu(by >= 0, 1))
        if not len(rows):
            return
        middles = points[by[rows, columns]]
        ends = points[rows], points[columns]
        there = _shorter_ways(ends[0], middles, metric, **options)
        onwards = _shorter_ways(middles, ends[1], metric, **options)
        ways = np.concatenate([there, onwards[:, 1:]], axis=1)
        lengths = _lengths(log_map(metric, *ends, curves=ways, **options))
        lengths = np.fmin(lengths, distances[rows, columns])
        distances[rows, columns] = distances[columns, rows] = lengths


def _shorter_ways(starts: Array, ends: Array, metric: Metric, **options: Any) -> Array:
    """Curves from starts to ends, (n, k, D): geodesics found from either side."""
    there = log_map(metric, starts, ends, **options)
    back = log_map(metric, ends, starts, **options)
    shorter = (back.lengths < there.lengths)[:, None, None]
    return np.where(shorter, back.curves[:, ::-1], there.curves)


def _between(pairs: Array, metric: Metric, tol: float, max_iter: int) -> Array:
    """Distances (n,) between pairs of points (n, 2 D); NaN where a log map failed."""
    starts, ends = np.split(pairs, 2, axis=1)
    return _lengths(log_map(metric, starts, ends, tol=tol, max_iter=max_iter))


def _lengths(logs: LogMap) -> Array:
    return np.where(logs.converged, logs.lengths, np.nan)


def warn_about_points(values: Array, consequence: str, stacklevel: int = 3) -> None:
    """Warn about points whose value is NaN."""
    lost = int(np.sum(np.isnan(values)))
    if lost:
        warnings.warn(
            f"the geodesics to {lost} of {len(values)} points did not converge: "
            f"{consequence}; try a larger sigma or rho",
            RuntimeWarning,
            stacklevel=stacklevel,
        )


# Chunks and jobs.


@contextmanager
def reporting_to(report: Report) -> Iterator[None]:
    """While this is entered, ``report(done, total)`` is called as rows are done."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def in_chunks(
    function: Callable[[Array], Array], rows: Array, n_jobs: int | None = None
) -> Array:
    """Values of a function of rows, (n, ...), computed chunk by chunk.

    Chunks are of about equal size, which depends on the number of rows and dimensions
    only: values do not depend on `n_jobs`.
    """
    size = max(1, min(CHUNK_ROWS, _CHUNK_VALUES // rows.shape[1]))
    chunks = np.array_split(rows, -(-len(rows) // size))
    values: dict[int, Array] = {}
    report, done = _report.get(), 0
    for position, found in spread(function, chunks, n_jobs):
        values[position] = found
        done += len(found)
        if report is not None:
            report(done, len(rows))
    return np.concatenate([values[k] for k in range(len(chunks))])


def spread(
    function: Callable[[Any], Any], jobs: Sequence[Any], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Positions and results ``function(job)`` of all jobs, whatever is ready first.

    One job, and jobs that joblib would run one after the other, are run right here.
    """
    check_n_jobs(n_jobs)
    if runs_here(jobs, n_jobs):
        for position, job in enumerate(jobs):
            yield position, function(job)
        return
    # Bytes travel with every task, so that Dask can start it anew on another worker.
    packed = pickle.dumps(wrap_non_picklable_objects(function))  # it may be a lambda
    # Not more processes than jobs: each is granted its share of the processors. No
    # temporary files for large arrays: models that refer to them would outlive them.
    n_workers = min(effective_n_jobs(n_jobs), len(jobs))
    parallel = Parallel(n_workers, return_as="generator_unordered", max_nbytes=None)
    yield from parallel(delayed(_run)(packed, item) for item in enumerate(jobs))


def runs_here(jobs: Sequence[Any], n_jobs: int | None) -> bool:
    """Whether `spread` runs these jobs in this process, one after the other."""
    return len(jobs) == 1 or effective_n_jobs(n_jobs) == 1


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of jobs."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0
    ):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0, got {shown(n_jobs)}"
        )


def _run(packed: bytes, item: tuple[int, Any]) -> tuple[int, Any]:
    """One job, in a worker; what it calls does not spread any further."""
    position, job = item
    with parallel_config(backend="sequential"):
        return position, _unpacked(packed)(job)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[[Any], Any]:
    """The function, once for all jobs of a process: a metric makes its tables once."""
    granted = os.environ.get("OMP_NUM_THREADS")
    if granted and multiprocessing.current_process().name.startswith("LokyProcess"):
        # JAX would use all processors in each of joblib's processes, and they would
        # wait for each other. It reads this when it first computes.
        os.environ.setdefault("NPROC", granted)
    return pickle.loads(packed)
