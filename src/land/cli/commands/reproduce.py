"""Compute figures and tables of the paper anew, with a verdict on each of its claims.

Experiments on real data download them, or look for them in the folder of --data.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from land.cli.console import Console
from land.cli.errors import FAILURE, INTERRUPTED, UsageError, describe

HELP = "compute the paper's figures and tables anew"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="an experiment, or 'all'; see --list"
    )
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument(
        "--quick", action="store_true", help="fewer data and rougher numbers"
    )
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="folder of the real data"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("land-reproduce"),
        metavar="FOLDER",
        help="folder for figures and tables (default: %(default)s)",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.experiments.runner import EXPERIMENTS

    if options.list:
        width = max(len(name) for name in EXPERIMENTS)
        lines = [f"{name:<{width}}  {about}" for name, about in EXPERIMENTS.items()]
        console.result("\n".join(lines), {"experiments": EXPERIMENTS})
        return 0
    if options.name is None:
        raise UsageError("name an experiment, or all; 'land reproduce --list' has them")
    if options.name != "all" and options.name not in EXPERIMENTS:
        raise UsageError(
            f"no experiment {options.name!r}; choose one of "
            f"{', '.join(EXPERIMENTS)}, or all"
        )
    names = list(EXPERIMENTS) if options.name == "all" else [options.name]
    results, failures = [], {}
    for name in names:
        try:
            results.append(_reproduce(name, options, console))
        except KeyboardInterrupt:
            console.error("interrupted; the same command goes on where this one ended")
            return INTERRUPTED
        except Exception as error:
            if len(names) == 1:
                raise
            failures[name] = describe(error)
            console.error(f"{name}: {failures[name]}")
    text = "\n".join(f"{each['name']}: {each['summary']}" for each in results)
    files = "\n".join(str(file) for each in results for file in each["files"])
    console.result(f"{text}\n{files}", {"experiments": results, "failures": failures})
    return FAILURE if failures else 0


def _reproduce(
    name: str, options: argparse.Namespace, console: Console
) -> dict[str, Any]:
    from land.cli import cache
    from land.experiments.runner import reproduce

    cache.enable()
    with console.working(f"reproducing {name}"):
        result = reproduce(
            name,
            options.output,
            quick=options.quick,
            data_home=options.data,
            report=console.progress,
        )
    return {
        "name": name,
        "summary": result.summary,
        "verdict_file": str(result.verdict_file),
        "files": [str(file) for file in result.files],
    }
