"""How a fit came to its end."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from land.plotting._common import COLORS, axes


def plot_history(model: Any, ax: Axes | None = None, **style) -> Line2D:
    """Draw the objective against the steps of a fit.

    Parameters
    ----------
    model : LAND or LANDMixture
        A fitted model.
    ax : matplotlib Axes, optional
        Where to draw; the current axes by default.
    **style
        Passed on to `Axes.plot`.

    Returns
    -------
    Line2D
    """
    history = getattr(model, "history_", None)
    if not history:
        raise ValueError(
            f"model must have a history_, got {type(model).__name__} without; "
            "call fit first"
        )
    ax = axes(ax)
    defaults: dict[str, Any] = {
        "color": COLORS[0],
        "linewidth": 1.4,
        "marker": "o",
        "markersize": 3.5,
    }
    (artist,) = ax.plot(
        [step.iteration for step in history],
        [step.objective for step in history],
        **defaults | style,
    )
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("step")
    ax.set_ylabel("mean negative log likelihood")
    return artist
