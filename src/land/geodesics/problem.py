"""What every geodesic problem checks before it starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.metrics import Metric

Array = NDArray[np.float64]

# Asymmetry of a tensor, relative to its largest entry, that is more than rounding.
_ASYMMETRY = 1e-8


def pair_up(
    left_name: str, left: Array, right_name: str, right: Array
) -> tuple[Array, Array, tuple[int, ...]]:
    """Pair base points with their counterparts: flat (n, D) arrays and their shape.

    `left` is one point (D,), or has the leading axes of `right`.
    """
    shape = right.shape[:-1]
    if left.ndim > 1 and left.shape != right.shape:
        raise ValueError(
            f"{left_name} must be one point or have the shape of {right_name} "
            f"{right.shape}, got {left.shape}"
        )
    dim = right.shape[-1]
    left = np.broadcast_to(left, right.shape)
    return left.reshape(-1, dim), right.reshape(-1, dim), shape


def dimension(metric: Metric) -> int:
    """Dimension of a metric; refuses what is none."""
    if not isinstance(metric, Metric):
        raise ValueError(
            f"metric must be an instance of land.metrics.Metric, got {metric!r}"
        )
    return metric.dim


def check_metric(metric: Metric, **places: Array) -> None:
    """Refuse a metric that is not symmetric positive definite at the given points.

    Parameters
    ----------
    metric
        The metric to try.
    **places
        Points (..., D) under the name of the argument they came from.
    """
    for name, points in places.items():
        flat = points.reshape(-1, metric.dim)
        fault = _first_fault(metric.host_tensors(flat))
        if fault is not None:
            index, what = fault
            raise ValueError(
                "metric must be finite, symmetric and positive definite, but at "
                f"{name}[{index}] = {flat[index]} {what}; check the metric's function "
                "and its domain"
            )


def _first_fault(tensors: Array) -> tuple[int, str] | None:
    """Index of the first tensor that is no metric, and what is wrong with it."""
    if not len(tensors):
        return None
    finite = np.isfinite(tensors).all(axis=tuple(range(1, tensors.ndim)))
    if not finite.all():
        return int(np.argmin(finite)), "it is not finite"
    if tensors.ndim == 2:
        smallest = tensors.min(axis=1)
    else:
        skew = np.abs(tensors - tensors.transpose(0, 2, 1)).max(axis=(1, 2))
        uneven = skew > _ASYMMETRY * np.abs(tensors).max(axis=(1, 2))
        if uneven.any():
            return int(np.argmax(uneven)), "it is not symmetric"
        smallest = np.linalg.eigvalsh(tensors).min(axis=1)
    if not np.all(smallest > 0.0):
        index = int(np.argmax(smallest <= 0.0))
        return index, f"its smallest eigenvalue is {smallest[index]:g}"
    return None
