"""Work on many rows or many jobs: in chunks, in other processes, with progress.

Functions of points return small arrays: the curves of geodesics are large, and gone
when they return. Many points are taken in chunks, so that memory is bounded, work can
be shared and progress be reported.

Jobs run in other processes or on other machines, as joblib is configured. What all jobs
share is sent once and unpacked once in each process, so that a metric's tables, which
are made on first use, serve all jobs of that process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
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

from land._memory import keep_freed_memory
from land.density.likelihood import Measure, log_density
from land.density.nodes import Law
from land.geodesics import log_map
from land.metrics import Metric

Array = NDArray[np.float64]
Report = Callable[[int, int], None]

_report: ContextVar[Report | None] = ContextVar("report", default=None)
# Workers that are lost take jobs with them: what is missing is given out again.
_ATTEMPTS = 2


@dataclass(frozen=True)
class ChunkSize:
    """Rows of a chunk: work for a few seconds, and enough for geodesics to share."""

    rows: int = 4096
    values: int = 2**18  # in many dimensions each row takes more memory

    def count(self, n: int, dim: int) -> int:
        """Number of chunks of n rows."""
        return -(-n // max(1, min(self.rows, self.values // dim)))


CHUNKS = ChunkSize()


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

    Chunks are runs of rows of about equal size, which depends on the number of rows and
    dimensions only: values do not depend on `n_jobs`.
    """
    chunks = np.array_split(rows, CHUNKS.count(*rows.shape))
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


# In other processes.


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
    # Dask scatters arguments that are arrays, once. What is in a tuple stays with its
    # task, which can then start anew on another worker.
    portable = wrap_non_picklable_objects(function)  # metrics may hold a lambda
    packed = np.frombuffer(pickle.dumps(portable), dtype=np.uint8)
    waiting = dict(enumerate(jobs))
    for attempt in range(1, _ATTEMPTS + 1):
        # Not more processes than jobs: each is granted its share of the processors.
        n_workers = max(1, min(effective_n_jobs(n_jobs), len(waiting)))
        # No temporary files for large arrays: models that refer to them would not
        # outlive them.
        parallel = Parallel(n_workers, return_as="generator_unordered", max_nbytes=None)
        tasks = [delayed(_run)(packed, item) for item in waiting.items()]
        try:
            for position, result in parallel(tasks):
                del waiting[position]
                yield position, result
            return
        except Exception as error:
            if attempt == _ATTEMPTS:
                raise
            warnings.warn(
                f"{len(waiting)} of {len(jobs)} jobs were lost by their workers and "
                f"are given out again ({type(error).__name__}: {error})",
                RuntimeWarning,
                stacklevel=3,
            )


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


def _run(packed: NDArray[np.uint8], item: tuple[int, Any]) -> tuple[int, Any]:
    """One job, in a worker; what it calls does not spread any further."""
    position, job = item
    with parallel_config(backend="sequential"):
        return position, _unpacked(packed.tobytes())(job)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[[Any], Any]:
    keep_freed_memory()
    _share_processors()
    return pickle.loads(packed)


def _share_processors() -> None:
    """Let JAX use as many threads as joblib grants to one of its own processes.

    Or as many as the environment says. It would use all processors in each of them,
    and they would wait for each other.
    """
    granted = os.environ.get("OMP_NUM_THREADS")
    if granted and multiprocessing.current_process().name.startswith("LokyProcess"):
        os.environ.setdefault("NPROC", granted)  # read when JAX first computes
