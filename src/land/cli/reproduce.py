"""The command `reproduce`, which hands over to the package of the repository."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from land.cli.console import CommandError, Console

# The root of the repository where land is installed in place; elsewhere some folder.
_CHECKOUT = Path(__file__).resolve().parents[3]


def reproduce(options: argparse.Namespace, console: Console) -> int:
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
