"""How a fit came to its end, and how a choice among several came about."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from land.estimators.selection import SIGNS
from land.plotting.sheet import COLORS, axes, component_colors, styled

_LABELS = {"bic": "BIC", "aic": "AIC", "held_out": "held-out log density"}
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
    steps = [step.iteration for step in history]
    values = [step.objective for step in history]
    look = styled(style, color=COLORS[0], marker="o", markersize=3.5, linewidth=1.4)
    (artist,) = ax.plot(steps, values, **look)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("step")
    ax.set_ylabel("mean negative log density")
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
    artist = ax.scatter(
        sigmas, rhos, **styled({"c": scores, "cmap": "viridis"} | style, s=60)
    )
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
    """Draw a criterion against the number of components, a line for each sigma.

    Returns the lines, and last a ring around the best candidate; those that failed are
    left out.

    Parameters
    ----------
    selection : Selection, DataFrame or list of dict
        The result of `land.select`, or its table: rows with ``n_components``, the
        criterion, and ``sigma`` where several were tried.
    criterion : {"bic", "aic", "held_out"}, optional
        What to draw; by default what the selection was made by, else BIC.
    ax, **style
        See `land.plotting`; of `Axes.plot`.
    """
    name = criterion or getattr(selection, "criterion", "bic")
    if name not in SIGNS:
        words = ", ".join(repr(word) for word in SIGNS)
        raise ValueError(f"criterion must be one of {words}, got {name!r}")
    usable = [row for row in _rows(selection) if math.isfinite(row.get(name, math.nan))]
    if not usable:
        raise ValueError(f"selection has no row with a finite {name}")
    ax = axes(ax)
    lines: dict[float | None, list[dict]] = {}
    for row in sorted(usable, key=lambda row: row["n_components"]):
        sigma = row.get("sigma", math.nan)
        lines.setdefault(sigma if math.isfinite(sigma) else None, []).append(row)
    artists: list[Line2D] = []
    for sigma, color in zip(lines, component_colors(len(lines)), strict=True):
        look = styled(style, color=color, marker="o", markersize=4)
        if len(lines) > 1:
            words = rf"$\sigma = {sigma:.3g}$" if sigma else "given metric"
            look.setdefault("label", words)
        points = [(row["n_components"], row[name]) for row in lines[sigma]]
        artists += ax.plot(*zip(*points, strict=True), **look)
    best = min(usable, key=lambda row: SIGNS[name] * row[name])
    artists += ax.plot(best["n_components"], best[name], **_RING)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("components")
    ax.set_ylabel(_LABELS[name])
    return artists


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
