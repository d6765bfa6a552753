"""A small figure of a fitted model in the plane, for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.estimators.standardized import Parts, parts_of
from land.geodesics import exp_map
from land.metrics import Metric

Array = NDArray[np.float64]

# Okabe and Ito's colours, safe for the colour-blind; yellow is too faint for lines.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Ratio of extents from which a figure to scale would be a thin line.
MOST_UNEQUAL = 8.0
# Width in pixels, margin as a share of the extent, rows and points of a curve at most.
_WIDTH, _MARGIN, _ROWS, _CURVE = 320.0, 0.06, 300, 48
_WORDS = "data, means and covariances at one standard deviation"


class DrawnMixin:
    """Shows what scikit-learn shows of an estimator, and a figure once it is fitted."""

    def _repr_html_inner(self) -> str:
        shown: str = super()._repr_html_inner()  # type: ignore[misc]
        return shown + drawing(self)

    def _repr_mimebundle_(self, **more: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**more)  # type: ignore[misc]
        if "text/html" in bundle and not bundle["text/html"].endswith("</figure>"):
            bundle["text/html"] += drawing(self)
        return bundle


def drawing(model: Any) -> str:
    """Rows, means and covariances of a fitted model of two columns as inline SVG.

    Empty for other models.
    """
    if getattr(model, "n_features_in_", 0) != 2 or not hasattr(model, "metric_"):
        return ""
    metric, parts = model.metric_, parts_of(model)
    curves = outlines(metric, parts, _CURVE)
    rows = parts.means if metric.landmarks is None else metric.landmarks
    if len(rows) > _ROWS:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:_ROWS]]
    place, height = _placed(np.vstack([rows, parts.means, *curves]))
    marks = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.5" fill="#888"/>'
        for x, y in place(rows)
    ]
    for k, (mean, curve) in enumerate(zip(parts.means, curves, strict=True)):
        color = COLORS[k % len(COLORS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in place(curve))
        ((x, y),) = place(mean[None])
        marks += [
            f'<polygon points="{line}" fill="none" stroke="{color}" stroke-width="2"/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}" stroke="#fff"/>',
        ]
    names = " and ".join(map(str, getattr(model, "feature_names_in_", [])))
    words = escape(f"{names}: {_WORDS}" if names else _WORDS.capitalize())
    return (
        f'<figure style="margin:.5em 0"><svg role="img" aria-label="{words}" '
        f'width="{_WIDTH:.0f}" height="{height:.0f}">{"".join(marks)}</svg>'
        f'<figcaption style="font-size:.8em">{words}</figcaption></figure>'
    )


def circle(count: int) -> Array:
    """Points of the unit circle."""
    angles = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def outlines(metric: Metric, parts: Parts, count: int) -> list[Array]:
    """Exp of the covariances at one standard deviation, where it could be followed."""
    factors = np.linalg.cholesky(np.asarray(parts.covariances))
    found = [
        exp_map(metric, mean, circle(count) @ factor.T)
        for mean, factor in zip(parts.means, factors, strict=True)
    ]
    return [each.points[each.converged] for each in found]


def _placed(points: Array) -> tuple[Any, float]:
    """Places in a picture that holds the points, y upwards, and its height."""
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    extent = np.where(extent > 0.0, extent, 1.0)
    low, extent = low - _MARGIN * extent, (1.0 + 2.0 * _MARGIN) * extent
    height = _WIDTH * float(np.clip(extent[1] / extent[0], 0.2, 1.0))
    size = np.array([_WIDTH, height])
    factor = np.full(2, (size / extent).min())
    if extent.max() > MOST_UNEQUAL * extent.min():
        factor = size / extent
    middle = low + 0.5 * extent

    def place(some: Array) -> Array:
        return 0.5 * size + (some - middle) * factor * [1.0, -1.0]

    return place, height
