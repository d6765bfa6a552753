"""Figures of the command line, put together from `land.plotting`."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from land import plotting
from land.cli.console import CommandError
from land.cli.data import LIMITS
from land.cli.models import StoredModel
from land.estimators.archive import replacing
from land.plotting.components import MOST_SHOWN
from land.plotting.sheet import component_legend, sheet

_LENGTH = r"length of a step, $\log\sqrt{|M(x)|}$"
# Ratio of extents from which a figure to scale would be a thin line.
_MOST_UNEQUAL = 8.0


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's name."""
    with replacing(path) as stream:
        kind = path.suffix[1:].lower() or "png"
        figure.savefig(stream, format=kind, dpi=200, bbox_inches="tight")


def model_figure(stored: StoredModel, kind: str, grid: int) -> Any:
    """The figure of a model, with the data that its metric was learned from."""
    dim, points = len(stored.columns), stored.model.metric_.landmarks
    if kind == "history":
        with sheet(1, 1, (4.0, 2.8)) as (figure, axes):
            plotting.plot_history(stored.model, axes[0, 0])
        return figure
    if dim == 1:
        raise CommandError("the model has one column; only --kind history can be drawn")
    if points is None and (kind, dim) != ("density", 2):
        raise CommandError(
            "the model's space is flat, so its file has no data to draw; use --kind "
            "density for two columns, --kind history, or land.plotting"
        )
    if kind == "view3d":
        return _view3d(stored, points)
    if not hasattr(stored.model, "score_samples") and kind != "metric":
        kind = "pairs"  # clusters have no more to show
    if kind == "pairs":
        return _pairs(stored, points)
    if dim > 2:
        raise CommandError(
            f"the model has {dim} columns; --kind {kind} needs 2, use --kind pairs or "
            "view3d"
        )
    return _plane(stored, kind, points, grid)


def _plane(stored: StoredModel, kind: str, points: Any, grid: int) -> Any:
    """The figure of a model of two columns; of a flat one there are no points."""
    model = stored.model
    width, height = (1.0, 0.7) if points is None else np.ptp(points, axis=0)
    to_scale = max(width, height) <= _MOST_UNEQUAL * min(width, height)
    ratio = np.clip(height / width, 0.4, 1.2) if to_scale else 0.7
    with sheet(1, 1, (5.0, 1.0 + 4.0 * ratio)) as (figure, axes):
        ax = axes[0, 0]
        dots = points is not None and kind != "responsibilities"
        if dots:
            plotting.plot_data(points, ax, s=6, alpha=0.5)
        if kind == "responsibilities":
            plotting.plot_responsibilities(model, points, ax)
        elif kind == "metric":
            shading = plotting.plot_metric(model.metric_, ax)
            figure.colorbar(shading, ax=ax, label=_LENGTH, shrink=0.8)
        else:
            _contours(model, ax, grid)
            plotting.plot_covariance(model, ax, n_std=1.0)
        plotting.plot_means(model, ax)
        rings = 1.0 if kind == "density" else None
        component_legend(figure, model, rings, data=dots)
        if not to_scale:
            ax.set_aspect("auto")  # a line is all that would be seen
        _label(ax.xaxis, stored, 0)
        _label(ax.yaxis, stored, 1)
    return figure


def _contours(model: Any, ax: Any, grid: int) -> None:
    try:
        plotting.plot_density(model, ax, grid=grid, colorbar=True)
    except ValueError as error:
        if "levels" not in str(error):  # matplotlib's complaint about too few
            raise
        raise CommandError(
            "the density is high in a few places between the lattice's points only; "
            "try a larger --grid, or 'land fit --standardize'"
        ) from None


def _pairs(stored: StoredModel, points: np.ndarray) -> Any:
    """A panel for each pair of columns."""
    dim = len(stored.columns)
    shown = range(dim if dim <= MOST_SHOWN else LIMITS.shown)
    with sheet(1, 1, (4.0, 4.0)) as (figure, axes):
        axes[0, 0].remove()
        panels = plotting.plot_pairs(stored.model, points, figure, dimensions=shown)
        for ax, pair in zip(panels, combinations(shown, 2), strict=True):
            _label(ax.xaxis, stored, pair[0])
            _label(ax.yaxis, stored, pair[1])
    return figure


def _view3d(stored: StoredModel, points: np.ndarray) -> Any:
    """The first three columns in space."""
    if len(stored.columns) == 2:
        raise CommandError("the model has 2 columns; --kind view3d needs 3 or more")
    with sheet(1, 1, (5.0, 4.4), subplot_kw={"projection": "3d"}) as (figure, axes):
        ax = axes[0, 0]
        plotting.plot_view3d(stored.model, points, ax)
        ax.set_box_aspect(None, zoom=0.9)  # room for the name of the third
        for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis)):
            _label(axis, stored, k)
    return figure


def _label(axis: Any, stored: StoredModel, k: int) -> None:
    """Name an axis and mark it at round numbers in the units of the data."""
    axis.set_label_text(stored.columns[k])
    if stored.standardized:
        center, scale = stored.center[k], stored.scale[k]
        low, high = center + scale * axis.get_view_interval()
        marks = axis.get_major_locator().tick_values(low, high)
        marks = marks[(marks >= low) & (marks <= high)]
        axis.set_ticks((marks - center) / scale, labels=[f"{m:.6g}" for m in marks])
