"""Riemannian metrics: the interface and its implementations."""

from land.metrics.base import Metric
from land.metrics.density import DensityMetric
from land.metrics.function import EuclideanMetric, FunctionMetric
from land.metrics.local_diagonal import LocalDiagonalMetric
from land.metrics.local_full import LocalFullMetric
from land.metrics.pullback import PullbackMetric

__all__ = [
    "DensityMetric",
    "EuclideanMetric",
    "FunctionMetric",
    "LocalDiagonalMetric",
    "LocalFullMetric",
    "Metric",
    "PullbackMetric",
]
