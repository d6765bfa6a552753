"""Data, metric and geodesics in the plane."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from land._validation import check_points
from land.metrics import Metric
from land.plotting._common import mesh, plane

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
    limits: ArrayLike | None = None,
    grid: int = 200,
    **style,
) -> QuadMesh:
    """Shade the plane by the volume element: dark is expensive, bright is cheap.

    Parameters
    ----------
    metric : Metric
        A metric in two dimensions.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    limits : array_like, optional
        ``[[x_min, x_max], [y_min, y_max]]``; by default the landmarks with a margin.
    grid : int
        Number of points along each axis.
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
    bounds = plane(ax, limits, metric)
    if bounds is None:
        raise ValueError(
            "limits must be given for a metric without landmarks, or data drawn first"
        )
    x, y, points = mesh(bounds, grid)
    defaults: dict[str, Any] = {
        "cmap": _CHEAP_TO_DEAR,
        "shading": "gouraud",
        "rasterized": True,
        "zorder": 0,
    }
    artist = ax.pcolormesh(x, y, metric.log_volume(points), **defaults | style)
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
