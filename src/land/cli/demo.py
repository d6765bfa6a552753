"""`land demo`: LAND, least squares and a Gaussian mixture on built-in data.

They have default settings, are fitted to half of the data and judged on the other half.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.mixture import GaussianMixture

import land
from land import plotting
from land.cli.console import Console
from land.cli.tables import text_table, write_table
from land.plotting.figures import save_figure
from land.plotting.sheet import COLORS, LEGEND, sheet

# Rows for each component, effort for constants and points along the axes of a figure:
# small enough to take seconds, large enough to tell the models apart.
ROWS, SAMPLES, GRID = 300, 600, 26
_MODELS = ("LAND", "least squares", "Gaussian mixture")
_NOTE = """\
(higher is better for both; held-out: mean over rows not fitted to)"""


class Case(NamedTuple):
    """A data set with its classes, if it has any."""

    name: str
    data: np.ndarray
    classes: np.ndarray | None
    n_components: int


def demo(options: argparse.Namespace, console: Console) -> int:
    """Compare the models, write figure and table."""
    started = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    console.say("comparing models on built-in data; the first run compiles")
    rows, figure = compare(builtin_cases(options.seed), options.seed, console)
    files = [options.output / f"demo.{kind}" for kind in ("png", "pdf", "csv")]
    for file in files[:2]:
        save_figure(figure, file)
    table = pd.DataFrame(rows)
    write_table(files[2], table)
    seconds = time.perf_counter() - started
    places = f"figure: {files[0]}, {files[1]}\ntable: {files[2]}  ({seconds:.0f} s)"
    result = {"rows": rows, "files": [str(file) for file in files], "seconds": seconds}
    console.result(f"{text_table(table)}\n{_NOTE}\n{places}", result)
    return 0


def builtin_cases(seed: int) -> list[Case]:
    """The data sets; every other row is for the fit, the rest to judge it."""
    curve = land.datasets.make_half_ellipse(ROWS, random_state=seed)
    moons, classes = land.datasets.make_two_moons(2 * ROWS, random_state=seed)
    rng = np.random.default_rng(seed)
    curve, order = rng.permutation(curve), rng.permutation(2 * ROWS)
    return [
        Case("half-ellipse", curve, None, 1),
        Case("two moons", moons[order], classes[order], 2),
    ]


def compare(cases: list[Case], seed: int, console: Console) -> tuple[list[dict], Any]:
    """Fit, judge and draw all models: a row for each, and the figure."""
    rows: list[dict[str, Any]] = []
    with sheet(len(cases), len(_MODELS), (3.0, 2.1)) as (figure, axes):
        for panels, case in zip(axes, cases, strict=True):
            for ax, name in zip(panels, _MODELS, strict=True):
                with console.working(f"{case.name}: {name}"):
                    model = _fitted(case, name, seed, console)
                    rows.append(_judged(case, name, model))
                    _draw(ax, model, case.data[::2])
                # The first panel shows the whole plane around the data.
                ax.set(xlim=panels[0].get_xlim(), ylim=panels[0].get_ylim())
                ax.set(xticks=[], yticks=[], title=_title(rows[-1]))
            panels[0].set_ylabel(case.name)
        figure.legend(*axes[0, 0].get_legend_handles_labels(), **LEGEND)
    return rows, figure


def _fitted(case: Case, name: str, seed: int, console: Console) -> Any:
    """Fit one model to every other row."""
    if name == "Gaussian mixture":
        model = GaussianMixture(case.n_components, n_init=10, random_state=seed)
        return model.fit(case.data[::2])
    model = land.LANDMixture(
        case.n_components,
        method="ml" if name == "LAND" else "least_squares",
        n_samples=SAMPLES,
        random_state=seed,
        callback=console.step,
    )
    model.fit(case.data[::2])
    # An interrupt is answered with the model so far, which is no result here.
    if model.interrupted_:
        raise KeyboardInterrupt
    return model


def _judged(case: Case, name: str, model: Any) -> dict[str, Any]:
    """A row of the table: how well the model does on rows it was not fitted to."""
    test, agreement = case.data[1::2], None
    if case.classes is not None:
        agreement = land.f_measure(case.classes[1::2], model.predict(test))
    return {
        "data": case.name,
        "model": name,
        "sigma": getattr(model, "sigma_", None),
        "rho": getattr(model, "rho_", None),
        "held_out_log_density": float(model.score_samples(test).mean()),
        "f_measure": agreement,
    }


def _draw(ax: Any, model: Any, data: np.ndarray) -> None:
    plotting.plot_data(data, ax, s=5, alpha=0.5, label="data")
    contours: Any = plotting.plot_density(model, ax, grid=GRID)
    shares = "density (95 % to 5 % of the probability)"
    ax.fill([], [], color=contours.cmap(0.5), label=shares)
    # One colour: the order of components differs from model to model.
    look: Any = {"color": COLORS[1]}
    rings = plotting.plot_covariance(model, ax, n_std=1.0, label=None, **look)
    rings[0].set_label("one standard deviation")
    plotting.plot_means(model, ax, label="mean", **look)


def _title(row: dict[str, Any]) -> str:
    agreement = row["f_measure"]
    more = "" if agreement is None else f", F-measure {agreement:.2f}"
    density = f"{row['held_out_log_density']:.2f}".replace("-", "\N{MINUS SIGN}")
    return f"{row['model']}{more}\nheld-out log density {density}"
