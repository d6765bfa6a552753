"""Principal axes: a frame that turns with the points, and so do results in it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def principal_axes(points: Array) -> tuple[Array, Array]:
    """Variances of points (n, D) along their principal axes, and those as columns.

    Axes point to the side on which the points reach farther.
    """
    offsets = points - points.mean(axis=0)
    variances, axes = np.linalg.eigh(offsets.T @ offsets / max(len(points) - 1, 1))
    lopsided = np.sum((offsets @ axes) ** 3, axis=0)
    return np.maximum(variances, 0.0), axes * np.where(lopsided < 0.0, -1.0, 1.0)
