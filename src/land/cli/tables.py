"""Tables as data frames, from and to files: CSV, TSV, NPY, NPZ, Parquet, Excel."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
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

    Columns of the frame are numbers (float64, NaN where one is missing), or text
    (object, None where missing); no two have the same name. Its `attrs` have the
    `source`, for messages, and the `delimiter` of a text file.
    """
    source, kind = str(path), path.suffix.lower()
    if source == "-":
        source, kind = "standard input", ".csv"
    elif not path.is_file():
        reason = "is a folder" if path.is_dir() else "no such file"
        raise CommandError(f"{path}: {reason}; check the path")
    if kind not in INPUTS:
        raise CommandError(
            f"{path}: unknown kind of file {kind!r}; convert it to CSV, or name it "
            f"one of {', '.join(INPUTS)}"
        )
    if kind in (".npy", ".npz"):
        table = _read_arrays(path, options.array)
    elif kind in (".parquet", ".pq"):
        table = _read_parquet(path)
    elif kind == ".xlsx":
        table = _read_excel(path, options.header)
    else:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        table = _read_text(source, content, kind, options)
    if table.empty:
        raise CommandError(f"{source}: the file has no rows of data; add some")
    table.attrs["source"] = source
    return table


def _read_text(source: str, content: bytes, kind: str, options: Any) -> pd.DataFrame:
    import pandas as pd

    if options.decimal == options.thousands:
        raise UsageError("--decimal and --thousands must differ")
    try:
        text = content.decode(options.encoding)
    except UnicodeDecodeError:
        raise CommandError(
            f"{source}: not text in {options.encoding}; give its encoding, for example "
            "--encoding latin-1"
        ) from None
    if "\0" in text:
        raise CommandError(
            f"{source}: not a text file; if it is UTF-16, try --encoding utf-16"
        )
    delimiter = options.delimiter or _delimiter(text, kind, options.decimal)
    settings: Any = {"header": None, "dtype": str, "keep_default_na": False}
    settings["sep"] = r"\s+" if delimiter == " " else delimiter
    try:
        cells = pd.read_csv(io.StringIO(text), **settings).fillna("")
    except pd.errors.EmptyDataError:
        cells = pd.DataFrame()
    except pd.errors.ParserError as error:
        shape = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if shape is None:
            raise CommandError(f"{source}: the table cannot be read: {error}") from None
        raise CommandError(
            f"{source}: line {shape[2]} has {shape[3]} cells, the first has {shape[1]};"
            " check the delimiter (--delimiter) and quotes"
        ) from None
    cells = cells.apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)].reset_index(drop=True)
    if cells.empty:
        raise CommandError(f"{source}: the file is empty")
    # As numpy.savetxt marks its header.
    cells.iloc[0, 0] = cells.iloc[0, 0].removeprefix("#").strip()
    table = _named(cells, options)
    table.attrs["delimiter"] = delimiter
    return table


def _delimiter(text: str, kind: str, decimal: str) -> str:
    """What separates the cells of the first line, for which no one has told us."""
    if kind in (".tsv", ".tab"):
        return "\t"
    line = next((each for each in text.splitlines() if each.strip()), "")
    best = max((each for each in _DELIMITERS if each != decimal), key=line.count)
    if best in line:
        return best
    return " " if len(line.split()) > 1 and kind != ".csv" else ","


def _named(cells: pd.DataFrame, options: Any) -> pd.DataFrame:
    """Typed columns under the names of the first row, if it has names."""
    first, header = cells.iloc[0], options.header
    table = cells.iloc[1:].reset_index(drop=True).apply(_typed, args=(options,))
    if header is None:
        # Names if it has no number, or text above numbers.
        words = [_typed(first[[k]], options).dtype == object for k in cells]
        numbers = [table[k].dtype != object and table[k].notna().any() for k in table]
        header = all(words) or any(np.logical_and(words, numbers))
    if not header:
        table = cells.apply(_typed, args=(options,))
    names: list[str] = []  # of which no two are equal
    for position, name in enumerate(first, 1):
        base = (name if header else "") or f"x{position}"
        others = (f"{base}.{k}" for k in count(2))
        names.append(next(each for each in chain([base], others) if each not in names))
    table.columns = names
    return table


def _typed(cells: pd.Series, options: Any) -> pd.Series:
    """Numbers if all that is there are numbers, else text."""
    missing = cells.str.lower().isin(_MISSING)
    words = cells.astype(object).where(~missing, None)
    signs = options.decimal, options.thousands
    try:
        return words.map(lambda word: to_number(word, *signs)).astype(float)
    except ValueError:
        return words


