"""Show what is in a model file.

Means and covariances are in the units of the table; covariances are in tangent
coordinates at the means.
"""

from __future__ import annotations

import argparse

from land.cli import options as shared
from land.cli.console import Console

HELP = "show what is in a model file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_model(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.models import load_model
    from land.cli.summaries import model_text, summary

    result = summary(load_model(options.model))
    console.result(model_text(result), result)
    return 0
