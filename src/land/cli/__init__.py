"""The command `land`: its arguments, its help, and what becomes of errors.

Commands are imported when they run, so that `land --help` answers at once.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import os
import platform
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import land
from land.cli.console import (
    BROKEN_PIPE,
    FAILURE,
    INTERRUPTED,
    USAGE,
    CommandError,
    Console,
    describe,
)

__all__ = ["main"]

# The root of the repository where land is installed in place; elsewhere some folder.
_CHECKOUT = Path(__file__).resolve().parents[3]
_ABOUT = """\
The Locally Adaptive Normal Distribution: densities and clusters that follow the shape
of the data."""
_EPILOG = """\
exit codes: 0 all went well, 1 it failed, 2 the arguments make no sense, 130 interrupted
environment: LAND_NO_CACHE=1 keeps no compiled code in the user's cache folder
"""


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


def _function_of(command: str) -> Callable[[argparse.Namespace, Console], int]:
    here = (_CHECKOUT / "reproduction" / "__init__.py").is_file()
    if command == "reproduce" and here:
        sys.path.append(str(_CHECKOUT))
    module, _ = _COMMANDS[command]
    try:
        return getattr(import_module(module), command)
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

    Environment variables reach the processes of `--jobs` too, and those that the user
    has set stay as they are.
    """
    if os.environ.get("LAND_NO_CACHE"):
        return
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    with suppress(OSError, RuntimeError):  # no folder of the user
        users = named if named.is_absolute() else Path.home() / ".cache"
        folder = users / "land" / f"jax-{_processor()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")


def _processor() -> str:
    """A name for this kind of processor: code for another one may not run here."""
    with suppress(OSError):  # Linux only
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kinds = sorted({line for line in lines if line.startswith(("flags", "model"))})
        return hashlib.md5("\n".join(kinds).encode(), usedforsecurity=False).hexdigest()
    return platform.machine()


# The parser.


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"land: {message}; see '{self.prog} --help'\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; docstrings of the functions below are its help."""
    layout: Any = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = _Parser(prog="land", description=_ABOUT, epilog=_EPILOG, **layout)
    version = f"land {land.__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands"
    )
    for name, (_, add_arguments) in _COMMANDS.items():
        text = inspect.getdoc(add_arguments) or ""
        about: Any = {"help": text.splitlines()[0], "description": text}
        own = commands.add_parser(name, allow_abbrev=False, **about, **layout)
        add_arguments(own)
        _add(own, "-q --quiet", "no progress, only warnings")
        _add(own, "-v --verbose", "more about the model and its fit")
        _add(own, "--json", "the result as JSON on standard output")
        _add(own, "--traceback", "show where an error comes from")
    return parser


def _add(parser: Any, flags: str, help: str, **more: Any) -> None:
    """Add an argument: a switch, unless `more` says what it is.

    The flags are separated by blanks; the help shows the default, if there is one.
    """
    if "default" in more:
        more.setdefault("type", type(more["default"]))
        help += " (default: %(default)s)"
    if "choices" not in more and more.get("type") is int:
        more["metavar"] = "N"
    more = more or {"action": "store_true"}
    parser.add_argument(*flags.split(), help=help, **more)


def _demo(parser: Any) -> None:
    """Compare LAND, least squares and a Gaussian mixture on built-in data."""
    _output(parser, "FOLDER", "for figure and table", default=Path("land-demo"))
    _seed(parser)


def _fit(parser: Any) -> None:
    """Fit a LAND, or a mixture of them, to the rows of a table.

    Ctrl-C ends the fit early: the model reached so far is written, marked as
    interrupted, and the exit code is 130. While the fit runs, its progress is kept in
    MODEL.checkpoint: the same command with --resume goes on from there.
    """
    _one_model(parser, "MODEL", "for the model")
    _add(parser, "--resume", "go on from MODEL.checkpoint")


def _report(parser: Any) -> None:
    """Fit a model and write a page about it, one HTML file to be handed over.

    The page compares the model with Gaussian mixtures and a kernel density estimate on
    rows that were held out, which takes a second fit, and has figures and settings.
    """
    _one_model(parser, "PAGE", "for the page: .html")


def _score(parser: Any) -> None:
    """Log densities of the rows of a table under a model, in the table's units."""
    _rows(parser)


