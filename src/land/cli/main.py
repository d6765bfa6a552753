"""The command `land`: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from land.cli import options as arguments_of
from land.cli.console import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    USAGE,
    CommandError,
    Console,
    describe,
)

# The module that has the function of that name, and what `land --help` says.
COMMANDS = {
    "demo": ("demo", "compare LAND with other models on built-in data"),
    "fit": ("fit", "fit a model to a table and write it to a file"),
    "score": ("apply", "log densities of the rows of a table"),
    "predict": ("apply", "clusters of the rows of a table"),
    "sample": ("apply", "draw points from a model"),
    "plot": ("apply", "draw a model"),
    "select": ("fit", "choose the number of components and sigma"),
    "info": ("apply", "show what is in a model file"),
    "reproduce": ("reproduce", "compute the paper's figures and tables anew"),
}
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
    console = Console(options.quiet, options.json, options.verbose)
    try:
        with console:
            module = import_module(f"land.cli.{COMMANDS[options.command][0]}")
            code = int(getattr(module, options.command)(options, console))
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
        try:
            sys.stdout.flush()
        except (OSError, ValueError):  # a full disk
            _discard_output()
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
    layout = argparse.RawDescriptionHelpFormatter
    about = "densities and clusters that follow the shape of the data."
    parser = _Parser(
        prog="land",
        description=f"The Locally Adaptive Normal Distribution: {about}",
        epilog=_EPILOG,
        formatter_class=layout,
    )
    version = "show the version and exit"
    parser.add_argument("--version", action=_Version, nargs=0, help=version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for name, (_, help_line) in COMMANDS.items():
        add_arguments = getattr(arguments_of, name)
        own = commands.add_parser(
            name,
            help=help_line,
            description=inspect.getdoc(add_arguments),
            formatter_class=layout,
            allow_abbrev=False,
        )
        add_arguments(own)
        for flags, shown in (
            (("-q", "--quiet"), "no progress, only warnings"),
            (("-v", "--verbose"), "more about the model and the steps of its fit"),
            (("--json",), "the result as JSON on standard output"),
            (("--traceback",), "show where an error comes from"),
        ):
            own.add_argument(*flags, action="store_true", help=shown)
    return parser


def _discard_output() -> None:
    """Let nothing more be written to a file that is full or a pipe that is gone."""
    with suppress(OSError, ValueError):  # standard output is no file, in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
