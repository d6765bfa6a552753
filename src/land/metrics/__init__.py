"""Riemannian metrics: the interface and its implementations."""

from land.metrics.base import Metric
from land.metrics.function import EuclideanMetric, FunctionMetric
from land.metrics.local_diagonal import LocalDiagonalMetric

__all__ = ["EuclideanMetric", "FunctionMetric", "LocalDiagonalMetric", "Metric"]
