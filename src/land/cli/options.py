"""The arguments of the commands: a function for each, whose docstring --help shows."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

_FLAG: dict[str, Any] = {"action": "store_true"}
_FILE: dict[str, Any] = {"type": Path, "metavar": "FILE"}
_SIGMA = "how far around each row the model looks: a distance, auto (default) or learn"


def demo(parser: Any) -> None:
    """Compare LAND with other models on built-in data.

    Writes a figure and a table. The models, also a Gaussian mixture and least squares,
    are fitted to half of the data; the table has the mean log density of the other
    half, and for clusters the F-measure.
    """
    _folder(parser, "for figure and table", "land-demo")
    _seed(parser)


def fit(parser: Any) -> None:
    """Fit a LAND, or a mixture of them, to the rows of a table.

    An interrupt (Ctrl-C) ends the fit early: the model reached so far is written,
    marked as interrupted, and the exit code is 130. Once the search for a start has
    ended, the progress is kept beside the model, in MODEL.checkpoint, until the fit has
    ended: the same command with --resume goes on from there, also after a crash.
    """
    _one_model(parser, "MODEL", "file for the model")
    parser.add_argument("--resume", **_FLAG, help="go on from MODEL.checkpoint")


def report(parser: Any) -> None:
    """Fit a model and write a page about it, to be handed over.

    The page is one HTML file that needs no network. It compares the model with
    Gaussian mixtures and a kernel density estimate on rows that were held out, which
    takes a second fit, and shows densities, clusters, geodesics, samples and settings.
    """
    _one_model(parser, "PAGE", "file for the page: .html")


def score(parser: Any) -> None:
    """Log densities of the rows of a table under a model.

    They are in the units of the table, whether or not the model was fitted to
    standardised columns, and can be compared with those of any other density.
    """
    _rows(parser, "for the log densities")


def predict(parser: Any) -> None:
    """Clusters of the rows of a table, and probabilities of belonging to each.

    A row is in its most probable component. With a column of labels,
    the F-measure says how well clusters and labels agree.
    """
    _rows(parser, "for the clusters")


def sample(parser: Any) -> None:
    """Draw points from a model, in the units of the table it was fitted to.

    Points of a mixture come with their component, grouped by it.
    """
    info(parser)
    _table(parser, "for the points")
    _number(parser, "-n --number", 100, "points")
    _seed(parser)


def plot(parser: Any) -> None:
    """Draw a model: PNG, PDF or SVG, as the name of the file says.

    density            contours, data, means and covariances (one or two columns)
    pairs              clusters, means and covariances in each pair of columns
    view3d             the same in the space of the first three columns
    metric             how long a step is, at each place (two columns)
    responsibilities   geodesics from the means to their data (two columns)
    history            the progress of the fit, step by step
    """
    info(parser)
    _output(parser, "FIGURE", "file for the figure", required=True)
    kinds = ("density", "pairs", "view3d", "metric", "responsibilities", "history")
    usual = "what to draw (default: density, or pairs for more than two columns)"
    parser.add_argument("--kind", choices=kinds, help=usual)
    _number(parser, "--grid", 60, "points of the density along each axis")


def select(parser: Any) -> None:
    """Choose the number of components, and sigma, by BIC, AIC or held-out rows.

    An interrupt (Ctrl-C) ends the search: the best of the candidates fitted so far is
    chosen, and the exit code is 130.
    """
    _data(parser, fitted=False)
    add = parser.add_argument
    tried = {"type": _counts, "default": (1, 2, 3, 4), "metavar": "K"}
    add("-k", "--components", **tried, help="to try: 1-4 (default) or 2,3,5")
    _choice(parser, "--criterion", ("bic", "aic", "held_out"), "what to choose by")
    _number(parser, "-j --jobs", 1, "candidates fitted at the same time")
    _output(parser, "MODEL", "file for the chosen model")
    add("--table", **_FILE, help="file for the table of candidates")
    several = f"{_SIGMA}; several: auto,0.2,0.5"
    _model(parser, type=_sigmas, default=("auto",), help=several)


def info(parser: Any) -> None:
    """Show what is in a model file, in the units of the table it was fitted to."""
    written = "file that 'land fit' has written"
    parser.add_argument("model", type=Path, metavar="MODEL", help=written)


def reproduce(parser: Any) -> None:
    """Compute figures and tables of the paper anew, with a verdict on each claim.

    The experiments are in land's repository, not in the installed package. Those on
    real data download them, or look for them in the folder of --data.
    """
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="an experiment, or 'all'; see --list")
    add("--list", **_FLAG, help="list the experiments")
    add("--quick", **_FLAG, help="fewer data and rougher numbers")
    add("--data", type=Path, metavar="FOLDER", help="folder of the real data")
    _folder(parser, "for figures and tables", "land-reproduce")


# What several commands share.


def _data(parser: Any, *, fitted: bool) -> None:
    """A file of data and how to read it, for a model that exists or is yet to be."""
    add = parser.add_argument_group("data").add_argument
    kinds = "CSV, TSV, NPY, NPZ, Parquet or Excel file; - for CSV from standard input"
    add("data", type=Path, metavar="DATA", help=kinds)
    which = f"(default: {'those of the model' if fitted else 'all'})"
    several = {"action": "append", "metavar": "COLUMNS"}
    named = f"columns to use, by name or number from 1: a,b or 1,3-5 {which}"
    add("-c", "--columns", **several, help=named)
    add("-x", "--exclude", **several, help="columns to leave out")
    aside = "column of known classes; kept aside, compared with the clusters"
    add("-l", "--labels", metavar="COLUMN", help=aside)
    add("--drop-missing", **_FLAG, help="leave out rows with missing values")
    if not fitted:
        add("--ignore-text", **_FLAG, help="leave out columns of text")
        add("--ignore-constant", **_FLAG, help="leave out columns that do not vary")
    names = "whether the first line has the names of the columns (default: look at it)"
    add("--header", action=argparse.BooleanOptionalAction, help=names)
    add("--delimiter", type=_character, help="what separates the cells")
    usual = "as for the fit" if fitted else "."
    decimal = {"choices": ".,", "help": f"the decimal sign (default: {usual})"}
    add("--decimal", default=None if fitted else ".", **decimal)
    add("--thousands", type=_character, help="what groups digits, as in 1,002.93")
    add("--encoding", default="utf-8-sig", help="of text files")


def _rows(parser: Any, what: str) -> None:
    """A model, a file of data, and a file for the result."""
    info(parser)
    _data(parser, fitted=True)
    _table(parser, what)
    parser.add_argument("--with-data", **_FLAG, help="write the table's columns too")


def _model(parser: Any, **sigma: Any) -> Any:
    """How to fit; returns the group of arguments."""
    group = parser.add_argument_group("model")
    add = group.add_argument
    add("--sigma", **sigma)
    flat = "how freely the model leaves the data: a variance, auto or learn"
    add("--rho", type=_number_or_word, default="auto", help=flat)
    learned = "what the model learns from the data around a place"
    _choice(group, "--metric", ("diagonal", "full", "density"), learned)
    methods = ("ml", "least_squares")
    _choice(group, "--method", methods, "maximum likelihood, or a quick baseline")
    covariances = ("full", "diag", "spherical")
    _choice(group, "--covariance-type", covariances, "shape of the components")
    scaled = "give all columns mean 0 and variance 1 first; undone in what is written"
    add("--standardize", **_FLAG, help=scaled)
    quick = "a first look, in seconds: 200 rows at most, rough numbers"
    add("--preview", **_FLAG, help=quick)
    _number(group, "--n-samples", 3000, "the more, the more accurate and the slower")
    _number(group, "--max-iter", 100, "steps at most")
    end = "stop when the log density gains less than this (default: 0.0001)"
    add("--tol", type=_positive, default=1e-4, help=end)
    _seed(group)
    return group


def _one_model(parser: Any, kind: str, what: str) -> None:
    """Data, how to fit one model to them, and a file for the result."""
    _data(parser, fitted=False)
    _output(parser, kind, what, required=True)
    _number(parser, "-k --components", 1, "components of the mixture")
    group = _model(parser, type=_number_or_word, default="auto", help=_SIGMA)
    _number(group, "--n-init", 1, "fits to choose from")


def _output(parser: Any, kind: str, what: str, **more: Any) -> None:
    parser.add_argument("-o", "--output", type=Path, metavar=kind, help=what, **more)


def _folder(parser: Any, what: str, usual: str) -> None:
    what = f"folder {what} (default: {usual})"
    _output(parser, "FOLDER", what, default=Path(usual))


def _table(parser: Any, what: str) -> None:
    kinds = ".csv, .tsv, .npy or .parquet (default: CSV on standard output)"
    _output(parser, "FILE", f"file {what}: {kinds}", default=Path("-"))


def _choice(parser: Any, name: str, choices: tuple[str, ...], what: str) -> None:
    usual = f"{what} (default: {choices[0]})"
    parser.add_argument(name, choices=choices, default=choices[0], help=usual)


def _number(parser: Any, flags: str, default: int, what: str) -> None:
    """A whole number from one; the flags are separated by blanks."""
    settings = {"type": _count, "default": default, "metavar": "N"}
    usual = f"{what} (default: {default})"
    parser.add_argument(*flags.split(), **settings, help=usual)


def _seed(parser: Any) -> None:
    same = "the same seed gives the same result (default: 0)"
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=same)


# What arguments can be.


def _positive(text: str, expected: str = "a positive number") -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text!r}")
    return value


def _number_or_word(text: str) -> float | str:
    """A positive number, or a word for the estimator."""
    words = ("auto", "learn")
    return (
        text if text in words else _positive(text, "a positive number, auto or learn")
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    counts: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        counts += range(_count(first), _count(last or first) + 1)
    if not counts:
        raise argparse.ArgumentTypeError(f"must be numbers such as 1-4, got {text!r}")
    return tuple(counts)


def _sigmas(text: str) -> tuple[float | str, ...]:
    return tuple(_number_or_word(part) for part in text.split(","))


def _character(text: str) -> str:
    named = {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)
    if len(named) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return named
