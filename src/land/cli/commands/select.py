"""Choose the number of components, and sigma, by BIC, AIC or held-out rows.

An interrupt (Ctrl-C) ends the search: the best of the candidates fitted so far is
chosen, and the exit code is 130.
"""

from __future__ import annotations

import argparse
import re
from math import isfinite
from pathlib import Path
from typing import Any

from land.cli import options as shared
from land.cli.console import Console
from land.cli.errors import INTERRUPTED

HELP = "choose the number of components and sigma"
# How a change of units shifts what `land.select` reports, in units of the log density
# of one row; those with N count every row.
_SHIFTS = {"log_likelihood": -1.0, "aic": 2.0, "bic": 2.0}
_SHOWN = (
    "n_components",
    "sigma",
    "log_likelihood",
    "aic",
    "bic",
    "held_out",
    "seconds",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_data(parser, fitted=False)
    parser.add_argument(
        "-k",
        "--components",
        type=_counts,
        default=(1, 2, 3, 4),
        metavar="K",
        help="numbers of components to try: 1-4 (default) or 2,3,5",
    )
    parser.add_argument(
        "--sigma",
        type=_sigmas,
        default=("auto",),
        metavar="SIGMAS",
        help="values of sigma to try: auto (default) or auto,0.2,0.5",
    )
    parser.add_argument(
        "--criterion",
        choices=("bic", "aic", "held_out"),
        default="bic",
        help="what to choose by (default: bic)",
    )
    parser.add_argument(
        "--held-out", action="store_true", help="compute held-out densities as well"
    )
    parser.add_argument(
        "-j",
        "--jobs",
        type=shared.count,
        default=1,
        metavar="N",
        help="candidates fitted at the same time (default: 1)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="MODEL", help="file for the chosen model"
    )
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="file for the table of candidates"
    )
    shared.add_fit(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.data import read_data
    from land.cli.models import describe_new, standardize
    from land.cli.output import TABLES, check_output, write_table

    if options.output is not None:
        check_output(options.output)
    if options.table is not None:
        check_output(options.table, TABLES)
    data = read_data(options, console)
    scaling = standardize(data.X) if options.standardize else None
    X = data.X if scaling is None else (data.X - scaling[0]) / scaling[1]
    n = len(options.components) * len(options.sigma)
    with console.working(f"fitting {n} candidate{'s' * (n > 1)}"):
        selection = _select(X, _known(data.labels), options, console)
    stored = describe_new(selection.model, data, scaling)
    rows = [_in_units(row, stored.log_scale, len(X)) for row in _rows(selection.table)]
    best = _in_units(selection.best, stored.log_scale, len(X))
    result: dict[str, Any] = {
        "criterion": options.criterion,
        "best": best,
        "table": rows,
    }
    text = _text(rows, best, options.criterion)
    if options.table is not None:
        write_table(options.table, {name: [row[name] for row in rows] for name in best})
        result["table_file"] = str(options.table)
        text += f"\ntable: {options.table}"
    if options.output is not None:
        stored.save(options.output, console)
        result["model"] = str(options.output)
        text += f"\nmodel: {options.output}"
    console.result(text, result)
    if selection.interrupted:
        console.error("interrupted; the choice is among the candidates so far")
        return INTERRUPTED
    return 0


def _select(X: Any, labels: Any, options: argparse.Namespace, console: Console) -> Any:
    from land.cli import cache
    from land.estimators import LANDMixture, select

    cache.enable()

    def hear(step: Any) -> None:  # a function, which scikit-learn's clone leaves alone
        console.step(step)

    template = LANDMixture(
        rho=options.rho,
        method=options.method,
        volume=options.volume,
        reference=options.reference,
        covariance_type=options.covariance_type,
        n_samples=options.n_samples,
        max_iter=options.max_iter,
        tol=options.tol,
        callback=hear if options.jobs == 1 else None,
        **({} if options.init is None else {"init": options.init}),
    )
    return select(
        X,
        options.components,
        list(options.sigma),
        estimator=template,
        labels=labels,
        criterion=options.criterion,
        held_out=options.held_out,
        n_jobs=options.jobs,
        random_state=options.seed,
        verbose=not console.quiet,
    )


def _known(labels: Any) -> Any:
    """The labels, if there are any."""
    return None if labels is None or all(each is None for each in labels) else labels


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows of the table, which is a list where pandas is not installed."""
    return table if isinstance(table, list) else table.to_dict("records")


def _in_units(row: dict[str, Any], log_scale: float, n: int) -> dict[str, Any]:
    """A row of the table with densities in the units of the data."""
    shifted = {name: row[name] + _SHIFTS[name] * n * log_scale for name in _SHIFTS}
    return row | shifted | {"held_out": row["held_out"] - log_scale}


def _text(rows: list[dict[str, Any]], best: dict[str, Any], criterion: str) -> str:
    compared = any(isfinite(row["f_measure"]) for row in rows)
    shown = (*_SHOWN, "f_measure") if compared else _SHOWN
    lines = ["  ".join(f"{name:>14}" for name in shown)]
    for row in rows:
        if row["error"]:
            lines.append(f"{row['n_components']:>14}  failed: {row['error']}")
            continue
        cells = "  ".join(f"{row[name]:>14.6g}" for name in shown)
        lines.append(cells + ("" if row["converged"] else "  not converged"))
    sigma = f", sigma {best['sigma']:.4g}"
    plural = "s" * (best["n_components"] != 1)
    lines.append(
        f"chosen by {criterion}: {best['n_components']} component{plural}{sigma}"
    )
    known = [row for row in rows if not row["error"] and isfinite(row["held_out"])]
    rival = max(known, key=lambda row: row["held_out"], default=best)
    if rival["held_out"] > best["held_out"]:
        lines.append(
            f"held-out rows prefer {rival['n_components']}, sigma "
            f"{rival['sigma']:.4g}: --criterion held_out would choose by them"
        )
    return "\n".join(lines)


def _counts(text: str) -> tuple[int, ...]:
    counts: list[int] = []
    for part in text.split(","):
        limits = re.fullmatch(r"(\d+)-(\d+)", part)
        if limits:
            counts += range(shared.count(limits[1]), shared.count(limits[2]) + 1)
        else:
            counts.append(shared.count(part))
    if not counts:
        raise argparse.ArgumentTypeError(f"must be numbers such as 1-4, got {text!r}")
    return tuple(counts)


def _sigmas(text: str) -> tuple[float | str, ...]:
    return tuple(shared.number_or_auto(part) for part in text.split(","))
