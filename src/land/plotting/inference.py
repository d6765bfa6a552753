"""Confidence regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from land.inference import Bootstrap
from land.plotting.sheet import COLORS, SMOOTH, axes, styled


def plot_mean_region(
    found: Bootstrap,
    ax: Axes | None = None,
    *,
    level: float | Sequence[float] = 0.95,
    **style,
) -> list[Line2D]:
    """Draw confidence regions of a mean in two dimensions, around a dot for it.

    Parameters
    ----------
    found : Bootstrap
        What `land.inference.bootstrap` has returned.
    level : float or sequence of float
        Probabilities of the regions.
    ax, **style
        See `land.plotting`; of `Axes.plot`.

    Returns
    -------
    list of Line2D
        A closed curve for each level, and the dot.
    """
    ax = axes(ax)
    look = styled(style, color=COLORS[1], linewidth=1.4, zorder=5)
    artists: list[Line2D] = []
    for each in np.atleast_1d(level).tolist():
        curve = found.mean_region(each, SMOOTH)
        artists += ax.plot(*curve.T, **{"label": f"mean, {100 * each:g} %"} | look)
    dot = {"marker": "o", "linestyle": "", "markeredgecolor": "white"}
    artists += ax.plot(*found.model.mean_.reshape(2, 1), **look | dot)
    ax.set_aspect("equal")
    return artists
