"""The opening illustration: geodesics follow the data, straight lines do not."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import land
from land.plotting import plot_data, plot_geodesics, plot_metric
from land.plotting.plane import FAN, GEODESIC, POINT, STRAIGHT
from land.plotting.sheet import sheet
from reproduction.figures import bare, markdown_table
from reproduction.runner import Claim, Outcome, Task

TITLE = "geodesics and straight lines"
CLAIM = (
    "Thus, geodesics are 'pulled' towards the data where the metric is small.",
    "section 3.1; the opening figure compares the geodesic and the linear distance",
)


def settings(quick: bool) -> dict[str, Any]:
    """The settings; the quick run leaves out nothing but some data."""
    return {
        "quick": quick,
        "seed": 0,
        "n_points": 150 if quick else 300,
        "sigma": 0.2,
        "rho": 1e-3,
        "n_targets": 12,
        "n_rays": 24,
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Compute geodesics on the half-ellipse and draw them."""
    data = land.datasets.make_half_ellipse(
        settings["n_points"], random_state=settings["seed"]
    )
    metric = land.metrics.LocalDiagonalMetric(data, settings["sigma"], settings["rho"])
    base = data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]
    others = data[np.any(data != base, axis=1)]
    targets = _spread_along_arc(others, settings["n_targets"])
    found = task.pieces.get(
        "geodesics", settings, lambda: _compute(settings, metric, base, targets)
    )
    kept = {name: found[name] for name in found if name not in ("curves", "rays")}
    ratios = np.array(found["geodesic_lengths"]) / found["straight_lengths"]
    header = ["target", "length of the geodesic", "of the straight line"]
    lines = [
        [f"({x:.2f}, {y:.2f})", geodesic, straight]
        for (x, y), geodesic, straight in zip(
            targets, found["geodesic_lengths"], found["straight_lengths"], strict=True
        )
    ]
    far = np.array(found["distances_to_data"])
    measured = (
        f"All {len(targets)} geodesics are at most as long as the straight line, on "
        f"average {np.mean(ratios):.2f} times, at best {np.min(ratios):.2f} times. "
        f"Their points are {far[0]:.2f} from the nearest datum at most, those of the "
        f"straight lines {far[1]:.2f}."
    )
    holds = bool(np.all(ratios <= 1.0 + 1e-6) and far[0] < far[1])
    claim = Claim(*CLAIM, "holds" if holds else "fails", measured)
    figure = _draw(data, metric, base, targets, found)
    notes = ["The paper's figure shows digits; the data here are the half-ellipse's."]
    return Outcome(kept, {"": figure}, [claim], markdown_table(header, lines), notes)


def _compute(settings: dict, metric, base: np.ndarray, targets: np.ndarray) -> dict:
    """Log maps to the targets, and a fan of exponential maps of equal length."""
    logs = land.log_map(metric, base, targets)
    straight = np.stack([np.broadcast_to(base, targets.shape), targets], axis=1)
    angles = 2.0 * np.pi * np.arange(settings["n_rays"]) / settings["n_rays"]
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tangents = directions / np.sqrt(metric.inner(base, directions, directions))[:, None]
    rays = land.exp_map(metric, base, 2.5 * tangents, times=np.linspace(0.0, 1.0, 60))
    assert rays.rays is not None
    return {
        "geodesic_lengths": logs.lengths,
        "straight_lengths": _polyline_lengths(metric, straight),
        "distances_to_data": [
            _farthest(logs.curves, metric.landmarks),
            _farthest(_along(straight), metric.landmarks),
        ],
        "log_maps_converged": int(logs.converged.sum()),
        "exp_maps_converged": int(rays.converged.sum()),
        "curves": np.round(logs.curves, 5),
        "rays": np.round(rays.rays, 5),
    }


def _spread_along_arc(data: np.ndarray, count: int) -> np.ndarray:
    """Data points at about equal angles, both ends included."""
    # Seen from below the ellipse's centre, so that the ends stay in [0, pi].
    angle = np.arctan2(data[:, 1] / 1.5 + 0.5, data[:, 0] / 3.0)
    wanted = np.linspace(angle.min(), angle.max(), count)
    return data[[int(np.argmin(np.abs(angle - value))) for value in wanted]]


def _along(ends: np.ndarray) -> np.ndarray:
    """Points of straight segments: midpoints of many pieces."""
    times = (np.arange(400) + 0.5) / 400
    return ends[:, :1] + times[:, None] * (ends[:, 1:] - ends[:, :1])


def _polyline_lengths(metric: land.metrics.Metric, ends: np.ndarray) -> np.ndarray:
    """Metric lengths of straight segments, by the midpoint rule."""
    steps = ends[:, 1:] - ends[:, :1]
    return np.sqrt(metric.inner(_along(ends), steps, steps)).mean(axis=1)


def _farthest(curves: np.ndarray, data: np.ndarray) -> float:
    """The largest distance of a curve's point to the nearest datum."""
    points = curves.reshape(-1, 2)
    distances = np.linalg.norm(points[:, None] - data, axis=2)
    return float(distances.min(axis=1).max())


def _draw(data, metric, base, targets, found: dict) -> Figure:
    """Three panels: the metric, log maps against straight lines, and an exp-map fan."""
    straight = np.stack([np.broadcast_to(base, targets.shape), targets], axis=1)
    with sheet(1, 3, (3.5, 2.1), sharex=True, sharey=True) as (figure, grid):
        panels = grid[0]
        for ax in panels:
            shading = plot_metric(metric, ax)
            plot_data(data, ax, s=5, alpha=0.35)
            bare(ax)
        plot_data(data, panels[0], s=6, alpha=0.7)
        figure.colorbar(shading, ax=panels[2], label=r"$\log\sqrt{|M(x)|}$")
        panels[0].set_title("data and metric: dark is expensive")
        plot_geodesics(straight, panels[1], colors=STRAIGHT, linewidths=1.0, alpha=0.8)
        plot_geodesics(found["curves"], panels[1])
        plot_data(targets, panels[1], s=18, color=GEODESIC, alpha=1.0, zorder=4)
        panels[1].set_title("geodesics and straight lines from one point")
        panels[1].legend(
            handles=[
                Line2D([], [], color=GEODESIC, label="geodesic"),
                Line2D([], [], color=STRAIGHT, label="straight"),
            ],
            loc="lower center",
            ncols=2,
            framealpha=0.9,
        )
        plot_geodesics(found["rays"], panels[2], colors=FAN, linewidths=1.0)
        panels[2].set_title("exponential map: equal lengths in all directions")
        for ax in panels[1:]:
            ax.plot(*base, marker="*", ms=11, color=POINT, mec="white", zorder=5)
    return figure
