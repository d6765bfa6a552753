"""Fitted models in more than two dimensions: pairs of dimensions, and a view of space.

A density in D dimensions cannot be drawn; points can, as dark as it is dense there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from land._validation import check_points
from land.geodesics import exp_map
from land.metrics import EuclideanMetric, Metric
from land.plotting._common import Array, component_colors, is_ours, log_densities

# Faint to dark blue: all points can be seen, the dense ones first.
_SHADES = LinearSegmentedColormap.from_list("points", ["#b9d7e8", "#08519c"])
_N_ANGLES = 96
_MOST_PAIRS = 8


def plot_pairs(
    model: Any,
    X: ArrayLike,
    figure: Figure | None = None,
    *,
    names: list[str] | None = None,
    n_std: float = 2.0,
    **style,
) -> np.ndarray:
    """Draw a model of several dimensions, a panel for each pair of them.

    Points are shaded by their density. Each component has its mean and, for each pair,
    the ellipse of its covariance in the plane of the two tangent directions, carried
    through Exp and projected onto the pair.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
        A fitted model.
    X : array_like of shape (n, D)
        The points to draw, 2 <= D <= 8.
    figure : matplotlib Figure, optional
        An empty figure; by default a new one of pyplot's.
    names : list of str, optional
        Names of the dimensions.
    n_std : float
        Standard deviations of the ellipses.
    **style
        Passed on to `Axes.scatter` for the points.

    Returns
    -------
    ndarray of shape (D - 1, D - 1)
        The axes below the diagonal, None elsewhere.
    """
    means, covariances, metric = components(model)
    points = check_points("X", X, means.shape[1], ndim=2)
    dim = points.shape[1]
    if not 2 <= dim <= _MOST_PAIRS:
        raise ValueError(
            f"X must have 2 to {_MOST_PAIRS} columns to be drawn in pairs, got {dim}; "
            "project it first, with PCA for example"
        )
    labels = [f"dimension {d + 1}" for d in range(dim)] if names is None else names
    if len(labels) != dim:
        raise ValueError(f"names must have {dim} entries, got {len(labels)}")
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=(2.0 * dim, 2.0 * dim), layout="constrained")
    order, shades = _shaded(model, points)
    panels = np.full((dim - 1, dim - 1), None, dtype=object)
    for row in range(1, dim):
        for column in range(row):
            place = (row - 1) * (dim - 1) + column + 1
            ax = figure.add_subplot(dim - 1, dim - 1, place)
            panels[row - 1, column] = ax
            pair = [column, row]
            defaults: dict[str, Any] = {"s": 6, "linewidths": 0, "cmap": _SHADES}
            x, y = points[order][:, pair].T
            ax.scatter(x, y, c=shades, **defaults | style)
            _draw_components(ax, means, covariances, metric, pair, n_std)
            ax.set_xlabel(labels[column] if row == dim - 1 else "")
            ax.set_ylabel(labels[row] if column == 0 else "")
    return panels


def plot_view3d(
    model: Any,
    X: ArrayLike,
    ax: Any = None,
    *,
    dimensions: tuple[int, int, int] = (0, 1, 2),
    n_std: float = 2.0,
    **style,
) -> Any:
    """Draw a model in three of its dimensions.

    Points are shaded by their density. Each component has its mean and the three
    principal ellipses of its covariance, carried through Exp and projected.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
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
        Passed on to `Axes3D.scatter` for the points.

    Returns
    -------
    Axes3D
    """
    means, covariances, metric = components(model)
    points = check_points("X", X, means.shape[1], ndim=2)
    shown = list(dimensions)
    if len(set(shown)) != 3 or not set(shown) <= set(range(points.shape[1])):
        raise ValueError(
            f"dimensions must be three different columns of X, which has "
            f"{points.shape[1]}, got {dimensions!r}"
        )
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.figure().add_subplot(projection="3d")
    if getattr(ax, "name", "") != "3d":
        raise ValueError('ax must be made with projection="3d"')
    order, shades = _shaded(model, points)
    defaults: dict[str, Any] = {
        "s": 14,
        "linewidths": 0,
        "cmap": _SHADES,
        "alpha": 0.8,
        "depthshade": False,
    }
    ax.scatter(*points[order][:, shown].T, c=shades, **defaults | style)
    for mean, covariance, color in zip(
        means, covariances, component_colors(len(means)), strict=True
    ):
        for curve in principal_ellipses(metric, mean, covariance, n_std):
            ax.plot(*curve[:, shown].T, color=color, linewidth=1.2)
        mark = {"s": 45, "color": color, "edgecolors": "white", "depthshade": False}
        ax.scatter(*mean[shown, None], **mark)
    return ax


def components(model: Any) -> tuple[Array, Array, Metric]:
    """Means (K, D), covariances (K, D, D) and metric of a fitted model."""
    if hasattr(model, "covariance_"):
        means, covariances = model.mean_[None], model.covariance_[None]
    elif getattr(model, "covariance_type", "full") == "full" and hasattr(
        model, "covariances_"
    ):
        means, covariances = model.means_, model.covariances_
    else:
        raise ValueError(
            "model must be a fitted LAND, LANDMixture or GaussianMixture with full "
            f"covariances, got {type(model).__name__}"
        )
    metric = model.metric_ if is_ours(model) else EuclideanMetric(means.shape[1])
    return means, covariances, metric


def principal_ellipses(
    metric: Metric, mean: Array, covariance: Array, n_std: float
) -> Array:
    """Exp of the ellipses in the planes of the three longest principal axes."""
    values, vectors = np.linalg.eigh(covariance)
    axes = (vectors * np.sqrt(values))[:, ::-1][:, :3]
    pairs = [(0, 1), (0, 2), (1, 2)][: 3 if axes.shape[1] > 2 else 1]
    return np.stack([_carried(metric, mean, axes[:, pair], n_std) for pair in pairs])


def pair_ellipse(
    metric: Metric, mean: Array, covariance: Array, pair: list[int], n_std: float
) -> Array:
    """Exp of the ellipse of tangents that are least unlikely given their `pair`.

    For tangents whose two entries lie on the marginal ellipse of the pair, the others
    are at their conditional means; where space is flat this projects to the outline.
    """
    block = covariance[np.ix_(pair, pair)]
    values, vectors = np.linalg.eigh(block)
    root = vectors * np.sqrt(values)
    axes = covariance[:, pair] @ np.linalg.solve(block, root)
    return _carried(metric, mean, axes, n_std)


def _carried(metric: Metric, mean: Array, axes: Array, n_std: float) -> Array:
    """Exp of the ellipse with the given half axes, (n, D); NaN where it failed."""
    angles = np.linspace(0.0, 2.0 * np.pi, _N_ANGLES + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle[-1] = circle[0]
    result = exp_map(metric, mean, n_std * circle @ axes.T)
    return np.where(result.converged[:, None], result.points, np.nan)


def _draw_components(
    ax: Axes,
    means: Array,
    covariances: Array,
    metric: Metric,
    pair: list[int],
    n_std: float,
) -> None:
    for mean, covariance, color in zip(
        means, covariances, component_colors(len(means)), strict=True
    ):
        curve = pair_ellipse(metric, mean, covariance, pair, n_std)
        ax.plot(*curve[:, pair].T, color=color, linewidth=1.2, zorder=4)
        mark: dict[str, Any] = {"edgecolors": "white", "linewidths": 1.0, "zorder": 6}
        ax.scatter(mean[pair[0]], mean[pair[1]], s=40, color=color, **mark)


def _shaded(model: Any, points: Array) -> tuple[np.ndarray, Array]:
    """The points' order, dense ones last, and ranks of their density in [0, 1]."""
    values = np.nan_to_num(log_densities(model, points, "riemannian"), nan=-np.inf)
    order = np.argsort(values, kind="stable")
    return order, np.linspace(0.0, 1.0, len(order))
