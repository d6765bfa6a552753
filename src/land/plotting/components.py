"""Means, covariances and clusters of fitted models, in the plane and beyond.

A density in D dimensions cannot be drawn; clusters, means and covariances can.
"""

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
from land.geodesics import exp_map, log_map
from land.metrics import Metric
from land.plotting.sheet import (
    SMOOTH,
    Array,
    Components,
    axes,
    component_legend,
    components_of,
    styled,
)

# Responsibilities below cannot be seen and are not worth a geodesic.
_FAINTEST = 0.05
# Dimensions at most; more panels than theirs would be too small to read.
MOST_SHOWN = 8


def plot_means(model: Any, ax: Axes | None = None, **style) -> PathCollection:
    """Mark the means of a fitted model in two dimensions; `style` of `Axes.scatter`."""
    ax, parts = axes(ax), components_of(model, 2)
    look = styled(style, color=parts.colors, edgecolors="white", s=60, zorder=6)
    artist = ax.scatter(*parts.means.T, **{"linewidths": 1.2} | look)
    ax.set_aspect("equal")
    return artist


def plot_covariance(
    model: Any, ax: Axes | None = None, *, n_std: ArrayLike = (1.0, 2.0), **style
) -> list[Line2D]:
    """Draw the covariances of a fitted model in two dimensions.

    The curve of a component with mean mu and covariance Sigma at `s` standard
    deviations is Exp_mu of the ellipse v^T Sigma^-1 v = s^2.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
    n_std : float or sequence of float
        The numbers of standard deviations.
    ax, **style
        See `land.plotting`; of `Axes.plot`.

    Returns
    -------
    list of Line2D
        A closed curve for each component and number of standard deviations, the latter
        varying faster, with gaps where a geodesic failed.
    """
    ax, parts = axes(ax), components_of(model, 2)
    radii = check_points("n_std", np.atleast_1d(np.asarray(n_std)), ndim=1)
    if radii.min() <= 0.0:
        raise ValueError(f"n_std must be positive, got {radii.tolist()}")
    if parts.covariances is None:
        raise ValueError(f"model must have covariances, got {type(model).__name__}")
    artists: list[Line2D] = []
    for k, color in enumerate(parts.colors):
        half_axes = pair_axes(parts.covariances[k], [0, 1])
        look = styled(style, color=color, linewidth=1.4, zorder=4)
        label: dict[str, Any] = {"label": f"component {k}"}
        for curve in ellipses(parts.metric, parts.means[k], half_axes, radii):
            artists += ax.plot(*curve.T, **label | look)
            label = {}
    ax.set_aspect("equal")
    return artists


