"""Figure 1 and the appendix's figure of the digit 1 in two principal components.

The paper shows three pictures. Here fresh images of the digit are scored as well, and
samples of the models are looked up among the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import KDTree
from sklearn.decomposition import PCA

import land
from land.plotting import plot_data, plot_geodesics
from land.plotting.plane import GEODESIC, STRAIGHT
from land.plotting.sheet import sheet
from reproduction.data import load_mnist
from reproduction.figures import (
    bare,
    contour_panel,
    grid_numbers,
    markdown_table,
    without,
)
from reproduction.models import STYLES, describe, fit, make, quietly
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "digit 1 in two principal components"
LINEAR = (
    "On the other hand, the linear model has poor performance, due to the linear "
    "distance measure.",
    "appendix, MNIST digit 1 data",
)
OVERFITS = (
    "Also, the least squares model has a similar performance, since it takes under "
    "consideration the underlying manifold. However, is obvious that it overfits the "
    "given data, and gives significant probability to low density areas.",
    "appendix, MNIST digit 1 data",
)


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common: dict[str, Any] = {"quick": quick, "seed": 0, "n_points": 200, "rho": 1e-3}
    if quick:
        return common | {
            "sigma": 0.5,
            "n_samples": 300,
            "n_draws": 1000,
            "n_fresh": 400,
            "grid": 30,
        }
    return common | {
        "sigma": 0.5,
        "n_samples": 3000,
        "n_draws": 10_000,
        "n_fresh": 2000,
        "grid": 60,
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Fit the three models to 200 images."""
    data, fresh = digits(settings, task.data_home)
    rows = [_fitted(settings, task, kind, data, fresh) for kind in STYLES]
    found = {row["model"]: row for row in rows}
    header = [
        "model",
        "sigma",
        "rho",
        "log density of fresh data",
        "samples off the data",
    ]
    lines = [
        [
            _label(row["model"]),
            f"{row['sigma']:.3g}" if "sigma" in row else "",
            f"{row['rho']:.3g}" if "rho" in row else "",
            f"{row['held_out']:.2f}",
            f"{100 * row['off_data']:.0f} %",
        ]
        for row in rows
    ]
    notes = [
        "The paper names neither sigma nor rho, nor which 200 images; pixels run from "
        "0 to 1, and the principal components are those of all images of the digit.",
        "Log density of fresh data: mean over other images, with respect to dx.",
        "Samples off the data: share of the model's samples farther from the fitted "
        "points than 99 % of fresh images are.",
    ]
    figures = {"": _draw(found, data)}
    claims = [_linear(found), _overfits(found)]
    numbers = {"rows": without(rows, "grid", "geodesics")}
    return Outcome(numbers, figures, claims, markdown_table(header, lines), notes)


def digits(settings: dict[str, Any], data_home: Any) -> tuple[np.ndarray, np.ndarray]:
    """Some images of the digit to be fitted, and others, in two dimensions."""
    images, _ = load_mnist(1, data_home=data_home)
    plane = PCA(2, random_state=0).fit_transform(images)
    order = np.random.default_rng(settings["seed"]).permutation(len(plane))
    split, end = settings["n_points"], settings["n_points"] + settings["n_fresh"]
    return plane[order[:split]], plane[order[split:end]]


def _fitted(
    settings: dict, task: Task, kind: str, data: np.ndarray, fresh: np.ndarray
) -> dict[str, Any]:
    """Fit one model: a piece."""
    names = ["seed", "n_points", "n_fresh", "n_draws", "grid"]
    options = {}
    if kind != "gmm":
        options = {name: settings[name] for name in ("sigma", "rho", "n_samples")}

    def compute() -> dict[str, Any]:
        seed = settings["seed"]
        model = fit(make(kind, 1, seed, **options), data)
        draws = {} if kind == "gmm" else {"random_state": seed}
        points, _ = model.sample(settings["n_draws"], **draws)
        tree = KDTree(data)
        far = np.quantile(tree.query(fresh)[0], 0.99)
        numbers = describe(model) | {
            "held_out": float(np.nanmean(quietly(model.score_samples, fresh))),
            "off_data": float(np.mean(tree.query(points)[0] > far)),
            "grid": grid_numbers(model, data, settings["grid"]),
        }
        if kind == "land":
            numbers["geodesics"] = _two_ways(model, data)
        return numbers

    words = f", sigma {options['sigma']}, rho {options['rho']}" if options else ""
    used = {"model": kind} | {name: settings[name] for name in names} | options
    return {"model": kind} | task.pieces.get(f"{kind}{words}", used, compute)


def _two_ways(model: Any, data: np.ndarray) -> dict[str, Any]:
    """The shortest path between the two data that are farthest apart."""
    distances = np.linalg.norm(data[:, None] - data, axis=2)
    start, end = np.unravel_index(np.argmax(distances), distances.shape)
    curve = land.geodesic(model.metric_, data[start], data[end])
    return {"curve": curve(np.linspace(0, 1, 100)), "ends": data[[start, end]]}


def _label(kind: str) -> str:
    return "normal" if kind == "gmm" else STYLES[kind][0]


def _linear(found: dict) -> Claim:
    """Whether the normal distribution has the lowest held-out density."""
    values = {kind: row["held_out"] for kind, row in found.items()}
    worse = [values["gmm"] < values[kind] for kind in ("land", "least_squares")]
    answer: Answer = "holds" if all(worse) else "partly" if any(worse) else "fails"
    words = ", ".join(f"{_label(kind)} {value:.2f}" for kind, value in values.items())
    off = ", ".join(
        f"{_label(k)} {100 * r['off_data']:.0f} %" for k, r in found.items()
    )
    return Claim(
        *LINEAR,
        answer,
        f"Mean log density of fresh images: {words}. Samples off the data: {off}.",
    )


def _overfits(found: dict) -> Claim:
    """Whether least squares puts more probability off the data than LAND."""
    ours, theirs = (found[kind]["off_data"] for kind in ("land", "least_squares"))
    answer: Answer = "holds" if theirs > 1.1 * ours else "fails"
    return Claim(
        *OVERFITS,
        answer,
        f"{100 * theirs:.0f} % of the samples of least squares lie off the data, of "
        f"LAND {100 * ours:.0f} %.",
    )


def _draw(found: dict, data: np.ndarray):
    """Geodesic and straight line, then the three models."""
    with sheet(1, 4, (2.1, 2.0)) as (figure, grid):
        first = grid[0, 0]
        plot_data(data, first, s=3, alpha=0.4)
        ways = found["land"]["geodesics"]
        plot_geodesics([ways["curve"]], first, colors=GEODESIC, label="geodesic")
        plot_geodesics([ways["ends"]], first, colors=STRAIGHT, label="straight")
        first.legend(loc="lower center")
        first.set_title("shortest paths")
        bare(first)
        for ax, (kind, row) in zip(grid[0, 1:], found.items(), strict=True):
            contour_panel(ax, row["grid"], data, row["means"], kind)
            ax.set_title(_label(kind))
        shown = grid[0, 1]
        first.set(xlim=shown.get_xlim(), ylim=shown.get_ylim())
    return figure
