"""Automatic sigma and rho, which scale with the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Array = NDArray[np.float64]

_RHO = 0.1
_SAMPLE = 2000


def automatic_sigma(data: Array) -> float:
    """Median distance of a point to its k-th neighbour, k = ceil(sqrt(N)).

    Neighbourhoods of that size shrink as data accumulate and still hold ever more
    points, so that the metric follows the data and not their noise. Multiplying the
    data by c multiplies sigma by c. Repeated rows count once.
    """
    points = np.unique(data, axis=0)
    if len(points) < 2:
        raise ValueError("sigma='auto' needs at least 2 different rows of data")
    k = min(int(np.ceil(np.sqrt(len(points)))), len(points) - 1)
    chosen = points
    if len(points) > _SAMPLE:
        rows = np.random.default_rng(0).permutation(len(points))[:_SAMPLE]
        chosen = points[np.sort(rows)]
    distances, _ = KDTree(points).query(chosen, k + 1)
    return float(np.median(distances[:, -1]))


def automatic_rho(sigma: float) -> float:
    """(sigma / 10)^2: small beside the data's own spread within a neighbourhood."""
    return (_RHO * sigma) ** 2
