"""Figures of the command line, put together from `land.plotting`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.errors import CommandError
from land.cli.models import StoredModel

# Columns that `land.plotting.plot_pairs` takes; of more, the first are drawn.
_MOST_PAIRS, _MOST_COLUMNS = 8, 6
# Standard deviations of the rings, in every kind of figure.
_N_STD = 1.0
_EXPENSE = r"expense of moving, $\log\sqrt{|M(x)|}$"
# Axes of more unequal extent than this are not drawn to the same scale.
_MOST_UNEQUAL = 8.0


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format that the file's name says."""
    from land.estimators.archive import replacing

    with replacing(path) as stream:
        kind = path.suffix[1:].lower() or "png"
        figure.savefig(stream, format=kind, dpi=200, bbox_inches="tight")


def model_figure(stored: StoredModel, kind: str, points: np.ndarray, grid: int) -> Any:
    """The figure of a model; `points` are in the model's coordinates."""
    from land import plotting

    if kind == "history":
        with _sheet(1, 1, (4.5, 3.2)) as (figure, axes):
            plotting.plot_history(stored.model, axes[0, 0])
        return figure
    dim = len(stored.columns)
    if dim == 1:
        raise CommandError("the model has one column; only --kind history can be drawn")
    if kind == "view3d":
        if dim == 2:
            raise CommandError("the model has 2 columns; --kind view3d needs 3 or more")
        return _view3d(stored, points)
    # Clusters without covariances have figures of their own, and so have models of
    # more columns than `plot_pairs` has room for.
    has_density = hasattr(stored.model, "score_samples")
    if kind == "pairs" and has_density and dim <= _MOST_PAIRS:
        return _pairs(stored, points)
    if dim > 2 and kind != "pairs":
        raise CommandError(
            f"the model has {dim} columns; --kind {kind} needs 2, use --kind pairs or "
            "view3d"
        )
    if dim > 2 or not has_density:
        return _clusters(stored, points)
    return _plane(stored, kind, points, grid)


def _plane(stored: StoredModel, kind: str, points: np.ndarray, grid: int) -> Any:
    """The figure of a model of two columns."""
    from land import plotting

    with _sheet(1, 1, (5.0, 4.2)) as (figure, axes):
        ax = axes[0, 0]
        if kind == "density":
            _draw_density(ax, stored.model, points, grid)
        else:
            plotting.plot_data(points, ax, label="data")
            if kind == "metric":
                shading = plotting.plot_metric(stored.model.metric_, ax)
                figure.colorbar(shading, ax=ax, label=_EXPENSE, shrink=0.7)
            else:
                plotting.plot_responsibilities(stored.model, points, ax)
            plotting.plot_means(stored.model, ax, label="mean")
        figure.legend(loc="outside lower center", ncols=3)
        extents = np.ptp(points, axis=0)
        if extents.max() > _MOST_UNEQUAL * extents.min():
            ax.set_aspect("auto")  # a line is all that would be seen
        _label(ax, stored, (0, 1))
    return figure


def _draw_density(ax: Any, model: Any, points: np.ndarray, grid: int) -> None:
    """Density, data, means and covariances of a model in the plane."""
    from land import plotting

    plotting.plot_data(points, ax, s=5, alpha=0.5, label="data")
    try:
        plotting.plot_density(model, ax, grid=grid)
    except ValueError as error:
        if "levels" not in str(error):  # matplotlib's complaint about too few
            raise
        raise CommandError(
            "the density is high in a few places between the lattice's points only; "
            "try a larger --grid, or 'land fit --standardize'"
        ) from None
    ring, *_ = plotting.plot_covariance(model, ax, n_std=_N_STD)
    ring.set_label("one standard deviation")
    plotting.plot_means(model, ax, label="mean")


