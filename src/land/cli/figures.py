"""Figures of the command line, put together from `land.plotting`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.errors import CommandError
from land.cli.models import StoredModel

# More panels than those of this many columns cannot be read.
_MOST_COLUMNS = 6
# Axes of more unequal extent than this are not drawn to the same scale.
_MOST_UNEQUAL = 8.0


def new_figure(n_rows: int, n_columns: int, size: tuple[float, float]) -> Any:
    """An empty figure with panels of `size` inches, and its axes, (n_rows, n_columns).

    matplotlib is imported by plotting and experiments only, so a figure is from there.
    """
    from land.experiments.figures import sheet

    with sheet(n_rows, n_columns, size) as (figure, axes):
        return figure, axes


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the file's name says."""
    from land.estimators.archive import replacing

    with replacing(path) as stream:
        figure.savefig(stream, format=path.suffix[1:].lower() or "png", dpi=200)


def draw_density(ax: Any, model: Any, points: np.ndarray, grid: int) -> None:
    """Density, data, means and covariances of a model in the plane."""
    from land import plotting

    plotting.plot_data(points, ax, s=5, alpha=0.5)
    try:
        plotting.plot_density(model, ax, grid=grid)
    except ValueError as error:
        if "levels" not in str(error):  # matplotlib's complaint about too few
            raise
        raise CommandError(
            "the density is high in a few places between the lattice's points only; "
            "try a larger --grid, or 'land fit --standardize'"
        ) from None
    plotting.plot_covariance(model, ax, n_std=1.0)
    plotting.plot_means(model, ax)


def model_figure(stored: StoredModel, kind: str, points: np.ndarray, grid: int) -> Any:
    """The figure of a model; `points` are in the model's coordinates."""
    from land import plotting

    if kind == "history":
        figure, axes = new_figure(1, 1, (4.5, 3.2))
        plotting.plot_history(stored.model, axes[0, 0])
        return figure
    dim = len(stored.columns)
    if dim == 1:
        raise CommandError("the model has one column; only --kind history can be drawn")
    if dim > 2:
        if kind != "pairs":
            raise CommandError(
                f"the model has {dim} columns; --kind {kind} needs 2, use --kind pairs"
            )
        return _pairs(stored, points)
    figure, axes = new_figure(1, 1, (5.0, 4.2))
    ax = axes[0, 0]
    if kind == "pairs" or not hasattr(stored.model, "score_samples"):
        _draw_clusters(ax, stored, points, (0, 1))
    elif kind == "density":
        draw_density(ax, stored.model, points, grid)
    else:
        plotting.plot_data(points, ax)
        if kind == "metric":
            plotting.plot_metric(stored.model.metric_, ax)
        else:
            plotting.plot_responsibilities(stored.model, points, ax)
        plotting.plot_means(stored.model, ax)
    extents = np.ptp(points, axis=0)
    if extents.max() > _MOST_UNEQUAL * extents.min():
        ax.set_aspect("auto")  # a line is all that would be seen
    _label(ax, stored, (0, 1))
    return figure


def _pairs(stored: StoredModel, points: np.ndarray) -> Any:
    """A panel for each pair of the first columns."""
    count = min(len(stored.columns), _MOST_COLUMNS)
    pairs = list(itertools.combinations(range(count), 2))
    n_columns = min(3, len(pairs))
    n_rows = -(-len(pairs) // n_columns)
    figure, axes = new_figure(n_rows, n_columns, (3.2, 3.0))
    for ax in axes.flat[len(pairs) :]:
        ax.set_visible(False)
    for ax, pair in zip(axes.flat, pairs, strict=False):
        _draw_clusters(ax, stored, points, pair)
        _label(ax, stored, pair)
    return figure


def _draw_clusters(
    ax: Any, stored: StoredModel, points: np.ndarray, pair: tuple[int, int]
) -> None:
    """Two coordinates of data and means, in a colour for each component."""
    from land import plotting

    means = (stored.means() - stored.center) / stored.scale
    labels = np.zeros(len(points), dtype=int)
    if hasattr(stored.model, "predict"):
        labels = stored.model.predict(points)
    for k, mean in enumerate(means):
        color = f"C{k % 10}"
        if np.any(labels == k):
            own = points[labels == k][:, pair]
            plotting.plot_data(own, ax, color=color, alpha=0.5)
        ax.scatter(*mean[list(pair)], color=color, s=60, edgecolors="white", zorder=6)
    ax.set_aspect("auto")


def _label(ax: Any, stored: StoredModel, pair: tuple[int, int]) -> None:
    """Name the axes, and mark them in the units of the data."""
    first, second = (stored.columns[k] for k in pair)
    if not stored.standardized:
        ax.set_xlabel(first)
        ax.set_ylabel(second)
        return
    ax.set_xticks([])
    ax.set_yticks([])
    center, scale = stored.center[list(pair)], stored.scale[list(pair)]
    for k, (add, name) in enumerate(
        ((ax.secondary_xaxis, first), (ax.secondary_yaxis, second))
    ):
        own = add("left" if k else "bottom", functions=_units(center[k], scale[k]))
        (own.set_ylabel if k else own.set_xlabel)(name)


def _units(center: float, scale: float) -> tuple[Any, Any]:
    return (lambda z: z * scale + center), (lambda x: (x - center) / scale)
