"""The appendix's figure of the normalisation constant against the number of samples.

The reference is the trapezoidal rule: on a grid of the tangent space, as in the paper,
for its Eq. 7, and on a grid of points for the exact volume, which counts each once.
Rays of a sharp metric diverge, so that a grid of tangents would miss points. Plain
Monte Carlo is the paper's estimator; a lattice of points is the default of
`land.log_constant`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

import land
from land.datasets import make_half_ellipse
from land.density.constant import monte_carlo_nodes
from land.density.nodes import Law
from land.plotting.sheet import sheet
from reproduction.figures import markdown_table
from reproduction.models import fit, quietly
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "the normalisation constant against the number of samples"
CLAIM = (
    "... we observe that the numerical scheme we provide, approximates well "
    "the normalization constant that we computed numerically.",
    "appendix, Estimating the Normalization Constant",
)
VOLUMES = ("exact", "paper")
METHODS = {
    "monte_carlo": ("plain Monte Carlo (paper)", "#D55E00", "o"),
    "lattice": ("lattice (default)", "#0072B2", "s"),
}
# The grid of tangents spans this many standard deviations each way; that of points has
# this much space around the data, in units of sigma, and more nodes along each axis.
_REACH, _SPACE, _FINER = 5.0, 12.0, 1.5


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common = {"quick": quick, "seed": 0, "rho": 1e-3, "n_points": 300}
    if quick:
        return common | {
            "sigma": 0.3,
            "n_samples_fit": 300,
            "n_grid": 60,
            "n_runs": 5,
            "sizes": list(range(100, 1001, 100)),
            "lattice_sizes": [100, 300, 1000],
        }
    return common | {
        "sigma": 0.15,
        "n_samples_fit": 3000,
        "n_grid": 100,
        "n_runs": 10,
        "sizes": list(range(100, 3001, 100)),
        "lattice_sizes": [100, 200, 300, 500, 1000, 2000, 3000],
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Fit a LAND, integrate over its tangent space in three ways, and compare."""
    data = make_half_ellipse(settings["n_points"], random_state=settings["seed"])
    metric = land.metrics.LocalDiagonalMetric(data, settings["sigma"], settings["rho"])
    model = _model(settings, task, data)
    mean, covariance = np.array(model["mean"]), np.array(model["covariance"])
    place = metric, mean, covariance
    found: dict[str, Any] = {}
    for volume in VOLUMES:
        runs = range(settings["n_runs"])
        found[volume] = {
            "trapezoid": _trapezoid(settings, task, volume, data, *place),
            "monte_carlo": [_plain(settings, task, volume, r, *place) for r in runs],
            "lattice": [_lattice(settings, task, volume, r, *place) for r in runs],
        }
    errors = {
        (volume, method): relative_errors(found[volume], method)
        for volume in VOLUMES
        for method in METHODS
    }
    numbers = {"model": model} | found
    notes = [
        "The paper names neither sigma nor rho. The mean and the covariance are those "
        "of a LAND fitted with the exact volume.",
        f"The grid of tangents spans {_REACH:g} standard deviations each way, that of "
        f"points the data and {_SPACE:g} sigma around them; nodes whose geodesic could "
        "not be found count as zero (their number is in the JSON file).",
        "A run of plain Monte Carlo draws its largest sample once; smaller sizes are "
        "its beginnings. For the lattice, S is an effort: one point for four samples.",
    ]
    return Outcome(
        numbers,
        {"": _draw(found, errors, settings)},
        [_claim(found, errors, settings)],
        _table(errors, settings),
        notes,
    )


def relative_errors(found: dict[str, Any], method: str) -> np.ndarray:
    """Estimates of C over the reference, less one: (runs, sizes)."""
    logs = np.array([each["log_constants"] for each in found[method]], dtype=float)
    return np.expm1(logs - found["trapezoid"]["log_constant"])


def _model(settings: dict, task: Task, data: np.ndarray) -> dict[str, Any]:
    """The distribution whose constant is sought."""
    names = ("seed", "n_points", "sigma", "rho", "n_samples_fit")

    def compute() -> dict[str, Any]:
        options = {name: settings[name] for name in ("sigma", "rho")}
        model = land.LAND(
            n_samples=settings["n_samples_fit"],
            random_state=settings["seed"],
            **options,
        )
        fit(model, data)
        return {"mean": model.mean_, "covariance": model.covariance_}

    used = {name: settings[name] for name in names}
    return task.pieces.get("model", used, compute)


def _metric_settings(settings: dict, mean: np.ndarray, volume: str) -> dict[str, Any]:
    names = ("seed", "n_points", "sigma", "rho")
    return {name: settings[name] for name in names} | {"mean": mean, "volume": volume}


