"""The command `select`."""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import isfinite
from typing import Any

import land
from land.cli import cache
from land.cli.console import Console
from land.cli.data import read_data
from land.cli.errors import INTERRUPTED
from land.cli.fit import settings
from land.cli.models import counted, new_model
from land.cli.output import TABLES, check_output, text_table, write_table

# How a change of units shifts what `land.select` reports, in units of the log density
# of one row, and whether every row counts.
_SHIFTS = {"log_likelihood": -1.0, "aic": 2.0, "bic": 2.0}
_SHOWN = ("n_components", "sigma", *_SHIFTS, "held_out", "seconds")


def select(options: argparse.Namespace, console: Console) -> int:
    """Fit the candidates, choose one, show all."""
    check_output(options.output)
    check_output(options.table, TABLES)
    data = read_data(options, console)
    stored = new_model(None, data, options)
    X = stored.to_model(data.X)
    count = len(options.components) * len(options.sigma)
    with console.working(f"fitting {counted(count, 'candidate')}"):
        selection = _select(X, data.labels, options, console)
    stored = replace(stored, model=selection.model)
    table = selection.table.to_dict("records")
    rows = [_in_units(row, stored.log_scale, len(X)) for row in table]
    best = _in_units(selection.best, stored.log_scale, len(X))
    result: dict[str, Any] = {"criterion": options.criterion, "best": best}
    result["table"] = rows
    text = select_text(rows, best, options.criterion)
    if options.table is not None:
        write_table(options.table, {name: [row[name] for row in rows] for name in best})
        result["table_file"] = str(options.table)
        text += f"\ntable: {options.table}"
    if options.output is not None:
        stored.save(options.output)
        result["model"] = str(options.output)
        text += f"\nmodel: {options.output}"
    console.result(text, result)
    if selection.interrupted:
        console.error("interrupted; the choice is among the candidates so far")
        return INTERRUPTED
    return 0


def _select(X: Any, labels: Any, options: argparse.Namespace, console: Console) -> Any:
    def hear(step: Any) -> None:  # a function, which scikit-learn's clone leaves alone
        console.step(step)

    cache.enable()
    callback = hear if options.jobs == 1 else None
    return land.select(
        X,
        options.components,
        list(options.sigma),
        estimator=land.LANDMixture(callback=callback, **settings(options)),
        labels=_known(labels),
        criterion=options.criterion,
        held_out=options.held_out,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=not console.quiet,
    )


def _known(labels: Any) -> Any:
    """The labels, if there are any."""
    return None if labels is None or all(each is None for each in labels) else labels


def _in_units(row: dict[str, Any], log_scale: float, n: int) -> dict[str, Any]:
    """A row of the table with densities in the units of the data."""
    shifted = {name: row[name] + _SHIFTS[name] * n * log_scale for name in _SHIFTS}
    return row | shifted | {"held_out": row["held_out"] - log_scale}


def select_text(
    rows: list[dict[str, Any]], best: dict[str, Any], criterion: str
) -> str:
    """The table of candidates, and what to make of the choice."""
    compared = any(isfinite(row["f_measure"]) for row in rows)
    shown = (*_SHOWN, "f_measure") if compared else _SHOWN
    columns = {name: [row[name] for row in rows] for name in shown}
    columns[""] = [
        row["error"] or "not converged" * (not row["converged"]) for row in rows
    ]
    lines = [text_table(columns)]
    chosen = best["n_components"]
    components = counted(chosen, "component")
    lines.append(f"chosen by {criterion}: {components}, sigma {best['sigma']:.4g}")
    tried = [row["n_components"] for row in rows]
    if min(tried) < chosen == max(tried):
        lines.append(f"{chosen} is the most that was tried: try more with -k")
    known = [row for row in rows if not row["error"] and isfinite(row["held_out"])]
    other = max(known, key=lambda row: row["held_out"], default=best)
    if other["held_out"] > best["held_out"]:
        lines.append(
            f"held-out rows prefer {other['n_components']}, sigma "
            f"{other['sigma']:.4g}: --criterion held_out would choose by them"
        )
    return "\n".join(lines)
