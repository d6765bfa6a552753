"""The commands that fit models: `fit`, `report` and `select`."""

from __future__ import annotations

import argparse
import shlex
import time
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import land
from land.cli.console import INTERRUPTED, CommandError, Console, UsageError
from land.cli.data import Data, read_data
from land.cli.models import StoredModel, counted, model_text, new_model
from land.cli.tables import TABLES, check_output, text_table, write_table

# How a change of units shifts what `land.select` reports, in log densities of a row.
_SHIFTS = {"log_likelihood": -1.0, "aic": 2.0, "bic": 2.0}
# Rough, and quick: a fit in the plane takes seconds.
_PREVIEW_ROWS, _PREVIEW_SAMPLES, _PREVIEW_TOL = 200, 300, 1e-2
# Beyond, a few points carry the constants, see "Many dimensions" in the documentation.
_MANY_COLUMNS = 10
_SHOWN = ("n_components", "sigma", *_SHIFTS, "held_out", "seconds")


def fit(options: argparse.Namespace, console: Console) -> int:
    """Fit a model, write it and show it."""
    check_output(options.output)
    checkpoint = _checkpoint(options, console)
    data = _data(options, console)
    started = time.perf_counter()
    what = counted(options.components, "component")
    console.say(f"fitting {what} until a step gains less than {options.tol:g}")
    stored = _fitted(data, options, console, checkpoint)
    model, seconds = stored.model, time.perf_counter() - started
    # Written before anything else is computed, so that nothing can cost the model.
    stored.save(options.output)
    result = stored.summary() | {"seconds": seconds, "model": str(options.output)}
    lines = [model_text(result, console.verbose)]
    if data.labels is not None and options.components > 1 and not model.interrupted_:
        result |= data.agreement(stored.in_units().predict(data.X))
    if "f_measure" in result:
        lines.append(f"F-measure against {result['label']}: {result['f_measure']:.4f}")
    lines.append(f"model: {options.output}  ({seconds:.1f} s)")
    console.result("\n".join(lines), result)
    if model.interrupted_:
        resumable = checkpoint is not None and checkpoint.exists()
        console.error(
            f"interrupted; the model so far is in {options.output}; "
            + ("--resume goes on" if resumable else "too early for --resume to go on")
        )
        return INTERRUPTED
    return 0


def report(options: argparse.Namespace, console: Console) -> int:
    """Fit a model and write a page about it."""
    check_output(options.output, (".html", ".htm"))
    data = _data(options, console)
    notes = [*console.warnings]
    stored = _fitted(data, options, console)
    # A second fit follows: what was reached so far is no result here.
    if stored.model.interrupted_:
        raise KeyboardInterrupt
    with console.working("comparing with other models"):
        sentence = land.report(
            stored.in_units() if options.standardize else stored.model,
            options.output,
            data.X,
            names=data.names,
            rows=data.rows.tolist(),
            title=f"LAND report: {options.data.name}",
            notes=notes,
            command=shlex.join(["land", *map(str, options.arguments)]),
            random_state=options.seed,
            progress=console.progress,
        )
    result = {"page": str(options.output), "sentence": sentence}
    console.result(f"{sentence}\npage: {options.output}", result)
    return 0


def select(options: argparse.Namespace, console: Console) -> int:
    """Fit the candidates, choose one, show all."""
    check_output(options.output)
    check_output(options.table, TABLES)
    data = _data(options, console)
    template = land.LANDMixture(**_settings(options))
    if options.jobs == 1:  # other processes cannot write here
        template.callback = _steps(console)
    stored = new_model(template, data, options)
    count = len(options.components) * len(options.sigma)
    with console.working(f"fitting {counted(count, 'candidate')}"):
        selection = land.select(
            stored.to_model(data.X),
            options.components,
            list(options.sigma),
            estimator=template,
            labels=data.labels,
            criterion=options.criterion,
            n_jobs=options.jobs,
            random_state=options.seed,
            verbose=not console.quiet,
        )
    stored = replace(stored, model=selection.model)
    table = [selection.best, *selection.table.to_dict("records")]
    best, *rows = (_in_units(row, stored.log_scale, len(data.X)) for row in table)
    result = {"criterion": options.criterion, "best": best, "table": rows}
    lines = [select_text(rows, best, options.criterion)]
    if options.table is not None:
        write_table(options.table, {name: [row[name] for row in rows] for name in best})
        result["table_file"] = str(options.table)
        lines.append(f"table: {options.table}")
    if options.output is not None:
        stored.save(options.output)
        result["model"] = str(options.output)
        lines.append(f"model: {options.output}")
    console.result("\n".join(lines), result)
    if selection.interrupted:
        console.error("interrupted; the choice is among the candidates so far")
        return INTERRUPTED
    return 0


