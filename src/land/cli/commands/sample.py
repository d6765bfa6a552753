"""Draw points from a model, in the units of the table it was fitted to.

Points of a mixture come with their component, grouped by it.
"""

from __future__ import annotations

import argparse
from typing import Any

from land.cli import options as shared
from land.cli.console import Console
from land.cli.errors import CommandError

HELP = "draw points from a model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_model(parser)
    shared.add_output(parser, "the points")
    parser.add_argument(
        "-n",
        "--number",
        type=shared.count,
        default=100,
        metavar="N",
        help="number of points (default: %(default)s)",
    )
    shared.add_seed(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.models import load_model
    from land.cli.output import TABLES, check_output, deliver

    check_output(options.output, TABLES)
    console.say(f"reading {options.model}")
    stored = load_model(options.model)
    if not hasattr(stored.model, "sample"):
        raise CommandError(
            f"a {type(stored.model).__name__} has no density to draw from; fit a LAND"
        )
    with console.working(f"drawing {options.number} points"):
        drawn = stored.model.sample(options.number, random_state=options.seed)
    points, components = drawn if isinstance(drawn, tuple) else (drawn, None)
    points = stored.to_data(points)
    columns: dict[str, Any] = dict(zip(stored.columns, points.T, strict=True))
    if components is not None:
        columns["component" if "component" not in columns else "component_"] = (
            components
        )
    what, result = f"{len(points)} points", {"points": len(points)}
    deliver(options, console, columns, what, result, {"columns": columns})
    return 0
