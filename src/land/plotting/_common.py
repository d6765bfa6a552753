"""What the figures of fitted models share: their parts, and the part of the plane."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from land._validation import check_count, check_points
from land.density.likelihood import Measure
from land.metrics import EuclideanMetric, Metric

Array = NDArray[np.float64]

# Okabe and Ito's colours, safe for the colour-blind; yellow is too faint for lines.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARGIN = 0.15


class Components(NamedTuple):
    """The means (K, 2), covariances (K, 2, 2) and metric of a model in the plane."""

    means: Array
    covariances: Array
    metric: Metric


def axes(ax: Axes | None) -> Axes:
    """The axes to draw on: those given, or the current ones."""
    return plt.gca() if ax is None else ax


def is_ours(model: Any) -> bool:
    """Whether the model lives on a metric of this package."""
    return isinstance(getattr(model, "metric_", None), Metric)


def log_densities(model: Any, points: Array, measure: Measure) -> Array:
    """Log densities at points (n, D); NaN where they could not be computed.

    Other models than ours have one measure only, dx.
    """
    with warnings.catch_warnings():
        # The gaps in a figure say where; a count of points helps nobody.
        warnings.filterwarnings("ignore", message="the geodesics to", append=False)
        if is_ours(model):
            return np.asarray(model.score_samples(points, measure=measure))
        return np.asarray(model.score_samples(points))


def means_of(model: Any) -> Array:
    """The mean or means of a fitted model, (K, 2)."""
    means = np.atleast_2d(_attribute(model, "means_", "mean_", "cluster_centers_"))
    if means.shape[1] != 2:
        raise ValueError(
            f"model must have 2 dimensions to be drawn, got {means.shape[1]}; "
            "fit it to two columns, or to two principal components"
        )
    return means


def components_of(model: Any) -> Components:
    """Means and covariances of a LAND, LANDMixture or GaussianMixture."""
    means = means_of(model)
    stored = np.asarray(_attribute(model, "covariances_", "covariance_"))
    if hasattr(model, "covariances_"):
        covariances = _full(stored, model, len(means))
    else:
        covariances = stored[None]
    metric = model.metric_ if is_ours(model) else EuclideanMetric(2)
    return Components(means, covariances, metric)


def plane(ax: Axes, limits: ArrayLike | None, metric: Metric | None) -> Array | None:
    """``[[x_min, x_max], [y_min, y_max]]``: given, of the metric's data, of the axes.

    The axes come last, as their limits mean nothing before something is drawn. None if
    none of the three says where to draw.
    """
    if limits is not None:
        return check_limits(limits)
    landmarks = None if metric is None else metric.landmarks
    if landmarks is not None:
        low, high = landmarks.min(axis=0), landmarks.max(axis=0)
        margin = _MARGIN * (high - low).max()
        return np.stack([low - margin, high + margin], axis=1)
    if ax.has_data():
        return np.sort([ax.get_xlim(), ax.get_ylim()], axis=1)
    return None


def check_limits(limits: ArrayLike) -> Array:
    """The limits as an array, if they are ``[[x_min, x_max], [y_min, y_max]]``."""
    bounds = check_points("limits", limits, 2, ndim=2)
    if bounds.shape != (2, 2) or np.any(bounds[:, 0] >= bounds[:, 1]):
        raise ValueError(
            f"limits must be [[x_min, x_max], [y_min, y_max]], got {bounds.tolist()}"
        )
    return bounds


def mesh(bounds: Array, grid: int) -> tuple[Array, Array, Array]:
    """Coordinates along both axes, and the points (grid, grid, 2) of their lattice."""
    count = check_count("grid", grid, minimum=2)
    x, y = (np.linspace(low, high, count) for low, high in bounds)
    return x, y, np.stack(np.meshgrid(x, y), axis=-1)


def component_colors(count: int) -> list[str]:
    """One colour for each component."""
    return [COLORS[k % len(COLORS)] for k in range(count)]


def _attribute(model: Any, *names: str) -> Any:
    """The first attribute that the model has."""
    for name in names:
        if hasattr(model, name):
            return getattr(model, name)
    raise ValueError(
        f"model must be fitted and have one of {', '.join(names)}, "
        f"got {type(model).__name__} without"
    )


def _full(covariances: Array, model: Any, count: int) -> Array:
    """Covariance matrices from scikit-learn's four ways to store them.

    Our own models store matrices for every type.
    """
    if np.ndim(covariances) == 3:
        return covariances
    kind = getattr(model, "covariance_type", "full")
    if kind == "tied":
        return np.broadcast_to(covariances, (count, 2, 2))
    if kind == "diag":
        return covariances[:, None, :] * np.eye(2)
    if kind == "spherical":
        return covariances[:, None, None] * np.eye(2)
    return covariances
