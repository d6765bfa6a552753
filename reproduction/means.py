"""The paper's figure of means: maximum likelihood against intrinsic least squares.

The claim (section 3.3): "the maximum likelihood LAND mean generally avoids low density
regions, which is in contrast to the standard intrinsic least squares mean". The paper
names neither its data nor its sigma here, so several are tried. The likelihood is taken
as a density of dx, the default, as one of the metric's volume, the paper's Eq. 6, and
with the paper's Eq. 7 for its constant, which lacks |det DExp|.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import land
from land.metrics.bandwidth import automatic_rho, automatic_sigma
from land.plotting import plot_data, plot_geodesics, plot_metric
from land.plotting.plane import FAN, GEODESIC, STRAIGHT
from land.plotting.sheet import sheet
from reproduction.figures import bare, markdown_table, without
from reproduction.models import fit
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "maximum likelihood and least-squares means"
CLAIM = (
    "In practice, we find that the maximum likelihood LAND mean generally avoids low "
    "density regions, which is in contrast to the standard intrinsic least squares "
    "mean.",
    "section 3.3",
)
DATASETS = {
    "half-ellipse": land.datasets.make_half_ellipse,
    "circle": land.datasets.make_circle,
}
METRICS: dict[str, dict[str, Any]] = {
    "auto": {"sigma": "auto", "rho": "auto"},
    "wide": {"sigma": 0.3, "rho": 1e-3},
    "narrow": {"sigma": 0.15, "rho": 1e-3},
}
MODELS: dict[str, dict[str, Any]] = {
    "land": {"method": "ml"},
    "land_riemannian": {"method": "ml", "reference": "riemannian"},
    "land_paper": {"method": "ml", "volume": "paper"},
    "least_squares": {"method": "least_squares"},
}
RIEMANNIAN = "#CC79A7"
# Label, marker and colour of each mean.
_MARKS = {
    "land": ("LAND", "o", GEODESIC),
    "land_riemannian": ("LAND, Eq. 6", "^", RIEMANNIAN),
    "land_paper": ("LAND, Eq. 7", "s", FAN),
    "least_squares": ("least squares", "D", STRAIGHT),
}
# A mean below this percentile lies where hardly any datum does.
LOW = 5.0
# Percentage points: means whose percentiles are closer than this are equally well off.
TIE = 5.0
N_GEODESICS = 16


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    if quick:
        return {
            "quick": True,
            "seed": 0,
            "n_points": 60,
            "n_samples": 1000,
            "metrics": ["auto", "wide"],
            "models": list(MODELS),
        }
    return {
        "quick": False,
        "seed": 0,
        "n_points": 200,
        "n_samples": 1000,
        "metrics": list(METRICS),
        "models": list(MODELS),
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Compare the means on two sets of data, for each metric."""
    rows = [
        _fitted(settings, task, dataset, metric, model)
        for dataset in DATASETS
        for metric in settings["metrics"]
        for model in settings["models"]
    ]
    verdicts = {
        f"{dataset}, {metric}": _verdicts(rows, dataset, metric)
        for dataset in DATASETS
        for metric in settings["metrics"]
    }
    header = ["data", "sigma", "rho", "model", "percentile", "nearest datum"]
    lines = [
        [
            row["dataset"],
            f"{row['sigma']:.3g}",
            f"{row['rho']:.3g}",
            _MARKS[row["model"]][0],
            f"{row['percentile']:.0f}",
            f"{row['distance_to_nearest_datum']:.3f}",
        ]
        for row in rows
    ]
    notes = [
        "The paper names neither the data of its figure nor sigma and rho.",
        "Percentile: the share of the data (in %) whose neighbourhood, of size sigma, "
        f"is less dense than the mean's. A mean below {LOW:g} lies where hardly any "
        f"datum does; percentiles closer than {TIE:g} are a tie.",
    ]
    numbers = {"rows": without(rows, "geodesics"), "verdicts": verdicts}
    figures = {"": _draw(rows, settings)}
    claims = [_claim(verdicts)]
    return Outcome(numbers, figures, claims, markdown_table(header, lines), notes)


