"""How a choice of components and sigma came about."""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from land.plotting._common import axes, component_colors

# Whether large or small values are good.
_SIGNS = {"bic": 1.0, "aic": 1.0, "held_out": -1.0}
_LABELS = {"bic": "BIC", "aic": "AIC", "held_out": "held-out log density"}


def plot_selection(
    selection: Any,
    ax: Axes | None = None,
    *,
    criterion: str | None = None,
    **style,
) -> list[Line2D]:
    """Draw a criterion against the number of components, a line for each sigma.

    Parameters
    ----------
    selection : Selection, DataFrame or list of dict
        The result of `land.select`, or its table: rows with ``n_components``, the
        criterion, and ``sigma`` where several were tried.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    criterion : {"bic", "aic", "held_out"}, optional
        What to draw; by default what the selection was made by, else BIC.
    **style
        Passed on to `Axes.plot`.

    Returns
    -------
    list of Line2D
        One for each sigma, and last a ring around the best candidate. Candidates that
        failed are left out.
    """
    rows = _rows(selection)
    name = criterion or getattr(selection, "criterion", "bic")
    if name not in _SIGNS:
        words = ", ".join(repr(word) for word in _SIGNS)
        raise ValueError(f"criterion must be one of {words}, got {name!r}")
    usable = [row for row in rows if _is_number(row.get(name))]
    if not usable:
        raise ValueError(f"selection has no row with a finite {name}")
    ax = axes(ax)
    lines: dict[float | None, list[dict]] = {}
    for row in usable:
        sigma = row.get("sigma")
        lines.setdefault(sigma if _is_number(sigma) else None, []).append(row)
    artists: list[Line2D] = []
    for (sigma, line), color in zip(
        lines.items(), component_colors(len(lines)), strict=True
    ):
        line.sort(key=lambda row: row["n_components"])
        defaults: dict[str, Any] = {"color": color, "marker": "o", "markersize": 4}
        if len(lines) > 1:
            defaults["label"] = rf"$\sigma = {sigma:.3g}$" if sigma else "given metric"
        points = [row["n_components"] for row in line], [row[name] for row in line]
        artists += ax.plot(*points, **defaults | style)
    best = min(usable, key=lambda row: _SIGNS[name] * row[name])
    ring: dict[str, Any] = {
        "marker": "o",
        "mfc": "none",
        "mec": "0.2",
        "ms": 11,
        "ls": "",
        "zorder": 4,
    }
    artists += ax.plot(best["n_components"], best[name], **ring)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("components")
    ax.set_ylabel(_LABELS[name])
    return artists


def _rows(selection: Any) -> list[dict]:
    """The rows of a selection, of a data frame or of a list."""
    table = getattr(selection, "table", selection)
    if hasattr(table, "to_dict"):
        table = table.to_dict("records")
    rows = list(table)
    if not rows or not all(
        isinstance(row, dict) and "n_components" in row for row in rows
    ):
        raise ValueError(
            "selection must be the result of land.select or its table, rows with "
            f"n_components; got {type(selection).__name__}"
        )
    return rows


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
