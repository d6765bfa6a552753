"""Fitted models in more than two dimensions: pairs of dimensions, and a view of space.

A density in D dimensions cannot be drawn; clusters, means and covariances can.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from land._validation import check_points
from land.plotting.components import ellipses, pair_axes
from land.plotting.sheet import (
    Array,
    Components,
    clusters_of,
    component_legend,
    components_of,
)

# Dimensions at most; more panels than theirs would be too small to read.
MOST_SHOWN = 8
# Inches of a panel, and of the legend below.
_PANEL, _LEGEND = (2.3, 2.1), 0.5
_MARK: dict[str, Any] = {"s": 45, "edgecolors": "white", "linewidths": 1.0, "zorder": 6}


def plot_pairs(
    model: Any,
    X: ArrayLike,
    figure: Figure | None = None,
    *,
    dimensions: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    n_std: float = 1.0,
    **style,
) -> np.ndarray:
    """Draw a model of several dimensions, a panel for each pair of them.

    Points have the colours of their clusters. Each component has its mean and, for each
    pair, the ellipse of its covariance in the plane of the two tangent directions,
    carried through Exp and projected onto the pair.

    Parameters
    ----------
    model : LAND, LANDMixture, RiemannianKMeans or GaussianMixture
        A fitted model.
    X : array_like of shape (n, D)
        The points to draw.
    figure : matplotlib Figure, optional
        An empty figure, whose size is set; by default a new one of pyplot's.
    dimensions : sequence of int, optional
        Which dimensions to show, eight at most; by default all.
    names : sequence of str, optional
        Names of all D dimensions.
    n_std : float
        Standard deviations of the ellipses.
    **style
        See `land.plotting`; of `Axes.scatter` for the points.

    Returns
    -------
    ndarray of Axes
        One for each pair of dimensions, in the order of `itertools.combinations`.
    """
    parts, points = _checked(model, X)
    dim = points.shape[1]
    shown = _shown(range(dim) if dimensions is None else dimensions, dim)
    if not 2 <= len(shown) <= MOST_SHOWN:
        raise ValueError(
            f"dimensions must be 2 to {MOST_SHOWN} of {dim} columns, got {len(shown)}"
        )
    labels = [f"dimension {d + 1}" for d in range(dim)] if names is None else names
    if len(labels) != dim:
        raise ValueError(f"names must have {dim} entries, got {len(labels)}")
    pairs = list(combinations(shown, 2))
    # For up to eight dimensions one of these leaves no panel empty.
    across = next((n for n in (3, 4, 5) if len(pairs) % n == 0), 1)
    down = len(pairs) // across
    if figure is None:
        figure = plt.figure(layout="constrained")
    figure.set_size_inches(across * _PANEL[0], down * _PANEL[1] + _LEGEND)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    clusters = clusters_of(model, points)
    defaults: dict[str, Any] = {"s": 7, "linewidths": 0, "alpha": 0.6}
    for ax, (first, second) in zip(panels, pairs, strict=True):
        pair = [first, second]
        for k, color in enumerate(parts.colors):
            own = points[clusters == k][:, pair]
            ax.scatter(*own.T, **{"color": color} | defaults | style)
            ax.scatter(*parts.means[k, pair], color=color, **_MARK)
            if parts.covariances is not None:
                half_axes = pair_axes(parts.covariances[k], pair)
                mean, radii = parts.means[k], np.array([n_std])
                (curve,) = ellipses(parts.metric, mean, half_axes, radii)
                ax.plot(*curve[:, pair].T, color=color, linewidth=1.2, zorder=4)
        ax.set(xlabel=labels[first], ylabel=labels[second])
    component_legend(figure, model, n_std)
    return panels


def plot_view3d(
    model: Any,
    X: ArrayLike,
    ax: Any = None,
    *,
    dimensions: tuple[int, int, int] = (0, 1, 2),
    n_std: float = 1.0,
    **style,
) -> Any:
    """Draw a model in three of its dimensions.

    Points have the colours of their clusters. Each component has its mean and the three
    principal ellipses of its covariance, carried through Exp and projected.

    Parameters
    ----------
    model : LAND, LANDMixture, RiemannianKMeans or GaussianMixture
        A fitted model of three dimensions or more.
    X : array_like of shape (n, D)
        The points to draw.
    ax : matplotlib Axes3D, optional
        Where to draw; by default the only axes of a new figure of pyplot's.
    dimensions : tuple of three int
        Which dimensions to show.
    n_std : float
        Standard deviations of the ellipses.
    **style
        See `land.plotting`; of `Axes3D.scatter` for the points.
    """
    parts, points = _checked(model, X)
    shown = _shown(dimensions, points.shape[1])
    if len(shown) != 3:
        raise ValueError(f"dimensions must be three, got {dimensions!r}")
    if ax is None:
        ax = plt.figure(layout="constrained").add_subplot(projection="3d")
    if getattr(ax, "name", "") != "3d":
        raise ValueError('ax must be made with projection="3d"')
    clusters = clusters_of(model, points)
    defaults: dict[str, Any] = {"s": 10, "linewidths": 0, "alpha": 0.6}
    for k, color in enumerate(parts.colors):
        own = points[clusters == k][:, shown]
        ax.scatter(*own.T, **{"color": color, "depthshade": False} | defaults | style)
        ax.scatter(*parts.means[k, shown, None], color=color, depthshade=False, **_MARK)
        for curve in _principal_ellipses(parts, k, n_std):
            ax.plot(*curve[:, shown].T, color=color, linewidth=1.2)
    component_legend(ax.figure, model, n_std)
    return ax


def _checked(model: Any, X: ArrayLike) -> tuple[Components, Array]:
    parts = components_of(model)
    return parts, check_points("X", X, parts.means.shape[1], ndim=2)


def _shown(dimensions: Sequence[int], dim: int) -> list[int]:
    shown = list(dimensions)
    if len(set(shown)) < len(shown) or not set(shown) <= set(range(dim)):
        raise ValueError(
            f"dimensions must be different columns of X, which has {dim}, got {shown}"
        )
    return shown


def _principal_ellipses(parts: Components, k: int, n_std: float) -> list[Array]:
    """Exp of the ellipses in the planes of the three longest principal axes."""
    if parts.covariances is None:
        return []
    values, vectors = np.linalg.eigh(parts.covariances[k])
    axes = (vectors * np.sqrt(values))[:, ::-1]
    return [
        ellipses(parts.metric, parts.means[k], axes[:, pair], np.array([n_std]))[0]
        for pair in ([0, 1], [0, 2], [1, 2])
    ]
