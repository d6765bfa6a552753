"""Compute figures and tables of the paper anew, with a verdict on each of its claims.

The experiments are in land's repository, not in the installed package. Those on real
data download them, or look for them in the folder of --data.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from land.cli.console import Console
from land.cli.errors import CommandError

HELP = "compute the paper's figures and tables anew (in a checkout of land)"
# The root of the repository where land is installed in place; elsewhere some folder.
_CHECKOUT = Path(__file__).resolve().parents[4]


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
    """Hand over to the package `reproduction`, which only a checkout has."""
    if (_CHECKOUT / "reproduction" / "__init__.py").is_file():
        sys.path.append(str(_CHECKOUT))
    try:
        from reproduction import command
    except ModuleNotFoundError as error:
        if error.name != "reproduction":
            raise
        raise CommandError(
            "the paper's experiments are in land's repository, not in the installed "
            "package; clone it, run there pip install '.[reproduction]', then python "
            "-m reproduction"
        ) from None
    return command.run(options, console)
