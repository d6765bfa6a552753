"""What every geodesic problem checks before it starts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.metrics import Metric

Array = NDArray[np.float64]


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


def check_metric(metric: Metric, **places: Array) -> None:
    """Refuse a metric that is not positive definite at the given points.

    Parameters
    ----------
    metric
        The metric to try.
    **places
        Points (..., D) under the name of the argument they came from.
    """
    for name, points in places.items():
        tensors = metric.host_tensors(points.reshape(-1, metric.dim))
        if tensors.ndim == 2:
            smallest = tensors.min(axis=1, initial=np.inf)
        else:
            finite = np.isfinite(tensors).all(axis=(1, 2))
            smallest = np.full(len(tensors), np.nan)
            smallest[finite] = np.linalg.eigvalsh(tensors[finite]).min(axis=1)
        bad = ~(np.isfinite(tensors.reshape(len(tensors), -1)).all(axis=1))
        bad |= ~(smallest > 0.0)
        if bad.any():
            first = np.flatnonzero(bad)[0]
            raise ValueError(
                f"metric must be finite and positive definite, but at {name}"
                f"[{first}] = {points.reshape(-1, metric.dim)[first]} its smallest "
                f"eigenvalue is {smallest[first]:g}; check the metric's function "
                "and its domain"
            )