def _fitted(
    settings: dict, task: Task, dataset: str, metric: str, name: str
) -> dict[str, Any]:
    """Fit one model and look its mean up among the data: a piece."""
    place = {"dataset": dataset, "metric": metric, "model": name}
    options = METRICS[metric] | MODELS[name]
    used = {name: settings[name] for name in ("seed", "n_points", "n_samples")}

    def compute() -> dict[str, Any]:
        data = DATASETS[dataset](settings["n_points"], random_state=settings["seed"])
        numbers = dict(options)
        if metric == "auto":  # the same for all models
            numbers["sigma"] = automatic_sigma(data)
            numbers["rho"] = automatic_rho(data, numbers["sigma"])
        model = land.LAND(
            n_samples=settings["n_samples"], random_state=settings["seed"], **numbers
        )
        numbers = _describe(fit(model, data), data)
        if name == "land":
            targets = data[:: max(1, len(data) // N_GEODESICS)]
            logs = land.log_map(model.metric_, model.mean_, targets)
            numbers["geodesics"] = np.round(logs.curves[logs.converged], 4)
        return numbers

    key = f"{dataset}, {metric} metric, {name}"
    return place | task.pieces.get(key, place | used | options, compute)


def local_density(points: np.ndarray, data: np.ndarray, sigma: float) -> np.ndarray:
    """Sum over the data of the weights exp(-|x_n - x|^2 / (2 sigma^2)) at points x."""
    squares = np.sum((points[:, None] - data) ** 2, axis=-1)
    return np.exp(-0.5 * squares / sigma**2).sum(axis=1)


def density_percentiles(
    means: np.ndarray, data: np.ndarray, sigma: float
) -> np.ndarray:
    """Shares of the data, in per cent, with a local density below that at the means."""
    # Without a datum's weight for itself, which a mean does not have either.
    own = local_density(data, data, sigma) - 1.0
    return 100.0 * np.mean(own < local_density(means, data, sigma)[:, None], axis=1)


def _describe(model: land.LAND, data: np.ndarray) -> dict:
    """The mean, and how dense the data are around it."""
    sigma = float(model.sigma_)
    mean = model.mean_[None]
    own = local_density(data, data, sigma) - 1.0
    nearest = np.linalg.norm(data - model.mean_, axis=1).min()
    return {
        "sigma": sigma,
        "rho": float(model.rho_),
        "mean": model.mean_.tolist(),
        "local_density": float(local_density(mean, data, sigma)[0]),
        "median_density_of_data": float(np.median(own)),
        "percentile": float(density_percentiles(mean, data, sigma)[0]),
        "distance_to_nearest_datum": float(nearest),
        "objective": float(model.objective_),
        "converged": bool(model.converged_),
        "failed_log_maps": int(model.n_failed_log_maps_),
    }


def _verdicts(rows: list[dict], dataset: str, metric: str) -> dict[str, str]:
    """Whether the claim holds, for each kind of likelihood."""
    percentiles = {
        row["model"]: row["percentile"]
        for row in rows
        if (row["dataset"], row["metric"]) == (dataset, metric)
    }
    baseline = percentiles.pop("least_squares")
    return {name: verdict(value, baseline) for name, value in percentiles.items()}


def _claim(verdicts: dict[str, dict[str, str]]) -> Claim:
    counts = Counter(word for each in verdicts.values() for word in each.values())
    total = counts.total()
    answer: Answer = "partly"
    if counts["holds"] > 0.7 * total:
        answer = "holds"
    elif counts["fails"] > counts["holds"]:
        answer = "fails"
    measured = (
        f"In {counts['holds']} of {total} comparisons the LAND mean lies in a clearly "
        f"denser place than the least-squares mean, in {counts['tie']} in one as "
        f"dense, in {counts['fails']} in a thinner one or off the data."
    )
    for model in next(iter(verdicts.values())):
        own = Counter(each[model] for each in verdicts.values())
        measured += (
            f" {_MARKS[model][0]}: denser {own['holds']}, as dense {own['tie']}, "
            f"thinner {own['fails']}."
        )
    return Claim(*CLAIM, answer, measured)


def verdict(percentile: float, baseline: float) -> str:
    """What the percentiles of a LAND mean and the least-squares mean say."""
    if percentile < LOW or percentile < baseline - TIE:
        return "fails"
    return "holds" if percentile > baseline + TIE else "tie"


def _draw(rows: list[dict], settings: dict) -> Figure:
    """A row for each dataset, a column for each metric."""
    metrics = settings["metrics"]
    heights = {"height_ratios": [1.0, 1.7]}
    with sheet(2, len(metrics), (3.4, 2.7), gridspec_kw=heights) as (figure, grid):
        for axes, (dataset, make) in zip(grid, DATASETS.items(), strict=True):
            data = make(settings["n_points"], random_state=settings["seed"])
            for ax, metric in zip(axes, metrics, strict=True):
                fitted = {
                    row["model"]: row
                    for row in rows
                    if (row["dataset"], row["metric"]) == (dataset, metric)
                }
                _panel(ax, data, fitted)
                places = ", ".join(
                    f"{row['percentile']:.0f}" for row in fitted.values()
                )
                used = fitted["land"]
                ax.set_title(
                    rf"{dataset}, $\sigma={used['sigma']:.2g}$, "
                    rf"$\rho={used['rho']:.2g}$"
                    f"\npercentiles of the means: {places}"
                )
        figure.legend(
            handles=[
                Line2D([], [], color=color, marker=marker, ls="", mec="w", label=label)
                for name, (label, marker, color) in _MARKS.items()
                if name in settings["models"]
            ],
            loc="outside lower center",
            ncols=4,
        )
    return figure


def _panel(ax, data: np.ndarray, fitted: dict[str, dict]) -> None:
    """Metric, data, geodesics from the LAND mean, and the means on top."""
    used = fitted["land"]
    means = np.array([row["mean"] for row in fitted.values()])
    everything = np.concatenate([data, means])
    low, high = everything.min(axis=0), everything.max(axis=0)
    margin = 0.1 * (high - low).max()
    limits = np.stack([low - margin, high + margin], axis=1)
    metric = land.metrics.LocalDiagonalMetric(data, used["sigma"], used["rho"])
    plot_metric(metric, ax, limits=limits)
    plot_data(data, ax, s=5, alpha=0.5)
    plot_geodesics(used["geodesics"], ax, linewidths=0.8, alpha=0.7)
    # The LAND mean comes last and is smaller, so that what coincides is still seen.
    for name in reversed(_MARKS):
        if name in fitted:
            _, marker, color = _MARKS[name]
            size = 6 if name == "land" else 9
            mean = fitted[name]["mean"]
            ax.plot(*mean, marker=marker, ms=size, color=color, mec="w", zorder=6)
    bare(ax)
