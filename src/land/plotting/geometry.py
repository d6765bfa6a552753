"""Data, metric and geodesics in the plane."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from land._validation import check_points
from land.metrics import Metric

# Colour-blind safe (Okabe and Ito): what the eye should follow, and what it should not.
GEODESIC, STRAIGHT, FAN, POINT = "#0072B2", "#D55E00", "#009E73", "#222222"

# The darkest shade stays light enough for lines and points on it.
_CHEAP_TO_DEAR = LinearSegmentedColormap.from_list("cheap to dear", ["w", "#8c8c8c"])


def plot_data(data: ArrayLike, ax: Axes | None = None, **style) -> PathCollection:
    """Scatter the data.

    Parameters
    ----------
    data : array_like of shape (n, 2)
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    **style
        Passed on to `Axes.scatter`.

    Returns
    -------
    PathCollection
    """
    ax = plt.gca() if ax is None else ax
    points = check_points("data", data, 2, ndim=2)
    defaults: dict[str, Any] = {
        "s": 8,
        "color": POINT,
        "alpha": 0.6,
        "linewidths": 0,
        "zorder": 2,
    }
    artist = ax.scatter(points[:, 0], points[:, 1], **defaults | style)
    ax.set_aspect("equal")
    return artist


def plot_metric(
    metric: Metric,
    ax: Axes | None = None,
    *,
    bounds: ArrayLike | None = None,
    resolution: int = 200,
    **style,
) -> QuadMesh:
    """Shade the plane by the volume element: dark is expensive, bright is cheap.

    Parameters
    ----------
    metric : Metric
        A metric in two dimensions.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    bounds : array_like, optional
        ``[[x_min, x_max], [y_min, y_max]]``; by default the landmarks with a margin.
    resolution : int
        Number of cells along each axis.
    **style
        Passed on to `Axes.pcolormesh`.

    Returns
    -------
    QuadMesh
        The shading, of log sqrt|M|; hand it to `colorbar`.
    """
    if metric.dim != 2:
        raise ValueError(f"metric must have 2 dimensions to be drawn, got {metric.dim}")
    ax = plt.gca() if ax is None else ax
    (left, right), (bottom, top) = _bounds(metric, bounds)
    x, y = np.linspace(left, right, resolution), np.linspace(bottom, top, resolution)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    defaults: dict[str, Any] = {
        "cmap": _CHEAP_TO_DEAR,
        "shading": "gouraud",
        "rasterized": True,
        "zorder": 0,
    }
    artist = ax.pcolormesh(x, y, metric.log_volume(grid), **defaults | style)
    ax.set_aspect("equal")
    return artist


def plot_geodesics(
    curves: ArrayLike, ax: Axes | None = None, **style
) -> LineCollection:
    """Draw curves, such as those of `land.log_map` or rays of `land.exp_map`.

    Parameters
    ----------
    curves : array_like of shape (n, k, 2)
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    **style
        Passed on to `LineCollection`.

    Returns
    -------
    LineCollection
    """
    ax = plt.gca() if ax is None else ax
    lines = check_points("curves", curves, 2, ndim=3)
    defaults: dict[str, Any] = {"colors": GEODESIC, "linewidths": 1.4, "zorder": 3}
    artist = LineCollection(list(lines), **defaults | style)
    ax.add_collection(artist)
    ax.autoscale_view()
    return artist


def _bounds(metric: Metric, bounds: ArrayLike | None) -> np.ndarray:
    if bounds is not None:
        return check_points("bounds", bounds, 2, ndim=2)
    if metric.landmarks is None:
        raise ValueError("bounds must be given for a metric without landmarks")
    low, high = metric.landmarks.min(axis=0), metric.landmarks.max(axis=0)
    margin = 0.15 * (high - low).max()
    return np.stack([low - margin, high + margin], axis=1)
