"""Tables as data frames, from and to files: CSV, TSV, NPY, NPZ, Parquet, Excel."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from land.cli.console import CommandError, Console, UsageError

if TYPE_CHECKING:
    import pandas as pd

_TEXT = (".csv", ".tsv", ".tab", ".txt", ".dat")
INPUTS = (*_TEXT, ".npy", ".npz", ".parquet", ".pq", ".xlsx")
TABLES = (".csv", ".tsv", ".npy", ".parquet")
FIGURES = (".png", ".pdf", ".svg")
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", ".")
_DELIMITERS = (",", ";", "\t", "|")


def read_table(path: Path, options: Any) -> pd.DataFrame:
    """Read a file of one of the kinds of `INPUTS`; ``-`` is CSV from standard input.

    Columns of the frame are numbers (float64, NaN where one is missing), or text (None
    where missing); no two have the same name. `attrs` has the `source`, for
    messages, and of text the `delimiter`.
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
        table = read(content, kind, options)
    except (CommandError, ImportError):  # of what reads Parquet and Excel
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
    delimiter = options.delimiter or _delimiter(text, kind, options.decimal)
    settings: Any = {"header": None, "dtype": str, "keep_default_na": False}
    settings["sep"] = r"\s+" if delimiter == " " else delimiter
    try:
        cells = pd.read_csv(io.StringIO(text), **settings).fillna("")
    except pd.errors.ParserError as error:
        shape = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if shape is None:
            raise
        raise ValueError(
            f"line {shape[2]} has {shape[3]} cells, the first has {shape[1]}; check "
            "the delimiter (--delimiter) and quotes"
        ) from None
    cells = cells.apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)].reset_index(drop=True)
    # As numpy.savetxt marks its header.
    cells.iloc[0, 0] = cells.iloc[0, 0].removeprefix("#").strip()
    missing = cells.apply(lambda column: column.str.lower().isin(_MISSING))
    table = _named(cells.astype(object).where(~missing, None), options)
    table.attrs["delimiter"] = delimiter
    return table


def _delimiter(text: str, kind: str, decimal: str) -> str:
    """What separates the cells of the first line, for which no one has told us."""
    if kind in (".tsv", ".tab"):
        return "\t"
    line = text.lstrip().splitlines()[0]
    best = max((each for each in _DELIMITERS if each != decimal), key=line.count)
    if best in line:
        return best
    return " " if len(line.split()) > 1 and kind != ".csv" else ","


def _named(cells: pd.DataFrame, options: Any) -> pd.DataFrame:
    """Typed columns under the names of the first row, if it has names."""
    signs, header = (options.decimal, options.thousands), options.header
    first, table = cells.iloc[0], _typed(cells[1:], *signs)
    if header is None:
        # Names if it has no number, or text above numbers.
        words = first.notna() & to_numbers(first, *signs).isna()
        header = words.all() or any(words & table.notna().any() & is_numeric(table))
    if not header:
        table = _typed(cells, *signs)
    names: list[str] = []  # of which no two are equal
    for position, name in enumerate(first, 1):
        base = (name if header else None) or f"x{position}"
        others = (f"{base}.{k}" for k in count(2))
        names.append(next(each for each in chain([base], others) if each not in names))
    table.columns = names
    return table.reset_index(drop=True)


def _typed(cells: pd.DataFrame, decimal: str, thousands: str | None) -> pd.DataFrame:
    """Columns of numbers where all that is there are numbers, else of text."""
    import pandas as pd

    columns = {}
    for name, words in cells.items():
        numbers = to_numbers(words, decimal, thousands)
        columns[name] = numbers if numbers.count() == words.count() else words
    return pd.DataFrame(columns)


def to_numbers(words: pd.Series, decimal: str, thousands: str | None) -> pd.Series:
    """The numbers in cells of text, NaN where there is none."""
    import pandas as pd

    words = words.astype("str")
    if thousands is not None:  # in groups of three: 1,5 is never 15
        group, point = re.escape(thousands), re.escape(decimal)
        pattern = rf"[-+]?[1-9]\d{{0,2}}({group}\d{{3}})+({point}\d*)?"
        grouped = words.str.fullmatch(pattern).fillna(False).astype(bool)
        words = words.where(~grouped, words.str.replace(thousands, "", regex=False))
    if decimal == ",":
        words = words.str.translate({ord(","): ".", ord("."): ","})
    return pd.to_numeric(words, errors="coerce").astype(float)


def is_numeric(table: pd.DataFrame) -> np.ndarray:
    """Which columns hold numbers, as opposed to text."""
    return np.array([dtype == np.float64 for dtype in table.dtypes])


def _read_binary(content: bytes, kind: str, options: Any) -> pd.DataFrame:
    """Arrays, a Parquet file, or the first sheet of an Excel file."""
    import pandas as pd

    stream = io.BytesIO(content)
    if kind in (".npy", ".npz"):
        table = _from_arrays(np.load(stream, allow_pickle=False), options.array)
    elif kind == ".xlsx":
        header = None if options.header is False else 0
        table = pd.read_excel(stream, header=header, na_values=_MISSING)
        if header is None:
            table.columns = _numbered(table.shape[1])
    else:
        table = pd.read_parquet(stream)
    table.columns = table.columns.map(str)

    for name in table:
        column, text = table[name], table[name].astype(str).astype(object)
        numeric = pd.api.types.is_numeric_dtype(column)
        table[name] = (
            column.astype(float) if numeric else text.where(column.notna(), None)
        )
    return table


def _from_arrays(loaded: Any, wanted: str | None) -> pd.DataFrame:
    """The array that is wanted, or the only matrix, and arrays of as many labels."""
    import pandas as pd

    arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    matrices = [name for name in arrays if arrays[name].ndim == 2] or list(arrays)
    name = wanted or ("X" if "X" in matrices else matrices[0])
    if name not in arrays or (name != "X" and not wanted and len(matrices) > 1):
        raise ValueError(
            f"choose one of its arrays, {', '.join(arrays)}, with --array NAME"
        )
    array = arrays.pop(name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"the array must have 2 axes, rows and columns, got shape {array.shape}"
        )
    table = pd.DataFrame(array)
    if array.dtype.names is None:
        table.columns = _numbered(table.shape[1])
    labels = {
        name: each for name, each in arrays.items() if each.shape == (len(array),)
    }
    return table.assign(**labels)


def _numbered(count: int) -> list[str]:
    return [f"x{k}" for k in range(1, count + 1)]


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

    from land.estimators.archive import replacing

    table, kind = pd.DataFrame(columns), path.suffix.lower()
    if str(path) == "-":
        table.to_csv(sys.stdout, index=False)
        sys.stdout.flush()
        return
    if kind == ".npy" and not all(map(pd.api.types.is_numeric_dtype, table.dtypes)):
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


def deliver(
    options: Any, console: Console, columns: Any, result: dict, what: str, text: str
) -> None:
    """Hand over a table: in a file, which holds `what`, as JSON, or as it is.

    The `text` is the result for people; beside a table on standard output it is
    progress.
    """
    to_file = str(options.output) != "-"
    if to_file or not options.json:
        write_table(options.output, columns)
    if to_file:
        lines = [text] * bool(text) + [f"{what}: {options.output}"]
        console.result("\n".join(lines), result | {"output": str(options.output)})
    elif options.json:
        console.result("", result | {"columns": columns})
    elif text:
        console.say(text)
