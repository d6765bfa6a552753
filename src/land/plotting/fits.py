"""How a fit came to its end, and how a choice among several came about."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from land.plotting.sheet import COLORS, axes, component_colors, styled

# What can be drawn of a selection, the most telling first.
_LABELS = {
    "stability": "agreement of halves, adjusted Rand index",
    "held_out": "held-out log density",
    "bic": "BIC",
    "aic": "AIC",
}
_SHADES = ("0.2", "0.5", "0.7")
_RING: Any = {"marker": "o", "mfc": "none", "mec": "0.2", "ms": 12, "ls": ""}


def plot_history(model: Any, ax: Axes | None = None, **style) -> Line2D:
    """Draw the objective against the steps of the fit of a LAND or LANDMixture.

    The `style` is of `Axes.plot`.
    """
    history = getattr(model, "history_", None)
    if not history:
        raise ValueError(
            f"model must have a history_, got {type(model).__name__} without; "
            "call fit first"
        )
    ax = axes(ax)
    steps = [(step.iteration, step.objective) for step in history]
    look = styled(style, color=COLORS[0], marker=".")
    (artist,) = ax.plot(*zip(*steps, strict=True), **look)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="step", ylabel="mean negative log density")
    return artist


def plot_learning(model: Any, ax: Axes | None = None, **style) -> PathCollection:
    """Draw the sigmas and rhos that a model was learned from, by held-out density.

    A ring is around the chosen one; the title says how good the flat metric is, which
    has no place in the figure. The `style` is of `Axes.scatter`.
    """
    table = getattr(model, "learning_", None)
    if not table:
        raise ValueError(
            f"model must have a learning_, got {type(model).__name__} without; "
            "fit with sigma='learn' or rho='learn'"
        )
    ax = axes(ax)
    rows = [row for row in table if math.isfinite(row["rho"] * row["score"])]
    sigmas, rhos, scores = ([row[n] for row in rows] for n in ("sigma", "rho", "score"))
    look = {"c": scores, "cmap": "viridis"} | style
    artist = ax.scatter(sigmas, rhos, **styled(look))
    for row in rows:
        if row["chosen"]:
            ax.plot(row["sigma"], row["rho"], **_RING)
    ax.set(xscale="log", yscale="log", xlabel=r"$\sigma$", ylabel=r"$\rho$")
    ax.margins(0.15)
    (flat,) = [row for row in table if math.isinf(row["rho"])]
    words = "chosen" if flat["chosen"] else "held out"
    ax.set_title(f"flat metric: {flat['score']:.2f} ({words})", fontsize="medium")
    ax.figure.colorbar(artist, ax=ax, label=_LABELS["held_out"])
    return artist


def plot_selection(
    selection: Any, ax: Axes | None = None, *, criterion: str | None = None, **style
) -> list[Line2D]:
    """Draw a criterion against the number of components, a line for each metric.

    Candidates that dropped out before the last round were judged on fewer rows, and are
    left out, as are those that failed. Returns the lines of the candidates and those of
    the other models, which are dashed, and last a ring around the chosen candidate.

    Parameters
    ----------
    selection : Selection, DataFrame or list of dict
        The result of `land.select`, or its table.
    criterion : {"held_out", "stability", "bic", "aic"}, optional
        What to draw; by default what the selection was made by, else the first of these
        that is in the table.
    ax, **style
        See `land.plotting`; of `Axes.plot`.
    """
    rows = _rows(selection)
    drawable = (word for word in _LABELS if _known(rows, word))
    name = criterion or next(drawable, "held_out")
    if name not in _LABELS:
        words = ", ".join(repr(word) for word in _LABELS)
        raise ValueError(f"criterion must be one of {words}, got {criterion!r}")
    usable = _known(rows, name)
    candidates = [row for row in usable if row["model"] == "LAND"]
    if not candidates:
        raise ValueError(f"selection has no row with a finite {name}")
    last = max(row["round"] for row in candidates)
    ax = axes(ax)
    lines: dict[str, list[dict]] = {}
    for row in sorted(candidates, key=lambda row: row["n_components"]):
        if row["round"] == last:
            lines.setdefault(_kind(row), []).append(row)
    artists: list[Line2D] = []
    for kind, color in zip(lines, component_colors(len(lines)), strict=True):
        look = styled(style, color=color, marker=".", label=kind)
        points = [(row["n_components"], row[name]) for row in lines[kind]]
        artists += ax.plot(*zip(*points, strict=True), **look)
    others = (row for row in usable if row["model"] != "LAND")
    for row, shade in zip(others, _SHADES, strict=False):
        artists.append(ax.axhline(row[name], color=shade, ls="--", label=row["model"]))
    best = next(row for row in candidates if row["chosen"])
    artists += ax.plot(best["n_components"], best[name], **_RING)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="components", ylabel=_LABELS[name])
    return artists


def _known(rows: list[dict], name: str) -> list[dict]:
    """Rows of the table with a number of that name."""
    return [row for row in rows if math.isfinite(row.get(name, math.nan))]


def _kind(row: dict) -> str:
    """What a line of candidates is for."""
    flat = row["metric"] == "flat"
    return "flat" if flat else f"{row['metric']}, {row['reference']}"


def _rows(selection: Any) -> list[dict]:
    """The rows of a selection, of a data frame or of a list."""
    table = getattr(selection, "table", selection)
    rows = table.to_dict("records") if hasattr(table, "to_dict") else list(table)
    if not rows or not all("n_components" in row for row in rows):
        raise ValueError(
            "selection must be the result of land.select or its table, rows with "
            f"n_components; got {type(selection).__name__}"
        )
    return rows
