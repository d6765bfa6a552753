"""Means and covariances of a fitted model in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from land._validation import check_points
from land.geodesics import exp_map
from land.metrics import Metric
from land.plotting._common import (
    Array,
    axes,
    component_colors,
    components_of,
    means_of,
)

_N_ANGLES = 240


def plot_means(model: Any, ax: Axes | None = None, **style) -> PathCollection:
    """Mark the mean or the means of a model.

    Parameters
    ----------
    model : LAND, LANDMixture, RiemannianKMeans, GaussianMixture
        A fitted model in two dimensions.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    **style
        Passed on to `Axes.scatter`.

    Returns
    -------
    PathCollection
    """
    ax = axes(ax)
    means = means_of(model)
    defaults: dict[str, Any] = {
        "s": 60,
        "marker": "o",
        "edgecolors": "white",
        "linewidths": 1.2,
        "zorder": 6,
    }
    if not style.keys() & {"c", "color", "facecolors"}:
        defaults["c"] = component_colors(len(means))
    artist = ax.scatter(means[:, 0], means[:, 1], **defaults | style)
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
        A fitted model in two dimensions. Where space is flat, as for the latter, the
        curves are the ellipses themselves.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    n_std : float or sequence of float
        The numbers of standard deviations.
    **style
        Passed on to `Axes.plot`.

    Returns
    -------
    list of Line2D
        One closed curve for each component and number of standard deviations, the
        latter varying faster. It has gaps where a geodesic could not be computed.
    """
    ax = axes(ax)
    radii = check_points("n_std", np.atleast_1d(np.asarray(n_std)), ndim=1)
    if radii.min() <= 0.0:
        raise ValueError(f"n_std must be positive, got {radii.tolist()}")
    means, covariances, metric = components_of(model)
    colors = component_colors(len(means))
    artists: list[Line2D] = []
    for mean, covariance, color in zip(means, covariances, colors, strict=True):
        defaults: dict[str, Any] = {"color": color, "linewidth": 1.4, "zorder": 4}
        for curve in _carried(metric, mean, covariance, radii):
            artists += ax.plot(curve[:, 0], curve[:, 1], **defaults | style)
    ax.set_aspect("equal")
    return artists


def _carried(metric: Metric, mean: Array, covariance: Array, radii: Array) -> Array:
    """Exp of the ellipses v^T Sigma^-1 v = s^2 for all radii s, (n, k, 2)."""
    angles = np.linspace(0.0, 2.0 * np.pi, _N_ANGLES // 2 + 1)
    curves = _rays(metric, mean, covariance, radii, angles)
    # Exp stretches some parts of the ellipse by far more than others: a second pass
    # spreads the points evenly along the outermost curve, half of them at least.
    steps = np.linalg.norm(np.diff(curves[np.argmax(radii)], axis=0), axis=1)
    steps = np.nan_to_num(steps) + max(np.nanmean(steps), np.finfo(float).tiny)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0.0, along[-1], _N_ANGLES + 1)
    return _rays(metric, mean, covariance, radii, np.interp(even, along, angles))


def _rays(
    metric: Metric, mean: Array, covariance: Array, radii: Array, angles: Array
) -> Array:
    """Points of the curves at the given angles; NaN where Exp failed."""
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle[-1] = circle[0]
    # The symmetric root has no preferred axis, as a Cholesky factor would.
    values, vectors = np.linalg.eigh(covariance)
    ellipse = circle @ (vectors * np.sqrt(values)) @ vectors.T
    # One solve of each geodesic passes through all ellipses.
    outermost = radii.max()
    result = exp_map(metric, mean, outermost * ellipse, times=radii / outermost)
    assert result.rays is not None
    rays = np.where(result.converged[:, None, None], result.rays, np.nan)
    return np.moveaxis(rays, 1, 0)