def _data(options: argparse.Namespace, console: Console) -> Data:
    """The data to fit, some of them for a preview."""
    data = read_data(options, console)
    if data.X.shape[1] > _MANY_COLUMNS:
        console.warn(
            f"a fit to {data.X.shape[1]} columns takes long, and its densities are "
            "uncertain; choose some with --columns, or write their first principal "
            "components into a table and fit these"
        )
    if options.preview:
        total, data = len(data.X), data.some(_PREVIEW_ROWS, options.seed)
        options.n_samples, options.tol = _PREVIEW_SAMPLES, _PREVIEW_TOL
        console.say(f"preview: {len(data.X)} of {total} rows, rough numbers")
    return data


def _fitted(
    data: Data, options: Any, console: Console, checkpoint: Path | None = None
) -> StoredModel:
    """The model that the arguments describe, fitted; its health is shown."""
    callbacks: list[Any] = [_steps(console)]
    if checkpoint is not None:
        callbacks.append(land.callbacks.Checkpoint(checkpoint))
    stored = new_model(estimator(options, callbacks), data, options)
    with console.working("compiling, then looking for a start"):
        stored.model.fit(stored.to_model(data.X))
    for line in stored.model.health_:
        console.warn(line)
    return stored


def _steps(console: Console) -> Any:
    """A callback that shows steps: a function, which scikit-learn's clone leaves."""
    return lambda step: console.step(step)


def estimator(options: argparse.Namespace, callback: Any) -> Any:
    """The estimator that the arguments describe."""
    more = {"sigma": options.sigma, "random_state": options.seed, "callback": callback}
    if options.components == 1:
        return land.LAND(**more, **_settings(options))
    more["n_init"] = options.n_init
    return land.LANDMixture(options.components, **more, **_settings(options))


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters of any model, from the arguments."""
    names = ("rho", "metric", "method", "covariance_type", "n_samples", "max_iter")
    return {name: getattr(options, name) for name in (*names, "tol")}


def _checkpoint(options: argparse.Namespace, console: Console) -> Path | None:
    """Where the progress is kept: beside the model, unless that is no ordinary file."""
    output: Path = options.output
    ordinary = output.is_file() or not output.exists()
    path = output.with_name(f"{output.name}.checkpoint")
    if options.n_init > 1 or not ordinary:
        if options.resume:
            raise UsageError("--resume needs an ordinary file for -o, and --n-init 1")
        return None
    if path.exists() and not options.resume:
        raise CommandError(
            f"{path} holds the progress of a fit that has not ended; --resume goes on "
            "from there, or delete it"
        )
    if options.resume and not path.exists():
        console.say(f"there is no {path}: fitting from the start")
    return path


def _in_units(row: dict[str, Any], log_scale: float, n: int) -> dict[str, Any]:
    """A row of the table with densities in the units of the data."""
    shifted = {name: row[name] + _SHIFTS[name] * n * log_scale for name in _SHIFTS}
    return row | shifted | {"held_out": row["held_out"] - log_scale}


def select_text(rows: list[dict], best: dict, criterion: str) -> str:
    """The table of candidates, and the choice."""
    compared = any(isfinite(row["f_measure"]) for row in rows)
    shown = (*_SHOWN, "f_measure") if compared else _SHOWN
    columns = {name: [row[name] for row in rows] for name in shown}
    columns[""] = [
        row["error"] or "not converged" * (not row["converged"]) for row in rows
    ]
    components = counted(best["n_components"], "component")
    choice = f"chosen by {criterion}: {components}, sigma {best['sigma']:.4g}"
    return f"{text_table(columns)}\n{choice}"
