"""Tables from files: CSV, TSV, NPY, NPZ and Parquet."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.errors import CommandError
from land.cli.text_tables import Cells, read_text, to_number

KINDS = (".csv", ".tsv", ".tab", ".txt", ".dat", ".npy", ".npz", ".parquet", ".pq")


@dataclass(frozen=True)
class Table:
    """Columns of one length, by name.

    Attributes
    ----------
    source : str
        The file, for messages.
    names : list of str
    columns : list of ndarray
        Numbers (float64, NaN where one is missing), or text (object, None where
        missing).
    named : bool
        Whether the names are those of the file; if not, they are x1, x2, ...
    """

    source: str
    names: list[str]
    columns: list[np.ndarray]
    named: bool

    def __len__(self) -> int:
        return len(self.columns[0])


def read_table(path: Path, options: Any) -> Table:
    """Read a file of any of the `KINDS`; ``-`` is CSV from standard input.

    Parameters
    ----------
    path
        The file.
    options
        With `header`, `delimiter`, `decimal`, `encoding` and `array`.
    """
    source = str(path)
    kind = path.suffix.lower()
    if source == "-":
        source, kind = "standard input", ".csv"
    if source != "standard input" and not path.is_file():
        reason = "is a folder" if path.is_dir() else "no such file"
        raise CommandError(f"{source}: {reason}; check the path")
    if kind not in KINDS:
        raise CommandError(
            f"{source}: unknown kind of file {kind!r}; convert it to CSV, or name it "
            f"one of {', '.join(KINDS)}"
        )
    if kind in (".npy", ".npz"):
        table = _read_arrays(path, kind, options.array)
    elif kind in (".parquet", ".pq"):
        table = _read_parquet(path)
    else:
        stream = sys.stdin.buffer if source == "standard input" else path.open("rb")
        with stream:
            cells = read_text(source, stream.read(), kind, options)
        table = Table(source, *_columns(cells, options.decimal), cells.header)
    if not table.columns or not len(table):
        raise CommandError(f"{source}: the file has no rows of data; add some")
    return table


def _columns(cells: Cells, decimal: str) -> tuple[list[str], list[np.ndarray]]:
    return cells.names, [_parse(column, decimal) for column in cells.columns]


def _parse(cells: Sequence[str | None], decimal: str) -> np.ndarray:
    """Numbers if all that is there are numbers, else text."""
    try:
        return np.array(
            [np.nan if cell is None else to_number(cell, decimal) for cell in cells]
        )
    except ValueError:
        return np.array(cells, dtype=object)


def _read_arrays(path: Path, kind: str, wanted: str | None) -> Table:
    try:
        loaded = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise CommandError(
            f"{path}: not a file of plain NumPy arrays ({error}); write it with "
            "numpy.save from an array of numbers"
        ) from None
    if isinstance(loaded, np.ndarray):
        if kind == ".npz":
            raise CommandError(f"{path}: it holds one array; name it .npy")
        return _from_array(str(path), loaded)
    with loaded:
        try:
            arrays = {name: loaded[name] for name in loaded.files}
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
    name = _choose(path, arrays, wanted)
    table = _from_array(str(path), arrays[name])
    # Other arrays of as many rows can serve as labels.
    for other, array in arrays.items():
        if other != name and array.ndim == 1 and len(array) == len(table):
            table.names.append(other)
            table.columns.append(_column(array))
    return table


def _choose(path: Path, arrays: dict[str, np.ndarray], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in arrays:
            raise CommandError(f"{path}: no array {wanted!r}; it has {list(arrays)}")
        return wanted
    matrices = [name for name, array in arrays.items() if array.ndim == 2]
    if len(matrices) == 1:
        return matrices[0]
    if "X" in matrices:
        return "X"
    raise CommandError(
        f"{path}: choose one of its arrays {list(arrays)} with --array NAME"
    )


def _from_array(source: str, array: np.ndarray) -> Table:
    if array.dtype.names:
        names = list(array.dtype.names)
        return Table(source, names, [_column(array[name]) for name in names], True)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise CommandError(
            f"{source}: the array must have 2 axes, rows and columns, got shape "
            f"{array.shape}"
        )
    names = [f"x{k + 1}" for k in range(array.shape[1])]
    return Table(source, names, [_column(column) for column in array.T], False)


def _column(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    missing = values != values  # NaN and pandas' NaT differ from themselves
    texts = [None if gone else str(value) for value, gone in zip(values, missing)]  # noqa: B905
    return np.array(texts, dtype=object)


def _read_parquet(path: Path) -> Table:
    parquet = import_parquet(path)
    try:
        stored = parquet.read_table(path)
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split())
        raise CommandError(f"{path}: not a Parquet file ({reason})") from None
    columns = [_arrow_column(column) for column in stored.columns]
    return Table(str(path), list(stored.column_names), columns, True)


def _arrow_column(column: Any) -> np.ndarray:
    values = column.to_pylist()
    try:
        return np.array([np.nan if each is None else float(each) for each in values])
    except (TypeError, ValueError):
        texts = [None if each is None else str(each) for each in values]
        return np.array(texts, dtype=object)


def import_parquet(path: Path) -> Any:
    """The module that reads and writes Parquet, if it is installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise CommandError(
            f"{path}: Parquet needs pyarrow; pip install 'land[cli]', or use CSV"
        ) from None
    return pyarrow.parquet
