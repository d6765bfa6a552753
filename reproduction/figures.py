"""What the figures of the experiments share: contours, Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from land.plotting import DensityGrid, density_grid, plot_data, plot_grid
from reproduction.models import STYLES


def grid_numbers(model: Any, data: np.ndarray, grid: int) -> dict[str, Any]:
    """The density around the data on a lattice, to be drawn by `contour_panel`."""
    low, high = data.min(axis=0), data.max(axis=0)
    margin = 0.12 * (high - low).max()
    limits = np.stack([low - margin, high + margin], axis=1)
    found = density_grid(model, limits=limits, grid=grid)
    return {
        # Four digits are more than a contour shows.
        "x": np.round(found.x, 6),
        "y": np.round(found.y, 6),
        "density": _digits(found.density),
        "mass": _digits(found.mass),
    }


def contour_panel(
    ax: Axes, numbers: dict[str, Any], data: np.ndarray, means: Any, kind: str
) -> None:
    """Contours of a density from `grid_numbers`, data on top, means on top of them."""
    lattice = DensityGrid(
        np.array(numbers["x"]),
        np.array(numbers["y"]),
        np.ma.masked_invalid(np.array(numbers["density"], dtype=float)),
        np.ma.masked_invalid(np.array(numbers["mass"], dtype=float)),
    )
    plot_data(data, ax, s=3, alpha=0.4)
    plot_grid(lattice, ax)
    mark_means(ax, means, kind)
    bare(ax)


def mark_means(ax: Axes, means: Any, kind: str, **style: Any) -> None:
    """The means of a model, with the marker and the colour of its kind."""
    _, color, marker = STYLES[kind]
    points = np.atleast_2d(np.asarray(means, dtype=float))
    defaults: dict[str, Any] = {
        "s": 42,
        "marker": marker,
        "color": color,
        "edgecolors": "white",
        "linewidths": 1.0,
        "zorder": 6,
    }
    ax.scatter(*points.T, **defaults | style)


def bare(ax: Axes) -> None:
    """Axes without ticks: coordinates mean nothing here."""
    ax.set_xticks([])
    ax.set_yticks([])


def handles(kinds: Sequence[str], **style: Any) -> list[Line2D]:
    """Entries of a legend for models."""
    return [
        Line2D([], [], label=label, color=color, marker=marker, **style)
        for label, color, marker in (STYLES[kind] for kind in kinds)
    ]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers to three significant digits, right-aligned."""
    lines = ["| " + " | ".join(header) + " |"]
    lines.append(
        "|" + "|".join("---:" if i else "---" for i in range(len(header))) + "|"
    )
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def without(rows: Sequence[dict], *names: str) -> list[dict]:
    """Rows for the JSON file, without what is only drawn."""
    return [{key: row[key] for key in row if key not in names} for row in rows]


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean and its standard error (NaN for a single value)."""
    array = np.asarray(values, dtype=float)
    if len(array) < 2:
        return float(array.mean()), float("nan")
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))


def plus_minus(values: Any, digits: int = 2) -> str:
    """Mean and standard error in words."""
    if not len(values):
        return "-"
    mean, error = mean_and_error(values)
    if np.isnan(error):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def _digits(values: np.ma.MaskedArray) -> np.ndarray:
    """Four significant digits, NaN where masked."""
    filled = np.ma.filled(values.astype(float), np.nan)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (3 - np.floor(np.log10(np.abs(filled))))
        rounded = np.round(filled * scale) / scale
    return np.where(np.isfinite(rounded), rounded, filled)
