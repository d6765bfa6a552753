"""The paper's figure of means: maximum likelihood against intrinsic least squares.

The claim (section 3.3): "the maximum likelihood LAND mean generally avoids low density
regions, which is in contrast to the standard intrinsic least squares mean". The paper
names neither its data nor its sigma here, so several are tried, and the likelihood is
taken both as printed and with the |det DExp| that its constant lacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import land
from land.plotting import plot_data, plot_geodesics, plot_metric
from land.plotting.geometry import FAN, GEODESIC, STRAIGHT

CLAIM = "the LAND mean lies where data are dense, the least-squares mean does not"
SEED = 0
DATASETS = {
    "half-ellipse": land.datasets.make_half_ellipse,
    "circle": land.datasets.make_circle,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "auto": {"sigma": "auto", "rho": "auto"},
    "wide": {"sigma": 0.3, "rho": 1e-3},
    "narrow": {"sigma": 0.15, "rho": 1e-3},
}
MODELS: dict[str, dict[str, Any]] = {
    "land": {"method": "ml", "volume": "paper"},
    "land_exact": {"method": "ml", "volume": "exact"},
    "least_squares": {"method": "least_squares"},
}
# Label, marker and colour of each mean.
_MARKS = {
    "land": ("LAND", "o", GEODESIC),
    "land_exact": ("LAND, exact volume", "s", FAN),
    "least_squares": ("least squares", "D", STRAIGHT),
}
# A mean below this percentile lies where hardly any datum does.
LOW = 5.0
# Percentage points: means whose percentiles are closer than this are equally well off.
TIE = 5.0
N_GEODESICS = 16


def run(folder: Path, quick: bool = False) -> dict:
    """Compare the means on two sets of data, for three metrics each.

    Parameters
    ----------
    folder : Path
        Where the figure is written, as ``means.png`` and ``means.pdf``.
    quick : bool
        Whether to take fewer data and rougher constants, and leave out the narrow
        metric and the exact volume.

    Returns
    -------
    dict
        The claim, a row for each dataset, setting and model, and a verdict ("holds",
        "tie" or "fails") for each dataset and setting.
    """
    n_data, n_samples = (60, 200) if quick else (200, 1000)
    settings = ["auto", "wide"] if quick else list(SETTINGS)
    models = ["land", "least_squares"] if quick else list(MODELS)
    rows, verdicts, panels = [], {}, []
    for dataset, make in DATASETS.items():
        data = make(n_data, random_state=SEED)
        for setting in settings:
            fitted = {}
            for name in models:
                options = SETTINGS[setting] | MODELS[name]
                model = land.LAND(n_samples=n_samples, random_state=SEED, **options)
                fitted[name] = model.fit(data)
                place = {"dataset": dataset, "setting": setting, "model": name}
                rows.append(place | _describe(model, data))
            percentiles = {
                row["model"]: row["percentile"] for row in rows[-len(fitted) :]
            }
            verdicts[f"{dataset}, {setting}"] = _verdicts(percentiles)
            panels.append((dataset, data, fitted, percentiles))
    figure = _draw(panels, len(settings))
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"means.{kind}" for kind in ("png", "pdf")]
    for file in files:
        figure.savefig(file, dpi=150)
    return {
        "claim": CLAIM,
        "n_data": n_data,
        "n_samples": n_samples,
        "seed": SEED,
        "rows": rows,
        "verdicts": verdicts,
        "files": [str(file) for file in files],
    }


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
    density = float(local_density(model.mean_[None], data, sigma)[0])
    # Without a datum's weight for itself, which a mean does not have either.
    own = local_density(data, data, sigma) - 1.0
    nearest = np.linalg.norm(data - model.mean_, axis=1).min()
    return {
        "sigma": sigma,
        "rho": float(model.rho_),
        "mean": model.mean_.tolist(),
        "local_density": density,
        "median_density_of_data": float(np.median(own)),
        "percentile": float(100.0 * np.mean(own < density)),
        "distance_to_nearest_datum": float(nearest),
        "objective": float(model.objective_),
        "converged": bool(model.converged_),
        "failed_log_maps": int(model.n_failed_log_maps_),
    }


def _verdicts(percentiles: dict[str, float]) -> dict[str, str]:
    """Whether the claim holds, for each kind of likelihood."""
    baseline = percentiles["least_squares"]
    return {
        name: verdict(value, baseline)
        for name, value in percentiles.items()
        if name != "least_squares"
    }


def verdict(percentile: float, baseline: float) -> str:
    """What the percentiles of a LAND mean and the least-squares mean say."""
    if percentile < LOW or percentile < baseline - TIE:
        return "fails"
    return "holds" if percentile > baseline + TIE else "tie"


def _draw(panels: list, n_columns: int) -> Figure:
    """A row for each dataset, a column for each metric."""
    with matplotlib.rc_context({"font.size": 8, "axes.titlesize": 8}):
        figure = Figure(figsize=(3.4 * n_columns, 5.4), layout="constrained")
        grid = figure.subplots(
            len(panels) // n_columns,
            n_columns,
            squeeze=False,
            gridspec_kw={"height_ratios": [1.0, 1.7]},
        )
        for ax, (dataset, data, fitted, percentiles) in zip(
            grid.flat, panels, strict=True
        ):
            _panel(ax, data, fitted)
            model = fitted["land"]
            places = ", ".join(f"{value:.0f}" for value in percentiles.values())
            ax.set_title(
                rf"{dataset}, $\sigma={model.sigma_:.2g}$, $\rho={model.rho_:.2g}$"
                f"\npercentiles of the means: {places}"
            )
        figure.legend(
            handles=[
                Line2D([], [], color=color, marker=marker, ls="", mec="w", label=label)
                for name, (label, marker, color) in _MARKS.items()
                if name in panels[0][2]
            ],
            loc="outside lower center",
            ncols=3,
        )
    return figure


def _panel(ax, data: np.ndarray, fitted: dict[str, land.LAND]) -> None:
    """Metric, data, geodesics from the LAND mean, and the means on top."""
    model = fitted["land"]
    means = np.stack([each.mean_ for each in fitted.values()])
    everything = np.concatenate([data, means])
    low, high = everything.min(axis=0), everything.max(axis=0)
    margin = 0.1 * (high - low).max()
    limits = np.stack([low - margin, high + margin], axis=1)
    plot_metric(model.metric_, ax, limits=limits)
    plot_data(data, ax, s=5, alpha=0.5)
    targets = data[:: max(1, len(data) // N_GEODESICS)]
    logs = land.log_map(model.metric_, model.mean_, targets)
    plot_geodesics(logs.curves[logs.converged], ax, linewidths=0.8, alpha=0.7)
    # The LAND mean comes last and is smaller, so that what coincides is still seen.
    for name, size in (("least_squares", 9), ("land_exact", 9), ("land", 6)):
        if name in fitted:
            _, marker, color = _MARKS[name]
            mean = fitted[name].mean_
            ax.plot(*mean, marker=marker, ms=size, color=color, mec="w", zorder=6)
    ax.set_xticks([])
    ax.set_yticks([])
