"""Tables from and to files, and the columns and rows of them that a model is fitted to.

Kinds of files are CSV, TSV, NPY, NPZ, Parquet and Excel.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import land
from land.cli.console import CommandError, Console, UsageError
from land.estimators.files import replacing

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
_INPUTS = (*_TEXT, ".npy", ".npz", ".parquet", ".pq", ".xlsx")
TABLES = (".csv", ".tsv", ".npy", ".parquet")
# Words for missing values, beside those that pandas knows.
_MISSING = ["?", "-", "."]
_DELIMITERS = (",", ";", "\t", "|")
# Names of columns that a line has room for.
_SHOWN = 6
# Forms of cells that are numbers for people, and what to do if a column has no others.
# With groups of three digits, a comma is not taken for a decimal sign.
_DATE = r"\d{4}-\d\d?-\d\d?.*|\d\d?([./-])\d\d?\1\d{2,4}.*"
_FORMS = {
    _DATE: ("dates", "; or write them as numbers, such as days since the first one"),
    r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?": (
        "text",
        "; --thousands , reads 5,380 as 5380",
    ),
    r"[-+]?\d{1,3}(\.\d{3})+(,\d+)?": (
        "text",
        "; --decimal , --thousands . reads 1.002,93 as 1002.93",
    ),
    r"[-+]?\d{1,3}( \d{3})+([.,]\d+)?": (
        "text",
        "; --thousands space reads 1 002 as 1002",
    ),
    r"[-+]?\d*,\d+": ("text", "; --decimal , reads 1,5 as 1.5"),
}
# Ratio of spreads above which the narrower column hardly counts in distances.
_UNEQUAL = 20.0


# Reading.


def read_table(path: Path, options: Any) -> pd.DataFrame:
    """Read a file; ``-`` is CSV from standard input.

    Columns of the frame are numbers (float64, NaN where one is missing), or text (None
    where missing).
    """
    from_input, kind = str(path) == "-", path.suffix.lower() or ".csv"
    content = sys.stdin.buffer.read() if from_input else path.read_bytes()
    if kind not in _INPUTS:
        raise CommandError(
            f"{path}: unknown kind of file {kind!r}; convert it to CSV, or name it "
            f"one of {', '.join(_INPUTS)}"
        )
    if options.decimal == options.thousands:
        raise UsageError("--decimal and --thousands must differ")
    try:
        read = _read_text if kind in _TEXT else _read_binary
        table = _numbers_and_text(read(content, kind, options))
    except ImportError:  # of what reads Parquet and Excel
        raise
    except Exception as error:  # whatever the content makes a reader raise
        reason = " ".join(str(error).split())
        raise CommandError(f"{path}: cannot be read as {kind[1:]}: {reason}") from None
    if table.empty:
        raise CommandError(f"{path}: the file has no rows of data; add some")
    return table


def _read_text(content: bytes, kind: str, options: Any) -> pd.DataFrame:
    try:
        text = content.decode(options.encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(
            f"not text in {options.encoding}; give its encoding, for example "
            "--encoding latin-1 or --encoding utf-16"
        )
    if not text.strip():
        raise ValueError("the file is empty")
    text = text.lstrip("\r\n").removeprefix("#")  # as numpy.savetxt marks its header
    delimiter = options.delimiter or _delimiter(text, kind, options.decimal)
    read = partial(
        pd.read_csv,
        sep=r"\s+" if delimiter == " " else delimiter,
        decimal=options.decimal,
        thousands=options.thousands,
        na_values=_MISSING,
        skipinitialspace=True,
        low_memory=False,
    )
    # Without names first: pandas would take cells beyond the names for an index.
    nameless, named = (read(io.StringIO(text), header=row) for row in (None, 0))
    header = options.header
    if header is None:  # names are text above numbers, or there are no numbers at all
        count = len(_numeric(nameless))
        header = len(_numeric(named)) > count or count == 0
    table = named if header else _numbered(nameless)
    return table.dropna(how="all")


def _delimiter(text: str, kind: str, decimal: str) -> str:
    """What separates the cells of the first line."""
    if kind in (".tsv", ".tab"):
        return "\t"
    line = text.splitlines()[0]
    best = max((each for each in _DELIMITERS if each != decimal), key=line.count)
    if best in line:
        return best
    return " " if len(line.split()) > 1 and kind != ".csv" else ","


def _read_binary(content: bytes, kind: str, options: Any) -> pd.DataFrame:
    """Arrays, a Parquet file, or the first sheet of an Excel file."""
    stream = io.BytesIO(content)
    if kind in (".npy", ".npz"):
        return _from_arrays(np.load(stream, allow_pickle=False))
    if kind != ".xlsx":
        return pd.read_parquet(stream)
    header = None if options.header is False else 0
    table = pd.read_excel(stream, header=header, na_values=_MISSING)
    return table if header == 0 else _numbered(table)


def _from_arrays(loaded: Any) -> pd.DataFrame:
    """The array X, or the only one of two axes, and arrays of as many labels."""
    arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    matrices = [name for name in arrays if arrays[name].ndim == 2]
    name = "X" if "X" in arrays or len(matrices) != 1 else matrices[0]
    if name not in arrays:
        raise ValueError(f"one of its arrays must be X, got {', '.join(arrays)}")
    array = arrays.pop(name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"the array must have 2 axes, rows and columns, got shape {array.shape}"
        )
    table = pd.DataFrame(array)
    if array.dtype.names is None:
        table = _numbered(table)
    labels = {
        key: each for key, each in arrays.items() if each.shape == array.shape[:1]
    }
    return table.assign(**labels)


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """The table, whose columns have no names, with x1, x2, ... for names."""
    return table.set_axis([f"x{k + 1}" for k in range(table.shape[1])], axis=1)


def _numeric(table: pd.DataFrame) -> pd.Index:
    """The columns that hold numbers, as opposed to text."""
    return table.select_dtypes(["number", "bool"]).columns


def _numbers_and_text(table: pd.DataFrame) -> pd.DataFrame:
    """Columns as float64, or as text with None where it is missing."""
    numeric, columns = _numeric(table), {}
    for name in table:
        column = table[name]
        if name in numeric:
            column = column.astype(float).replace([np.inf, -np.inf], np.nan)
        else:
            text = column.astype(str).str.strip().astype(object)
            column = text.where(column.notna(), None)
        columns[str(name).strip()] = column
    return pd.DataFrame(columns).set_axis(pd.RangeIndex(len(table)) + 1)


# What is fitted to.


@dataclass(frozen=True)
class Data:
    """The columns of numbers that a model is for, and labels that are kept aside.

    Both are indexed by the number of the row in the file, from one. Labels are None
    where they are missing.
    """

    numbers: pd.DataFrame
    labels: pd.Series | None = None

    @property
    def X(self) -> np.ndarray:  # noqa: N802
        """The numbers as a matrix (n, D)."""
        return np.ascontiguousarray(self.numbers)

    @property
    def label(self) -> str | None:
        """The name of the column of labels."""
        return None if self.labels is None else str(self.labels.name)

    def some(self, count: int, seed: int) -> Data:
        """At most so many rows, chosen at random, in their order."""
        count = min(count, len(self.numbers))
        numbers = self.numbers.sample(count, random_state=seed).sort_index()
        labels = None if self.labels is None else self.labels[numbers.index]
        return Data(numbers, labels)

    def columns(self, with_numbers: bool) -> dict[str, Any]:
        """Number and label of each row, and its numbers if they are wanted."""
        columns: dict[str, Any] = {"row": self.numbers.index}
        columns |= dict(self.numbers) if with_numbers else {}
        return columns | (
            {} if self.labels is None else {self.labels.name: self.labels}
        )

    def agreement(self, clusters: np.ndarray) -> dict[str, Any]:
        """F-measure of clusters against the labels, if there are any."""
        if self.labels is None or self.labels.isna().all():
            return {}
        known = self.labels.notna()
        value = land.f_measure(self.labels[known].tolist(), clusters[known].tolist())
        return {"f_measure": value, "label": self.label}


def read_data(
    options: Any, console: Console, expected: Any = None, usual_label: Any = None
) -> Data:
    """Read the file of `options.data` and choose its columns.

    Those of a model are `expected`, and must be there. Otherwise all columns are taken,
    and must be numbers that vary. `usual_label` names the column of labels, if it is
    there and the options name no other.
    """
    console.say(f"reading {options.data}")
    table = read_table(options.data, options)
    label = usual_label if usual_label in table else None
    if options.labels:
        label, *more = _find(table, options.labels)
        if more:
            raise UsageError(f"--labels must name one column, got {options.labels!r}")
    chosen, fitting = table[_choose(table, options, label, expected)], expected is None
    problems = list(_problems(chosen, options, fitting))
    if problems:
        raise CommandError(f"{options.data}: {'; '.join(problems)}")
    numbers = chosen.dropna()
    lost = len(chosen) - len(numbers)
    if lost:
        console.warn(f"left out {lost} of {len(chosen)} rows: values are missing")
    console.say(f"{len(numbers)} rows, columns {listed(list(numbers))}")
    if fitting:
        _warn(numbers, options, console)
    labels = None
    if label is not None and table[label].notna().any():
        labels = _labels(table[label][numbers.index])
    return Data(numbers, labels)


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + f" and {rest} more" * (rest > 0)


def _choose(
    table: pd.DataFrame, options: Any, label: str | None, expected: list[str] | None
) -> list[str]:
    """The columns that were asked for, or are expected."""
    has = f"{options.data} has {listed(list(table))}"
    if expected is not None and not options.columns:
        missing = [name for name in expected if name not in table]
        if missing:
            raise CommandError(
                f"no column {missing[0]!r}: {has}; say which columns stand for "
                f"{listed(expected)} with --columns"
            )
        return expected
    chosen = [name for name in table if name != label]
    if options.columns:
        chosen = [name for each in options.columns for name in _find(table, each)]
    left_out = [name for each in options.exclude or [] for name in _find(table, each)]
    chosen = [name for name in chosen if name not in left_out]
    if not chosen or len(set(chosen)) < len(chosen):
        raise CommandError(
            f"--columns and --exclude must leave columns that are all different; {has}"
        )
    if expected is not None and len(chosen) != len(expected):
        raise CommandError(
            f"--columns must name {len(expected)} columns, which stand for "
            f"{listed(expected)}, got {len(chosen)}"
        )
    return chosen


def _find(table: pd.DataFrame, wanted: str) -> list[str]:
    """Columns by name or number from one, several of them separated by commas."""
    names, found = list(table), []
    for part in [wanted] if wanted in names else wanted.split(","):
        name = part.strip()
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", name) or ("", "0", "0")
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        if name in names:
            found.append(name)
        elif 1 <= first <= last <= len(names):
            found += names[first - 1 : last]
        else:
            raise CommandError(
                f"no column {name!r}: there are {listed(names)}, numbered from 1"
            )
    return found


def _labels(column: pd.Series) -> pd.Series:
    """Labels as they are to be shown: text, or whole numbers without a point."""
    if len(_numeric(column.to_frame())) and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(object).where(column.notna(), None)


def _problems(table: pd.DataFrame, options: Any, fitting: bool) -> Iterator[str]:
    """All that is wrong with the columns, with what to do about it."""
    if table.empty:
        yield "no column of numbers is left (choose others: --columns)"
    numbers = table[_numeric(table)]
    for name in table.columns.difference(numbers.columns, sort=False):
        yield _text_problem(table[name], options, fitting and not options.columns)
    empty = list(numbers.columns[numbers.isna().all()]) if fitting else []
    if empty:
        yield f"without any value: {listed(empty)} (leave out with --exclude)"
    numbers = numbers.drop(columns=empty)
    missing = numbers.isna()
    incomplete = missing.any(axis=1)
    if incomplete.any():
        row = incomplete.idxmax()
        first = f"row {row}, column {missing.loc[row].idxmax()!r}"
        if incomplete.all():
            yield f"every row lacks a value, as {first} (leave out columns: --exclude)"
        elif not options.drop_missing:
            yield (
                f"{incomplete.sum()} of {len(table)} rows have missing or infinite "
                f"values, the first in {first} (leave out these rows with "
                "--drop-missing, or fill them in)"
            )
    constant = list(numbers.columns[numbers.nunique() < 2])
    if fitting and (~incomplete).sum() == 1:
        yield "one row of data is too few to fit a model to (add rows)"
    elif fitting and constant:
        yield f"constant: {listed(constant)} (leave out with --exclude)"


def _text_problem(column: pd.Series, options: Any, ignorable: bool) -> str:
    """Where there is text, and what to do; `ignorable` if it was not asked for."""
    name, words = column.name, column.dropna()
    plain = words.str.replace(options.decimal, ".")
    numbers = pd.to_numeric(plain, errors="coerce")
    odd = words[numbers.isna()]
    odd = odd if len(odd) else words
    row, text = next(odd.items())
    forms = (each for each in _FORMS.items() if odd.str.fullmatch(each[0]).all())
    (_, (kind, hint)) = next(forms, ("", ("text", "")))
    remedy = "correct it, or choose other columns"
    if ignorable:
        remedy = f"keep it aside with --labels {name!r}, or out with --exclude"
    return f"column {name!r} holds {kind}, {text[:40]!r} in row {row} ({remedy}{hint})"


def _warn(numbers: pd.DataFrame, options: Any, console: Console) -> None:
    """Say what is odd about columns that are to be fitted to."""
    for name in [] if options.columns else numbers:
        if len(numbers) > 2 and (numbers[name].diff().iloc[1:] == 1.0).all():
            console.warn(
                f"column {name!r} counts the rows; if it means nothing, leave it out "
                f"with --exclude {name!r}"
            )
    spreads = numbers.std()
    ratio = spreads.max() / spreads.min()
    if ratio > _UNEQUAL and not options.standardize:
        console.warn(
            f"column {spreads.idxmax()!r} varies {ratio:.2g} times as much as "
            f"{spreads.idxmin()!r}, which hardly counts in distances; --standardize "
            "gives all columns the same weight"
        )


# Writing.


def check_output(path: Path | None, kinds: Sequence[str] | None = None) -> None:
    """Refuse an output that cannot be written, before work is spent on it."""
    if path is None or str(path) == "-":
        return
    if path.is_dir():
        raise CommandError(f"{path}: it is a folder; name a file")
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    if kinds is not None and path.suffix.lower() not in kinds:
        raise UsageError(
            f"{path}: unknown kind of file {path.suffix!r}; use {', '.join(kinds)}"
        )
    if not os.access(path.absolute().parent, os.W_OK):
        raise CommandError(
            f"{path}: its folder does not exist or is read-only; make it, or choose "
            "another"
        )


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    table, kind = pd.DataFrame(columns), path.suffix.lower()
    if str(path) == "-":
        table.to_csv(sys.stdout, index=False)
        sys.stdout.flush()
        return
    if kind == ".npy" and len(_numeric(table)) < table.shape[1]:
        raise CommandError(f"{path}: NPY holds numbers only; write CSV or Parquet")
    with replacing(path) as stream:
        if kind == ".npy":
            np.save(stream, table.to_numpy(dtype=np.float64), allow_pickle=False)
        elif kind == ".parquet":
            table.to_parquet(stream, index=False)
        else:
            table.to_csv(stream, index=False, sep="\t" if kind == ".tsv" else ",")


def text_table(table: pd.DataFrame) -> str:
    """A table for people to read: numbers to six digits, nothing for None."""
    return table.to_string(index=False, float_format="{:.6g}".format, na_rep="")
