"""The command `land`: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import land
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

# The module that has the function of that name.
_MODULES = {
    "demo": "land.cli.demo",
    "fit": "land.cli.fit",
    "score": "land.cli.models",
    "predict": "land.cli.models",
    "sample": "land.cli.models",
    "plot": "land.cli.models",
    "select": "land.cli.fit",
    "report": "land.cli.fit",
    "info": "land.cli.models",
    "reproduce": "reproduction.command",  # which only a checkout has
}
# The root of the repository where land is installed in place; elsewhere some folder.
_CHECKOUT = Path(__file__).resolve().parents[3]
_ABOUT = """\
The Locally Adaptive Normal Distribution: densities and clusters that follow the shape
of the data."""
_EPILOG = """\
exit codes: 0 all went well, 1 it failed, 2 the arguments make no sense, 130 interrupted
environment: LAND_NO_CACHE=1 keeps no compiled code in the user's cache folder
"""
_COMMON = {
    ("-q", "--quiet"): "no progress, only warnings",
    ("-v", "--verbose"): "more about the model and the steps of its fit",
    ("--json",): "the result as JSON on standard output",
    ("--traceback",): "show where an error comes from",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `land`; returns its exit code."""
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as exit_:  # after --help, --version or a message
        return int(exit_.code or 0)
    options.arguments = sys.argv[1:] if arguments is None else arguments
    console = Console(options.quiet, options.json, options.verbose)
    _keep_compiled_code()
    try:
        with console:
            code = _function_of(options.command)(options, console)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        console.error("interrupted")
        return INTERRUPTED
    except Exception as error:
        if options.traceback:
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


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; docstrings of their arguments are its help."""
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = _Parser(prog="land", description=_ABOUT, epilog=_EPILOG, **layout)
    version = f"land {land.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for name in _MODULES:
        add_arguments = getattr(arguments_of, name)
        text = inspect.getdoc(add_arguments) or ""
        about: Any = {"help": text.splitlines()[0], "description": text}
        own = commands.add_parser(name, allow_abbrev=False, **about, **layout)
        add_arguments(own)
        for flags, shown in _COMMON.items():
            own.add_argument(*flags, action="store_true", help=shown)
    return parser


def _function_of(command: str) -> Callable[[argparse.Namespace, Console], int]:
    here = (_CHECKOUT / "reproduction" / "__init__.py").is_file()
    if command == "reproduce" and here:
        sys.path.append(str(_CHECKOUT))
    try:
        return getattr(import_module(_MODULES[command]), command)
    except ModuleNotFoundError as error:
        if error.name != "reproduction":
            raise
        raise CommandError(
            "the paper's experiments are in land's repository, not in the installed "
            "package; clone it, run there pip install '.[reproduction]', then python "
            "-m reproduction"
        ) from None


def _discard_output() -> None:
    """Let nothing more be written to a file that is full or a pipe that is gone."""
    with suppress(OSError, ValueError):  # standard output is no file, in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _keep_compiled_code() -> None:
    """Make JAX keep what it compiles in the user's cache folder, if it can.

    A library has no business there, but a command would compile anew each time.
    Variables reach the processes of `--jobs` too, and leave the user's choice alone.
    """
    if os.environ.get("LAND_NO_CACHE"):
        return
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    with suppress(OSError, RuntimeError):  # no folder of the user
        users = named if named.is_absolute() else Path.home() / ".cache"
        folder = users / "land" / f"jax-{_processor()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
        # Seconds of a compilation that is worth a file.
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


def _processor() -> str:
    """A name for this kind of processor: code for another one may not run here."""
    with suppress(OSError):  # Linux only
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kinds = sorted({line for line in lines if line.startswith(("flags", "model"))})
        return hashlib.sha256("\n".join(kinds).encode()).hexdigest()[:12]
    return platform.machine()
