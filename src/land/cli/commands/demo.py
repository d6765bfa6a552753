"""LAND against a Gaussian mixture and least squares on built-in data.

Writes a figure and a table. The models are fitted to half of the data; the table has
the mean log density of the other half, and for clusters the F-measure. Sigma and rho
suit the purpose: a large rho for a density, a small one for clusters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from land.cli import options as shared
from land.cli.console import Console

HELP = "compare LAND with other models on built-in data: a figure and a table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("land-demo"),
        metavar="FOLDER",
        help="folder for figure and table (default: %(default)s)",
    )
    shared.add_seed(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    started = time.perf_counter()
    options.output.mkdir(parents=True, exist_ok=True)
    console.say("comparing models on built-in data; the first run compiles")
    from land.cli import cache, demo
    from land.cli.figures import save_figure
    from land.cli.output import write_table

    cache.enable()
    cases = demo.builtin_cases(options.seed)
    rows, figure = demo.compare(cases, options.seed, console)
    files = [options.output / f"demo.{kind}" for kind in ("png", "pdf", "csv")]
    for file in files[:2]:
        save_figure(figure, file)
    write_table(files[2], {key: [row[key] for row in rows] for key in rows[0]})
    seconds = time.perf_counter() - started
    places = f"figure: {files[0]}, {files[1]}\ntable: {files[2]}  ({seconds:.0f} s)"
    result = {"rows": rows, "files": [str(file) for file in files], "seconds": seconds}
    console.result(f"{demo.text_table(cases, rows)}\n{places}", result)
    return 0
