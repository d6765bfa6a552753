"""Riemannian metrics: the interface and its implementations."""

from land.metrics.base import Metric
from land.metrics.euclidean import EuclideanMetric
from land.metrics.function import FunctionMetric
from land.metrics.local_diagonal import LocalDiagonalMetric

__all__ = ["EuclideanMetric", "FunctionMetric", "LocalDiagonalMetric", "Metric"]
