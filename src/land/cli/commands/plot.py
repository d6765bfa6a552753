"""Draw a model: PNG, PDF or SVG, as the name of the file says.

Kinds: density (contours with data, means and covariances; two columns), pairs (data as
dark as they are dense, means and covariances in each pair of columns), view3d (the same
in the space of the first three columns), metric and responsibilities (two columns),
history (the objective at each step of the fit).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from land.cli import options as shared
from land.cli.console import Console
from land.cli.errors import CommandError

HELP = "draw a model"
_KINDS = ("density", "pairs", "view3d", "metric", "responsibilities", "history")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_model(parser)
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FIGURE", help="the figure"
    )
    parser.add_argument(
        "--kind",
        choices=_KINDS,
        help="what to draw (default: density, or pairs for more than two columns)",
    )
    parser.add_argument(
        "--grid",
        type=shared.count,
        default=60,
        metavar="N",
        help="points of the density along each axis (default: %(default)s)",
    )


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.figures import model_figure, save_figure
    from land.cli.models import load_model
    from land.cli.output import FIGURES, check_output
    from land.estimators.scoring import reporting_to

    check_output(options.output, FIGURES)
    console.say(f"reading {options.model}")
    stored = load_model(options.model)
    points = stored.model.metric_.landmarks
    kind = options.kind or ("density" if len(stored.columns) == 2 else "pairs")
    if points is None and kind != "history":
        raise CommandError(
            "the model's metric is not learned from data, so there are none to draw; "
            "use --kind history, or land.plotting"
        )
    with console.working(f"drawing {kind}"), reporting_to(console.rows):
        figure = model_figure(stored, kind, points, options.grid)
        save_figure(figure, options.output)
    console.result(f"figure: {options.output}", {"figure": str(options.output)})
    return 0
