"""The command `land`: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from land.cli.commands import COMMANDS
from land.cli.console import Console
from land.cli.errors import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    USAGE,
    CommandError,
    describe,
)

_EPILOG = """\
exit codes: 0 all went well, 1 it failed, 2 the arguments make no sense, 130 interrupted
environment: LAND_TRACEBACK=1 shows where errors come from; LAND_NO_CACHE=1 keeps no
compiled code in the user's cache folder
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `land`; returns its exit code."""
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as exit_:  # after --help, --version or a message
        return int(exit_.code or 0)
    console = Console(quiet=options.quiet, json=options.json)
    try:
        with console:
            code = int(options.run(options, console))
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        console.error("interrupted")
        return INTERRUPTED
    except Exception as error:
        if options.traceback or os.environ.get("LAND_TRACEBACK"):
            traceback.print_exc()
        console.error(describe(error))
        _flush_or_discard()
        return error.code if isinstance(error, CommandError) else FAILURE


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"land: {message}; see '{self.prog} --help'\n")


class _Version(argparse.Action):
    """Looks the version up when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> NoReturn:
        from land import __version__

        print(f"land {__version__}")
        parser.exit()


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="land",
        description="The Locally Adaptive Normal Distribution: densities and clusters "
        "that follow the shape of the data.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and exit"
    )
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for command in COMMANDS:
        own = commands.add_parser(
            command.__name__.rpartition(".")[2],
            help=command.HELP,
            description=command.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(own)
        common = own.add_argument_group("what is shown")
        common.add_argument(
            "-q", "--quiet", action="store_true", help="no progress, only warnings"
        )
        common.add_argument(
            "--json", action="store_true", help="the result as JSON on standard output"
        )
        common.add_argument(
            "--traceback", action="store_true", help="show where an error comes from"
        )
        own.set_defaults(run=command.run)
    return parser


def _flush_or_discard() -> None:
    """Show what has been printed; on a full disk, do not try once more at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _discard_output()


def _discard_output() -> None:
    """Let nothing more be written to a file that is full or a pipe that is gone."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output is no file, in tests for example
        pass
