"""The arguments of the commands: a function for each, whose docstring --help shows."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any


def demo(parser: Any) -> None:
    """Compare LAND with a Gaussian mixture and least squares on built-in data.

    Writes a figure and a table. The models are fitted to half of the data; the table
    has the mean log density of the other half, and for clusters the F-measure.
    """
    _folder(parser, "land-demo", "figure and table")
    _seed(parser)


def fit(parser: Any) -> None:
    """Fit a LAND, or a mixture of them, to the rows of a table.

    An interrupt (Ctrl-C) ends the fit early: the model reached so far is written,
    marked as interrupted, and the exit code is 130. Once the search for a start has
    ended, the progress is kept beside the model, in MODEL.checkpoint, until the fit has
    ended: the same command with --resume goes on from there, also after a crash.
    """
    _data(parser, fitted=False)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="MODEL", help="model file")
    add("-k", "--components", type=count, default=1, metavar="K", help="default: 1")
    group = _model(parser)
    group("--sigma", type=number_or_auto, default="auto", help=_SIGMA)
    group("--optimizer", choices=("auto", "paper"), default="auto", help="paper: K=1")
    group("--n-init", type=count, default=1, metavar="N", help="fits to choose from")
    add("--resume", action="store_true", help="go on from MODEL.checkpoint")


def score(parser: Any) -> None:
    """Log densities of the rows of a table under a model.

    They are in the units of the table, whether or not the model was fitted to
    standardised columns, and can be compared with those of any other density.
    """
    _rows(parser, "the log densities")
    parser.add_argument(
        "--measure",
        choices=("lebesgue", "riemannian"),
        default="lebesgue",
        help="density with respect to dx (default), or to the metric's volume",
    )


def predict(parser: Any) -> None:
    """Clusters of the rows of a table, and probabilities of belonging to each.

    A row is in the component that is most responsible for it. With a column of labels,
    the F-measure says how well clusters and labels agree.
    """
    _rows(parser, "the clusters")


def sample(parser: Any) -> None:
    """Draw points from a model, in the units of the table it was fitted to.

    Points of a mixture come with their component, grouped by it.
    """
    _model_file(parser)
    _table(parser, "the points")
    parser.add_argument(
        "-n", "--number", type=count, default=100, metavar="N", help="default: 100"
    )
    _seed(parser)


def plot(parser: Any) -> None:
    """Draw a model: PNG, PDF or SVG, as the name of the file says.

    density            contours, data, means and covariances (two columns)
    pairs              clusters, means and covariances in each pair of columns
    view3d             the same in the space of the first three columns
    metric             how long a step is, at each place (two columns)
    responsibilities   geodesics from the means to their data (two columns)
    history            the objective at each step of the fit
    """
    _model_file(parser)
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, metavar="FIGURE", help="the file")
    kinds = ("density", "pairs", "view3d", "metric", "responsibilities", "history")
    default = "(default: density, or pairs for more than two columns)"
    add("--kind", choices=kinds, help=f"what to draw {default}")
    wide = "points of the density along each axis (default: 60)"
    add("--grid", type=count, default=60, metavar="N", help=wide)


def select(parser: Any) -> None:
    """Choose the number of components, and sigma, by BIC, AIC or held-out rows.

    An interrupt (Ctrl-C) ends the search: the best of the candidates fitted so far is
    chosen, and the exit code is 130.
    """
    _data(parser, fitted=False)
    add = parser.add_argument
    add(
        "-k",
        "--components",
        type=_counts,
        default=(1, 2, 3, 4),
        metavar="K",
        help="numbers of components to try: 1-4 (default) or 2,3,5",
    )
    add(
        "--criterion",
        choices=("bic", "aic", "held_out"),
        default="bic",
        help="what to choose by (default: bic)",
    )
    add("--held-out", action="store_true", help="compute held-out densities as well")
    both = "candidates fitted at the same time (default: 1)"
    add("-j", "--jobs", type=count, default=1, metavar="N", help=both)
    add("-o", "--output", type=Path, metavar="MODEL", help="file for the chosen model")
    add("--table", type=Path, metavar="FILE", help="file for the table of candidates")
    tried = f"{_SIGMA}; several: auto,0.2,0.5"
    _model(parser)("--sigma", type=_sigmas, default=("auto",), help=tried)


def info(parser: Any) -> None:
    """Show what is in a model file, in the units of the table it was fitted to."""
    _model_file(parser)


def reproduce(parser: Any) -> None:
    """Compute figures and tables of the paper anew, with a verdict on each claim.

    The experiments are in land's repository, not in the installed package. Those on
    real data download them, or look for them in the folder of --data.
    """
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="an experiment, or 'all'; see --list")
    add("--list", action="store_true", help="list the experiments")
    add("--quick", action="store_true", help="fewer data and rougher numbers")
    add("--data", type=Path, metavar="FOLDER", help="folder of the real data")
    _folder(parser, "land-reproduce", "figures and tables")


_SIGMA = "size of the neighbourhoods, or auto (default)"


def _data(parser: Any, *, fitted: bool) -> None:
    """A file of data and how to read it, for a model that exists or is yet to be."""
    add = (group := parser.add_argument_group("data")).add_argument
    kinds = "CSV, TSV, NPY, NPZ or Parquet file; - for CSV from standard input"
    add("data", type=Path, metavar="DATA", help=kinds)
    which = f"(default: {'those of the model' if fitted else 'all'})"
    named = f"columns to use, by name or number from 1: a,b or 1,3-5 {which}"
    add("-c", "--columns", action="append", metavar="COLUMNS", help=named)
    out = "columns to leave out"
    add("-x", "--exclude", action="append", metavar="COLUMNS", help=out)
    aside = "column of known classes; kept aside, compared with the clusters"
    add("-l", "--labels", metavar="COLUMN", help=aside)
    leave = {"action": "store_true"}
    add("--drop-missing", **leave, help="leave out rows with missing values")
    if not fitted:
        add("--ignore-text", **leave, help="leave out columns of text")
        add("--ignore-constant", **leave, help="leave out columns that do not vary")
    header = group.add_mutually_exclusive_group().add_argument
    names = "the first line has the names of the columns (default: look at it)"
    header("--header", action="store_true", default=None, help=names)
    header("--no-header", action="store_false", dest="header", help="it has data")
    add("--delimiter", type=_delimiter, help="what separates the cells")
    add("--decimal", default=".", choices=".,", help="the decimal sign")
    add("--thousands", type=_delimiter, help="what groups digits, as in 1,002.93")
    add("--encoding", default="utf-8-sig", type=_encoding, help="of text files")
    add("--array", metavar="NAME", help="which array of an NPZ file")


def _rows(parser: Any, what: str) -> None:
    """A model, a file of data, and a file for what the one says about the other."""
    _model_file(parser)
    _data(parser, fitted=True)
    _table(parser, what)
    both = "write the columns of the table too"
    parser.add_argument("--with-data", action="store_true", help=both)


def _model_file(parser: Any) -> None:
    written = "file that 'land fit' has written"
    parser.add_argument("model", type=Path, metavar="MODEL", help=written)


def _table(parser: Any, what: str) -> None:
    kinds = ".csv, .tsv, .npy or .parquet (default: CSV on standard output)"
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("-"),
        metavar="FILE",
        help=f"file for {what}: {kinds}",
    )


def _folder(parser: Any, name: str, what: str) -> None:
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path(name),
        metavar="FOLDER",
        help=f"folder for {what} (default: {name})",
    )


def _model(parser: Any) -> Any:
    """How to fit; more can be added by what is returned."""
    add = (group := parser.add_argument_group("model")).add_argument

    def choose(name: str, choices: tuple[str, ...], meaning: str) -> None:
        add(name, choices=choices, default=choices[0], help=f"{meaning} (the default)")

    choose("--method", ("ml", "least_squares"), "ml: maximum likelihood")
    choose("--volume", ("exact", "paper"), "exact: the density integrates to one")
    of = "lebesgue: a density in the units of the data"
    choose("--reference", ("lebesgue", "riemannian"), of)
    covariances = ("full", "diag", "spherical")
    choose("--covariance-type", covariances, "full: any covariances")
    flat = "larger values make space flatter, or auto (default)"
    add("--rho", type=number_or_auto, default="auto", help=flat)
    add("--init", metavar="RULE", help="first guess: gmm, least_squares or random")
    scaled = "give all columns mean 0 and variance 1 first; undone in what is written"
    add("--standardize", action="store_true", help=scaled)
    rays = "random points behind each density: more are more exact (default: 3000)"
    add("--n-samples", type=count, default=3000, metavar="N", help=rays)
    steps = "largest number of steps (default: 100)"
    add("--max-iter", type=count, default=100, metavar="N", help=steps)
    end = "stop when the log density gains less than this (default: 0.0001)"
    add("--tol", type=positive, default=1e-4, help=end)
    _seed(group)
    return add


def _seed(parser: Any) -> None:
    same = "the same seed gives the same result (default: 0)"
    parser.add_argument("--seed", type=_seed_number, default=0, metavar="N", help=same)


# What arguments are.


def _is(good: bool, expected: str, text: str) -> None:
    if not good:
        raise argparse.ArgumentTypeError(f"must be {expected}, got {text!r}")


def positive(text: str, expected: str = "a positive number") -> float:
    """A positive number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    _is(0.0 < number < math.inf, expected, text)
    return number


def number_or_auto(text: str) -> float | str:
    """A positive number, or the word auto."""
    return text if text == "auto" else positive(text, "a positive number or auto")


def count(text: str) -> int:
    """A whole number from one."""
    _is(text.isdecimal() and int(text) > 0, "a whole number from 1", text)
    return int(text)


def _seed_number(text: str) -> int:
    small = text.isdecimal() and int(text) < 2**32
    _is(small, "a whole number from 0 to 2^32 - 1", text)
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    counts: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        counts += range(count(first), count(last or first) + 1)
    _is(bool(counts), "numbers such as 1-4", text)
    return tuple(counts)


def _sigmas(text: str) -> tuple[float | str, ...]:
    return tuple(number_or_auto(part) for part in text.split(","))


def _delimiter(text: str) -> str:
    named = {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)
    _is(len(named) == 1, "one character", text)
    return named


def _encoding(text: str) -> str:
    try:
        "".encode(text)
    except LookupError:
        raise argparse.ArgumentTypeError(f"unknown encoding {text!r}") from None
    return text
