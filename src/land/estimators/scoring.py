"""What fitted models say about points, of which there may be many.

These functions return small arrays for each point: the curves of its geodesics are
large, and gone when they return.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from land.density.likelihood import Measure, log_density
from land.density.nodes import Law
from land.geodesics import log_map
from land.metrics import Metric

Array = NDArray[np.float64]


class Component(NamedTuple):
    """A distribution: one of a mixture, or the only one."""

    mean: Array
    precision: Array
    log_constant: float


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
