"""A figure of several axes, in the fonts that all figures of land share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

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