def _predict(parser: Any) -> None:
    """Clusters of the rows of a table, and probabilities of belonging to each.

    With a column of labels, the F-measure says how well clusters and labels agree.
    """
    _rows(parser)


def _sample(parser: Any) -> None:
    """Draw points from a model, in the units of the table it was fitted to."""
    _info(parser)
    _table(parser)
    _add(parser, "-n --number", "points", default=100)
    _seed(parser)


def _plot(parser: Any) -> None:
    """Draw a model: PNG, PDF or SVG, as the name of the file says.

    density            contours, data, means and covariances (one or two columns)
    pairs              clusters, means and covariances in each pair of columns
    view3d             the same in the space of the first three columns
    metric             how long a step is, at each place (two columns)
    responsibilities   geodesics from the means to their data (two columns)
    history            the progress of the fit, step by step
    """
    _info(parser)
    _output(parser, "FIGURE", "for the figure", required=True)
    kinds = ("density", "pairs", "view3d", "metric", "responsibilities", "history")
    usual = "what to draw (default: density, or pairs for more than two columns)"
    _add(parser, "--kind", usual, choices=kinds)
    _add(parser, "--grid", "points of the density along each axis", default=60)


def _explore(parser: Any) -> None:
    """Show a model of two columns live: drag a point, see its geodesics follow.

    A page in the browser, at an address that only this machine answers, and only to
    those who know it: it holds a random word. Ctrl-C ends it, with exit code 0.
    """
    _info(parser)
    _add(parser, "--port", "of the address; 0 is any that is free", default=0)


def _select(parser: Any) -> None:
    """Choose the number of components and the metric, by held-out rows.

    All candidates are fitted to a few rows first; the best third goes on with more. A
    flat metric makes a Gaussian mixture, and is always tried. The table ends with
    Gaussian mixtures and a kernel density, fitted and scored in the same way.

    Ctrl-C ends the search: the best of the candidates fitted so far is chosen, and the
    exit code is 130.
    """
    _data(parser, fitted=False)
    tried = "to try: 1-4 or 2,3,5"
    _add(parser, "-k --components", tried, type=_counts, default="1-4", metavar="K")
    aim = "what for: a density, or clusters that are stable when rows change"
    _choice(parser, "--purpose", aim, "density", "clusters")
    _choice(parser, "--criterion", "what to choose by", "held_out", "bic", "aic")
    measures = "lebesgue, riemannian (the paper's) or both: lebesgue,riemannian"
    _add(parser, "--reference", f"measure to try: {measures}", default="lebesgue")
    _add(parser, "-j --jobs", "candidates fitted at the same time", default=1)
    _output(parser, "MODEL", "for the chosen model")
    _output(parser, "FILE", "for the table of candidates", flags="--table")
    group = _model(parser)
    metrics = "to try: flat, diagonal, full, density; several: diagonal,full"
    _add(group, "--metric", metrics, default="diagonal")


def _info(parser: Any) -> None:
    """Show what is in a model file, in the units of the table it was fitted to."""
    _add(parser, "model", "file that 'land fit' has written", type=Path)


def _reproduce(parser: Any) -> None:
    """Compute figures and tables of the paper anew, with a verdict on each claim.

    The experiments are in land's repository, not in the installed package. Those on
    real data download them, or look for them in the folder of --data.
    """
    _add(parser, "name", "an experiment, or 'all'; see --list", nargs="?")
    _add(parser, "--list", "list the experiments")
    _add(parser, "--quick", "fewer data and rougher numbers")
    _add(parser, "--data", "folder of the real data", type=Path, metavar="FOLDER")
    usual = Path("land-reproduce")
    _output(parser, "FOLDER", "for figures and tables", default=usual)


# The module of each command, which has a function of its name, and its arguments.
_COMMANDS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "demo": ("land.cli.demo", _demo),
    "fit": ("land.cli.fit", _fit),
    "score": ("land.cli.models", _score),
    "predict": ("land.cli.models", _predict),
    "sample": ("land.cli.models", _sample),
    "plot": ("land.cli.models", _plot),
    "select": ("land.cli.fit", _select),
    "report": ("land.cli.fit", _report),
    "explore": ("land.cli.explore", _explore),
    "info": ("land.cli.models", _info),
    "reproduce": ("reproduction.command", _reproduce),  # which only a checkout has
}