def to_number(cell: str | None, decimal: str, thousands: str | None) -> float:
    """The number in a cell, NaN for None; a ValueError if it is none."""
    if cell is None:
        return np.nan
    if "_" in cell:  # Python's own way to group digits
        raise ValueError
    if thousands is not None:
        group, point = re.escape(thousands), re.escape(decimal)
        if re.fullmatch(rf"[-+]?[1-9]\d{{0,2}}({group}\d{{3}})+({point}\d*)?", cell):
            cell = cell.replace(thousands, "")
    return float(cell if decimal == "." else cell.replace(decimal, "."))


def _read_arrays(path: Path, wanted: str | None) -> pd.DataFrame:
    try:
        loaded = np.load(path, allow_pickle=False)
        arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, OSError) as error:
        raise CommandError(
            f"{path}: not a file of plain NumPy arrays ({error}); write it with "
            "numpy.save from an array of numbers"
        ) from None
    matrices = [name for name in arrays if arrays[name].ndim == 2] or list(arrays)
    name = wanted or ("X" if "X" in matrices else matrices[0])
    if name not in arrays or (name != "X" and not wanted and len(matrices) > 1):
        raise CommandError(
            f"{path}: choose one of its arrays, {', '.join(arrays)}, with --array NAME"
        )
    array = arrays.pop(name)
    if array.dtype.names:
        columns = {field: array[field] for field in array.dtype.names}
    elif array.ndim in (1, 2):
        matrix = array[:, None] if array.ndim == 1 else array
        columns = {f"x{k}": column for k, column in enumerate(matrix.T, 1)}
    else:
        raise CommandError(
            f"{path}: the array must have 2 axes, rows and columns, got shape "
            f"{array.shape}"
        )
    # Other arrays of as many rows can serve as labels.
    shape = array.shape[:1]
    columns |= {name: each for name, each in arrays.items() if each.shape == shape}
    return _frame(columns)


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    _check_parquet(path)
    try:
        return _frame(pd.read_parquet(path))
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"{path}: not a Parquet file ({reason})") from None


def _read_excel(path: Path, header: bool | None) -> pd.DataFrame:
    """The first sheet, whose first row has the names unless `header` is False."""
    import pandas as pd

    if find_spec("openpyxl") is None:
        raise CommandError(
            f"{path}: Excel files need openpyxl; pip install openpyxl, or save it as "
            "CSV"
        )
    first = None if header is False else 0
    try:
        table = pd.read_excel(path, header=first, na_values=_MISSING, engine="openpyxl")
    except Exception as error:  # of the archive, its XML, its cells
        reason = " ".join(str(error).split())
        raise CommandError(f"{path}: not an Excel file ({reason})") from None
    if header is False:
        table.columns = [f"x{k}" for k in range(1, table.shape[1] + 1)]
    return _frame(table)


def _frame(columns: Mapping[str, Any]) -> pd.DataFrame:
    """Columns of numbers, or else of text."""
    import pandas as pd

    def typed(values: Any) -> pd.Series:
        column = pd.Series(values)
        if pd.api.types.is_numeric_dtype(column):
            return column.astype(float)
        return column.astype(str).astype(object).where(column.notna(), None)

    return pd.DataFrame({str(name): typed(columns[name]) for name in columns})


def _check_parquet(path: Path) -> None:
    """Refuse a Parquet file where nothing can read or write it."""
    if find_spec("pyarrow") is None:
        raise CommandError(
            f"{path}: Parquet needs pyarrow; pip install 'land[cli]', or use CSV"
        )


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
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(folder, os.W_OK):
        raise CommandError(
            f"{path}: the folder is read-only; choose a place that you may use"
        )
    if path.suffix.lower() == ".parquet":
        _check_parquet(path)


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    import pandas as pd

    from land.estimators.archive import replacing

    table = pd.DataFrame(columns)
    kind = path.suffix.lower()
    if str(path) == "-":
        sys.stdout.write(table.to_csv(index=False))
        sys.stdout.flush()
        return
    if kind == ".npy" and not all(map(pd.api.types.is_numeric_dtype, table.dtypes)):
        raise CommandError(f"{path}: NPY holds numbers only; write CSV or Parquet")
    with replacing(path) as stream:
        if kind == ".npy":
            np.save(stream, table.to_numpy(dtype=np.float64), allow_pickle=False)
        elif kind == ".parquet":
            stream.write(table.to_parquet(index=False))
        else:
            separator = "\t" if kind == ".tsv" else ","
            stream.write(table.to_csv(index=False, sep=separator).encode())


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
