"""Fitted models: means, covariances, clusters and confidence regions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from land._validation import check_count, check_points
from land.estimators.drawing import circle
from land.estimators.standardized import column_names, responsibilities
from land.geodesics import exp_map, log_map
from land.inference import Bootstrap
from land.metrics import Metric
from land.plotting.sheet import (
    COLORS,
    SMOOTH,
    Array,
    axes,
    component_colors,
    component_legend,
    metric_of,
    name_axes,
    parts_in,
    styled,
)

# Responsibilities below cannot be seen and are not worth a geodesic.
_FAINTEST = 0.05
# Dimensions at most; more panels than theirs would be too small to read.
MOST_SHOWN = 8


def plot_means(model: Any, ax: Axes | None = None, **style) -> PathCollection:
    """Mark the means of a fitted model in two dimensions; `style` of `Axes.scatter`."""
    ax, means = axes(ax), parts_in(model, 2).means
    look: Any = {"edgecolors": "white", "s": 60, "zorder": 3}
    look = styled(style, color=component_colors(len(means)), **look)
    artist = ax.scatter(*means.T, **look)
    name_axes(ax, model)
    ax.set_aspect("equal")
    return artist


def plot_covariance(
    model: Any, ax: Axes | None = None, *, n_std: ArrayLike = (1.0, 2.0), **style
) -> list[Line2D]:
    """Draw the covariances of a fitted model in two dimensions.

    The curve of a component with mean mu and covariance Sigma at `s` standard
    deviations is Exp_mu of the ellipse v^T Sigma^-1 v = s^2. Returns a closed curve for
    each component and each of `n_std`, the latter varying faster, with gaps where a
    geodesic failed. The `style` is of `Axes.plot`.
    """
    ax, parts = axes(ax), parts_in(model, 2)
    radii = check_points("n_std", np.atleast_1d(np.asarray(n_std)), ndim=1)
    if radii.min() <= 0.0:
        raise ValueError(f"n_std must be positive, got {radii.tolist()}")
    if parts.covariances is None:
        raise ValueError(f"model must have covariances, got {type(model).__name__}")
    artists: list[Line2D] = []
    for k, color in enumerate(component_colors(len(parts.means))):
        (half_axes,) = _half_axes(parts.covariances[k], [0, 1])
        for radius in radii:
            curve = _ellipse(metric_of(model), parts.means[k], radius * half_axes)
            label = f"component {k}" if radius == radii[0] else None
            look = styled(style, color=color)
            artists += ax.plot(*curve.T, **{"label": label} | look)
    name_axes(ax, model)
    ax.set_aspect("equal")
    return artists


def plot_mean_region(
    found: Bootstrap,
    ax: Axes | None = None,
    *,
    level: float | Sequence[float] = 0.95,
    **style,
) -> list[Line2D]:
    """Draw confidence regions of a mean in two dimensions, around a dot for it.

    Parameters
    ----------
    found : Bootstrap
        What `land.inference.bootstrap` has returned.
    level : float or sequence of float
        Probabilities of the regions.
    ax, **style
        See `land.plotting`; of `Axes.plot`.

    Returns
    -------
    list of Line2D
        A closed curve for each level, and the dot.
    """
    ax = axes(ax)
    look = styled(style, color=COLORS[1], linewidth=1.4, zorder=5)
    artists: list[Line2D] = []
    for each in np.atleast_1d(level).tolist():
        curve = found.mean_region(each, SMOOTH)
        artists += ax.plot(*curve.T, **{"label": f"mean, {100 * each:g} %"} | look)
    dot = {"marker": "o", "linestyle": "", "markeredgecolor": "white"}
    artists += ax.plot(*found.model.mean_.reshape(2, 1), **look | dot)
    ax.set_aspect("equal")
    return artists


def plot_responsibilities(
    model: Any, X: ArrayLike, ax: Axes | None = None, *, max_curves: int = 100, **style
) -> list[LineCollection]:
    """Draw geodesics from each mean to its data, opaque where it is responsible.

    The data have the colours of the components, mixed by responsibility. Of more
    curves than `max_curves`, some are chosen. Returns a LineCollection for each
    component, with the responsibilities above 0.05 as alpha; `style` is of
    `LineCollection`.
    """
    ax, parts = axes(ax), parts_in(model, 2)
    count = check_count("max_curves", max_curves)
    data = check_points("X", X, 2, ndim=2)
    colors = component_colors(len(parts.means))
    shares = responsibilities(model, data)
    mixed = np.clip(shares @ to_rgba_array(colors), 0.0, 1.0)
    ax.scatter(data[:, 0], data[:, 1], s=10, c=mixed, linewidths=0, zorder=2)
    rows, owners = np.nonzero(shares >= _FAINTEST)
    kept = np.sort(np.random.default_rng(0).permutation(len(rows))[:count])
    rows, owners = rows[kept], owners[kept]
    logs = log_map(metric_of(model), parts.means[owners], data[rows])
    artists = []
    for k, color in enumerate(colors):
        own = (owners == k) & logs.converged
        strokes = np.tile(to_rgba(color), (int(own.sum()), 1))
        strokes[:, 3] = shares[rows[own], k]
        look = styled(style, colors=strokes, linewidths=0.8)
        artists.append(LineCollection(list(logs.curves[own]), **look))
        ax.add_collection(artists[-1])
    name_axes(ax, X)
    name_axes(ax, model)
    ax.autoscale_view()
    ax.set_aspect("equal")
    return artists


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

    Points have the colours of their clusters. Each component has its mean and the
    ellipse of its covariance for the pair, carried through Exp and projected. Returns
    an array of Axes, in the order of `itertools.combinations`.

    Parameters
    ----------
    model, X
        A fitted model, and the points (n, D) to draw.
    figure : matplotlib Figure, optional
        An empty figure, whose size is set; by default a new one of pyplot's.
    dimensions : sequence of int, optional
        Which dimensions to show, eight at most; by default all.
    names : sequence of str, optional
        Names of all D dimensions, by default those of a data frame or of the model.
    n_std, **style
        Standard deviations of the ellipses; style of `Axes.scatter` for the points.
    """
    points, shown = _checked(model, X, dimensions)
    dim = points.shape[1]
    if not 2 <= len(shown) <= MOST_SHOWN:
        raise ValueError(
            f"dimensions must be 2 to {MOST_SHOWN} of {dim} columns, got {len(shown)}"
        )
    labels = column_names(model, X, dim=dim) if names is None else [*map(str, names)]
    if len(labels) != dim:
        raise ValueError(f"names must have {dim} entries, got {len(labels)}")
    pairs = list(combinations(shown, 2))
    # For up to eight dimensions one of these leaves no place empty.
    across = next((n for n in (3, 4, 5) if len(pairs) % n == 0), 1)
    down = len(pairs) // across
    if figure is None:
        figure = plt.figure(layout="constrained")
    figure.set_size_inches(2.5 * across, 2.5 * down)
    panels = figure.subplots(down, across, squeeze=False).ravel()
    clusters = responsibilities(model, points).argmax(axis=1)
    for ax, pair in zip(panels, pairs, strict=True):
        _draw(ax, model, points, clusters, list(pair), n_std, {"s": 7} | style)
        ax.set_xlabel(labels[pair[0]], parse_math=False)
        ax.set_ylabel(labels[pair[1]], parse_math=False)
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
    """Draw a model in three of its dimensions, on `ax` made for 3d or a new figure.

    As `plot_pairs`, with the three principal ellipses of each covariance.
    """
    points, shown = _checked(model, X, dimensions)
    if len(shown) != 3:
        raise ValueError(f"dimensions must be three, got {dimensions!r}")
    if ax is None:
        ax = plt.figure(layout="constrained").add_subplot(projection="3d")
    if getattr(ax, "name", "") != "3d":
        raise ValueError('ax must be made with projection="3d"')
    clusters = responsibilities(model, points).argmax(axis=1)
    _draw(ax, model, points, clusters, shown, n_std, {"s": 10} | style)
    names = column_names(model, X, dim=points.shape[1])
    for axis, d in zip((ax.xaxis, ax.yaxis, ax.zaxis), shown, strict=True):
        axis.set_label_text(names[d], parse_math=False)
    component_legend(ax.figure, model, n_std)
    return ax


