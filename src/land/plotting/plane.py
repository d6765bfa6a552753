"""Data, metric, geodesics and densities in the plane."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap
from matplotlib.contour import QuadContourSet
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from scipy.interpolate import Akima1DInterpolator
from scipy.ndimage import binary_dilation

from land._validation import check_points
from land.density.likelihood import Measure
from land.estimators.standardized import nameless, parts_of
from land.geodesics import Geodesic, LogMap, exp_map
from land.metrics import Metric
from land.plotting.sheet import (
    COLORS,
    SMOOTH,
    Array,
    axes,
    check_dimensions,
    check_limits,
    mesh,
    name_axes,
    region,
    styled,
)

# Colours of lines to follow, of others, and of points.
GEODESIC, STRAIGHT, FAN = COLORS[:3]
POINT = "#222222"
# The darkest shade stays light enough for lines and points on it.
_SHORT_TO_LONG = LinearSegmentedColormap.from_list("short to long", ["w", "#8c8c8c"])
# Contours enclose these shares of the probability, from the outermost inwards. Shares
# stay put where a few cells near a caustic have a huge density; heights would not.
SHARES = np.linspace(0.95, 0.05, 7)
# Share of the probability that is negligible, and points where a component has some.
_NEGLIGIBLE, _SEEDS = 1e-3, 200
# White to blue; the darkest shade leaves black points and lines visible.
_SHADES = LinearSegmentedColormap.from_list("density", ["#eaf3f9", "#3f95c6"])
_LINES = LinearSegmentedColormap.from_list("contours", ["#6fb1da", "#003a5d"])
_NAMES = {"lebesgue": "dx", "riemannian": "the metric's volume"}


def plot_data(data: ArrayLike, ax: Axes | None = None, **style) -> PathCollection:
    """Scatter data of shape (n, 2); `style` of `Axes.scatter`.

    Columns of a data frame name the axes.
    """
    ax = axes(ax)
    points = check_points("data", data, 2, ndim=2)
    look = styled(style, color=POINT, s=8, alpha=0.6, linewidths=0)
    artist = ax.scatter(points[:, 0], points[:, 1], **look)
    name_axes(ax, data)
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
    """Shade the plane by the volume element of a metric: steps in the dark are long.

    Returns the shading, of log sqrt|M|; hand it to `colorbar`. For `limits` and `grid`
    see `plot_density`; `style` is of `Axes.pcolormesh`.
    """
    if metric.dim != 2:
        raise ValueError(f"metric must have 2 dimensions to be drawn, got {metric.dim}")
    ax = axes(ax)
    x, y, points = mesh(region(metric, ax, limits), grid)
    look = styled({"rasterized": True} | style, cmap=_SHORT_TO_LONG, zorder=-1)
    heights = metric.log_volume(points)
    artist = ax.pcolormesh(x, y, heights, **{"shading": "gouraud"} | look)
    ax.set_aspect("equal")
    return artist


def plot_geodesics(
    curves: Geodesic | LogMap | Sequence[Geodesic] | ArrayLike,
    ax: Axes | None = None,
    **style,
) -> LineCollection:
    """Draw geodesics, or any other curves.

    They come from `land.geodesic` or `land.log_map`; or they are points (n, k, 2), such
    as rays of `land.exp_map`. The `style` is of `LineCollection`.
    """
    ax = axes(ax)
    several: Any = curves.curves if isinstance(curves, LogMap) else curves
    several = [curves] if isinstance(curves, Geodesic) else several
    times = np.linspace(0.0, 1.0, SMOOTH + 1)
    points = [each(times) if isinstance(each, Geodesic) else each for each in several]
    lines = check_points("curves", points, 2, ndim=3)
    look = styled(style, colors=GEODESIC)
    artist = LineCollection(list(lines), **look)
    ax.add_collection(artist)
    ax.autoscale_view()
    ax.set_aspect("equal")
    return artist


# Densities.


class DensityGrid(NamedTuple):
    """A density on a lattice of the plane.

    Coordinates along both axes; the density (len(y), len(x)), masked where it could not
    be computed; and the probability of the cells, up to a factor.
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
    colorbar: bool = False,
    **style,
) -> QuadContourSet | Line2D:
    """Draw contours of the density of a model in two dimensions.

    Cells whose density could not be computed are left out. In one dimension the density
    is a curve, a `Line2D`; `levels`, `filled` and `colorbar` have no meaning there.

    Parameters
    ----------
    model : LAND, LANDMixture or any fitted model with `score_samples`
    measure : {"lebesgue", "riemannian"}
        The density with respect to dx, the only one of other models, or to the metric's
        volume.
    grid : int
        Number of points along each axis.
    limits : array_like, optional
        ``[[x_min, x_max], [y_min, y_max]]``, or ``[[x_min, x_max]]``; by default around
        the metric's data; without them three standard deviations around the means, and
        what the axes show already.
    levels : int or array_like, optional
        Heights of the contours, or how many of them; by default those that enclose
        95, 80, 65, 50, 35, 20 and 5 % of the probability on the grid.
    filled : bool
        Whether to fill between the contours or to draw lines.
    colorbar : bool
        Whether to add a colour bar, which says which density it is.
    ax, **style
        See `land.plotting`; of `Axes.contourf` or `Axes.contour`.
    """
    ax = axes(ax)
    dim = getattr(model, "n_features_in_", 2)
    check_dimensions(dim, 1 if dim == 1 else 2)
    bounds = region(model, ax, limits)
    name_axes(ax, model)
    if dim == 1:
        return _plot_line(model, ax, measure, max(grid, SMOOTH), bounds[0], style)
    lowest = np.inf if levels is None or np.ndim(levels) == 0 else np.min(levels)
    lattice = _density_grid(model, bounds, measure, grid, lowest)
    artist = plot_grid(lattice, ax, levels=levels, filled=filled, **style)
    if colorbar:
        _add_colorbar(
            artist, measure if _is_ours(model) else "lebesgue", levels is None
        )
    return artist


