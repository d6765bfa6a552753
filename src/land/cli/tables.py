"""Tables: data frames from files, and into them."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    import pandas as pd

INPUTS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".npy", ".npz", ".parquet", ".pq")
TABLES = (".csv", ".tsv", ".npy", ".parquet")
FIGURES = (".png", ".pdf", ".svg")
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-", ".")
_DELIMITERS = (",", ";", "\t", "|")

Columns = Mapping[str, Sequence[Any] | np.ndarray]


def read_table(path: Path, options: Any) -> pd.DataFrame:
    """Read a file of one of the kinds of `INPUTS`; ``-`` is CSV from standard input.

    Columns of the frame are numbers (float64, NaN where one is missing), or text
    (object, None where missing); no two have the same name. Its `attrs` have the
    `source`, for messages, and the `delimiter` of a text file.

    Parameters
    ----------
    path
        The file.
    options
        With `header`, `delimiter`, `decimal`, `thousands`, `encoding` and `array`.
    """
    if options.decimal == options.thousands:
        raise UsageError("--decimal and --thousands must differ")
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
        table = _read_arrays(path, kind, options.array)
    elif kind in (".parquet", ".pq"):
        table = _read_parquet(path)
    else:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        table = _read_text(source, content, kind, options)
    if table.empty:
        raise CommandError(f"{source}: the file has no rows of data; add some")
    table.attrs["source"] = source
    return table


def _read_text(source: str, content: bytes, kind: str, options: Any) -> pd.DataFrame:
    import pandas as pd

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
    settings: Any = {"sep": r"\s+" if delimiter == " " else delimiter}
    settings |= {"header": None, "dtype": str, "keep_default_na": False}
    try:
        cells = pd.read_csv(io.StringIO(text), **settings)
    except pd.errors.EmptyDataError:
        raise CommandError(f"{source}: the file is empty") from None
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            raise CommandError(f"{source}: the table cannot be read: {error}") from None
        raise CommandError(
            f"{source}: line {found[2]} has {found[3]} cells, the first has {found[1]};"
            " check the delimiter (--delimiter) and quotes"
        ) from None
    cells = cells.apply(lambda column: column.str.strip())
    cells = cells[(cells != "").any(axis=1)]
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
    first, rest = cells.iloc[0], cells.iloc[1:].reset_index(drop=True)
    below = rest.apply(_typed, args=(options,))
    header = options.header
    if header is None:
        # Names if it has no number, or text above numbers.
        words = [_typed(first[[k]], options).dtype == object for k in first.index]
        numbers = [below[k].dtype != object and below[k].notna().any() for k in below]
        header = all(words) or any(np.logical_and(words, numbers))
    if not header:
        below = cells.reset_index(drop=True).apply(_typed, args=(options,))
    below.columns = _unique(first) if header else [f"x{k + 1}" for k in below]
    return below


def _typed(cells: pd.Series, options: Any) -> pd.Series:
    """Numbers if all that is there are numbers, else text."""
    missing = cells.str.lower().isin(_MISSING)
    words = cells.astype(object).where(~missing, None)
    signs = options.decimal, options.thousands
    try:
        numbers = words.map(
            lambda word: np.nan if word is None else to_number(word, *signs)
        )
    except ValueError:
        return words
    return numbers.astype(float)


def to_number(cell: str, decimal: str = ".", thousands: str | None = None) -> float:
    """The number in a cell; a ValueError if it is none."""
    if "_" in cell:  # Python's own way to group digits
        raise ValueError
    if thousands is not None:
        group, point = re.escape(thousands), re.escape(decimal)
        if re.fullmatch(rf"[-+]?[1-9]\d{{0,2}}({group}\d{{3}})+({point}\d*)?", cell):
            cell = cell.replace(thousands, "")
    return float(cell if decimal == "." else cell.replace(decimal, "."))


def _unique(names: Sequence[str]) -> list[str]:
    """Names of which no two are equal and none is empty."""
    taken: list[str] = []
    for position, name in enumerate(names, 1):
        name = name or f"x{position}"
        candidate, count = name, 2
        while candidate in taken:
            candidate, count = f"{name}.{count}", count + 1
        taken.append(candidate)
    return taken


def _read_arrays(path: Path, kind: str, wanted: str | None) -> pd.DataFrame:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"": loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except (ValueError, EOFError, OSError) as error:
        raise CommandError(
            f"{path}: not a file of plain NumPy arrays ({error}); write it with "
            "numpy.save from an array of numbers"
        ) from None
    if kind == ".npz" and "" in arrays:
        raise CommandError(f"{path}: it holds one array; name it .npy")
    name = "" if kind == ".npy" else _chosen(path, arrays, wanted)
    table = _from_array(path, arrays.pop(name))
    # Other arrays of as many rows can serve as labels.
    for other, array in arrays.items():
        if array.ndim == 1 and len(array) == len(table):
            table[other] = _column(array)
    return table


def _chosen(path: Path, arrays: dict[str, np.ndarray], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in arrays:
            raise CommandError(f"{path}: no array {wanted!r}; it has {list(arrays)}")
        return wanted
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) == 1 or "X" in matrices:
        return matrices[0] if len(matrices) == 1 else "X"
    raise CommandError(
        f"{path}: choose one of its arrays {list(arrays)} with --array NAME"
    )


def _from_array(path: Path, array: np.ndarray) -> pd.DataFrame:
    import pandas as pd

    if array.dtype.names:
        return pd.DataFrame({name: _column(array[name]) for name in array.dtype.names})
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise CommandError(
            f"{path}: the array must have 2 axes, rows and columns, got shape "
            f"{array.shape}"
        )
    return pd.DataFrame({f"x{k + 1}": _column(each) for k, each in enumerate(array.T)})


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    _check_parquet(path)
    try:
        stored = pd.read_parquet(path)
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"{path}: not a Parquet file ({reason})") from None
    columns = zip(_unique([str(name) for name in stored]), stored, strict=True)
    return pd.DataFrame({name: _column(stored[old]) for name, old in columns})


def _column(values: Any) -> Any:
    """A column of numbers, or else of text."""
    import pandas as pd

    column = pd.Series(values)
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float)
    return (
        column.astype(object)
        .where(column.isna(), column.astype(str))
        .where(column.notna(), None)
    )


def _check_parquet(path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise CommandError(
            f"{path}: Parquet needs pyarrow; pip install 'land[cli]', or use CSV"
        )


# Into files.


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


def write_table(path: Path, columns: Columns) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    import pandas as pd

    table = pd.DataFrame(columns)
    if str(path) == "-":
        sys.stdout.write(table.to_csv(index=False))
        sys.stdout.flush()
        return
    from land.estimators.archive import replacing

    kind = path.suffix.lower()
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


def deliver(
    options: Any,
    console: Console,
    columns: Columns,
    what: str,
    result: dict[str, Any],
    text: str = "",
) -> None:
    """Hand over the table that a command has computed.

    Parameters
    ----------
    options
        Of the command line, with `output` and `json`.
    console
        Shows the result.
    columns
        The table. Without a file, JSON has it among the results.
    what : str
        What the file holds, in words.
    result : dict
        The result as JSON, but for the table.
    text : str
        The result for people; beside a table on standard output it is progress.
    """
    if str(options.output) != "-":
        write_table(options.output, columns)
        lines = [text] * bool(text) + [f"{what}: {options.output}"]
        console.result("\n".join(lines), result | {"output": str(options.output)})
    elif options.json:
        console.result("", result | {"columns": columns})
    else:
        write_table(options.output, columns)
        if text:
            console.say(text)
