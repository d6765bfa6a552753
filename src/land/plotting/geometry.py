"""Data, metric and geodesics in the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from numpy.typing import ArrayLike

from land._validation import check_points
from land.geodesics import Geodesic, LogMap
from land.metrics import Metric
from land.plotting.sheet import SMOOTH, axes, mesh, plane

# Colour-blind safe (Okabe and Ito): what the eye should follow, and what it should not.
GEODESIC, STRAIGHT, FAN, POINT = "#0072B2", "#D55E00", "#009E73", "#222222"
# The darkest shade stays light enough for lines and points on it.
_SHORT_TO_LONG = LinearSegmentedColormap.from_list("short to long", ["w", "#8c8c8c"])
_TIMES = np.linspace(0.0, 1.0, SMOOTH + 1)


def plot_data(data: ArrayLike, ax: Axes | None = None, **style) -> PathCollection:
    """Scatter data of shape (n, 2); `style` of `Axes.scatter`."""
    ax = axes(ax)
    points = check_points("data", data, 2, ndim=2)
    defaults: dict[str, Any] = {"s": 8, "alpha": 0.6, "linewidths": 0, "zorder": 2}
    if not style.keys() & {"c", "color", "facecolors"}:
        defaults["color"] = POINT
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
    """Shade the plane by the volume element: steps in the dark are long.

    Returns the shading, of log sqrt|M|; hand it to `colorbar`.

    Parameters
    ----------
    metric : Metric
        A metric in two dimensions.
    limits : array_like, optional
        ``[[x_min, x_max], [y_min, y_max]]``; by default the landmarks with a margin.
    grid : int
        Number of points along each axis.
    ax, **style
        See `land.plotting`; of `Axes.pcolormesh`.
    """
    if metric.dim != 2:
        raise ValueError(f"metric must have 2 dimensions to be drawn, got {metric.dim}")
    ax = axes(ax)
    bounds = plane(ax, limits, metric)
    if bounds is None:
        raise ValueError(
            "limits must be given for a metric without landmarks, or data drawn first"
        )
    x, y, points = mesh(bounds, grid)
    defaults: dict[str, Any] = {"cmap": _SHORT_TO_LONG, "shading": "gouraud"}
    defaults |= {"rasterized": True, "zorder": 0}
    artist = ax.pcolormesh(x, y, metric.log_volume(points), **defaults | style)
    ax.set_aspect("equal")
    return artist


def plot_geodesics(
    curves: Geodesic | LogMap | Sequence[Geodesic] | ArrayLike,
    ax: Axes | None = None,
    **style,
) -> LineCollection:
    """Draw geodesics, or any other curves.

    Parameters
    ----------
    curves : Geodesic, sequence of Geodesic, LogMap or array_like of shape (n, k, 2)
        From `land.geodesic` or `land.log_map`; or points, such as rays of
        `land.exp_map`.
    ax, **style
        See `land.plotting`; of `LineCollection`.
    """
    ax = axes(ax)
    lines = check_points("curves", _points(curves), 2, ndim=3)
    defaults: dict[str, Any] = {"colors": GEODESIC, "linewidths": 1.4, "zorder": 3}
    artist = LineCollection(list(lines), **defaults | style)
    ax.add_collection(artist)
    ax.autoscale_view()
    ax.set_aspect("equal")
    return artist


def _points(curves: Any) -> Any:
    """The points of curves in any form."""
    if isinstance(curves, LogMap):
        return curves.curves
    if isinstance(curves, Geodesic):
        return curves(_TIMES)[None]
    return [each(_TIMES) if isinstance(each, Geodesic) else each for each in curves]
