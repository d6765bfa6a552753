"""Riemannian metrics: the interface and its implementations.

Those that are learned from data are `LocalDiagonalMetric`, the paper's,
`LocalFullMetric` and `DensityMetric`; `KINDS` has them by the words for them.
"""

from typing import Any

from land.metrics.base import Metric
from land.metrics.function import EuclideanMetric, FunctionMetric, PullbackMetric
from land.metrics.learned import DensityMetric, LocalDiagonalMetric, LocalFullMetric
from land.metrics.mixture import MixtureMetric

# The metrics that estimators learn, by the words for them.
KINDS: dict[str, Any] = {
    "diagonal": LocalDiagonalMetric,
    "full": LocalFullMetric,
    "density": DensityMetric,
}

__all__ = [
    "KINDS",
    "DensityMetric",
    "EuclideanMetric",
    "FunctionMetric",
    "LocalDiagonalMetric",
    "LocalFullMetric",
    "Metric",
    "MixtureMetric",
    "PullbackMetric",
]
