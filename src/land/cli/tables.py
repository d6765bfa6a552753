"""Tables as data frames, from and to files: CSV, TSV, NPY, NPZ, Parquet, Excel."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from land.cli.console import CommandError, UsageError

if TYPE_CHECKING:
    import pandas as pd

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
INPUTS = (*_TEXT, ".npy", ".npz", ".parquet", ".pq", ".xlsx")
TABLES = (".csv", ".tsv", ".npy", ".parquet")
FIGURES = (".png", ".pdf", ".svg")
# Words for missing values, beside those that pandas knows.
_MISSING = ["?", "-", "."]
_DELIMITERS = (",", ";", "\t", "|")


def read_table(path: Path, options: Any) -> pd.DataFrame:
    """Read a file of one of the kinds of `INPUTS`; ``-`` is CSV from standard input.

    Columns of the frame are numbers (float64, NaN where one is missing), or text (None
    where missing). `attrs` has the `source`, for messages.
    """
    source, kind = str(path), path.suffix.lower()
    if source == "-":
        source, kind, content = "standard input", ".csv", sys.stdin.buffer.read()
    else:
        content = path.read_bytes()
    if kind not in INPUTS:
        raise CommandError(
            f"{path}: unknown kind of file {kind!r}; convert it to CSV, or name it "
            f"one of {', '.join(INPUTS)}"
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
        raise CommandError(
            f"{source}: cannot be read as {kind[1:]}: {reason}"
        ) from None
    if table.empty:
        raise CommandError(f"{source}: the file has no rows of data; add some")
    table.attrs["source"] = source
    return table


def _read_text(content: bytes, kind: str, options: Any) -> pd.DataFrame:
    import pandas as pd

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
        count = is_numeric(nameless).sum()
        header = is_numeric(named).sum() > count or count == 0
    table = named if header else _numbered(nameless)
    return table.dropna(how="all", ignore_index=True)


def _delimiter(text: str, kind: str, decimal: str) -> str:
    """What separates the cells of the first line, for which no one has told us."""
    if kind in (".tsv", ".tab"):
        return "\t"
    line = text.splitlines()[0]
    best = max((each for each in _DELIMITERS if each != decimal), key=line.count)
    if best in line:
        return best
    return " " if len(line.split()) > 1 and kind != ".csv" else ","


def _read_binary(content: bytes, kind: str, options: Any) -> pd.DataFrame:
    """Arrays, a Parquet file, or the first sheet of an Excel file."""
    import pandas as pd

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
    import pandas as pd

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
        name: each for name, each in arrays.items() if each.shape == (len(array),)
    }
    return table.assign(**labels)


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """The table, whose columns have no names, with x1, x2, ... for names."""
    return table.set_axis([f"x{k + 1}" for k in range(table.shape[1])], axis=1)


def _numbers_and_text(table: pd.DataFrame) -> pd.DataFrame:
    """Columns as float64, or as text with None where it is missing."""
    columns = {}
    for name, numeric in zip(table, is_numeric(table), strict=True):
        column = table[name]
        text = column.astype(str).str.strip().astype(object)
        columns[str(name).strip()] = (
            column.astype(float) if numeric else text.where(column.notna(), None)
        )
    return type(table)(columns)


def is_numeric(table: pd.DataFrame) -> np.ndarray:
    """Which columns hold numbers, as opposed to text."""
    from pandas.api.types import is_numeric_dtype

    return np.array([is_numeric_dtype(kind) for kind in table.dtypes], dtype=bool)


# What commands write.


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
    folder = path.absolute().parent
    if not os.access(folder, os.W_OK):
        what = "is read-only" if folder.is_dir() else "does not exist; make it first"
        raise CommandError(f"{path}: its folder {what}, or choose another place")


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    import pandas as pd

    from land.estimators.files import replacing

    table, kind = pd.DataFrame(columns), path.suffix.lower()
    if str(path) == "-":
        table.to_csv(sys.stdout, index=False)
        sys.stdout.flush()
        return
    if kind == ".npy" and not is_numeric(table).all():
        raise CommandError(f"{path}: NPY holds numbers only; write CSV or Parquet")
    with replacing(path) as stream:
        if kind == ".npy":
            np.save(stream, table.to_numpy(dtype=np.float64), allow_pickle=False)
        elif kind == ".parquet":
            table.to_parquet(stream, index=False)
        else:
            table.to_csv(stream, index=False, sep="\t" if kind == ".tsv" else ",")


def text_table(columns: Mapping[str, Any]) -> str:
    """Columns for people to read: numbers to six digits, nothing for None."""
    import pandas as pd

    table = pd.DataFrame({name: list(each) for name, each in columns.items()})
    return table.to_string(index=False, float_format="{:.6g}".format, na_rep="")
