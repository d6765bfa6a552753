"""Whole figures of a model in the columns and units of a table.

What they draw is `stored`: the attributes `model`, `columns`, `center` and `scale`,
where the model's coordinates are ``(x - center) / scale``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from land.estimators.files import replacing
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
from land.plotting.sheet import LEGEND, check_dimensions, component_legend, sheet

_LENGTH = r"length of a step, $\log\sqrt{|M(x)|}$"
# Ratio of extents from which a figure to scale would be a thin line.
_MOST_UNEQUAL = 8.0


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's name."""
    with replacing(path) as stream:
        kind = path.suffix[1:].lower() or "png"
        figure.savefig(stream, format=kind, dpi=200, bbox_inches="tight")


def model_figure(stored: Any, kind: str, grid: int) -> Any:
    """The figure of a kind, see `land plot`, with the data the metric was learned from.

    A ValueError if the model has none of this kind.
    """
    dim, points = len(stored.columns), stored.model.metric_.landmarks
    if kind == "history":
        return single_figure(plot_history, stored.model)
    if points is None and (kind != "density" or dim > 2):
        raise ValueError(
            "the model's space is flat, so its file has no data to draw; use --kind "
            "density for two columns, --kind history, or land.plotting"
        )
    if kind == "density" and dim == 1:
        return line_figure(stored, points, grid)
    if kind == "view3d":
        return view3d_figure(stored, points)
    if not hasattr(stored.model, "score_samples") and kind != "metric":
        kind = "pairs"  # clusters have no more to show
    if kind == "pairs":
        return pairs_figure(stored, points, range(min(dim, MOST_SHOWN)))
    return plane_figure(stored, kind, points, grid)


def single_figure(plot: Any, model: Any) -> Any:
    """What a function of `land.plotting` draws of a model, by itself."""
    with sheet(1, 1, (5.0, 2.6)) as (figure, axes):
        plot(model, axes[0, 0])
    return figure


def line_figure(stored: Any, points: Any, grid: int) -> Any:
    """The density of a model of one column, over a histogram of its data."""
    with sheet(1, 1, (4.0, 2.8)) as (figure, axes):
        ax = axes[0, 0]
        if points is not None:
            shape: Any = {"bins": "auto", "density": True, "color": "0.85"}
            ax.hist(points[:, 0], **shape, label="data")
        plot_density(stored.model, ax, grid=grid)
        figure.legend(**LEGEND)
        _label(ax.xaxis, stored, 0)
        _mark(ax.yaxis, 0.0, 1.0 / stored.scale[0])  # lower in wider units
    return figure


def plane_figure(stored: Any, kind: str, points: Any, grid: int) -> Any:
    """The figure of a model of two columns; of a flat one there are no points."""
    model = stored.model
    check_dimensions(len(stored.columns), 2)
    width, height = (1.0, 0.7) if points is None else np.ptp(points, axis=0)
    to_scale = max(width, height) <= _MOST_UNEQUAL * min(width, height)
    ratio = np.clip(height / width, 0.4, 1.2) if to_scale else 0.7
    with sheet(1, 1, (5.0, 1.0 + 4.0 * ratio)) as (figure, axes):
        ax = axes[0, 0]
        dots = points is not None and kind != "responsibilities"
        if dots:
            plot_data(points, ax, s=6, alpha=0.5)
        if kind == "responsibilities":
            plot_responsibilities(model, points, ax)
        elif kind == "metric":
            shading = plot_metric(model.metric_, ax)
            figure.colorbar(shading, ax=ax, label=_LENGTH, shrink=0.8)
        else:
            plot_density(model, ax, grid=grid, colorbar=True)
            plot_covariance(model, ax, n_std=1.0)
        plot_means(model, ax)
        rings = 1.0 if kind == "density" else None
        component_legend(figure, model, rings, data=dots)
        if not to_scale:
            ax.set_aspect("auto")  # a line is all that would be seen
        _label(ax.xaxis, stored, 0)
        _label(ax.yaxis, stored, 1)
    return figure


def pairs_figure(stored: Any, points: np.ndarray, shown: Sequence[int]) -> Any:
    """A panel for each pair of the columns that are shown."""
    with sheet(1, 1, (4.0, 4.0)) as (figure, axes):
        axes[0, 0].remove()
        panels = plot_pairs(stored.model, points, figure, dimensions=shown)
        for ax, pair in zip(panels, combinations(shown, 2), strict=True):
            _label(ax.xaxis, stored, pair[0])
            _label(ax.yaxis, stored, pair[1])
    return figure


def view3d_figure(stored: Any, points: np.ndarray) -> Any:
    """The first three columns in space."""
    with sheet(1, 1, (5.0, 3.9), subplot_kw={"projection": "3d"}) as (figure, axes):
        ax = axes[0, 0]
        plot_view3d(stored.model, points, ax)
        ax.set_box_aspect(None, zoom=1.15)  # fills the figure
        for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis)):
            _label(axis, stored, k)
    return figure


def _label(axis: Any, stored: Any, k: int) -> None:
    """Name an axis and mark it at round numbers in the units of the data."""
    axis.set_label_text(stored.columns[k], parse_math=False)  # "$" is a dollar
    _mark(axis, stored.center[k], stored.scale[k])


def _mark(axis: Any, center: float, scale: float) -> None:
    """Ticks at round numbers of ``center + scale * x``, where that is not x."""
    if (center, scale) == (0.0, 1.0):
        return
    low, high = center + scale * axis.get_view_interval()
    marks = axis.get_major_locator().tick_values(low, high)
    marks = marks[(marks >= low) & (marks <= high)]
    axis.set_ticks((marks - center) / scale, labels=[f"{m:.6g}" for m in marks])
