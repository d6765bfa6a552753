"""What all figures share: fonts, colours, limits and legends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from land._validation import check_count, check_points
from land.estimators.drawing import COLORS as COLORS
from land.estimators.standardized import Parts, column_names, parts_of
from land.metrics import EuclideanMetric, Metric

Array = NDArray[np.float64]

# Points of a curve, or along an axis, that make lines look smooth.
SMOOTH = 240
# Share of the data's extent around them, so that contours are not cut off.
MARGIN = 0.15
_FONTS: Any = {"pdf.fonttype": 42}  # text stays text
_FONTS |= dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), 8)
LEGEND: Any = {"loc": "outside lower center", "ncols": 4, "frameon": False}


def component_colors(count: int) -> list[str]:
    """One colour for each of so many components."""
    return [COLORS[k % len(COLORS)] for k in range(count)]


def axes(ax: Axes | None) -> Axes:
    """The axes to draw on: those given, or the current ones."""
    return plt.gca() if ax is None else ax


def styled(style: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """The defaults of a figure, with the user's style in their place."""
    if style.keys() & {"c", "facecolors"}:  # other names of the colour
        defaults.pop("color", None)
    return defaults | style


def metric_of(model: Any) -> Metric:
    """The metric of a fitted model; flat for other models than ours."""
    metric = getattr(model, "metric_", None)
    return metric if isinstance(metric, Metric) else EuclideanMetric(_dim(model))


def parts_in(model: Any, dim: int | None = None) -> Parts:
    """Means and covariances of a fitted model, which must have `dim` dimensions."""
    parts = parts_of(model)
    check_dimensions(parts.means.shape[1], dim)
    return parts


def name_axes(ax: Axes, source: Any) -> None:
    """Name axes without a name after the columns of a data frame, or of a model's."""
    for axis, name in zip((ax.xaxis, ax.yaxis), column_names(source), strict=False):
        if not axis.get_label_text():
            axis.set_label_text(name, parse_math=False)  # "$" is a dollar


def check_dimensions(found: int, expected: int | None) -> None:
    """Refuse a model that does not fit into the plane."""
    if expected is not None and found != expected:
        raise ValueError(
            f"model must have {expected} dimensions to be drawn, got {found}; see "
            "plot_pairs, or fit it to two columns or principal components"
        )


def region(model: Any, ax: Axes, limits: ArrayLike | None) -> Array:
    """``[[x_min, x_max], [y_min, y_max]]`` to draw a model or a metric in.

    As given; else around the data of the metric; else three standard deviations around
    the means, and what the axes show already. One row in one dimension.
    """
    metric = model if isinstance(model, Metric) else metric_of(model)
    if limits is not None:
        return check_limits(limits, metric.dim)
    if metric.landmarks is not None:
        low, high = metric.landmarks.min(axis=0), metric.landmarks.max(axis=0)
        margin = MARGIN * (high - low).max()
        return np.stack([low - margin, high + margin], axis=1)
    shown = np.array([ax.get_xlim(), ax.get_ylim()])[: metric.dim].T
    corners = list(shown) if ax.has_data() else []
    if hasattr(model, "covariances_") or hasattr(model, "covariance_"):
        parts = parts_of(model)
        reach = 3.0 * np.sqrt(np.einsum("kdd->kd", np.asarray(parts.covariances)))
        corners += [*(parts.means - reach), *(parts.means + reach)]
    if not corners:
        raise ValueError(
            "limits must be given, or data drawn on ax first: nothing else says where "
            "to draw"
        )
    return np.stack([np.min(corners, axis=0), np.max(corners, axis=0)], axis=1)


def check_limits(limits: ArrayLike, dim: int = 2) -> Array:
    """The limits as an array, if they are ``[[x_min, x_max], [y_min, y_max]]``."""
    bounds = check_points("limits", limits, 2, ndim=2)
    if bounds.shape != (dim, 2) or np.any(bounds[:, 0] >= bounds[:, 1]):
        expected = ", ".join(["[x_min, x_max]", "[y_min, y_max]"][:dim])
        raise ValueError(f"limits must be [{expected}], got {bounds.tolist()}")
    return bounds


def mesh(bounds: Array, grid: int) -> tuple[Array, Array, Array]:
    """Coordinates along both axes, and the points (grid, grid, 2) of their lattice."""
    count = check_count("grid", grid, minimum=2)
    x, y = (np.linspace(low, high, count) for low, high in bounds)
    return x, y, np.stack(np.meshgrid(x, y), axis=-1)


@contextmanager
def sheet(
    rows: int = 1,
    columns: int = 1,
    size: tuple[float, float] = (5.0, 4.0),
    **options: Any,
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure with `rows` x `columns` axes of `size` inches each.

    The fonts are set while the context is open; `options` go to `Figure.subplots`.
    """
    with matplotlib.rc_context(_FONTS):
        extent = columns * size[0], rows * size[1]
        figure = Figure(figsize=extent, layout="compressed")
        yield figure, figure.subplots(rows, columns, squeeze=False, **options)


def component_legend(
    figure: Any, model: Any, n_std: float | None = None, *, data: bool = False
) -> None:
    """A legend below the figure: which colour is which component.

    With the standard deviations of the curves that are drawn, and the data.
    """
    parts, title, line = parts_of(model), None, ""
    if parts.covariances is not None and n_std is not None:
        many = "one standard deviation"
        many = many if n_std == 1 else f"{n_std:g} standard deviations"
        title, line = f"curves at {many}", "-"
    dots: Any = {"color": "0.4", "marker": ".", "mec": "none", "ls": ""}
    handles = [Line2D([], [], label="data", **dots)] if data else []
    for k, color in enumerate(component_colors(len(parts.means))):
        style: dict[str, Any] = {"marker": "o", "mec": "white", "ls": line}
        handles.append(Line2D([], [], color=color, label=f"component {k}", **style))
    figure.legend(handles=handles, title=title, **LEGEND)


def _dim(model: Any) -> int:
    return int(getattr(model, "n_features_in_", 2))
