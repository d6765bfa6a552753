"""The command `fit`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import land
from land.cli import cache
from land.cli.console import Console
from land.cli.data import read_data
from land.cli.errors import INTERRUPTED, CommandError, UsageError
from land.cli.models import counted, model_text, new_model
from land.cli.output import check_output


def fit(options: argparse.Namespace, console: Console) -> int:
    """Fit a model, write it and show it."""
    check_output(options.output)
    checkpoint = _checkpoint(options, console)
    data = read_data(options, console)
    started = time.perf_counter()
    what = counted(options.components, "component")
    with console.working(f"fitting {what} (the first steps compile)"):
        cache.enable()
        callbacks = [console.step]
        if checkpoint is not None:
            callbacks.append(land.callbacks.Checkpoint(checkpoint))
        stored = new_model(estimator(options, callbacks), data, options)
        model = stored.model.fit(stored.to_model(data.X))
    seconds = time.perf_counter() - started
    # Written before anything else is computed, so that nothing can cost the model.
    stored.save(options.output)
    if len(data.X) <= model.n_parameters_:
        console.warn(
            f"{len(data.X)} rows are few for {model.n_parameters_} parameters; the "
            "model says more about these rows than about others"
        )
    result = stored.summary() | {"seconds": seconds, "model": str(options.output)}
    lines = [model_text(result)]
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


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say about any model."""
    names = "rho method volume reference covariance_type n_samples max_iter tol"
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
