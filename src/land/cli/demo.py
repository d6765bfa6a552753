"""The demonstration: LAND, least squares and a Gaussian mixture on built-in data.

The models are fitted to half of the data and judged on the other half. Sigma and rho
suit the purpose: a large rho for a density, a small one for clusters.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.mixture import GaussianMixture

import land
from land.cli.console import Console
from land.plotting import plot_covariance, plot_data, plot_density, plot_means
from land.plotting.sheet import sheet

MODELS = ("LAND", "least squares", "Gaussian mixture")
N_ROWS, N_SAMPLES, GRID = 300, 600, 26
_PANEL = (3.4, 2.4)
_RINGS = "#D55E00"


class Case(NamedTuple):
    """A data set with its classes, if it has any, and the settings of its models."""

    name: str
    data: np.ndarray
    classes: np.ndarray | None
    n_components: int
    sigma: float
    rho: float


class Comparison(NamedTuple):
    """A row for each model of each data set, and their figure."""

    rows: list[dict[str, Any]]
    figure: Any


def builtin_cases(seed: int) -> list[Case]:
    """The data sets; every other row is for the fit, the rest to judge it."""
    curve = land.datasets.make_half_ellipse(N_ROWS, random_state=seed)
    moons, classes = land.datasets.make_two_moons(N_ROWS, random_state=seed)
    order = np.random.default_rng(seed).permutation(N_ROWS)
    return [
        Case("half-ellipse", curve[order], None, 1, 0.2, 1.0),
        Case("two moons", moons[order], classes[order], 2, 0.15, 0.01),
    ]


def compare(cases: list[Case], seed: int, console: Console) -> Comparison:
    """Fit, judge and draw all models; the console hears of steps and warnings."""
    rows: list[dict[str, Any]] = []
    with sheet(len(cases), len(MODELS), _PANEL) as (figure, axes):
        for panels, case in zip(axes, cases, strict=True):
            for ax, name in zip(panels, MODELS, strict=True):
                with console.working(f"{case.name}: {name}"):
                    model = _fitted(case, name, seed, console)
                    rows.append(_judged(case, name, model))
                    _draw(ax, model, case.data[::2])
                # The first panel shows the whole plane around the data.
                ax.set(xlim=panels[0].get_xlim(), ylim=panels[0].get_ylim())
                ax.set(xticks=[], yticks=[])
                ax.set_title(_title(rows[-1]), fontsize=9)
            panels[0].set_ylabel(case.name)
    return Comparison(rows, figure)


def text_table(cases: list[Case], rows: list[dict[str, Any]]) -> str:
    """The rows in aligned columns, and how to read them."""
    lines = [f"{'data':<14}{'model':<18}{'held-out log density':>22}{'F-measure':>12}"]
    for row in rows:
        agreement = "" if row["f_measure"] is None else f"{row['f_measure']:.3f}"
        lines.append(
            f"{row['data']:<14}{row['model']:<18}{row['held_out_log_density']:>22.3f}"
            f"{agreement:>12}"
        )
    lines.append("(higher is better for both; held-out: mean over rows not fitted to;")
    lines += [f" {case.name}: sigma {case.sigma}, rho {case.rho};" for case in cases]
    lines.append(" chosen by hand on these data: an illustration, not a benchmark)")
    return "\n".join(lines)


def _fitted(case: Case, name: str, seed: int, console: Console) -> Any:
    """Fit one model; its warnings are shown with the names of data and model."""
    model: Any
    if name == "Gaussian mixture":
        model = GaussianMixture(case.n_components, n_init=10, random_state=seed)
    else:
        model = land.LANDMixture(
            case.n_components,
            case.sigma,
            case.rho,
            method="ml" if name == "LAND" else "least_squares",
            n_samples=N_SAMPLES,
            random_state=seed,
            callback=console.step,
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(case.data[::2])
    # Our estimators answer an interrupt with the model so far, which is no result here.
    if getattr(model, "interrupted_", False):
        raise KeyboardInterrupt
    for each in caught:
        console.warn(f"{case.name}: {name}: {each.message}")
    return model


def _judged(case: Case, name: str, model: Any) -> dict[str, Any]:
    """A row of the table: how well the model does on rows it was not fitted to."""
    test = case.data[1::2]
    agreement = None
    if case.classes is not None:
        agreement = land.f_measure(case.classes[1::2], model.predict(test))
    has_metric = name != "Gaussian mixture"
    return {
        "data": case.name,
        "model": name,
        "sigma": case.sigma if has_metric else None,
        "rho": case.rho if has_metric else None,
        "held_out_log_density": float(model.score_samples(test).mean()),
        "f_measure": agreement,
    }


def _draw(ax: Any, model: Any, data: np.ndarray) -> None:
    plot_data(data, ax, s=5, alpha=0.5)
    plot_density(model, ax, grid=GRID)
    # One colour: the order of components differs from model to model.
    plot_covariance(model, ax, n_std=1.0, color=_RINGS)
    plot_means(model, ax, color=_RINGS)


def _title(row: dict[str, Any]) -> str:
    density = f"held-out log density {row['held_out_log_density']:.2f}"
    if row["f_measure"] is None:
        return f"{row['model']}\n{density}"
    return f"{row['model']}, F-measure {row['f_measure']:.2f}\n{density}"
