"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from pathlib import Path


def add_data(parser: argparse.ArgumentParser, *, fitted: bool) -> None:
    """A file of data, and how to read it; for a model that exists or is yet to be."""
    group = parser.add_argument_group("data")
    group.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help="CSV, TSV, NPY, NPZ or Parquet file; - for CSV from standard input",
    )
    group.add_argument(
        "-c",
        "--columns",
        action="append",
        metavar="COLUMNS",
        help="columns to use, by name or number from 1: a,b or 1,3-5 (default: "
        + ("those of the model)" if fitted else "all)"),
    )
    group.add_argument(
        "-x",
        "--exclude",
        action="append",
        metavar="COLUMNS",
        help="columns to leave out",
    )
    group.add_argument(
        "-l",
        "--labels",
        metavar="COLUMN",
        help="column of known classes; kept aside, compared with the clusters",
    )
    group.add_argument(
        "--drop-missing", action="store_true", help="leave out rows with missing values"
    )
    if not fitted:
        group.add_argument(
            "--ignore-text", action="store_true", help="leave out columns of text"
        )
        group.add_argument(
            "--ignore-constant",
            action="store_true",
            help="leave out columns that do not vary",
        )
    header = group.add_mutually_exclusive_group()
    header.add_argument(
        "--header",
        action="store_true",
        default=None,
        help="the first line has the names of the columns (default: look at it)",
    )
    header.add_argument(
        "--no-header", action="store_false", dest="header", help="it has data"
    )
    group.add_argument("--delimiter", type=_delimiter, help="what separates the cells")
    group.add_argument("--decimal", default=".", choices=".,", help="the decimal sign")
    group.add_argument(
        "--encoding", default="utf-8-sig", type=_encoding, help="of text files"
    )
    group.add_argument("--array", metavar="NAME", help="which array of an NPZ file")


def add_model(parser: argparse.ArgumentParser) -> None:
    """A model file."""
    parser.add_argument(
        "model", type=Path, metavar="MODEL", help="file that 'land fit' has written"
    )


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """A file for a table."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("-"),
        metavar="FILE",
        help=f"file for {what}: .csv, .tsv, .npy or .parquet (default: CSV on standard "
        "output)",
    )


def add_with_data(parser: argparse.ArgumentParser) -> None:
    """Whether output has the rows that it is about."""
    parser.add_argument(
        "--with-data", action="store_true", help="write the columns of the table too"
    )


def add_fit(parser: argparse.ArgumentParser) -> None:
    """How to fit."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--rho",
        type=number_or_auto,
        default="auto",
        help="regulariser of the metric, or auto (default)",
    )
    group.add_argument(
        "--method",
        choices=("ml", "least_squares"),
        default="ml",
        help="maximum likelihood (default) or the least-squares baseline",
    )
    group.add_argument(
        "--volume",
        choices=("exact", "paper"),
        default="exact",
        help="how the constant is integrated: over the manifold (exact), or as "
        "in the paper's Eq. 7",
    )
    group.add_argument(
        "--reference",
        choices=("lebesgue", "riemannian"),
        default="lebesgue",
        help="what the model is a density of: dx (lebesgue, default), or the metric's "
        "volume as in the paper",
    )
    group.add_argument(
        "--covariance-type",
        choices=("full", "diag", "spherical"),
        default="full",
        help="which covariances are allowed (default: full, which is any)",
    )
    group.add_argument(
        "--init", metavar="RULE", help="first guess: gmm, least_squares or random"
    )
    group.add_argument(
        "--standardize",
        action="store_true",
        help="give all columns mean 0 and variance 1 first; kept in the model and "
        "undone in what is written",
    )
    group.add_argument(
        "--n-samples",
        type=count,
        default=3000,
        metavar="N",
        help="effort for the normalisation constant (default: %(default)s)",
    )
    group.add_argument(
        "--max-iter",
        type=count,
        default=100,
        metavar="N",
        help="largest number of steps",
    )
    group.add_argument(
        "--tol",
        type=positive,
        default=1e-4,
        help="stop when the objective falls by less than this (default: %(default)s)",
    )
    add_seed(group)


def add_seed(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The seed of all randomness."""
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="of randomness (default: 0)"
    )


def positive(text: str) -> float:
    """A positive number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (number > 0.0 and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return number


def number_or_auto(text: str) -> float | str:
    """A positive number, or the word auto."""
    if text == "auto":
        return text
    try:
        return positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"must be a positive number or auto, got {text!r}"
        ) from None


def count(text: str) -> int:
    """A whole number from one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A whole number that NumPy takes as a seed."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to 2^32 - 1, got {text!r}"
        )
    return int(text)


def _delimiter(text: str) -> str:
    named = {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)
    if len(named) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return named


def _encoding(text: str) -> str:
    try:
        "".encode(text)
    except LookupError:
        raise argparse.ArgumentTypeError(f"unknown encoding {text!r}") from None
    return text
