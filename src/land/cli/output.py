"""Tables into files: CSV, TSV, NPY and Parquet; or shown."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError, UsageError
from land.cli.tables import import_parquet

TABLES = (".csv", ".tsv", ".npy", ".parquet")
FIGURES = (".png", ".pdf", ".svg")

Columns = Mapping[str, Sequence[Any] | np.ndarray]


def check_output(path: Path, kinds: Sequence[str] | None = None) -> None:
    """Refuse an output that cannot be written, before work is spent on it."""
    if str(path) == "-":
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
        import_parquet(path)


def write_table(path: Path, columns: Columns) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    if str(path) == "-":
        sys.stdout.write(_text(columns, ","))
        sys.stdout.flush()
        return
    from land.estimators.archive import replacing

    kind = path.suffix.lower()
    with replacing(path) as stream:
        if kind == ".npy":
            np.save(stream, _matrix(path, columns), allow_pickle=False)
        elif kind == ".parquet":
            _write_parquet(path, stream, columns)
        else:
            delimiter = "\t" if kind == ".tsv" else ","
            stream.write(_text(columns, delimiter).encode())


def deliver(
    options: Any,
    console: Console,
    columns: Columns,
    what: str,
    result: dict[str, Any],
    listed: dict[str, Any],
    text: str = "",
) -> None:
    """Hand over the table that a command has computed.

    Parameters
    ----------
    options
        Of the command line, see `land.cli.options.add_output`.
    console
        Shows the result.
    columns
        The table. With ``--json`` and no file it is not shown.
    what : str
        What the file holds, in words.
    result : dict
        The result as JSON, but for the name of the file.
    listed : dict
        What JSON has instead of the table, if there is no file.
    text : str
        The result for people; beside a table on standard output it is progress.
    """
    if str(options.output) != "-":
        write_table(options.output, columns)
        lines = [text] * bool(text) + [f"{what}: {options.output}"]
        console.result("\n".join(lines), result | {"output": str(options.output)})
    elif options.json:
        console.result("", result | listed)
    else:
        write_table(options.output, columns)
        if text:
            console.say(text)


def _text(columns: Columns, delimiter: str) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    plain = [np.asarray(column).tolist() for column in columns.values()]
    # Python writes a float with as many digits as it takes to read it back.
    writer.writerows(zip(*plain, strict=True))
    return buffer.getvalue()


def _matrix(path: Path, columns: Columns) -> np.ndarray:
    arrays = [np.asarray(column) for column in columns.values()]
    if any(array.dtype == object for array in arrays):
        raise CommandError(f"{path}: NPY holds numbers only; write CSV or Parquet")
    return np.stack(arrays, axis=1).astype(np.float64)


def _write_parquet(path: Path, stream: Any, columns: Columns) -> None:
    parquet = import_parquet(path)
    import pyarrow

    plain = {name: np.asarray(column).tolist() for name, column in columns.items()}
    parquet.write_table(pyarrow.table(plain), stream)
