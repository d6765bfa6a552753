"""The appendix's scalability experiment: the time of 20 log maps against the dimension.

MNIST images in their first principal components, from 2 to 100 of them, and as raw
pixels. One point is fixed; geodesics lead from it to 20 others.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

import land
from land.metrics.bandwidth import automatic_rho, automatic_sigma
from land.plotting.sheet import sheet
from reproduction.data import load_mnist
from reproduction.figures import markdown_table
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "time of log maps against the dimension"
CLAIM = (
    "... we observe that the current implementation scales to "
    "approximately 50 dimensions, where it becomes impractical.",
    "appendix, Scalability of Geodesic Computations",
)
N_TARGETS = 20
# Minutes for twenty geodesics: nobody fits a model with these.
_IMPRACTICAL_S = 120.0


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common = {"quick": quick, "seed": 0, "n_targets": N_TARGETS, "raw": [784]}
    if quick:
        return common | {
            "n_points": 300,
            "dimensions": [2, 5, 10, 20, 50],
            "repeats": 1,
        }
    dimensions = [2, 3, 5, 10, 15, 20, 30, 40, 50, 75, 100]
    return common | {"n_points": 1000, "dimensions": dimensions, "repeats": 3}


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Time the log maps for every dimension."""
    images, _ = load_mnist(data_home=task.data_home)
    rng = np.random.default_rng(settings["seed"])
    images = images[rng.permutation(len(images))[: settings["n_points"]]]
    rows = [
        _timed(settings, task, dim, images)
        for dim in [*settings["dimensions"], *settings["raw"]]
    ]
    factor, exponent = power_law(rows)
    header = ["D", "sigma", "seconds for 20 maps", "ms per map", "converged"]
    header.append("length / straight line")
    lines = [
        [
            row["dim"],
            f"{row['sigma']:.3g}",
            f"{row['best']:.3f}",
            f"{1000 * row['best'] / row['n_targets']:.1f}",
            f"{row['converged']} of {row['n_targets']}",
            f"{np.median(np.divide(row['lengths'], row['straight_lengths'])):.3f}",
        ]
        for row in rows
    ]
    notes = [
        f"The metric is learned from {settings['n_points']} images of all digits, "
        "standardised as a whole (pixels from 0 to 1); sigma and rho are automatic for "
        "each dimension. The paper names none of these.",
        "Times are of the second call and later ones: the first one compiles "
        "(its time is in the JSON file).",
        "The exponent is the slope of log time against log D from 10 dimensions on.",
    ]
    numbers = {"rows": rows, "factor": factor, "exponent": exponent}
    claims = [_claim(rows, exponent)]
    figures = {"": _draw(rows, factor, exponent)}
    return Outcome(numbers, figures, claims, markdown_table(header, lines), notes)


def power_law(rows: list[dict]) -> tuple[float, float]:
    """Factor and exponent of D in the time, where it grows: from 10 dimensions on."""
    large = [row for row in rows if row["dim"] >= 10] or rows
    logs = np.log([[row["dim"], row["best"]] for row in large])
    exponent, factor = np.polyfit(logs[:, 0], logs[:, 1], 1)
    return float(np.exp(factor)), float(exponent)


def _timed(settings: dict, task: Task, dim: int, images: np.ndarray) -> dict[str, Any]:
    """Time 20 log maps in one dimension: a piece."""
    names = ("seed", "n_points", "n_targets", "repeats", "raw")

    def compute() -> dict[str, Any]:
        data = images
        if dim not in settings["raw"]:
            data = PCA(dim, random_state=0).fit_transform(images)
        sigma = automatic_sigma(data)
        rho = automatic_rho(data, sigma)
        metric = land.metrics.LocalDiagonalMetric(data, sigma, rho)
        targets = data[1 : settings["n_targets"] + 1]
        seconds = []
        for _ in range(settings["repeats"] + 1):
            start = time.perf_counter()
            logs = land.log_map(metric, data[0], targets)
            seconds.append(time.perf_counter() - start)
        straight = targets - data[0]
        return {
            "dim": dim,
            "n_targets": len(targets),
            "sigma": sigma,
            "rho": rho,
            "first": seconds[0],
            "best": min(seconds[1:]),
            "times": seconds[1:],
            "converged": int(logs.converged.sum()),
            "lengths": logs.lengths,
            "straight_lengths": _lengths(metric, data[0], straight),
        }

    used = {"dim": dim} | {name: settings[name] for name in names}
    return task.pieces.get(f"{dim} dimensions", used, compute)


def _lengths(metric: Any, base: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Metric lengths of straight lines, which no geodesic may exceed."""
    times = (np.arange(200) + 0.5) / 200
    points = base + times[:, None] * steps[:, None]
    return np.sqrt(metric.inner(points, steps[:, None], steps[:, None])).mean(axis=1)


def _claim(rows: list[dict], exponent: float) -> Claim:
    """Whether 50 dimensions are the end; for this implementation they should not be."""
    beyond = [row for row in rows if row["dim"] >= 50]
    practical = [
        row["best"] < _IMPRACTICAL_S and row["converged"] == row["n_targets"]
        for row in beyond
    ]
    answer: Answer = "fails" if all(practical) else "holds"
    raw = rows[-1]
    measured = (
        f"That was the paper's solver. Here time grows as D^{exponent:.2f}, and 20 log "
        f"maps in {raw['dim']} dimensions take {raw['best']:.2f} s "
        f"({raw['converged']} of {raw['n_targets']} converged)."
    )
    return Claim(*CLAIM, answer, measured)


def _draw(rows: list[dict], factor: float, exponent: float):
    """Time against the dimension, in logarithms."""
    with sheet(1, 1, (3.6, 2.8)) as (figure, grid):
        ax = grid[0, 0]
        dims = np.array([row["dim"] for row in rows])
        times = np.array([row["best"] for row in rows])
        ax.loglog(dims, times, "o-", color="#0072B2", ms=4, label="land")
        large = dims[dims >= 10]
        label = rf"${factor:.2g}\,D^{{{exponent:.2f}}}$"
        ax.loglog(large, factor * large**exponent, ":", color="0.4", label=label)
        ax.axvline(50, color="#D55E00", ls="--", lw=1.0, label="the paper's limit")
        ax.annotate(
            "raw pixels",
            (dims[-1], times[-1]),
            (0, -16),
            textcoords="offset points",
            ha="right",
        )
        ax.set_xlabel("dimension $D$")
        ax.set_ylabel("seconds for 20 log maps")
        ax.legend(loc="upper left")
    return figure
