"""Geodesics from the means to the data, as strong as the components' claims on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from numpy.typing import ArrayLike

from land._validation import check_count, check_points
from land.geodesics import log_map
from land.metrics import EuclideanMetric
from land.plotting._common import Array, axes, component_colors, is_ours, means_of

# Fainter claims cannot be seen and are not worth a geodesic.
_FAINTEST = 0.05


def plot_responsibilities(
    model: Any,
    X: ArrayLike,
    ax: Axes | None = None,
    *,
    max_curves: int = 100,
    **style,
) -> list[LineCollection]:
    """Draw geodesics from each mean to its data, opaque where it is responsible.

    Parameters
    ----------
    model : LAND, LANDMixture or GaussianMixture
        A fitted model in two dimensions; the lines of the latter are straight.
    X : array_like of shape (n, 2)
        The data.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    max_curves : int
        Largest number of curves; with more rows than that, some are chosen, always
        the same ones.
    **style
        Passed on to `LineCollection`.

    Returns
    -------
    list of LineCollection
        One for each component, in its colour, with the responsibilities as alpha.
        Curves below a responsibility of 0.05, and those whose geodesic could not be
        computed, are left out.
    """
    ax = axes(ax)
    means = means_of(model)
    count = check_count("max_curves", max_curves)
    data = _some(check_points("X", X, 2, ndim=2), count)
    shares = _responsibilities(model, data, len(means))
    rows, owners = np.nonzero(shares >= _FAINTEST)
    kept = _some(np.arange(len(rows)), count)
    rows, owners = rows[kept], owners[kept]
    metric = model.metric_ if is_ours(model) else EuclideanMetric(2)
    logs = log_map(metric, means[owners], data[rows])
    artists = []
    for k, color in enumerate(component_colors(len(means))):
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


def _responsibilities(model: Any, data: Array, count: int) -> Array:
    """Responsibilities (n, K); a single component is responsible for everything."""
    if count == 1:
        return np.ones((len(data), 1))
    return np.asarray(model.predict_proba(data))


def _some(items: np.ndarray, count: int) -> np.ndarray:
    """At most `count` of the items, in their order, always the same ones."""
    if len(items) <= count:
        return items
    return items[np.sort(np.random.default_rng(0).permutation(len(items))[:count])]
