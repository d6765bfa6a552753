"""The appendix's model selection: AIC and BIC of the three models against K.

The models are those of the experiment `synthetic`, whose finished pieces are used.
The paper compares numbers of components within one kind of model, because its
densities have different measures. Densities with respect to dx have not, and are shown
beside the paper's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from land.plotting import plot_selection
from land.plotting.sheet import sheet
from reproduction import synthetic
from reproduction.figures import handles, markdown_table, without
from reproduction.models import STYLES
from reproduction.runner import Answer, Claim, Outcome, Task

TITLE = "AIC and BIC against the number of components"
CLAIM = (
    "... we observe that the optimal LAND model is achieved for K=1, while the for the "
    "least squares estimators and the GMM, the optimal is achieved for K=3 and K=4 "
    "respectively.",
    "appendix, Model Selection",
)
PAPER = {"land": 1, "least_squares": 3, "gmm": 4}
CRITERIA = ("aic", "bic")
_NAMES = {"riemannian": "paper's measure", "lebesgue": "with respect to dx"}


def settings(quick: bool) -> dict[str, Any]:
    """The settings of the full and of the quick run: those of `synthetic`."""
    return synthetic.settings(quick) | {"paper_sets": 0}


def run(settings: dict[str, Any], task: Task) -> Outcome:
    """Collect the criteria of all fits, and count which K they choose."""
    store = task.pieces.beside("synthetic")
    rows = synthetic.fitted_models(settings, store)
    measures = ("riemannian", "lebesgue")
    choices = {
        (measure, criterion, kind): chosen(rows, settings, kind, criterion, measure)
        for measure in measures
        for criterion in CRITERIA
        for kind in STYLES
    }
    lines = [
        [
            STYLES[kind][0],
            criterion.upper(),
            measure,
            *_means(rows, settings, kind, criterion, measure),
            _counts(choices[measure, criterion, kind]),
            PAPER[kind],
        ]
        for measure in measures
        for criterion in CRITERIA
        for kind in STYLES
    ]
    components = settings["components"]
    header = ["model", "criterion", "measure", *(f"K = {k}" for k in components)]
    header += ["chosen K (sets)", "paper"]
    numbers = {
        "rows": without(rows, "grid"),
        "chosen": {", ".join(key): value for key, value in choices.items()},
    }
    notes = [
        "Criteria of the Riemannian density are the paper's, and comparable within one "
        "row only; those of the density with respect to dx are comparable throughout.",
        "Neither counts the metric as parameters, although data have shaped it.",
        f"K from {min(components)} to {max(components)}: a choice at the end of this "
        "range means that many, or more.",
        "Sigma, rho and data as in the experiment synthetic.",
        "The models are fitted with the exact volume element.",
    ]
    figure = _draw(rows, settings)
    table = markdown_table(header, lines)
    return Outcome(numbers, {"": figure}, [_claim(choices, settings)], table, notes)


def chosen(
    rows: list[dict], settings: dict, kind: str, criterion: str, measure: str
) -> list[int]:
    """The number of components with the smallest criterion, for each set."""
    components = settings["components"]
    values = _values(rows, settings, kind, criterion, measure)
    return [components[index] for index in np.argmin(values, axis=0)]


def _values(
    rows: list[dict], settings: dict, kind: str, criterion: str, measure: str
) -> np.ndarray:
    """The criterion, (K, sets)."""
    # The volume of a Gaussian mixture's space is dx.
    name = f"{criterion}_{'lebesgue' if kind == 'gmm' else measure}"
    return np.array(
        [synthetic.losses(rows, kind, "exact", k, name) for k in settings["components"]]
    )


def _means(rows: list[dict], settings: dict, *case: str) -> list[str]:
    means = _values(rows, settings, *case).mean(axis=1)
    best = int(np.argmin(means))
    return [f"**{v:.0f}**" if i == best else f"{v:.0f}" for i, v in enumerate(means)]


def _counts(choice: list[int]) -> str:
    return ", ".join(f"{k} ({n})" for k, n in sorted(Counter(choice).items()))


def _claim(choices: dict, settings: dict) -> Claim:
    """Whether most sets choose what the paper's did, by its own measure."""
    right, words = [], []
    for kind, expected in PAPER.items():
        for criterion in CRITERIA:
            found = choices["riemannian", criterion, kind]
            right.append(Counter(found).most_common(1)[0][0] == expected)
            words.append(f"{STYLES[kind][0]} {criterion.upper()}: {_counts(found)}")
    answer: Answer = "holds" if all(right) else "partly" if any(right) else "fails"
    if max(settings["components"]) < max(PAPER.values()):
        answer = "not tested"
        words.append("the quick run does not reach K = 4")
    return Claim(*CLAIM, answer, f"Chosen K (number of sets). {'; '.join(words)}.")


def _draw(rows: list[dict], settings: dict):
    """AIC and BIC by the paper's measure and by dx, a line for each model."""
    components = settings["components"]
    with sheet(2, 2, (3.2, 2.2), sharex=True) as (figure, grid):
        for axes, measure in zip(grid, ("riemannian", "lebesgue"), strict=True):
            for ax, criterion in zip(axes, CRITERIA, strict=True):
                for kind, (_, color, marker) in STYLES.items():
                    if measure == "riemannian" and kind == "gmm":
                        continue
                    values = _values(rows, settings, kind, criterion, measure)
                    table = [
                        {"n_components": k, criterion: value}
                        for k, value in zip(
                            components, values.mean(axis=1), strict=True
                        )
                    ]
                    plot_selection(
                        table, ax, criterion=criterion, color=color, marker=marker
                    )
                ax.set_xlabel("")
                ax.set_ylabel("")
                ax.set_title(f"{criterion.upper()}, {_NAMES[measure]}")
        for ax in grid[1]:
            ax.set_xlabel("components $K$")
        figure.legend(
            handles=handles(list(STYLES), ms=5), loc="outside lower center", ncols=3
        )
    return figure