def _trapezoid(
    settings: dict, task: Task, volume: str, data, metric, mean, covariance
) -> dict[str, Any]:
    """The reference: the trapezoidal rule over tangents, or over points."""
    count = settings["n_grid"]

    def over_points() -> dict[str, Any]:
        space = _SPACE * settings["sigma"]
        low, high = data.min(axis=0) - space, data.max(axis=0) + space
        axes = np.linspace(low, high, round(_FINER * count)).T
        points = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        logs = land.log_map(metric, mean, points)
        squares = np.einsum(
            "ni,ni->n", logs.tangents @ np.linalg.inv(covariance), logs.tangents
        )
        heights = np.exp(metric.log_volume(points) - 0.5 * squares)
        return integrated(heights, logs.converged, *axes)

    def over_tangents() -> dict[str, Any]:
        factor = np.linalg.cholesky(covariance)
        steps = np.linspace(-_REACH, _REACH, count)
        normal = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
        ends = land.exp_map(metric, mean, normal @ factor.T)
        # Tangents in normal coordinates, whitened by the covariance.
        log_volume = metric.log_volume(ends.points) + metric.log_volume(mean)
        log_volume = log_volume + np.linalg.slogdet(factor)[1]
        heights = np.exp(log_volume - 0.5 * np.sum(normal**2, axis=1))
        return integrated(heights, ends.converged, steps, steps)

    def integrated(heights, good, x, y) -> dict[str, Any]:
        surface = np.where(good, heights, 0.0).reshape(len(y), len(x))
        integral = np.trapezoid(np.trapezoid(surface, x, axis=1), y)
        return {"log_constant": float(np.log(integral)), "n_failed": int(np.sum(~good))}

    used = _metric_settings(settings, mean, volume) | {"n_grid": count}
    compute = over_points if volume == "exact" else over_tangents
    return task.pieces.get(f"trapezoid, {volume}", used, compute)


def _plain(
    settings: dict, task: Task, volume: Any, run: int, metric, mean, covariance
) -> dict[str, Any]:
    """One run of the paper's Eq. 8 for all sizes."""
    sizes = settings["sizes"]

    def compute() -> dict[str, Any]:
        rng = np.random.default_rng([settings["seed"], run])
        normal = rng.standard_normal((max(sizes), 2))
        factor = np.linalg.cholesky(covariance)
        law: Law = "paper" if volume == "paper" else "riemannian"
        nodes = monte_carlo_nodes(metric, mean, factor, normal, law, 1e-6)
        log_normal = np.log(2.0 * np.pi) + np.linalg.slogdet(factor)[1]
        values = [
            float(log_normal + logsumexp(nodes.log_volumes[:size]) - np.log(size))
            for size in sizes
        ]
        return {"log_constants": values, "n_failed": nodes.n_failed}

    used = _metric_settings(settings, mean, volume) | {"run": run, "sizes": sizes}
    return task.pieces.get(f"Monte Carlo, {volume}, run {run}", used, compute)


def _lattice(
    settings: dict, task: Task, volume: Any, run: int, metric, mean, covariance
) -> dict[str, Any]:
    """One run of the default estimator for some of the sizes."""
    sizes = settings["lattice_sizes"]

    def compute() -> dict[str, Any]:
        found = [
            quietly(
                land.log_constant, metric, mean, covariance, volume, size, 100 + run
            )
            for size in sizes
        ]
        return {
            "log_constants": [each.value for each in found],
            "stderr": [each.stderr for each in found],
            "n_maps": [each.n_maps for each in found],
        }

    used = _metric_settings(settings, mean, volume) | {"run": run, "sizes": sizes}
    return task.pieces.get(f"lattice, {volume}, run {run}", used, compute)


def _rms(errors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(errors**2, axis=0))


def _claim(found: dict, errors: dict, settings: dict) -> Claim:
    """Whether the mean over the runs at the largest size comes within its error."""
    good, words = [], []
    for volume in VOLUMES:
        last = errors[volume, "monte_carlo"][:, -1]
        bias, spread = last.mean(), last.std(ddof=1)
        error = spread / np.sqrt(len(last))
        good.append(abs(bias) < max(2.0 * error, 0.02))
        words.append(
            f"{volume} volume: mean of {len(last)} runs at S = {settings['sizes'][-1]} "
            f"off by {100 * bias:+.1f} ± {100 * error:.1f} %, a single run by "
            f"{100 * _rms(last):.1f} % (default estimator: "
            f"{100 * _rms(errors[volume, 'lattice'][:, -1]):.2f} %)"
        )
    answer: Answer = "holds" if all(good) else "partly" if any(good) else "fails"
    return Claim(*CLAIM, answer, f"{'; '.join(words)}.")


def _table(errors: dict, settings: dict) -> str:
    sizes = settings["lattice_sizes"]
    rows = []
    for volume, method in errors:
        own = settings["sizes"] if method == "monte_carlo" else sizes
        values = _rms(errors[volume, method])
        cells = [f"{100 * values[own.index(s)]:.2g} %" for s in sizes if s in own]
        rows.append([METHODS[method][0], volume, *cells])
    header = ["estimator", "volume", *(f"S = {size}" for size in sizes)]
    return "Root mean square of the relative error of C over the runs.\n\n" + (
        markdown_table(header, rows)
    )


def _draw(found: dict, errors: dict, settings: dict):
    """Above the estimates over the reference, below their errors."""
    with sheet(2, 2, (3.4, 2.2), sharex=True) as (figure, grid):
        for column, volume in zip(grid.T, VOLUMES, strict=True):
            for method, (label, color, marker) in METHODS.items():
                plain = method == "monte_carlo"
                sizes = settings["sizes" if plain else "lattice_sizes"]
                values = errors[volume, method]
                style = {"color": color, "marker": marker, "ms": 3}
                column[0].plot(sizes, 1 + values.T, ls="", alpha=0.35, mew=0, **style)
                column[0].plot(sizes, 1 + values.mean(axis=0), "--", color=color)
                column[1].loglog(sizes, _rms(values), label=label, **style)
            column[0].axhline(1.0, color="k", lw=1.0)
            column[0].set_title(f"{volume} volume element")
            column[1].set_xlabel("samples $S$")
        grid[0, 0].set_ylabel("estimate / trapezoid")
        grid[1, 0].set_ylabel("relative error (RMS)")
        grid[1, 1].sharey(grid[1, 0])
        lines, labels = grid[1, 0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside lower center", ncols=2)
    return figure