def _pairs(stored: StoredModel, points: np.ndarray) -> Any:
    """A panel for each pair of columns, names at the edges."""
    from land import plotting

    dim = len(stored.columns)
    size = (5.0, 4.2) if dim == 2 else (2.3 * (dim - 1), 2.1 * (dim - 1))
    with _sheet(1, 1, size) as (figure, axes):
        axes[0, 0].remove()
        panels = plotting.plot_pairs(
            stored.model, points, figure, names=[""] * dim, n_std=_N_STD
        )
        for (row, column), ax in np.ndenumerate(panels):
            if ax is not None:
                edges = (row == dim - 2, column == 0)
                _label(ax, stored, (column, row + 1), edges)
    return figure


def _view3d(stored: StoredModel, points: np.ndarray) -> Any:
    """The first three columns in space."""
    from land import plotting

    projection = {"projection": "3d"}
    with _sheet(1, 1, (5.6, 4.4), subplot_kw=projection) as (figure, axes):
        ax = axes[0, 0]
        plotting.plot_view3d(stored.model, points, ax, n_std=_N_STD)
        ax.set_box_aspect(None, zoom=0.92)  # room for the name of the third
        for k, axis in enumerate((ax.xaxis, ax.yaxis, ax.zaxis)):
            axis.set_label_text(stored.columns[k])
            if stored.standardized:
                _mark(axis, stored.center[k], stored.scale[k])
    return figure


def _mark(axis: Any, center: float, scale: float) -> None:
    """Mark an axis in space, which can have no other beside it, at round numbers."""
    low, high = center + scale * axis.get_view_interval()
    marks = axis.get_major_locator().tick_values(low, high)
    marks = marks[(marks >= low) & (marks <= high)]
    axis.set_ticks((marks - center) / scale, labels=[f"{mark:.6g}" for mark in marks])


def _clusters(stored: StoredModel, points: np.ndarray) -> Any:
    """Data and means of the first columns, a panel for each pair of them."""
    count = min(len(stored.columns), _MOST_COLUMNS)
    pairs = list(itertools.combinations(range(count), 2))
    n_columns = min(3, len(pairs))
    n_rows = -(-len(pairs) // n_columns)
    size = (5.0, 4.2) if len(pairs) == 1 else (3.2, 3.0)
    labels = np.zeros(len(points), dtype=int)
    if hasattr(stored.model, "predict"):
        labels = stored.model.predict(points)
    means = stored.to_model(stored.means())
    with _sheet(n_rows, n_columns, size) as (figure, axes):
        for ax in axes.flat[len(pairs) :]:
            ax.set_visible(False)
        for ax, pair in zip(axes.flat, pairs, strict=False):
            shown = list(pair)
            _draw_clusters(ax, means[:, shown], points[:, shown], labels)
            _label(ax, stored, pair)
    return figure


def _draw_clusters(
    ax: Any, means: np.ndarray, points: np.ndarray, labels: np.ndarray
) -> None:
    """Data and means in the plane, in a colour for each component."""
    from land import plotting

    for k, mean in enumerate(means):
        color = f"C{k % 10}"
        if np.any(labels == k):
            plotting.plot_data(points[labels == k], ax, color=color, alpha=0.5)
        ax.scatter(*mean, color=color, s=60, edgecolors="white", zorder=6)
    ax.set_aspect("auto")


def _label(
    ax: Any,
    stored: StoredModel,
    pair: tuple[int, int],
    named: tuple[bool, bool] = (True, True),
) -> None:
    """Name those axes that are `named`, and mark them in the units of the data."""
    names = [stored.columns[k] * show for k, show in zip(pair, named, strict=True)]
    if not stored.standardized:
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
        return
    ax.set_xticks([])
    ax.set_yticks([])
    center, scale = stored.center[list(pair)], stored.scale[list(pair)]
    across = ax.secondary_xaxis("bottom", functions=_units(center[0], scale[0]))
    across.set_xlabel(names[0])
    up = ax.secondary_yaxis("left", functions=_units(center[1], scale[1]))
    up.set_ylabel(names[1])


def _units(center: float, scale: float) -> tuple[Any, Any]:
    return (lambda z: z * scale + center), (lambda x: (x - center) / scale)


def _sheet(*arguments: Any, **options: Any) -> Any:
    """See `land.plotting.sheet`; matplotlib is imported there only."""
    from land.plotting.sheet import sheet

    return sheet(*arguments, **options)
