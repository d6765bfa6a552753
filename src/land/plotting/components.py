"""Means, covariances and responsibilities of a fitted model in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from land._validation import check_count, check_points
from land.geodesics import exp_map, log_map
from land.metrics import Metric
from land.plotting.sheet import SMOOTH, Array, axes, components_of

# Responsibilities below cannot be seen and are not worth a geodesic.
_FAINTEST = 0.05


def plot_means(model: Any, ax: Axes | None = None, **style) -> PathCollection:
    """Mark the mean or the means of a model in two dimensions.

    Parameters
    ----------
    model : LAND, LANDMixture, RiemannianKMeans, GaussianMixture
    ax, **style
        See `land.plotting`; of `Axes.scatter`.
    """
    ax = axes(ax)
    parts = components_of(model, 2)
    defaults: dict[str, Any] = {"s": 60, "marker": "o", "zorder": 6}
    defaults |= {"edgecolors": "white", "linewidths": 1.2}
    if not style.keys() & {"c", "color", "facecolors"}:
        defaults["c"] = parts.colors
    artist = ax.scatter(*parts.means.T, **defaults | style)
    ax.set_aspect("equal")
    return artist


def plot_covariance(
    model: Any, ax: Axes | None = None, *, n_std: ArrayLike = (1.0, 2.0), **style
) -> list[Line2D]:
    """Draw the covariances: ellipses of the tangent space, carried through Exp.

    The curve of a component with mean mu and covariance Sigma at `s` standard
    deviations is Exp_mu of the ellipse v^T Sigma^-1 v = s^2.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
        A fitted model in two dimensions.
    n_std : float or sequence of float
        The numbers of standard deviations.
    ax, **style
        See `land.plotting`; of `Axes.plot`.

    Returns
    -------
    list of Line2D
        One closed curve for each component and number of standard deviations, the
        latter varying faster; the first of each component has a label for the legend.
        Curves have gaps where a geodesic could not be computed.
    """
    ax = axes(ax)
    radii = check_points("n_std", np.atleast_1d(np.asarray(n_std)), ndim=1)
    if radii.min() <= 0.0:
        raise ValueError(f"n_std must be positive, got {radii.tolist()}")
    parts = components_of(model, 2)
    if parts.covariances is None:
        raise ValueError(f"model must have covariances, got {type(model).__name__}")
    artists: list[Line2D] = []
    for k, color in enumerate(parts.colors):
        half_axes = pair_axes(parts.covariances[k], [0, 1])
        defaults: dict[str, Any] = {"color": color, "linewidth": 1.4, "zorder": 4}
        defaults["label"] = f"component {k}"
        for curve in ellipses(parts.metric, parts.means[k], half_axes, radii):
            artists += ax.plot(*curve.T, **defaults | style)
            defaults["label"] = None
    ax.set_aspect("equal")
    return artists


def plot_responsibilities(
    model: Any,
    X: ArrayLike,
    ax: Axes | None = None,
    *,
    max_curves: int = 100,
    **style,
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
        Largest number of curves; with more rows than that, some are chosen, always
        the same ones.
    ax, **style
        See `land.plotting`; of `LineCollection`.

    Returns
    -------
    list of LineCollection
        One for each component, in its colour, with the responsibilities as alpha.
        Curves below a responsibility of 0.05, and those whose geodesic could not be
        computed, are left out.
    """
    ax = axes(ax)
    means, _, metric = parts = components_of(model, 2)
    count = check_count("max_curves", max_curves)
    data = check_points("X", X, 2, ndim=2)
    shares = np.ones((len(data), 1))
    if len(means) > 1:
        shares = np.asarray(model.predict_proba(data))
    mixed = np.clip(shares @ to_rgba_array(parts.colors), 0.0, 1.0)
    ax.scatter(data[:, 0], data[:, 1], s=10, c=mixed, linewidths=0, zorder=5)
    chosen = _some(len(data), count)
    rows, owners = np.nonzero(shares[chosen] >= _FAINTEST)
    kept = _some(len(rows), count)
    rows, owners = chosen[rows[kept]], owners[kept]
    logs = log_map(metric, means[owners], data[rows])
    artists = []
    for k, color in enumerate(parts.colors):
        own = (owners == k) & logs.converged
        strokes = np.tile(to_rgba(color), (int(own.sum()), 1))
        strokes[:, 3] = shares[rows[own], k]
        defaults: dict[str, Any] = {"colors": strokes, "linewidths": 0.8, "zorder": 3}
        artist = LineCollection(list(logs.curves[own]), **defaults | style)
        ax.add_collection(artist)
        artists.append(artist)
    ax.autoscale_view()
    ax.set_aspect("equal")
    return artists


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
    circle[-1] = circle[0]
    # One solve of each geodesic passes through all ellipses.
    outermost = radii.max()
    tangents = outermost * circle @ half_axes.T
    result = exp_map(metric, mean, tangents, times=radii / outermost)
    assert result.rays is not None
    rays = np.where(result.converged[:, None, None], result.rays, np.nan)
    return np.moveaxis(rays, 1, 0)


def _some(total: int, count: int) -> np.ndarray:
    """At most `count` of so many positions, in their order, always the same ones."""
    order = np.random.default_rng(0).permutation(total)
    return np.sort(order[:count]) if total > count else np.arange(total)
