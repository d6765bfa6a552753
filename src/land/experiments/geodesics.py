"""The opening illustration: geodesics follow the data, straight lines do not."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import land
from land.plotting import plot_data, plot_geodesics, plot_metric
from land.plotting.geometry import FAN, GEODESIC, POINT, STRAIGHT

SIGMA, RHO, SEED = 0.2, 1e-3, 0
N_TARGETS, N_RAYS = 12, 24


def run(folder: Path) -> dict:
    """Compute geodesics on the half-ellipse and draw them.

    Parameters
    ----------
    folder : Path
        Where the figure is written, as ``geodesics.png`` and ``geodesics.pdf``.

    Returns
    -------
    dict
        The figure's numbers and where it was written.
    """
    data = land.datasets.make_half_ellipse(random_state=SEED)
    metric = land.metrics.LocalDiagonalMetric(data, SIGMA, RHO)
    base = data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]
    targets = _spread_along_arc(data)
    logs = land.log_map(metric, base, targets)
    straight = np.stack([np.broadcast_to(base, targets.shape), targets], axis=1)
    angles = 2.0 * np.pi * np.arange(N_RAYS) / N_RAYS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tangents = directions / np.sqrt(metric.inner(base, directions, directions))[:, None]
    rays = land.exp_map(metric, base, 2.5 * tangents, times=np.linspace(0.0, 1.0, 60))
    figure = _draw(data, metric, base, logs.curves, straight, targets, rays.rays)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"geodesics.{kind}" for kind in ("png", "pdf")]
    for file in files:
        figure.savefig(file, dpi=200)
    return {
        "sigma": SIGMA,
        "rho": RHO,
        "targets": targets.tolist(),
        "geodesic_lengths": logs.lengths.tolist(),
        "straight_lengths": _polyline_lengths(metric, straight).tolist(),
        "log_maps_converged": int(logs.converged.sum()),
        "exp_maps_converged": int(rays.converged.sum()),
        "files": [str(file) for file in files],
    }


def _spread_along_arc(data: np.ndarray) -> np.ndarray:
    """Data points at about equal angles, both ends included."""
    # Seen from below the ellipse's centre, so that the ends stay in [0, pi].
    angle = np.arctan2(data[:, 1] / 1.5 + 0.5, data[:, 0] / 3.0)
    wanted = np.linspace(angle.min(), angle.max(), N_TARGETS)
    return data[[int(np.argmin(np.abs(angle - value))) for value in wanted]]


def _polyline_lengths(metric: land.metrics.Metric, ends: np.ndarray) -> np.ndarray:
    """Metric lengths of straight segments, by the midpoint rule on many pieces."""
    times = (np.arange(400) + 0.5) / 400
    points = ends[:, :1] + times[:, None] * (ends[:, 1:] - ends[:, :1])
    steps = ends[:, 1:] - ends[:, :1]
    return np.sqrt(metric.inner(points, steps, steps)).mean(axis=1)


def _draw(data, metric, base, curves, straight, targets, rays) -> Figure:
    """Three panels: the metric, log maps against straight lines, and an exp-map fan."""
    with matplotlib.rc_context({"font.size": 9, "axes.titlesize": 9}):
        figure = Figure(figsize=(10.5, 2.1), layout="constrained")
        panels = figure.subplots(1, 3, sharex=True, sharey=True)
        for ax in panels:
            shading = plot_metric(metric, ax)
            plot_data(data, ax, s=5, alpha=0.35)
            ax.set_xticks([])
            ax.set_yticks([])
        plot_data(data, panels[0], s=6, alpha=0.7)
        figure.colorbar(shading, ax=panels[2], label=r"$\log\sqrt{|M(x)|}$")
        panels[0].set_title("data and metric: dark is expensive")
        plot_geodesics(straight, panels[1], colors=STRAIGHT, linewidths=1.0, alpha=0.8)
        plot_geodesics(curves, panels[1])
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
        plot_geodesics(rays, panels[2], colors=FAN, linewidths=1.0)
        panels[2].set_title("exponential map: equal lengths in all directions")
        for ax in panels[1:]:
            ax.plot(*base, marker="*", ms=11, color=POINT, mec="white", zorder=5)
    return figure
