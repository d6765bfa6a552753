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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import (  # type: ignore[import-untyped]
    effective_n_jobs,
    parallel_config,
    wrap_non_picklable_objects,
)
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from land.density.likelihood import Measure, log_density
from land.density.nodes import Law
from land.geodesics import exp_map, log_map
from land.metrics import Metric

Array = NDArray[np.float64]
Report = Callable[[int, int], None]

# Rows of a chunk: work for a few seconds, and enough for geodesics to share.
CHUNK_ROWS = 4096
# Numbers of a chunk: in many dimensions each row takes more memory.
_CHUNK_VALUES = 2**18

_report: ContextVar[Report | None] = ContextVar("report", default=None)


class Component(NamedTuple):
    """A distribution: one of a mixture, or the only one."""

    weight: float
    mean: Array
    covariance: Array
    precision: Array
    log_constant: float


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
    values: list[Array] = [np.empty(0)] * len(chunks)
    report, done = _report.get(), 0
    for position, found in spread(function, chunks, n_jobs):
        values[position] = found
        done += len(found)
        if report is not None:
            report(done, len(rows))
    return np.concatenate(values)


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
    columns = []
    for center in centers:
        logs = log_map(metric, center, points)
        columns.append(np.where(logs.converged, logs.lengths, np.nan))
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
            f"n_jobs must be None or an integer other than 0, got {n_jobs!r}"
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