def plot_responsibilities(
    model: Any, X: ArrayLike, ax: Axes | None = None, *, max_curves: int = 100, **style
) -> list[LineCollection]:
    """Draw geodesics from each mean to its data, opaque where it is responsible.

    The data have the colours of the components, mixed by responsibility.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
        A fitted model in two dimensions.
    X : array_like of shape (n, 2)
        The data.
    max_curves : int
        Of more curves than that, some are chosen.
    ax, **style
        See `land.plotting`; of `LineCollection`.

    Returns
    -------
    list of LineCollection
        One for each component, with the responsibilities above 0.05 as alpha.
    """
    ax, parts = axes(ax), components_of(model, 2)
    count = check_count("max_curves", max_curves)
    data = check_points("X", X, 2, ndim=2)
    shares = np.ones((len(data), 1))
    if len(parts.means) > 1:
        shares = np.asarray(model.predict_proba(data))
    mixed = np.clip(shares @ to_rgba_array(parts.colors), 0.0, 1.0)
    ax.scatter(data[:, 0], data[:, 1], s=10, c=mixed, linewidths=0, zorder=5)
    rows, owners = np.nonzero(shares >= _FAINTEST)
    kept = np.sort(np.random.default_rng(0).permutation(len(rows))[:count])
    rows, owners = rows[kept], owners[kept]
    logs = log_map(parts.metric, parts.means[owners], data[rows])
    artists = []
    for k, color in enumerate(parts.colors):
        own = (owners == k) & logs.converged
        strokes = np.tile(to_rgba(color), (int(own.sum()), 1))
        strokes[:, 3] = shares[rows[own], k]
        look = styled(style, colors=strokes, linewidths=0.8, zorder=3)
        artists.append(LineCollection(list(logs.curves[own]), **look))
        ax.add_collection(artists[-1])
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
    """
    parts, points, shown = _checked(model, X, dimensions)
    dim = points.shape[1]
    if not 2 <= len(shown) <= MOST_SHOWN:
        raise ValueError(
            f"dimensions must be 2 to {MOST_SHOWN} of {dim} columns, got {len(shown)}"
        )
    labels = [f"dimension {d + 1}" for d in range(dim)] if names is None else names
    if len(labels) != dim:
        raise ValueError(f"names must have {dim} entries, got {len(labels)}")
    pairs = list(combinations(shown, 2))
    # For up to eight dimensions one of these leaves no place empty.
    across = next((n for n in (3, 4, 5) if len(pairs) % n == 0), 1)
    down = len(pairs) // across
    if figure is None:
        figure = plt.figure(layout="constrained")
    figure.set_size_inches(2.3 * across, 2.1 * down + 0.5)  # of the legend
    panels = figure.subplots(down, across, squeeze=False).ravel()
    clusters = _clusters(model, points)
    for ax, pair in zip(panels, pairs, strict=True):
        _draw(ax, parts, points, clusters, list(pair), n_std, {"s": 7} | style)
        ax.set(xlabel=labels[pair[0]], ylabel=labels[pair[1]])
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
    parts, points, shown = _checked(model, X, dimensions)
    if len(shown) != 3:
        raise ValueError(f"dimensions must be three, got {dimensions!r}")
    if ax is None:
        ax = plt.figure(layout="constrained").add_subplot(projection="3d")
    if getattr(ax, "name", "") != "3d":
        raise ValueError('ax must be made with projection="3d"')
    clusters = _clusters(model, points)
    _draw(ax, parts, points, clusters, shown, n_std, {"s": 10} | style)
    component_legend(ax.figure, model, n_std)
    return ax


def pair_axes(covariance: Array, pair: list[int]) -> Array:
    """Half axes (D, 2) of the ellipse of tangents that are likeliest given a `pair`.

    For tangents whose two entries lie on the marginal ellipse of the pair, the others
    are at their conditional means; where space is flat this projects to the outline.
    """
    block = covariance[np.ix_(pair, pair)]
    # The symmetric root has no preferred axis, as a Cholesky factor would.
    values, vectors = np.linalg.eigh(block)
    root = (vectors * np.sqrt(values)) @ vectors.T
    return covariance[:, pair] @ np.linalg.solve(block, root)


def ellipses(metric: Metric, mean: Array, half_axes: Array, radii: Array) -> Array:
    """Exp of the ellipse with the given half axes (D, 2) times each radius, (n, k, D).

    NaN where it failed.
    """
    angles = np.linspace(0.0, 2.0 * np.pi, SMOOTH // 2 + 1)
    curves = _carried(metric, mean, half_axes, radii, angles)
    # Exp stretches some parts of the ellipse by far more than others: a second pass
    # spreads the points evenly along the outermost curve, half of them at least.
    steps = np.linalg.norm(np.diff(curves[np.argmax(radii)], axis=0), axis=1)
    steps = np.nan_to_num(steps) + max(np.nanmean(steps), np.finfo(float).tiny)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0.0, along[-1], SMOOTH + 1)
    angles = np.interp(even, along, angles)
    return _carried(metric, mean, half_axes, radii, angles)


def _carried(
    metric: Metric, mean: Array, half_axes: Array, radii: Array, angles: Array
) -> Array:
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # One solve of each geodesic passes through all ellipses.
    outermost = radii.max()
    tangents = outermost * circle @ half_axes.T
    result = exp_map(metric, mean, tangents, times=radii / outermost)
    assert result.rays is not None
    rays = np.where(result.converged[:, None, None], result.rays, np.nan)
    rays[-1] = rays[0]
    return np.moveaxis(rays, 1, 0)


def _checked(model: Any, X: Any, dimensions: Any) -> tuple[Components, Array, list]:
    """What there is to draw: the model, the points, the dimensions."""
    parts = components_of(model)
    dim = parts.means.shape[1]
    shown = list(range(dim) if dimensions is None else dimensions)
    if len(set(shown)) < len(shown) or not set(shown) <= set(range(dim)):
        raise ValueError(
            f"dimensions must be different columns of X, which has {dim}, got {shown}"
        )
    return parts, check_points("X", X, dim, ndim=2), shown


def _clusters(model: Any, points: Array) -> np.ndarray:
    """The component that each point belongs to."""
    predict = getattr(model, "predict", lambda rows: np.zeros(len(rows), dtype=int))
    return np.asarray(predict(points))


def _draw(ax, parts, points, clusters, shown, n_std, style) -> None:
    """Clusters, means and covariances in two or three dimensions."""
    solid = {"depthshade": False} if len(shown) == 3 else {}
    for k, color in enumerate(parts.colors):
        dots = styled(style, color=color, linewidths=0, alpha=0.6)
        ax.scatter(*points[clusters == k][:, shown].T, **solid | dots)
        mark = {"color": color, "edgecolors": "white", "linewidths": 1.0} | solid
        ax.scatter(*parts.means[k, shown, None], s=45, zorder=6, **mark)
        if parts.covariances is None:
            continue
        for half_axes in _half_axes(parts.covariances[k], shown):
            radii = np.array([n_std])
            (curve,) = ellipses(parts.metric, parts.means[k], half_axes, radii)
            ax.plot(*curve[:, shown].T, color=color, linewidth=1.2, zorder=4)


def _half_axes(covariance: Array, shown: list[int]) -> list[Array]:
    """Of the ellipse of a pair; else of those of the three longest principal axes."""
    if len(shown) == 2:
        return [pair_axes(covariance, shown)]
    values, vectors = np.linalg.eigh(covariance)
    longest = (vectors * np.sqrt(values))[:, ::-1]
    return [longest[:, pair] for pair in ([0, 1], [0, 2], [1, 2])]
