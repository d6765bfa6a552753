"""Density of a fitted model in the plane, as contours."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.contour import QuadContourSet
from numpy.typing import ArrayLike

from land.density.likelihood import Measure
from land.plotting._common import (
    Array,
    axes,
    check_limits,
    components_of,
    is_ours,
    log_densities,
    mesh,
    plane,
)

# Contours enclose these shares of the probability, from the outermost inwards. Shares
# stay put where a few cells near a caustic have a huge density; heights would not.
SHARES = (0.95, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1)

# Standard deviations.
_REACH = 3.0

# White to blue; the darkest shade leaves black points and lines visible.
_SHADES = LinearSegmentedColormap.from_list("density", ["#eaf3f9", "#3f95c6"])


class DensityGrid(NamedTuple):
    """A density on a lattice of the plane.

    Attributes
    ----------
    x, y : ndarray
        Coordinates along both axes.
    density : masked array of shape (len(y), len(x))
        Heights; masked where they could not be computed.
    mass : masked array of the same shape
        Probability of the cells, up to a factor: the height times the volume element
        of its measure.
    """

    x: Array
    y: Array
    density: np.ma.MaskedArray
    mass: np.ma.MaskedArray


def plot_density(
    model: Any,
    ax: Axes | None = None,
    *,
    measure: Measure = "lebesgue",
    grid: int = 60,
    limits: ArrayLike | None = None,
    levels: int | ArrayLike | None = None,
    filled: bool = True,
    **style,
) -> QuadContourSet:
    """Draw contours of the density of a model in two dimensions.

    Parameters
    ----------
    model : LAND, LANDMixture or any fitted model with `score_samples`
        The model; one of scikit-learn's, such as GaussianMixture, will do.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    measure : {"lebesgue", "riemannian"}
        ``"lebesgue"`` is the density with respect to dx, as `score_samples` has it, the
        only one that can be compared with other models. ``"riemannian"`` is the one
        with respect to the metric's volume. Other models than ours have the former
        only, whatever is asked for.
    grid : int
        Number of points along each axis; each costs a geodesic per component.
    limits : array_like, optional
        ``[[x_min, x_max], [y_min, y_max]]``; by default the metric's data with a
        margin; for models without a metric learned from data three standard
        deviations around the means, and what the axes show already.
    levels : int or array_like, optional
        Heights of the contours, or how many of them; by default those that enclose
        95, 80, 65, 50, 35, 20 and 10 % of the probability on the grid.
    filled : bool
        Whether to fill between the contours or to draw lines.
    **style
        Passed on to `Axes.contourf` or `Axes.contour`.

    Returns
    -------
    QuadContourSet
        The contours; cells whose density could not be computed are left out.
    """
    ax = axes(ax)
    bounds = _where(model, ax, limits)
    lattice = density_grid(model, measure=measure, grid=grid, limits=bounds)
    return plot_grid(lattice, ax, levels=levels, filled=filled, **style)


def density_grid(
    model: Any,
    *,
    limits: ArrayLike,
    measure: Measure = "lebesgue",
    grid: int = 60,
) -> DensityGrid:
    """Compute the density of a model on a lattice, to be drawn by `plot_grid`.

    Drawing is quick and computing is not: keep the lattice to draw it again.

    Parameters
    ----------
    model, measure, grid
        See `plot_density`.
    limits : array_like
        ``[[x_min, x_max], [y_min, y_max]]``.

    Returns
    -------
    DensityGrid
    """
    metric = model.metric_ if is_ours(model) else None
    bounds = check_limits(limits)
    x, y, points = mesh(bounds, grid)
    density = _density(model, points, measure)
    mass = density
    if metric is not None and measure == "riemannian":
        mass = density * np.exp(metric.log_volume(points))
    return DensityGrid(x, y, density, mass)


def plot_grid(
    lattice: DensityGrid,
    ax: Axes | None = None,
    *,
    levels: int | ArrayLike | None = None,
    filled: bool = True,
    **style,
) -> QuadContourSet:
    """Draw contours of a density on a lattice.

    Parameters
    ----------
    lattice : DensityGrid
        Of `density_grid`.
    ax, levels, filled, **style
        See `plot_density`.

    Returns
    -------
    QuadContourSet
    """
    ax = axes(ax)
    x, y, density, mass = lattice
    if levels is None:
        levels = enclosing_levels(density, mass)
    defaults: dict[str, Any] = {"levels": levels, "cmap": _SHADES, "zorder": 1}
    if filled:
        # Painted edges close the hairlines that viewers show between filled polygons.
        defaults |= {"extend": "max"}
        artist = ax.contourf(x, y, density, **defaults | style)
        artist.set_edgecolor("face")
    else:
        defaults |= {"linewidths": 1.0}
        artist = ax.contour(x, y, density, **defaults | style)
    ax.set_aspect("equal")
    return artist


def enclosing_levels(density: Array, mass: Array, shares: Any = SHARES) -> Array:
    """Heights above which lie the given shares of the mass, ascending.

    Parameters
    ----------
    density, mass : masked arrays of one shape
        Height and probability of each cell; masked cells do not count.
    shares : sequence of float
        Shares of the total mass.
    """
    heights = np.ma.compressed(density)
    weights = np.ma.compressed(np.ma.array(mass, mask=np.ma.getmaskarray(density)))
    if not len(heights) or not weights.sum() > 0.0:
        raise ValueError(
            "the density is zero or unknown on the whole grid; try other limits"
        )
    order = np.argsort(-heights)
    above = np.cumsum(weights[order]) / weights.sum()
    rows = np.searchsorted(above, np.asarray(shares))
    return np.unique(heights[order][np.minimum(rows, len(heights) - 1)])


def _where(model: Any, ax: Axes, limits: ArrayLike | None) -> Array:
    """The part of the plane that shows the model."""
    metric = model.metric_ if is_ours(model) else None
    bounds = plane(ax, limits, metric)
    learned = metric is not None and metric.landmarks is not None
    if limits is None and not learned and hasattr(model, "covariances_"):
        # Where space is flat the model itself tells how far it reaches.
        means, covariances, _ = components_of(model)
        reach = _REACH * np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        low, high = (means - reach).min(axis=0), (means + reach).max(axis=0)
        if bounds is not None:
            low, high = np.minimum(low, bounds[:, 0]), np.maximum(high, bounds[:, 1])
        return np.stack([low, high], axis=1)
    if bounds is None:
        raise ValueError(
            "limits must be given, or data drawn on ax first: the model does not tell "
            "where to draw"
        )
    return bounds


def _density(model: Any, points: Array, measure: Measure) -> np.ma.MaskedArray:
    """Densities at the points, masked where they could not be computed."""
    values = log_densities(model, points.reshape(-1, points.shape[-1]), measure)
    density = np.exp(values).reshape(points.shape[:-1])
    return np.ma.masked_invalid(density)
