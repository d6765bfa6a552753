"""Fit a LAND, or a mixture of them, to the rows of a table.

An interrupt (Ctrl-C) ends the fit early: the model reached so far is written, if there
is one yet, marked as interrupted, and the exit code is 130. Once the search for a start
has ended, the progress of a fit is kept beside its model, in MODEL.checkpoint, until it
has ended: the same command with --resume goes on from there, also after a crash.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from land.cli import options as shared
from land.cli.console import Console
from land.cli.errors import INTERRUPTED, CommandError, UsageError

HELP = "fit a model to a table and write it to a file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_data(parser, fitted=False)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="MODEL", help="model file"
    )
    parser.add_argument(
        "-k",
        "--components",
        type=shared.count,
        default=1,
        metavar="K",
        help="number of components (default: 1)",
    )
    parser.add_argument(
        "--sigma",
        type=shared.number_or_auto,
        default="auto",
        help="size of the neighbourhoods, or auto (default)",
    )
    parser.add_argument(
        "--optimizer", choices=("auto", "paper"), default="auto", help="paper: K=1 only"
    )
    parser.add_argument(
        "--n-init",
        type=shared.count,
        default=1,
        metavar="N",
        help="fits to choose from",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from MODEL.checkpoint, which a fit keeps until it has ended",
    )
    shared.add_fit(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    _check(options)
    from land.cli.data import read_data
    from land.cli.models import describe_new, standardize
    from land.cli.output import check_output
    from land.cli.summaries import agreement, summary

    check_output(options.output)
    checkpoint = _checkpoint(options, console)
    data = read_data(options, console)
    scaling = standardize(data.X) if options.standardize else None
    what = (
        "1 component" if options.components == 1 else f"{options.components} components"
    )
    started = time.perf_counter()
    with console.working(f"fitting {what} (the first steps compile)"):
        model = build(options, console)
        X = data.X if scaling is None else (data.X - scaling[0]) / scaling[1]
        model.fit(X, checkpoint=checkpoint)
    seconds = time.perf_counter() - started
    interrupted = model.interrupted_
    stored = describe_new(model, data, scaling)
    # Written before anything else is computed, so that nothing can cost the model.
    stored.save(options.output, console)
    if len(X) <= model.n_parameters_:
        console.warn(
            f"{len(X)} rows are few for {model.n_parameters_} parameters; the model "
            "says more about these rows than about others"
        )
    result = summary(stored) | {"seconds": seconds, "model": str(options.output)}
    if not interrupted:
        result |= agreement(stored, data, console)
    console.result(_text(result), result)
    if interrupted:
        resumable = checkpoint is not None and checkpoint.exists()
        console.error(
            f"interrupted; the model so far is in {options.output}; "
            + ("--resume goes on" if resumable else "too early for --resume to go on")
        )
        return INTERRUPTED
    return 0


def build(options: argparse.Namespace, console: Console) -> Any:
    """The estimator that the arguments describe; imports what it needs."""
    from land.cli import cache
    from land.estimators import LAND, LANDMixture

    cache.enable()
    settings = {
        "sigma": options.sigma,
        "rho": options.rho,
        "method": options.method,
        "volume": options.volume,
        "reference": options.reference,
        "covariance_type": options.covariance_type,
        "optimizer": options.optimizer,
        "n_samples": options.n_samples,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "random_state": options.seed,
        "callback": console.step,
    }
    if options.init is not None:
        settings["init"] = options.init
    if options.components == 1:
        return LAND(**settings)
    return LANDMixture(options.components, n_init=options.n_init, **settings)


def _check(options: argparse.Namespace) -> None:
    if options.components > 1 and options.optimizer == "paper":
        raise UsageError(
            "--optimizer paper is for one component; leave it out, or -k 1"
        )
    if options.components == 1 and options.init == "gmm":
        raise UsageError("--init gmm is for mixtures; use least_squares or random")
    if options.init not in (None, "gmm", "least_squares", "random"):
        raise UsageError(
            f"--init must be gmm, least_squares or random, got {options.init!r}"
        )


def _checkpoint(options: argparse.Namespace, console: Console) -> Path | None:
    """Where the progress is kept: beside the model, unless that is no ordinary file."""
    output: Path = options.output
    ordinary = output.is_file() or not output.exists()
    path = output.with_name(f"{output.name}.checkpoint")
    if options.n_init > 1 or not ordinary:
        if options.resume:
            raise UsageError("--resume needs an ordinary file for -o, and --n-init 1")
        return None
    if options.resume and not path.exists():
        if output.exists():
            raise CommandError(
                f"there is no {path} to go on from, and {output} is there: its fit has "
                "ended, or was interrupted too early; without --resume it is fitted "
                "anew"
            )
        console.say(f"there is no {path}: fitting from the start")
    if path.exists() and not options.resume:
        raise CommandError(
            f"{path} holds the progress of a fit that has not ended; --resume goes on "
            "from there, or delete it"
        )
    return path


def _text(result: dict[str, Any]) -> str:
    from land.cli.summaries import model_text

    lines = [model_text(result)]
    if "f_measure" in result:
        lines.append(f"F-measure against {result['label']}: {result['f_measure']:.4f}")
    lines.append(f"model: {result['model']}  ({result['seconds']:.1f} s)")
    return "\n".join(lines)
