"""What all figures share: fonts, colours, legends, and the parts of fitted models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from land._validation import check_count, check_points
from land.metrics import EuclideanMetric, Metric

Array = NDArray[np.float64]

# Okabe and Ito's colours, safe for the colour-blind; yellow is too faint for lines.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Points of a curve, or along an axis, that make lines look smooth.
SMOOTH = 240
# Share of the data's extent around them, so that contours are not cut off.
_MARGIN = 0.15
# Text stays text in the PDF.
_FONTS: Any = {"pdf.fonttype": 42}
_FONTS |= dict.fromkeys(("font.size", "axes.titlesize", "legend.fontsize"), 8)
LEGEND: Any = {"loc": "outside lower center", "ncols": 4, "frameon": False}


class Components(NamedTuple):
    """Means (K, D), covariances (K, D, D), None for clusters, metric, K colours."""

    means: Array
    covariances: Array | None
    metric: Metric
    colors: list[str]


def component_colors(count: int) -> list[str]:
    """One colour for each of so many components."""
    return [COLORS[k % len(COLORS)] for k in range(count)]


def axes(ax: Axes | None) -> Axes:
    """The axes to draw on: those given, or the current ones."""
    return plt.gca() if ax is None else ax


def metric_of(model: Any) -> Metric | None:
    """The metric of a model of this package."""
    metric = getattr(model, "metric_", None)
    return metric if isinstance(metric, Metric) else None


def components_of(model: Any, dim: int | None = None) -> Components:
    """What there is to draw of a fitted model, which must have `dim` dimensions."""
    names = ("means_", "mean_", "cluster_centers_")
    found = [getattr(model, name) for name in names if hasattr(model, name)]
    if not found:
        raise ValueError(
            f"model must be fitted and have means, got {type(model).__name__} without"
        )
    means = np.atleast_2d(found[0])
    check_dimensions(means.shape[1], dim)
    metric = metric_of(model) or EuclideanMetric(means.shape[1])
    covariances = _covariances(model, *means.shape)
    return Components(means, covariances, metric, component_colors(len(means)))


def check_dimensions(found: int, expected: int | None) -> None:
    """Refuse a model that does not fit into the plane."""
    if expected is not None and found != expected:
        raise ValueError(
            f"model must have {expected} dimensions to be drawn, got {found}; see "
            "plot_pairs, or fit it to two columns or principal components"
        )


def plane(
    ax: Axes, limits: ArrayLike | None, metric: Metric | None, dim: int = 2
) -> Array | None:
    """``[[x_min, x_max], [y_min, y_max]]``: given, of the metric's data, of the axes.

    None if none of the three says where to draw; one row in one dimension.
    """
    if limits is not None:
        return check_limits(limits, dim)
    landmarks = None if metric is None else metric.landmarks
    if landmarks is not None:
        low, high = landmarks.min(axis=0), landmarks.max(axis=0)
        margin = _MARGIN * (high - low).max()
        return np.stack([low - margin, high + margin], axis=1)
    shown = np.sort([ax.get_xlim(), ax.get_ylim()], axis=1)
    return shown[:dim] if ax.has_data() else None


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


def _covariances(model: Any, count: int, dim: int) -> Array | None:
    """Covariance matrices (K, D, D), if the model has any.

    scikit-learn has four ways to store them; our models have matrices always.
    """
    if hasattr(model, "covariance_"):
        return np.asarray(model.covariance_)[None]
    if not hasattr(model, "covariances_"):
        return None
    stored = np.asarray(model.covariances_)
    kind = "full" if stored.ndim == 3 else model.covariance_type
    if kind == "tied":
        return np.broadcast_to(stored, (count, dim, dim))
    if kind == "diag":
        return stored[:, None, :] * np.eye(dim)
    return stored[:, None, None] * np.eye(dim) if kind == "spherical" else stored


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
    line, handles = "", []
    if parts.covariances is not None and n_std is not None:
        line, many = "-", f"{n_std:g} standard deviations"
        title = f"curves at {'one standard deviation' if n_std == 1.0 else many}"
    if data:
        dots = Line2D([], [], color="0.4", label="data", marker=".", mec="none", ls="")
        handles.append(dots)
    for k, color in enumerate(parts.colors):
        style: dict[str, Any] = {"marker": "o", "mec": "white", "ls": line}
        handles.append(Line2D([], [], color=color, label=f"component {k}", **style))
    figure.legend(handles=handles, title=title, **LEGEND)