def _plot_line(model, ax, measure, grid, limits, style) -> Line2D:
    """The density of a model in one dimension."""
    x = np.linspace(limits[0], limits[1], grid)
    heights = np.exp(_log_densities(model, x[:, None], measure))
    look = styled(style, color=GEODESIC, label="density")
    (artist,) = ax.plot(x, heights, **look)
    ax.set_ylabel(
        "density" if measure == "lebesgue" else f"density of {_NAMES[measure]}"
    )
    return artist


def density_grid(
    model: Any, *, limits: ArrayLike, measure: Measure = "lebesgue", grid: int = 60
) -> DensityGrid:
    """Compute the density of a model on a lattice, to be drawn by `plot_grid`.

    Drawing is quick and computing is not: keep the lattice to draw it again. Where the
    density of a LAND is negligible it is not computed but set to zero. For the
    parameters see `plot_density`.
    """
    return _density_grid(model, check_limits(limits), measure, grid, np.inf)


def _density_grid(model, bounds, measure, grid, lowest) -> DensityGrid:
    """The density, where it is above `lowest` or matters for the default contours."""
    check_dimensions(getattr(model, "n_features_in_", 2), 2)
    x, y, points = mesh(bounds, grid)
    if not _is_ours(model):
        found = np.ma.masked_invalid(np.exp(_log_densities(model, points, measure)))
        return DensityGrid(x, y, found, found)
    volume = np.ones(points.shape[:2])
    if measure == "riemannian":
        volume = np.exp(model.metric_.log_volume(points))
    density, failed = np.zeros(volume.shape), np.zeros(volume.shape, dtype=bool)
    weights = parts_of(model).weights
    for weight, part in zip(weights, _one_by_one(model), strict=True):
        enough = lowest / (weight * len(weights)) if weight > 0.0 else np.inf
        values = _where_high(part, x, y, points, volume, measure, enough)
        failed |= np.isnan(values)
        density += weight * np.nan_to_num(values)
    found = np.ma.array(density, mask=failed & (density == 0.0))
    return DensityGrid(x, y, found, found * volume)


def _one_by_one(model: Any) -> list[Any]:
    """The components of a mixture as models of their own."""
    if not hasattr(model, "means_"):
        return [model]
    parts = [copy(model) for _ in model.means_]
    for k, part in enumerate(parts):
        for name in ("means_", "covariances_", "precisions_", "log_constants_"):
            setattr(part, name, getattr(model, name)[[k]])
        part.weights_ = np.ones(1)
    return parts


def _where_high(part, x, y, points, volume, measure, lowest) -> Array:
    """The density of one component, zero where it is negligible; NaN where unknown.

    Geodesics far into empty space are the slowest to find, and what they lead to is not
    seen. With respect to its reference the density falls along every geodesic from the
    mean, so that the place where it is high is connected: compute it around the mean
    and other points of the component, then around all that is high.
    """
    parts, grid = parts_of(part), len(x)
    rng = np.random.default_rng(0)
    covariance = np.asarray(parts.covariances)[0]
    tangents = rng.multivariate_normal(np.zeros(2), covariance, _SEEDS)
    tangents[0] = 0.0
    reached = exp_map(part.metric_, parts.means[0], tangents)
    columns, rows = (
        np.round(np.interp(each, axis, np.arange(grid), -1.0, -1.0)).astype(int)
        for each, axis in zip(reached.points[reached.converged].T, (x, y), strict=True)
    )
    within = (columns >= 0) & (rows >= 0)
    high = np.zeros(volume.shape, dtype=bool)
    high[rows[within], columns[within]] = True
    if not within[0]:  # it comes in through the border
        high[[0, -1]] = high[:, [0, -1]] = True
    density, known = np.zeros(volume.shape), np.zeros(volume.shape, dtype=bool)
    while True:
        fresh = binary_dilation(high, np.ones((3, 3))) & ~known
        if not fresh.any():
            return density
        density[fresh] = np.exp(_log_densities(part, points[fresh], measure))
        known |= fresh
        if np.nansum(density) > 0.0:
            (floor,) = _heights(density, density * volume, [1.0 - _NEGLIGIBLE])
            high = known & ~(density < min(lowest, floor))  # or unknown


