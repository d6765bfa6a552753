"""The commands that fit models: `fit`, `report` and `select`."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import land
from land.cli import cache
from land.cli.console import INTERRUPTED, CommandError, Console, UsageError
from land.cli.data import Data, read_data
from land.cli.models import counted, model_text, new_model
from land.cli.tables import TABLES, check_output, text_table, write_table

# How a change of units shifts what `land.select` reports, in log densities of a row.
_SHIFTS = {"log_likelihood": -1.0, "aic": 2.0, "bic": 2.0}
# Rough, and quick: a fit in the plane takes seconds.
_PREVIEW_ROWS, _PREVIEW_SAMPLES, _PREVIEW_TOL = 200, 300, 1e-2
# Beyond, a few points carry the constants, see "Many dimensions" in the documentation.
_MANY_COLUMNS = 10
# A difference in BIC that is "not worth more than a bare mention" (Kass and Raftery).
_SMALL = 2.0
_SHOWN = ("n_components", "sigma", *_SHIFTS, "held_out", "seconds")


def fit(options: argparse.Namespace, console: Console) -> int:
    """Fit a model, write it and show it."""
    check_output(options.output)
    checkpoint = _checkpoint(options, console)
    data = _data(options, console)
    started = time.perf_counter()
    what = counted(options.components, "component")
    console.say(f"fitting {what} until a step gains less than {options.tol:g}")
    with console.working("compiling, then looking for a start"):
        cache.enable()
        callbacks = [console.step]
        if checkpoint is not None:
            callbacks.append(land.callbacks.Checkpoint(checkpoint))
        stored = new_model(estimator(options, callbacks), data, options)
        model = stored.model.fit(stored.to_model(data.X))
    seconds = time.perf_counter() - started
    # Written before anything else is computed, so that nothing can cost the model.
    stored.save(options.output)
    for line in model.health_:
        console.warn(line)
    result = stored.summary() | {"seconds": seconds, "model": str(options.output)}
    lines = [model_text(result, console.verbose)]
    if data.labels is not None and options.components > 1 and not model.interrupted_:
        with console.working("comparing clusters with labels"):
            result |= data.agreement(model.predict(stored.to_model(data.X)))
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
    with console.working("compiling, then looking for a start"):
        cache.enable()
        model = estimator(options, _step_of(console))
        if options.standardize:
            model = land.Standardized(model)
        model.fit(data.X)
        fitted = getattr(model, "estimator_", model)
        # A second fit follows: what was reached so far is no result here.
        if fitted.interrupted_:
            raise KeyboardInterrupt
        for line in fitted.health_:
            console.warn(line)
        sentence = land.report(
            model,
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


def _step_of(console: Console) -> Callable[[Any], None]:
    """A callback that shows steps: a function, which scikit-learn's clone leaves."""
    return lambda step: console.step(step)


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


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Parameters of any model, from the arguments."""
    names = "rho metric method volume reference covariance_type n_samples max_iter tol"
    found = {name: getattr(options, name) for name in names.split()}
    return found if options.init is None else found | {"init": options.init}


def estimator(options: argparse.Namespace, callback: Any) -> Any:
    """The estimator that the arguments describe."""
    more = {"sigma": options.sigma, "random_state": options.seed, "callback": callback}
    more |= settings(options)
    if options.components == 1:
        return land.LAND(optimizer=options.optimizer, **more)
    if options.optimizer != "auto":
        raise UsageError("--optimizer paper is for one component; leave it out")
    return land.LANDMixture(options.components, n_init=options.n_init, **more)


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
        if output.exists():
            raise CommandError(
                f"there is no {path} to go on from, and {output} is there: its fit has "
                "ended, or was interrupted too early; without --resume it is fitted "
                "anew"
            )
        console.say(f"there is no {path}: fitting from the start")
    return path


def select(options: argparse.Namespace, console: Console) -> int:
    """Fit the candidates, choose one, show all."""
    check_output(options.output)
    check_output(options.table, TABLES)
    data = _data(options, console)
    stored = new_model(None, data, options)
    X = stored.to_model(data.X)
    count = len(options.components) * len(options.sigma)

    labels = data.labels
    if labels is not None and all(each is None for each in labels):
        labels = None
    with console.working(f"fitting {counted(count, 'candidate')}"):
        cache.enable()
        callback = _step_of(console) if options.jobs == 1 else None
        selection = land.select(
            X,
            options.components,
            list(options.sigma),
            estimator=land.LANDMixture(callback=callback, **settings(options)),
            labels=labels,
            criterion=options.criterion,
            held_out=options.held_out,
            n_jobs=options.jobs,
            random_state=options.seed,
            verbose=not console.quiet,
        )
    stored = replace(stored, model=selection.model)
    table = selection.table.to_dict("records")
    rows = [_in_units(row, stored.log_scale, len(X)) for row in table]
    best = _in_units(selection.best, stored.log_scale, len(X))
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


def _in_units(row: dict[str, Any], log_scale: float, n: int) -> dict[str, Any]:
    """A row of the table with densities in the units of the data."""
    shifted = {name: row[name] + _SHIFTS[name] * n * log_scale for name in _SHIFTS}
    return row | shifted | {"held_out": row["held_out"] - log_scale}


def select_text(rows: list[dict], best: dict, criterion: str) -> str:
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
    fewer = [row["n_components"] for row in rows if _as_good(row, best, criterion)]
    if fewer and min(fewer) < chosen:
        lines.append(f"{counted(min(fewer), 'component')} would do nearly as well")
    known = [row for row in rows if not row["error"] and isfinite(row["held_out"])]
    other = max(known, key=lambda row: row["held_out"], default=best)
    if other["held_out"] > best["held_out"]:
        lines.append(
            f"held-out rows prefer {other['n_components']}, sigma "
            f"{other['sigma']:.4g}: --criterion held_out would choose by them"
        )
    return "\n".join(lines)


def _as_good(row: dict, best: dict, criterion: str) -> bool:
    """Whether BIC or AIC can hardly tell a candidate from the best."""
    return criterion != "held_out" and row[criterion] - best[criterion] < _SMALL
