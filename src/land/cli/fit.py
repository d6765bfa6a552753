"""The commands that fit models: `fit`, `report` and `select`."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.preprocessing import StandardScaler

import land
from land.cli.console import INTERRUPTED, CommandError, Console, UsageError
from land.cli.models import StoredModel, counted, model_text
from land.cli.tables import (
    TABLES,
    Data,
    check_output,
    read_data,
    text_table,
    write_table,
)
from land.estimators.held_out import QUICK, QUICK_ROWS
from land.estimators.standardized import in_units

# Beyond, a few points carry the constants, see "Many dimensions" in the documentation.
_MANY_COLUMNS = 10
# Parameters of the estimators that have an option of their name.
_PARAMETERS = (
    *("rho", "metric", "method", "covariance_type", "n_samples", "max_iter", "tol"),
)
# How a change of units shifts what `land.select` reports, in log densities of a row.
_SHIFTS = {"held_out": -1.0, "bic": 2.0, "aic": 2.0}
_SHOWN = (
    *("model", "n_components", "metric", "reference", "sigma", "rho", "round"),
    *("held_out", "behind", "stderr", "stability", "bic", "aic", "f_measure"),
)


def fit(options: argparse.Namespace, console: Console) -> int:
    """Fit a model, write it and show it."""
    check_output(options.output)
    checkpoint = _checkpoint(options, console)
    data = _data(options, console)
    started = time.perf_counter()
    what = counted(options.components, "component")
    console.say(f"fitting {what} until a step gains less than {options.tol:g}")
    scaled = in_units(_fitted(data, options, console, checkpoint))
    signs = options.decimal, options.thousands
    stored = StoredModel(scaled, list(data.numbers), data.label, signs)
    seconds, interrupted = time.perf_counter() - started, stored.model.interrupted_
    # Written before anything else is computed, so that nothing can cost the model.
    stored.save(options.output)
    result = stored.summary() | {"seconds": seconds, "model": str(options.output)}
    lines = [model_text(result, console.verbose)]
    if data.labels is not None and options.components > 1 and not interrupted:
        result |= data.agreement(scaled.predict(data.X))
    if "f_measure" in result:
        lines.append(f"F-measure against {result['label']}: {result['f_measure']:.4f}")
    lines.append(f"model: {options.output}  ({seconds:.1f} s)")
    console.result("\n".join(lines), result)
    if interrupted:
        resumable = checkpoint is not None and checkpoint.exists()
        console.error(
            f"interrupted; the model so far is in {options.output}; "
            + ("--resume goes on" if resumable else "too early for --resume to go on")
        )
    return INTERRUPTED if interrupted else 0


def report(options: argparse.Namespace, console: Console) -> int:
    """Fit a model and write a page about it."""
    check_output(options.output, (".html", ".htm"))
    data = _data(options, console)
    notes = [*console.warnings]
    model = _fitted(data, options, console)
    # A second fit follows: what was reached so far is no result here.
    if in_units(model).estimator_.interrupted_:
        raise KeyboardInterrupt
    with console.working("comparing with other models"):
        sentence = land.report(
            model,
            options.output,
            data.X,
            names=list(data.numbers),
            rows=data.numbers.index.tolist(),
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
    scaler = StandardScaler(with_mean=options.standardize, with_std=options.standardize)
    settings = _settings(options) | {"metric": options.metric.split(",")}
    if options.jobs == 1:  # other processes cannot write here
        settings["callback"] = _steps(console)
    with console.working("fitting the candidates"):
        selection = land.select(
            scaler.fit_transform(data.X),
            options.components,
            reference=options.reference.split(","),
            sigma=options.sigma,
            purpose=options.purpose,
            criterion=options.criterion,
            labels=data.labels,
            n_jobs=options.jobs,
            random_state=options.seed,
            verbose=not console.quiet,
            **settings,
        )
    scaled = in_units(selection.model)
    if options.standardize:
        parts = selection.model, scaler.mean_, scaler.scale_
        scaled = land.Standardized.around(*parts)
    signs = options.decimal, options.thousands
    stored = StoredModel(scaled, list(data.numbers), data.label, signs)
    table = selection.table
    for name, per_row in _SHIFTS.items():
        rows = 1 if name == "held_out" else len(data.X)
        table[name] += per_row * rows * stored.log_scale
    chosen, *_ = rows = (
        table.astype(object).where(table.notna(), None).to_dict("records")
    )
    result = {"purpose": options.purpose, "criterion": options.criterion}
    result |= {"best": chosen, "table": rows, "sentence": selection.sentence}
    lines = [_select_text(table), *filter(None, [selection.sentence])]
    if options.table is not None:
        write_table(options.table, table)
        result["table_file"] = str(options.table)
        lines.append(f"table: {options.table}")
    if options.output is not None:
        stored.save(options.output)
        result["model"] = str(options.output)
        lines.append(f"model: {options.output}")
    console.result("\n".join(lines), result)
    if selection.interrupted:
        console.error("interrupted; the choice is among the candidates so far")
    return INTERRUPTED if selection.interrupted else 0


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
        total, data = len(data.X), data.some(QUICK_ROWS, options.seed)
        vars(options).update(QUICK)
        console.say(f"preview: {len(data.X)} of {total} rows, rough numbers")
    return data


def _fitted(
    data: Data, options: Any, console: Console, checkpoint: Path | None = None
) -> Any:
    """The model that the arguments describe, fitted; its health is shown."""
    callbacks: list[Any] = [_steps(console)]
    if checkpoint is not None:
        callbacks.append(land.callbacks.Checkpoint(checkpoint))
    model = estimator(options, callbacks)
    if options.standardize:
        model = land.Standardized(model)
    with console.working("compiling, then looking for a start"):
        model.fit(data.X)
    for line in in_units(model).estimator_.health_:
        console.warn(line)
    return model


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
    return {name: getattr(options, name) for name in _PARAMETERS}


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


def _select_text(table: pd.DataFrame) -> str:
    """The table of candidates and other models, and the choice."""
    known = [name for name in _SHOWN if table[name].notna().any()]
    shown = table[known].assign(**{"": table["error"]})
    best = table.iloc[0]
    components = counted(int(best["n_components"]), "component")
    return f"{text_table(shown)}\nchosen: {components}, {best['metric']} metric"
