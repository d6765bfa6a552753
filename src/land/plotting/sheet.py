"""Fonts and legends that all figures of land share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from land.plotting._common import components_of

_FONTS: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 8,
    "pdf.fonttype": 42,  # text stays text in the PDF
}


@contextmanager
def sheet(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure with `rows` x `columns` axes of `size` inches each.

    The fonts are set while the context is open; `options` go to `Figure.subplots`.
    """
    with matplotlib.rc_context(_FONTS):
        figure = Figure(
            figsize=(columns * size[0], rows * size[1]), layout="constrained"
        )
        yield figure, figure.subplots(rows, columns, squeeze=False, **options)


def component_legend(
    figure: Any, model: Any, n_std: float | None = None, *, data: bool = False
) -> None:
    """A legend below the figure: which colour is which component.

    With the standard deviations of the curves that are drawn, and the data.
    """
    parts, title = components_of(model), None
    style: dict[str, Any] = {"marker": "o", "mec": "white", "ls": ""}
    if parts.covariances is not None and n_std is not None:
        style["ls"] = "-"
        many = f"{n_std:g} standard deviations"
        title = f"curves at {'one standard deviation' if n_std == 1.0 else many}"
    handles = [
        Line2D([], [], color=color, label=f"component {k}", **style)
        for k, color in enumerate(parts.colors)
    ]
    if data:
        dots: dict[str, Any] = {"marker": ".", "mec": "none", "ls": ""}
        handles.insert(0, Line2D([], [], color="0.4", label="data", **dots))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 4}
    figure.legend(handles=handles, title=title, frameon=False, **place)