def plot_grid(
    lattice: DensityGrid,
    ax: Axes | None = None,
    *,
    levels: int | ArrayLike | None = None,
    filled: bool = True,
    **style,
) -> QuadContourSet:
    """Draw contours of a density that `density_grid` has computed.

    For the other parameters see `plot_density`.
    """
    ax = axes(ax)
    look: dict[str, Any] = {"cmap": _SHADES if filled else _LINES, "zorder": 0}
    if levels is None:
        levels = enclosing_levels(lattice.density, lattice.mass)
        # Each share has the same shade in all figures.
        look["norm"] = BoundaryNorm(levels, look["cmap"].N, extend="max")
    if "colors" in style:
        look = {"zorder": 0}
    look |= {"levels": levels} | style
    if filled:
        artist = ax.contourf(*_refined(lattice), **{"extend": "max"} | look)
        # Painted edges close the hairlines that viewers show between filled polygons.
        artist.set_edgecolor("face")
    else:
        artist = ax.contour(*_refined(lattice), **{"linewidths": 1.0} | look)
    ax.set_aspect("equal")
    return artist


def enclosing_levels(density: Array, mass: Array, shares: Any = SHARES) -> Array:
    """Heights above which lie the given shares of the mass, ascending.

    Density and mass are those of each cell; those that are not finite do not count.
    """
    levels = np.unique(_heights(density, mass, shares))
    if len(levels) < 2:
        raise ValueError(
            "the density is high in a few places between the points of the grid only; "
            "try a larger grid, or standardised columns"
        )
    return levels


def _heights(density: Array, mass: Array, shares: Any) -> Array:
    known = np.isfinite(np.ma.filled(density, np.nan))
    heights, weights = np.ma.getdata(density)[known], np.ma.getdata(mass)[known]
    if not len(heights) or not weights.sum() > 0.0:
        raise ValueError(
            "the density is zero or unknown on the whole grid; try other limits"
        )
    order = np.argsort(-heights)
    above = np.cumsum(weights[order]) / weights.sum()
    rows = np.searchsorted(above, shares)
    return heights[order][np.minimum(rows, len(heights) - 1)]


def _is_ours(model: Any) -> bool:
    """Whether a model has more than one measure: others than ours have dx only."""
    return isinstance(getattr(model, "metric_", None), Metric)


def _log_densities(model: Any, points: Array, measure: Measure) -> Array:
    """Log densities at points (..., D); NaN where they could not be computed."""
    which = {"measure": measure} if _is_ours(model) else {}
    with warnings.catch_warnings():
        # The gaps in the figure show where; a count of points does not help.
        warnings.filterwarnings("ignore", message="the geodesics to", append=False)
        values = np.asarray(
            nameless(model).score_samples(points.reshape(-1, points.shape[-1]), **which)
        )
    return values.reshape(points.shape[:-1])


def _refined(lattice: DensityGrid) -> tuple[Array, Array, Any]:
    """The density on a finer lattice: contours of a coarse one are polygons.

    Akima's interpolation of the logarithm does not overshoot beside cliffs, as splines
    do. It cannot bridge unknown densities, where the lattice stays as it is.
    """
    x, y, density, _ = lattice
    if np.ma.is_masked(density) or min(len(x), len(y)) < 4 or not density.any():
        return x, y, density
    # Far below the highest density, where no contour is, it may level off.
    floor = np.finfo(float).eps * density.max()
    logs = np.log(np.maximum(np.ma.getdata(density), floor))
    fine_x, fine_y = (
        np.linspace(each[0], each[-1], max(SMOOTH, len(each))) for each in (x, y)
    )
    logs = Akima1DInterpolator(y, logs, axis=0)(fine_y)
    return fine_x, fine_y, np.exp(Akima1DInterpolator(x, logs, axis=1)(fine_x))


def _add_colorbar(artist: QuadContourSet, measure: Measure, shares: bool) -> None:
    """Say which density is drawn, and what its contours enclose."""
    bar = artist.figure.colorbar(artist, ax=artist.axes, shrink=0.8)
    label = f"density with respect to {_NAMES[measure]}"
    heights = np.asarray(artist.levels)
    if shares and len(heights) == len(SHARES):
        bar.set_ticks(heights.tolist(), labels=[f"{100 * s:.0f} %" for s in SHARES])
        label = f"probability within the contour\n({label})"
    bar.set_label(label, fontsize="small")
