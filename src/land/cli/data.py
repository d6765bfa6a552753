"""From a table to a matrix: which columns, which rows, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError
from land.cli.tables import Table, read_table
from land.cli.text_tables import is_number

_MOST_NAMED = 8


@dataclass(frozen=True)
class Data:
    """A matrix of numbers, and what belongs to its rows and columns.

    Attributes
    ----------
    X : ndarray of shape (n, D)
    names : list of str
        Names of the columns.
    rows : ndarray of shape (n,)
        Numbers of the rows among those of the file, from one.
    labels : ndarray of shape (n,) or None
        The column kept aside, None where a label is missing.
    label_name : str or None
    """

    X: np.ndarray
    names: list[str]
    rows: np.ndarray
    labels: np.ndarray | None = None
    label_name: str | None = None


def read_data(
    options: Any,
    console: Console,
    expected: list[str] | None = None,
    usual_label: str | None = None,
) -> Data:
    """Read the file of `options.data` and choose its columns.

    Parameters
    ----------
    options
        Of the command line, see `land.cli.options.add_data`.
    console
        Hears what was found.
    expected : list of str, optional
        Names of the columns of a model, which must be there. Without them all columns
        are taken, and must be numbers that vary.
    usual_label : str, optional
        Name of the column of labels, if it is there.
    """
    console.say(f"reading {options.data}")
    table = read_table(options.data, options)
    label = _find(table, options.labels) if options.labels else None
    if label is None and usual_label in table.names:
        label = table.names.index(usual_label)
    chosen = _choose(table, options, label, expected)
    if expected is None:
        chosen = _leave_out(table, chosen, options, console)
    else:
        _check_text(table, chosen, options.decimal, ignorable=False)
    X = np.stack([table.columns[k] for k in chosen], axis=1)
    complete = np.all(np.isfinite(X), axis=1)
    if not complete.all():
        _check_missing(table, chosen, complete, options.drop_missing)
        console.warn(
            f"{np.sum(~complete)} of {len(X)} rows are left out: values are missing"
        )
    data = Data(
        X=np.ascontiguousarray(X[complete]),
        names=[table.names[k] for k in chosen],
        rows=np.flatnonzero(complete) + 1,
        labels=None if label is None else _labels(table.columns[label])[complete],
        label_name=None if label is None else table.names[label],
    )
    if expected is None:
        _check_constant(data, table.source)
    console.say(f"{len(data.X)} rows, columns {_listed(data.names)}")
    return data


def _choose(
    table: Table, options: Any, label: int | None, expected: list[str] | None
) -> list[int]:
    """Positions of the columns that were asked for, or are expected."""
    if options.columns:
        chosen = [k for each in options.columns for k in _find_all(table, each)]
    elif expected is not None and not set(expected) <= set(table.names):
        missing = [name for name in expected if name not in table.names]
        raise CommandError(
            f"{table.source}: no column {missing[0]!r}, it has {_listed(table.names)}; "
            f"say which columns stand for {_listed(expected)} with --columns"
        )
    elif expected is not None:
        return [table.names.index(name) for name in expected]
    else:
        chosen = [k for k in range(len(table.names)) if k != label]
    for each in options.exclude or []:
        for k in _find_all(table, each):
            chosen = [other for other in chosen if other != k]
    if not chosen or len(set(chosen)) < len(chosen):
        raise CommandError(
            "--columns and --exclude must leave columns that are all different; "
            f"{table.source} has {_listed(table.names)}"
        )
    if expected is not None and len(chosen) != len(expected):
        raise CommandError(
            f"--columns must name {len(expected)} columns, which stand for "
            f"{_listed(expected)}, got {len(chosen)}"
        )
    return chosen


def _find_all(table: Table, wanted: str) -> list[int]:
    """Columns by name or number, several of them separated by commas."""
    if wanted in table.names:
        return [table.names.index(wanted)]
    found: list[int] = []
    for part in wanted.split(","):
        limits = re.fullmatch(r"(\d+)-(\d+)", part.strip())
        if limits and part.strip() not in table.names:
            first, last = int(limits[1]), int(limits[2])
            if not 1 <= first <= last <= len(table.names):
                raise CommandError(
                    f"columns {part} are not there: {table.source} has "
                    f"{len(table.names)} columns, numbered from 1"
                )
            found += range(first - 1, last)
        else:
            found.append(_find(table, part.strip()))
    return found


def _find(table: Table, wanted: str) -> int:
    """A column by name or by number from one."""
    if wanted in table.names:
        return table.names.index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(table.names):
        return int(wanted) - 1
    raise CommandError(
        f"{table.source}: no column {wanted!r}; it has {_listed(table.names)}"
    )


def _leave_out(
    table: Table, chosen: list[int], options: Any, console: Console
) -> list[int]:
    """Columns without text, and if so asked without those that do not vary."""
    if options.ignore_text and not options.columns:
        texts = [k for k in chosen if table.columns[k].dtype == object]
        chosen = [k for k in chosen if k not in texts]
        if texts:
            names = _listed([table.names[k] for k in texts])
            console.warn(f"columns left out because they hold text: {names}")
    _check_text(table, chosen, options.decimal, ignorable=not options.columns)
    if options.ignore_constant:
        constant = [k for k in chosen if _is_constant(table.columns[k])]
        chosen = [k for k in chosen if k not in constant]
        if constant:
            names = _listed([table.names[k] for k in constant])
            console.warn(f"columns left out because they do not vary: {names}")
    if not chosen:
        raise CommandError(f"{table.source}: no column of numbers is left")
    return chosen


def _check_text(table: Table, chosen: list[int], decimal: str, ignorable: bool) -> None:
    for k in chosen:
        column = table.columns[k]
        if column.dtype != object:
            continue
        row, value = next(
            (row, cell)
            for row, cell in enumerate(column, 1)
            if cell is not None and not is_number(cell, decimal)
        )
        name = table.names[k]
        if re.fullmatch(r"[-+]?\d+,\d+", value):
            remedy = "if the comma is a decimal sign, give --decimal ,"
        elif ignorable:
            remedy = (
                f"keep it aside with --labels {name!r}, choose others with --columns, "
                "or leave out all text with --ignore-text"
            )
        else:
            remedy = "correct it, or choose other columns"
        raise CommandError(
            f"{table.source}: column {name!r} holds text, {value[:40]!r} in row {row}; "
            f"{remedy}"
        )


def _check_missing(
    table: Table, chosen: list[int], complete: np.ndarray, drop: bool
) -> None:
    first = int(np.argmin(complete))
    names = [table.names[k] for k in chosen if not np.isfinite(table.columns[k][first])]
    if not complete.any():
        raise CommandError(
            f"{table.source}: every row lacks a value, the first one in column "
            f"{names[0]!r}; leave out columns with --exclude"
        )
    if not drop:
        raise CommandError(
            f"{table.source}: {np.sum(~complete)} of {len(complete)} rows have missing "
            f"or infinite values, the first in row {first + 1}, column {names[0]!r}; "
            "leave out these rows with --drop-missing, or fill them in"
        )


def _check_constant(data: Data, source: str) -> None:
    columns = zip(data.names, data.X.T, strict=True)
    constant = [name for name, column in columns if _is_constant(column)]
    if constant:
        raise CommandError(
            f"{source}: column {constant[0]!r} is constant and says nothing; leave it "
            "out with --exclude, or all such columns with --ignore-constant"
        )


def _is_constant(column: np.ndarray) -> bool:
    values = column[np.isfinite(column)]
    return not len(values) or bool(np.ptp(values) == 0.0)


def _labels(column: np.ndarray) -> np.ndarray:
    """Labels as they are to be shown: text, or whole numbers without a point."""
    if column.dtype == object:
        return column
    shown: list[Any] = [
        None if np.isnan(value) else int(value) if value.is_integer() else float(value)
        for value in column
    ]
    return np.array(shown, dtype=object)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    rest = len(names) - _MOST_NAMED
    return shown if rest <= 0 else f"{shown} and {rest} more"
