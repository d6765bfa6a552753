"""What fitted models say about points, of which there may be many.

Functions of points return small arrays: the curves of geodesics are large, and gone
when they return. Many points are taken in chunks, so that memory is bounded, work can
be shared and progress be reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from land.density.likelihood import Measure, log_density
from land.density.nodes import Law
from land.estimators.parallel import spread
from land.geodesics import log_map
from land.metrics import Metric

Array = NDArray[np.float64]
Report = Callable[[int, int], None]

_report: ContextVar[Report | None] = ContextVar("report", default=None)


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

    mean: Array
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
    for mean, precision, log_constant in components:
        logs = log_map(metric, mean, points)
        columns.append(
            log_density(
                metric, mean, precision, log_constant, points, logs, law, measure
            )
        )
    return np.stack(columns, axis=1)