def _half_axes(covariance: Array, shown: list[int]) -> list[Array]:
    """Half axes (D, 2) of the ellipses to draw in two or three dimensions.

    Of a pair: the tangents whose two entries lie on the marginal ellipse, the others at
    their conditional means; where space is flat this projects to the outline. Else of
    the three longest principal axes.
    """
    if len(shown) == 2:
        values, vectors = np.linalg.eigh(covariance[np.ix_(shown, shown)])
        return [covariance[:, shown] @ (vectors / np.sqrt(values)) @ vectors.T]
    values, vectors = np.linalg.eigh(covariance)
    longest = (vectors * np.sqrt(values))[:, ::-1]
    return [longest[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]


def _ellipse(metric: Metric, mean: Array, half_axes: Array) -> Array:
    """Exp of the ellipse with the given half axes (D, 2); NaN where it failed."""
    found = exp_map(metric, mean, circle(2 * SMOOTH) @ half_axes.T)
    points = np.where(found.converged[:, None], found.points, np.nan)
    return np.vstack([points, points[:1]])


def _checked(model: Any, X: Any, dimensions: Any) -> tuple[Array, list]:
    """What there is to draw: the points, the dimensions."""
    dim = parts_in(model).means.shape[1]
    shown = list(range(dim) if dimensions is None else dimensions)
    if len(set(shown)) < len(shown) or not set(shown) <= set(range(dim)):
        raise ValueError(
            f"dimensions must be different columns of X, which has {dim}, got {shown}"
        )
    return check_points("X", X, dim, ndim=2), shown


def _draw(ax, model, points, clusters, shown, n_std, style) -> None:
    """Clusters, means and covariances in two or three dimensions."""
    solid = {"depthshade": False} if len(shown) == 3 else {}
    parts = parts_in(model)
    for k, color in enumerate(component_colors(len(parts.means))):
        dots = styled(style, color=color, linewidths=0, alpha=0.6)
        ax.scatter(*points[clusters == k][:, shown].T, **solid | dots)
        mark = {"color": color, "edgecolors": "white", "zorder": 3} | solid
        ax.scatter(*parts.means[k, shown, None], **mark)
        if parts.covariances is None:
            continue
        for half_axes in _half_axes(parts.covariances[k], shown):
            curve = _ellipse(metric_of(model), parts.means[k], n_std * half_axes)
            ax.plot(*curve[:, shown].T, color=color)
