"""The demonstration: LAND, least squares and a Gaussian mixture on built-in data.

The models are fitted to half of the data and judged on the other half. Sigma and rho
suit the purpose: a large rho for a density, a small one for clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import land
from land.experiments.figures import sheet
from land.experiments.models import fit, make
from land.plotting import plot_covariance, plot_data, plot_density, plot_means

MODELS = {
    "land": "LAND",
    "least_squares": "least squares",
    "gmm": "Gaussian mixture",
}
_PANEL = (3.4, 2.4)
_RINGS = "#D55E00"


class Case(NamedTuple):
    """A data set, with its classes if it has any."""

    name: str
    data: np.ndarray
    classes: np.ndarray | None


class Comparison(NamedTuple):
    """A row for each model of each data set, their figure, and what fits warned of."""

    rows: list[dict[str, Any]]
    figure: Figure
    warnings: list[str]


def settings(seed: int = 0) -> dict[str, Any]:
    """The settings of the demonstration; the metrics were chosen by hand."""
    return {
        "seed": seed,
        "n_rows": 300,
        "n_samples": 600,
        "grid": 26,
        "n_components": {"half-ellipse": 1, "two moons": 2},
        "metrics": {
            "half-ellipse": {"sigma": 0.2, "rho": 1.0},
            "two moons": {"sigma": 0.15, "rho": 0.01},
        },
    }


def compare(
    settings: dict[str, Any],
    *,
    working: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    callback: Any = None,
) -> Comparison:
    """Fit, judge and draw all models.

    Parameters
    ----------
    settings : dict
        See `settings`.
    working : callable
        Gets the name of each fit; entered while it goes on.
    callback : callable, optional
        Hears of the steps of the fits, see `land.LANDMixture`.
    """
    found = cases(settings)
    rows: list[dict[str, Any]] = []
    warned: list[str] = []
    with sheet(len(found), len(MODELS), _PANEL) as (figure, axes):
        for panels, case in zip(axes, found, strict=True):
            for ax, (kind, title) in zip(panels, MODELS.items(), strict=True):
                name = f"{case.name}: {title}"
                with working(name):
                    model = _fitted(settings, case, kind, callback)
                    rows.append(_judged(settings, case, kind, model))
                    _draw(ax, model, case.data[::2], settings["grid"])
                warned += [f"{name}: {text}" for text in model.warnings_]
                # The first one shows the whole plane around the data.
                ax.set(xlim=panels[0].get_xlim(), ylim=panels[0].get_ylim())
                ax.set(xticks=[], yticks=[])
                ax.set_title(_title(rows[-1]), fontsize=9)
            panels[0].set_ylabel(case.name)
    return Comparison(rows, figure, warned)


def cases(settings: dict[str, Any]) -> list[Case]:
    """The data sets; every other row is for the fit, the rest to judge it."""
    n, seed = settings["n_rows"], settings["seed"]
    curve = land.datasets.make_half_ellipse(n, random_state=seed)
    moons, classes = land.datasets.make_two_moons(n, random_state=seed)
    order = np.random.default_rng(seed).permutation(n)
    return [
        Case("half-ellipse", curve[order], None),
        Case("two moons", moons[order], classes[order]),
    ]


def text_table(settings: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The rows in aligned columns, and how to read them."""
    lines = [f"{'data':<14}{'model':<18}{'held-out log density':>22}{'F-measure':>12}"]
    for row in rows:
        agreement = "" if row["f_measure"] is None else f"{row['f_measure']:.3f}"
        lines.append(
            f"{row['data']:<14}{row['model']:<18}{row['held_out_log_density']:>22.3f}"
            f"{agreement:>12}"
        )
    moons, arc = (settings["metrics"][name] for name in ("two moons", "half-ellipse"))
    lines.append(
        "(higher is better for both; held-out: mean over rows not fitted to;\n"
        f" half-ellipse: sigma {arc['sigma']}, rho {arc['rho']}, for its density; "
        f"two moons: sigma {moons['sigma']}, rho {moons['rho']}, for clusters;\n"
        " both were chosen by hand on these data: an illustration, not a benchmark)"
    )
    return "\n".join(lines)


def _fitted(settings: dict[str, Any], case: Case, kind: str, callback: Any) -> Any:
    count = settings["n_components"][case.name]
    options = dict(settings["metrics"][case.name])
    options |= {"n_samples": settings["n_samples"], "callback": callback}
    return fit(make(kind, count, settings["seed"], **options), case.data[::2])


def _judged(
    settings: dict[str, Any], case: Case, kind: str, model: Any
) -> dict[str, Any]:
    """A row of the table: how well the model does on rows it was not fitted to."""
    metric, test = settings["metrics"][case.name], case.data[1::2]
    agreement = None
    if case.classes is not None:
        agreement = land.f_measure(case.classes[1::2], model.predict(test))
    return {
        "data": case.name,
        "model": MODELS[kind],
        **(dict.fromkeys(metric) if kind == "gmm" else metric),
        "held_out_log_density": float(model.score_samples(test).mean()),
        "f_measure": agreement,
    }


def _draw(ax: Axes, model: Any, data: np.ndarray, grid: int) -> None:
    plot_data(data, ax, s=5, alpha=0.5)
    plot_density(model, ax, grid=grid)
    # One colour: the order of components differs from model to model.
    plot_covariance(model, ax, n_std=1.0, color=_RINGS)
    plot_means(model, ax, color=_RINGS)


def _title(row: dict[str, Any]) -> str:
    density = f"held-out log density {row['held_out_log_density']:.2f}"
    if row["f_measure"] is None:
        return f"{row['model']}\n{density}"
    return f"{row['model']}, F-measure {row['f_measure']:.2f}\n{density}"
