"""From a table to a matrix: which columns, which rows, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError
from land.cli.problems import (
    constant_problem,
    is_code,
    is_constant,
    is_row_number,
    listed,
    missing_problem,
    scales_problem,
    text_problem,
)
from land.cli.tables import Table, read_table


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
    X, names = _numbers(table, chosen, options, fitting=expected is None)
    complete = np.all(np.isfinite(X), axis=1)
    if not complete.all():
        console.warn(
            f"left out {np.sum(~complete)} of {len(X)} rows: values are missing"
        )
    data = Data(
        X=np.ascontiguousarray(X[complete]),
        names=names,
        rows=np.flatnonzero(complete) + 1,
        labels=None if label is None else _labels(table.columns[label])[complete],
        label_name=None if label is None else table.names[label],
    )
    console.say(f"{len(data.X)} rows, columns {listed(data.names)}")
    if expected is None and not options.standardize:
        unequal = scales_problem(names, data.X)
        if unequal is not None:
            console.warn(unequal)
    return data


def _numbers(
    table: Table, chosen: list[int], options: Any, fitting: bool
) -> tuple[np.ndarray, list[str]]:
    """The chosen columns as a matrix; all that is wrong with them at once."""
    ignorable = fitting and not options.columns
    problems = [
        text_problem(table.names[k], table.columns[k], options.decimal, ignorable)
        for k in chosen
    ]
    numeric = [k for k in chosen if table.columns[k].dtype != object]
    names = [table.names[k] for k in numeric]
    X = np.empty((len(table), 0))
    if numeric:
        X = np.stack([table.columns[k] for k in numeric], axis=1)
        problems.append(missing_problem(names, X, options.drop_missing))
        if fitting:
            problems.append(constant_problem(names, X))
    found = [problem for problem in problems if problem is not None]
    if found:
        raise CommandError(f"{table.source}: {'; '.join(found)}")
    return X, names


def _choose(
    table: Table, options: Any, label: int | None, expected: list[str] | None
) -> list[int]:
    """Positions of the columns that were asked for, or are expected."""
    if options.columns:
        chosen = [k for each in options.columns for k in _find_all(table, each)]
    elif expected is not None and not set(expected) <= set(table.names):
        missing = [name for name in expected if name not in table.names]
        raise CommandError(
            f"{table.source}: no column {missing[0]!r}, it has {listed(table.names)}; "
            f"say which columns stand for {listed(expected)} with --columns"
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
            f"{table.source} has {listed(table.names)}"
        )
    if expected is not None and len(chosen) != len(expected):
        raise CommandError(
            f"--columns must name {len(expected)} columns, which stand for "
            f"{listed(expected)}, got {len(chosen)}"
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
        f"{table.source}: no column {wanted!r}; it has {listed(table.names)}"
    )


def _leave_out(
    table: Table, chosen: list[int], options: Any, console: Console
) -> list[int]:
    """The columns without those that were not meant, as far as that was said."""
    texts = [k for k in chosen if table.columns[k].dtype == object]
    if options.ignore_text and not options.columns and texts:
        chosen = [k for k in chosen if k not in texts]
        names = listed([table.names[k] for k in texts])
        console.warn(f"columns left out because they hold text: {names}")
    numeric = [k for k in chosen if table.columns[k].dtype != object]
    constant = [k for k in numeric if is_constant(table.columns[k])]
    if options.ignore_constant and constant:
        chosen = [k for k in chosen if k not in constant]
        names = listed([table.names[k] for k in constant])
        console.warn(f"columns left out because they do not vary: {names}")
    if not chosen:
        raise CommandError(f"{table.source}: no column of numbers is left")
    for k in numeric:
        if options.columns or k not in chosen:
            continue
        name = table.names[k]
        if is_row_number(table.columns[k]):
            console.warn(
                f"column {name!r} counts the rows; if it means nothing, leave it out "
                f"with --exclude {name!r}"
            )
        elif is_code(table.columns[k]):
            console.warn(
                f"column {name!r} has a few whole numbers only; if they name classes, "
                f"keep it aside with --labels {name!r}"
            )
    return chosen


def _labels(column: np.ndarray) -> np.ndarray:
    """Labels as they are to be shown: text, or whole numbers without a point."""
    if column.dtype == object:
        return column
    shown: list[Any] = [
        None if np.isnan(value) else int(value) if value.is_integer() else float(value)
        for value in column
    ]
    return np.array(shown, dtype=object)
