"""Whole figures of a model in the units of its data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import LineCollection

from land.estimators.drawing import MOST_UNEQUAL
from land.estimators.files import replacing
from land.estimators.standardized import Standardized, parts_of
from land.geodesics import log_map
from land.plotting.components import (
    MOST_SHOWN,
    plot_covariance,
    plot_means,
    plot_pairs,
    plot_responsibilities,
    plot_view3d,
)
from land.plotting.fits import plot_history
from land.plotting.plane import plot_data, plot_density, plot_metric
from land.plotting.sheet import (
    LEGEND,
    Array,
    check_dimensions,
    component_colors,
    component_legend,
    sheet,
)

# Columns at most that are drawn in pairs.
MOST_PAIRED = 3
# Segments of geodesics that appear on a page: as smooth as they need to be.
_SEGMENTS = 16


class View(NamedTuple):
    """A fitted model in the columns and units of its data."""

    scaled: Standardized
    columns: Sequence[str]

    @property
    def model(self) -> Any:
        """The model in its own coordinates."""
        return self.scaled.estimator_

    def in_units(self, points: Array) -> Array:
        """From the model's coordinates to the units of the data."""
        return np.asarray(points * self.scaled.scale_ + self.scaled.center_)

    def in_model(self, rows: Array) -> Array:
        """From the units of the data to the model's coordinates."""
        return np.asarray((rows - self.scaled.center_) / self.scaled.scale_)


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's name."""
    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], dpi=200, bbox_inches="tight")


def model_figure(view: View, kind: str, grid: int = 60, points: Any = None) -> Any:
    """The figure of a kind, see `land plot`, with points in the model's coordinates.

    By default those that the metric was learned from. A ValueError if the model has no
    figure of this kind.
    """
    model, dim = view.model, len(view.columns)
    points = model.metric_.landmarks if points is None else points
    if kind == "history":
        return single_figure(plot_history, model)
    if points is None and (kind != "density" or dim > 2):
        raise ValueError(
            "the model's space is flat, so its file has no data to draw; use --kind "
            "density for two columns, --kind history, or land.plotting"
        )
    if kind == "density" and dim == 1:
        return _line_figure(view, points, grid)
    if kind == "view3d":
        return _view3d_figure(view, points)
    if not hasattr(model, "score_samples") and kind != "metric":
        kind = "pairs"  # clusters have no more to show
    if kind == "pairs":
        return pairs_figure(view, points, range(min(dim, MOST_SHOWN)))
    check_dimensions(dim, 2)
    return _plane_figure(view, kind, points, grid)


def single_figure(plot: Any, model: Any) -> Any:
    """What a function of `land.plotting` draws of a model, by itself."""
    with sheet() as (figure, axes):
        plot(model, axes[0, 0])
    return figure


def _line_figure(view: View, points: Any, grid: int) -> Any:
    """The density of a model of one column, over a histogram of its data."""
    with sheet() as (figure, axes):
        ax = axes[0, 0]
        if points is not None:
            shape: Any = {"bins": "auto", "density": True, "color": "0.85"}
            ax.hist(points[:, 0], **shape, label="data")
        plot_density(view.model, ax, grid=grid)
        figure.legend(**LEGEND)
        _label(view, ax.xaxis)
        _mark(ax.yaxis, 0.0, 1.0 / view.scaled.scale_[0])  # lower in wider units
    return figure


def _plane_figure(view: View, kind: str, points: Any, grid: int) -> Any:
    """The figure of a model of two columns; of a flat one there are no points."""
    model = view.model
    width, height = (1.0, 1.0) if points is None else np.ptp(points, axis=0)
    unequal = max(width, height) > MOST_UNEQUAL * min(width, height)
    ratio = 1.0 if unequal else np.clip(height / width, 0.5, 1.0)
    with sheet(1, 1, (5.0, 1.0 + 4.0 * ratio)) as (figure, axes):
        ax = axes[0, 0]
        dots = points is not None and kind != "responsibilities"
        if dots:
            plot_data(points, ax, s=6, alpha=0.5)
        if kind == "responsibilities":
            plot_responsibilities(model, points, ax)
        elif kind == "metric":
            shading = plot_metric(model.metric_, ax)
            words = r"length of a step, $\log\sqrt{|M(x)|}$"
            figure.colorbar(shading, ax=ax, label=words, shrink=0.8)
        else:
            plot_density(model, ax, grid=grid, colorbar=True)
            plot_covariance(model, ax, n_std=1.0)
        plot_means(model, ax)
        component_legend(figure, model, 1.0 if kind == "density" else None, data=dots)
        if unequal:
            ax.set_aspect("auto")
        _label(view, ax.xaxis, ax.yaxis)
    return figure


