"""What commands hand over: tables in files, and on standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError, UsageError
from land.cli.tables import check_parquet

TABLES = (".csv", ".tsv", ".npy", ".parquet")
FIGURES = (".png", ".pdf", ".svg")


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
        check_parquet(path)


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a file, as its name says; ``-`` is CSV on standard output."""
    import pandas as pd

    table = pd.DataFrame(columns)
    kind = path.suffix.lower()
    if str(path) == "-":
        sys.stdout.write(table.to_csv(index=False))
        sys.stdout.flush()
        return
    if kind == ".npy" and not all(map(pd.api.types.is_numeric_dtype, table.dtypes)):
        raise CommandError(f"{path}: NPY holds numbers only; write CSV or Parquet")
    from land.estimators.archive import replacing

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
    options: Any,
    console: Console,
    columns: Mapping[str, Any],
    result: dict[str, Any],
    what: str,
    text: str = "",
) -> None:
    """Hand over a table: in a file, which holds `what`, as JSON, or as it is.

    The `text` is the result for people; beside a table on standard output it is
    progress.
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
