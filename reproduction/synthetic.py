"""Figures 4 and 5 of the paper: how well samples of the models fit the true density.

Ten sets of 300 points along a half-ellipse, three models with one to four components.
From each fitted model come 10,000 samples, and their mean negative log-likelihood under
the density that the data were drawn from: the lower, the better the model knows where
data can lie. The true distribution's own samples reach its entropy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D

import land
from land.datasets import half_ellipse_log_density, make_half_ellipse
from land.plotting.sheet import sheet
from reproduction.figures import (
    contour_panel,
    grid_numbers,
    handles,
    markdown_table,
    mean_and_error,
    plus_minus,
    without,
)
from reproduction.models import STYLES, describe, fit, make
from reproduction.pieces import Pieces
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "samples of the fitted models under the true density"
FASTER = (
    "... the LAND learns faster the underlying true distribution, than the GMM.",
    "section 4.1",
)
BETTER = (
    "Moreover, the LAND perform better than the least squares estimators, which "
    "overestimates the covariance.",
    "section 4.1",
)
NOTES = [
    "The paper names neither sigma nor rho here: 'we choose sigma as small as "
    "possible, while ensuring that the manifold is smooth enough'. They are automatic.",
    "The paper does not say how it samples. Samples here are draws of the fitted "
    "density; 'Exp of normal draws' are Exp(v) with v from N(0, Sigma).",
    "The axes of the ellipse and the width of its Gaussians are ours.",
]
_RIEMANNIAN = ["land", "least_squares"]
VOLUMES = ("exact", "paper")


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run."""
    common = {"quick": quick, "seed": 0, "sigma": "auto", "rho": "auto"}
    if quick:
        return common | {
            "n_sets": 2,
            "n_points": 100,
            "components": [1, 2, 3],
            "paper_sets": 1,
            "paper_components": [1],
            "n_samples": 300,
            "n_draws": 1000,
            "n_fresh": 2000,
            "grid": 30,
        }
    return common | {
        "n_sets": 10,
        "n_points": 300,
        "components": [1, 2, 3, 4],
        "paper_sets": 4,
        "paper_components": [1, 2],
        "n_samples": 1000,
        "n_draws": 10_000,
        "n_fresh": 2000,
        "grid": 60,
    }


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Fit all models to all sets, draw from each, and compare."""
    rows = fitted_models(settings, task.pieces)
    entropy = _loss(make_half_ellipse(200_000, random_state=settings["seed"]))
    numbers = {
        "entropy": entropy,
        "rows": without(rows, "grid"),
    }
    figures = {
        "": _draw_losses(rows, settings, entropy),
        "contours": _draw_contours(rows, settings),
    }
    claims = [
        Claim(*FASTER, *_compare(rows, settings, "gmm", 2)),
        Claim(*BETTER, *_compare(rows, settings, "least_squares", 4)),
    ]
    return Outcome(numbers, figures, claims, _table(rows, settings), NOTES)


def fitted_models(settings: dict[str, Any], pieces: Pieces) -> list[dict[str, Any]]:
    """All fits: a row for each set, number of components, model and volume."""
    return [_fitted(settings, pieces, *case) for case in _cases(settings)]


def losses(rows: list[dict], kind: str, volume: str, k: int, name: str = "loss"):
    """The losses, or other numbers, of one model, one for each set."""
    wanted = (kind, "" if kind == "gmm" else volume, k)
    return [
        row[name]
        for row in rows
        if (row["model"], row["volume"], row["n_components"]) == wanted
    ]


def _cases(settings: dict[str, Any]) -> list[tuple[int, int, str, str]]:
    """Set, number of components, model, volume element: what is fitted, in order."""
    kinds = {"": ["gmm"]} | dict.fromkeys(VOLUMES, _RIEMANNIAN)
    return [
        (index, k, kind, volume)
        for volume in kinds
        for index in range(_extent(settings, volume)[0])
        for k in _extent(settings, volume)[1]
        for kind in kinds[volume]
    ]


def _extent(settings: dict[str, Any], volume: str) -> tuple[int, list[int]]:
    """Number of sets and numbers of components that are tried with a volume element."""
    if volume == "paper":
        return settings["paper_sets"], settings["paper_components"]
    return settings["n_sets"], settings["components"]


def _fitted(
    settings: dict[str, Any], pieces: Pieces, index: int, k: int, kind: str, volume: str
) -> dict[str, Any]:
    """Fit one model to one set, and draw from it: a piece."""
    metric = {"sigma": settings["sigma"], "rho": settings["rho"]}
    place = {"set": index, "n_components": k, "model": kind, "volume": volume}
    names = ("seed", "n_points", "n_draws", "n_fresh")
    used = place | {name: settings[name] for name in names}
    options: dict[str, Any] = {}
    if kind != "gmm":
        options = metric | {"volume": volume, "n_samples": settings["n_samples"]}
    drawn = index == 0 and volume != "paper"
    used |= options | ({"grid": settings["grid"]} if drawn else {})

    def compute() -> dict[str, Any]:
        seed = settings["seed"] + index
        data = make_half_ellipse(settings["n_points"], random_state=seed)
        model = fit(make(kind, k, seed, **options), data)
        found = describe(model)
        if kind == "gmm":
            points, _ = model.sample(settings["n_draws"])
        else:
            points, _ = model.sample(settings["n_draws"], random_state=seed)
            found["loss_tangent"] = _tangent_loss(model, settings["n_draws"])
        found["loss"] = _loss(points)
        fresh = make_half_ellipse(settings["n_fresh"], random_state=1000 + seed)
        found["held_out"] = float(model.score(fresh))
        found |= _criteria(model, data)
        if drawn:
            found["grid"] = grid_numbers(model, data, settings["grid"])
        return found

    metric_words = "" if kind == "gmm" else f", sigma {options['sigma']}"
    key = f"set {index}, K={k}, {kind} {volume}{metric_words}".replace(" ,", ",")
    return place | pieces.get(key, used, compute)


def _loss(points: np.ndarray) -> float:
    """Mean negative log-likelihood of points under the true density."""
    return -float(half_ellipse_log_density(points).mean())


def _criteria(model: Any, data: np.ndarray) -> dict[str, float]:
    """AIC and BIC, also of the Riemannian density where there is one."""
    found = {"aic_lebesgue": model.aic(data), "bic_lebesgue": model.bic(data)}
    if isinstance(model, land.LANDMixture):
        found["aic_riemannian"] = model.aic(data, measure="riemannian")
        found["bic_riemannian"] = model.bic(data, measure="riemannian")
    return found


def _tangent_loss(model: land.LANDMixture, n_draws: int) -> float:
    """Loss of Exp(v) with v from N(0, Sigma): samples without the volume element."""
    rng = np.random.default_rng(0)
    points = []
    for k, count in enumerate(rng.multinomial(n_draws, model.weights_)):
        tangents = rng.multivariate_normal([0.0, 0.0], model.covariances_[k], count)
        ends = land.exp_map(model.metric_, model.means_[k], tangents)
        points.append(ends.points[ends.converged])
    return _loss(np.concatenate(points))


def _compare(rows: list[dict], settings: dict, rival: str, most: int) -> tuple:
    """Whether LAND is better for all volumes and K up to `most`, and what was found."""
    better, words = [], []
    for volume in VOLUMES:
        for k in _extent(settings, volume)[1]:
            ours = np.array(losses(rows, "land", volume, k))
            if k > most or not len(ours):
                continue
            theirs = np.array(losses(rows, rival, volume, k))[: len(ours)]
            mean, error = mean_and_error(theirs - ours)
            # Less than a standard error apart is a tie.
            better.append(np.sign(mean) * (abs(mean) > np.nan_to_num(error)))
            other = plus_minus(losses(rows, "land", volume, k, "loss_tangent"))
            words.append(
                f"K={k}, {volume} volume: {plus_minus(ours)} against "
                f"{plus_minus(theirs)}, difference {plus_minus(theirs - ours)} (LAND "
                f"as Exp of normal draws: {other})"
            )
    answer: Answer = "partly"
    if min(better) > 0:
        answer = "holds"
    elif max(better) < 0:
        answer = "fails"
    return answer, f"Mean loss over the sets ± standard error. {'; '.join(words)}."


def _table(rows: list[dict], settings: dict) -> str:
    components = settings["components"]
    header = ["number", "model", "volume", *(f"K = {k}" for k in components)]
    lines = []
    for label, name, models in (
        ("loss", "loss", STYLES),
        ("loss, Exp of normal draws", "loss_tangent", _RIEMANNIAN),
        ("held-out log density", "held_out", STYLES),
    ):
        for kind in models:
            for volume in VOLUMES if kind != "gmm" else ("",):
                values = [losses(rows, kind, volume, k, name) for k in components]
                cells = [plus_minus(own) for own in values]
                lines.append([label, STYLES[kind][0], volume, *cells])
    return (
        "Loss: mean negative log-likelihood of the models' samples under the true "
        f"density. Log densities: of {settings['n_fresh']} fresh points. Mean over "
        f"{settings['n_sets']} sets ± standard error (paper's volume: "
        f"{settings['paper_sets']} sets).\n\n" + markdown_table(header, lines)
    )


def _draw_losses(rows: list[dict], settings: dict, entropy: float):
    """One panel for each volume element: loss against K."""
    components = settings["components"]
    with sheet(1, 2, (3.3, 2.7), sharey=True) as (figure, grid):
        for ax, volume in zip(grid[0], VOLUMES, strict=True):
            for kind, (_, color, marker) in STYLES.items():
                style = {"color": color, "marker": marker, "ms": 5}
                tried = components if kind == "gmm" else _extent(settings, volume)[1]
                found = [mean_and_error(losses(rows, kind, volume, k)) for k in tried]
                means, errors = np.array(found).T
                ax.errorbar(tried, means, np.nan_to_num(errors), capsize=3, **style)
                if kind != "gmm":
                    plain = [
                        np.mean(losses(rows, kind, volume, k, "loss_tangent"))
                        for k in tried
                    ]
                    ax.plot(tried, plain, ls=":", mfc="white", **style)
            truth = ax.axhline(entropy, color="0.3", lw=0.8, ls="--", label="truth")
            ax.set_yscale("log")
            ax.set_xticks(components)
            ax.set_xlabel("components $K$")
            ax.set_title(f"{volume} volume element")
        grid[0, 0].set_ylabel("mean negative log-likelihood\nunder the true density")
        lines = handles(list(STYLES), ls="-", ms=5)
        dotted = Line2D([], [], color="0.3", ls=":", label="Exp of normal draws")
        figure.legend(
            handles=[*lines, dotted, truth], loc="outside lower center", ncols=5
        )
    return figure


def _draw_contours(rows: list[dict], settings: dict):
    """A row for each K, a column for each model."""
    components = settings["components"]
    data = make_half_ellipse(settings["n_points"], random_state=settings["seed"])
    with sheet(len(components), 3, (2.3, 1.15)) as (figure, grid):
        for row in rows:
            if row["set"] or row["volume"] == "paper":
                continue
            place = (
                components.index(row["n_components"]),
                list(STYLES).index(row["model"]),
            )
            contour_panel(grid[place], row["grid"], data, row["means"], row["model"])
        for ax, (label, _, _) in zip(grid[0], STYLES.values(), strict=True):
            ax.set_title(label)
        for ax, k in zip(grid[:, 0], components, strict=True):
            ax.set_ylabel(f"$K = {k}$")
    return figure