def live_figure(view: View, points: Array, owners: Any) -> Any:
    """The responsibilities, with the parts that a page shows or hides.

    These are groups of the SVG: "points", "curves-K" of each component, and "geodesics"
    with one for each point, from the mean of its owner.
    """
    figure = _plane_figure(view, "responsibilities", points, 0)
    figure.legends[0].remove()  # the page has its own
    (ax,), means = figure.axes, parts_of(view.model).means
    dots, *curves = ax.collections
    dots.set_gid("points")
    for k, own in enumerate(curves[: len(means)]):
        own.set_gid(f"curves-{k}")
    logs = log_map(view.model.metric_, means[owners], points, n_segments=_SEGMENTS)
    # One that is not known is a dot under its point.
    lines = np.where(logs.converged[:, None, None], logs.curves, points[:, None])
    style: Any = {"colors": "0.1", "linewidths": 2.0, "zorder": 2.5}
    ax.add_collection(LineCollection(list(lines), gid="geodesics", **style))
    return figure


def pairs_figure(view: View, points: Array, shown: Sequence[int]) -> Any:
    """A panel for each pair of the columns that are shown."""
    with sheet() as (figure, axes):
        axes[0, 0].remove()
        panels = plot_pairs(view.model, points, figure, dimensions=shown)
        for ax, pair in zip(panels, combinations(shown, 2), strict=True):
            _label(view, ax.xaxis, ax.yaxis, dimensions=pair)
    return figure


def _view3d_figure(view: View, points: Array) -> Any:
    """The first three columns in space."""
    with sheet(subplot_kw={"projection": "3d"}) as (figure, axes):
        ax = plot_view3d(view.model, points, axes[0, 0])
        _label(view, ax.xaxis, ax.yaxis, ax.zaxis)
    return figure


def samples_figure(view: View, X: Array, seed: int) -> Any:
    """Data on the left, as many draws on the right; a row for each pair of columns."""
    drawn, owners = view.scaled.sample(len(X), seed)
    parts = np.array(component_colors(owners.max() + 1))[owners]
    first = range(min(X.shape[1], MOST_PAIRED))
    pairs: list = list(combinations(first, 2)) or [(0,)]
    size: Any = (3.6, 2.9)
    with sheet(len(pairs), 2, size, sharex="row", sharey="row") as (figure, axes):
        for panels, pair in zip(axes, pairs, strict=True):
            for ax, rows, color in zip(panels, (X, drawn), ("0.4", parts), strict=True):
                if len(pair) == 1:
                    ax.hist(rows[:, 0], bins="auto", density=True, color="0.6")
                else:
                    ax.scatter(*rows[:, pair].T, s=6, c=color, linewidths=0)
                    ax.set_ylabel(view.columns[pair[1]], parse_math=False)
                ax.set_xlabel(view.columns[pair[0]], parse_math=False)
                ax.label_outer()
        axes[0, 0].set_title("data")
        axes[0, 1].set_title("samples of the model")
    return figure


def _label(view: View, *axes: Any, dimensions: Sequence[int] = (0, 1, 2)) -> None:
    """Name axes and mark them at round numbers in the units of the data."""
    for axis, d in zip(axes, dimensions, strict=False):
        axis.set_label_text(view.columns[d], parse_math=False)  # "$" is a dollar
        _mark(axis, view.scaled.center_[d], view.scaled.scale_[d])


def _mark(axis: Any, center: float, scale: float) -> None:
    """Ticks at round numbers of ``center + scale * x``, where that is not x."""
    if (center, scale) == (0.0, 1.0):
        return
    low, high = center + scale * axis.get_view_interval()
    marks = axis.get_major_locator().tick_values(low, high)
    marks = marks[(marks >= low) & (marks <= high)]
    axis.set_ticks((marks - center) / scale, labels=[f"{m:.6g}" for m in marks])