# What several commands share.


def _data(parser: Any, *, fitted: bool) -> None:
    """A table and how to read it, for a model that exists or is yet to be fitted."""
    group = parser.add_argument_group("data")
    kinds = "CSV, TSV, NPY, NPZ, Parquet or Excel file; - for CSV from standard input"
    _add(group, "data", kinds, type=Path)
    which = f"(default: {'those of the model' if fitted else 'all'})"
    named = f"columns to use, by name or number from 1: a,b or 1,3-5 {which}"
    _add(group, "-c --columns", named, action="append")
    left_out = "columns to leave out"
    _add(group, "-x --exclude", left_out, action="append", metavar="COLUMNS")
    aside = "column of known classes; kept aside, compared with the clusters"
    _add(group, "-l --labels", aside, metavar="COLUMN")
    _add(group, "--drop-missing", "leave out rows with missing values")
    names = "whether the first line has the names of the columns (default: look at it)"
    _add(group, "--header", names, action=argparse.BooleanOptionalAction)
    _add(group, "--delimiter", "what separates the cells", type=_character)
    sign = f"the decimal sign (default: {'that of the model' if fitted else '.'})"
    _add(group, "--decimal", sign, choices=".,", default=None if fitted else ".")
    _add(group, "--thousands", "what groups digits, as in 1,002.93", type=_character)
    _add(group, "--encoding", "of text files", default="utf-8-sig")


def _rows(parser: Any) -> None:
    """A model, a file of data, and a file for the result."""
    _info(parser)
    _data(parser, fitted=True)
    _table(parser)
    _add(parser, "--with-data", "write the table's columns too")


def _one_model(parser: Any, kind: str, what: str) -> None:
    """Data, how to fit one model to them, and a file for the result."""
    _data(parser, fitted=False)
    _output(parser, kind, what, required=True)
    _add(parser, "-k --components", "components of the mixture", default=1)
    group = _model(parser)
    learned = "what the model learns from the data around a place"
    _choice(group, "--metric", learned, "diagonal", "full", "density")
    _add(group, "--n-init", "fits to choose from", default=1)


def _model(parser: Any) -> Any:
    """How to fit; returns the group of arguments."""
    group = parser.add_argument_group("model")
    around = "how far around each row the model looks: a distance, auto or learn"
    _add(group, "--sigma", around, type=_number_or_word, default="auto")
    flat = "how freely the model leaves the data: a variance, auto or learn"
    _add(group, "--rho", flat, type=_number_or_word, default="auto")
    methods = "maximum likelihood, or a quick baseline"
    _choice(group, "--method", methods, "ml", "least_squares")
    shape = "shape of the components"
    _choice(group, "--covariance-type", shape, "full", "diag", "spherical")
    scaled = "give all columns mean 0 and variance 1 first; undone in what is written"
    _add(group, "--standardize", scaled)
    _add(group, "--preview", "a first look: 200 rows at most, rough numbers")
    effort = "the more, the more accurate and the slower"
    _add(group, "--n-samples", effort, default=3000)
    _add(group, "--max-iter", "steps at most", default=100)
    end = "stop when the log density gains less than this"
    _add(group, "--tol", end, default=1e-4)
    _seed(group)
    return group


def _output(
    parser: Any, kind: str, what: str, *, flags: str = "-o --output", **more: Any
) -> None:
    where = "folder" if kind == "FOLDER" else "file"
    _add(parser, flags, f"{where} {what}", type=Path, metavar=kind, **more)


def _table(parser: Any) -> None:
    kinds = "for the result: .csv, .tsv, .npy or .parquet; - is CSV on standard output"
    _output(parser, "FILE", kinds, default=Path("-"))


def _choice(parser: Any, flags: str, what: str, *words: str) -> None:
    """One of several words; the first is the default."""
    _add(parser, flags, what, choices=words, default=words[0])


def _seed(parser: Any) -> None:
    _add(parser, "--seed", "the same seed gives the same result", default=0)


# What arguments can be. The estimators check the numbers.


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _counts(text: str) -> list[int]:
    if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text):
        raise argparse.ArgumentTypeError(f"must be numbers such as 1-4, got {text!r}")
    ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [k for each in ends for k in range(min(each), max(each) + 1)]


def _character(text: str) -> str:
    named = {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)
    if len(named) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return named
