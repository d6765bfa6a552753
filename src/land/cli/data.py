"""From a table to a matrix: which columns, which rows, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import land
from land.cli.console import CommandError, Console, UsageError
from land.cli.tables import is_numeric, read_table

if TYPE_CHECKING:
    import pandas as pd


# Columns in messages, summaries and figures: a line has room for them.
SHOWN = 6
# Ratio of spreads above which the narrower column hardly counts in distances.
_UNEQUAL = 20.0


@dataclass(frozen=True)
class Data:
    """A matrix X (n, D) of numbers, and what belongs to its columns and rows.

    `rows` are numbers of rows of the file, from one. `labels` is the column kept aside,
    with None where a label is missing; None if there is none at all.
    """

    X: np.ndarray
    names: list[str]
    rows: np.ndarray
    labels: np.ndarray | None = None
    label_name: str | None = None

    def some(self, count: int, seed: int) -> Data:
        """At most so many rows, chosen at random, in their order."""
        n = len(self.X)
        kept = np.sort(np.random.default_rng(seed).permutation(n)[:count])
        labels = None if self.labels is None else self.labels[kept]
        return replace(self, X=self.X[kept], rows=self.rows[kept], labels=labels)

    def columns(self, with_data: bool) -> dict[str, Any]:
        """Number and label of each row, and its data if they are wanted."""
        columns: dict[str, Any] = {"row": self.rows}
        if with_data:
            columns |= dict(zip(self.names, self.X.T, strict=True))
        if self.label_name is not None:
            columns[self.label_name] = self.labels
        return columns

    def agreement(self, clusters: np.ndarray) -> dict[str, Any]:
        """F-measure of clusters against the labels, if there are any."""
        if self.labels is None:
            return {}
        known = np.array([each is not None for each in self.labels])
        if not known.any():  # a preview may have left them out
            return {}
        value = land.f_measure(self.labels[known].tolist(), clusters[known].tolist())
        return {"f_measure": value, "label": self.label_name}


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
    names = _choose(table, options, label, expected)
    if expected is None:
        names = _leave_out(table[names], options, console)
    problems = list(_problems(table[names], options, fitting=expected is None))
    if problems:
        raise CommandError(f"{table.attrs['source']}: {'; '.join(problems)}")
    X = table[names].to_numpy(dtype=np.float64)
    complete = np.isfinite(X).all(axis=1)
    if not complete.all():
        lost = np.sum(~complete)
        console.warn(f"left out {lost} of {len(X)} rows: values are missing")
    labels = None if label is None else _labels(table[label][complete])
    X, rows = np.ascontiguousarray(X[complete]), np.flatnonzero(complete) + 1
    console.say(f"{len(X)} rows, columns {listed(names)}")
    if expected is None and not options.standardize:
        _compare_scales(X, names, console)
    return Data(X, names, rows, labels, label)


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + f" and {rest} more" * (rest > 0)


# Which columns.


def _choose(
    table: pd.DataFrame, options: Any, label: str | None, expected: list[str] | None
) -> list[str]:
    """The columns that were asked for, or are expected."""
    has = f"{table.attrs['source']} has {listed(list(table))}"
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
                f"no column {name!r}: {table.attrs['source']} has {listed(names)}, "
                "numbered from 1"
            )
    return found


def _leave_out(table: pd.DataFrame, options: Any, console: Console) -> list[str]:
    """The columns without those that were not meant, as far as that was said."""
    text = list(table.columns[~is_numeric(table)])
    unwanted = {}
    if options.ignore_text and not options.columns:
        unwanted["hold text"] = text
    if options.ignore_constant:
        unwanted["do not vary"] = _constant(table.drop(columns=text))
    for why, names in unwanted.items():
        if names:
            console.warn(f"columns left out, as they {why}: {listed(names)}")
            table = table.drop(columns=names)
    for name in [] if options.columns else table.columns.difference(text, sort=False):
        if len(table) > 2 and np.all(np.diff(table[name]) == 1.0):
            console.warn(
                f"column {name!r} counts the rows; if it means nothing, leave it out "
                f"with --exclude {name!r}"
            )
    return list(table)


def _constant(numbers: pd.DataFrame) -> list[str]:
    """Columns whose finite values are all the same."""
    finite = numbers.where(np.isfinite(numbers))
    return list(numbers.columns[finite.nunique() < 2])


def _labels(column: pd.Series) -> np.ndarray | None:
    """Labels as they are to be shown: text, or whole numbers without a point."""
    if column.isna().all():
        return None
    if is_numeric(column.to_frame()).all() and (column.dropna() % 1 == 0).all():
        column = column.astype("Int64")
    return column.astype(object).where(column.notna(), None).to_numpy()


# What is wrong with them.


def _problems(table: pd.DataFrame, options: Any, fitting: bool) -> Iterator[str]:
    """All that is wrong with the columns, with what to do about it."""
    if table.empty:
        yield "no column of numbers is left (choose others: --columns)"
    text = table.columns[~is_numeric(table)]
    for name in text:
        yield _text_problem(table[name], options, fitting and not options.columns)
    numbers = table.drop(columns=text)
    finite = np.isfinite(numbers.to_numpy())
    complete = finite.all(axis=1)
    if not complete.all():
        row = int(np.argmin(complete))
        first = f"row {row + 1}, column {numbers.columns[np.argmin(finite[row])]!r}"
        if not complete.any():
            yield f"every row lacks a value, as {first} (leave out columns: --exclude)"
        elif not options.drop_missing:
            yield (
                f"{np.sum(~complete)} of {len(table)} rows have missing or infinite "
                f"values, the first in {first} (leave out these rows with "
                "--drop-missing, or fill them in)"
            )
    constant = _constant(numbers)
    if fitting and complete.sum() == 1:
        yield "one row of data is too few to fit a model to (add rows)"
    elif fitting and constant:
        yield (
            f"constant: {listed(constant)} (leave out with --exclude, "
            "or all such columns with --ignore-constant)"
        )


def _text_problem(column: pd.Series, options: Any, ignorable: bool) -> str:
    """Where there is text, and what to do; `ignorable` if it was not asked for."""
    import pandas as pd

    name, words = column.name, column.dropna()
    numbers = pd.to_numeric(words.str.replace(options.decimal, "."), errors="coerce")
    odd = words[numbers.isna()]
    row, text = next((odd if len(odd) else words).items())
    remedy = "correct it, or choose other columns"
    if ignorable:
        remedy = (
            f"keep it aside with --labels {name!r}, leave it out with --exclude, or "
            "all text with --ignore-text"
        )
    if re.match(r"[-+]?\d", text):
        remedy += "; --decimal , is for 1,5 and --thousands , for 1,002.93"
    return f"column {name!r} holds text, {text[:40]!r} in row {row + 1} ({remedy})"


def _compare_scales(X: np.ndarray, names: list[str], console: Console) -> None:
    spreads = X.std(axis=0)
    if spreads.max() > _UNEQUAL * spreads.min():
        wide, narrow = names[int(spreads.argmax())], names[int(spreads.argmin())]
        console.warn(
            f"column {wide!r} varies {spreads.max() / spreads.min():.2g} times as much "
            f"as {narrow!r}, which hardly counts in distances; --standardize gives all "
            "columns the same weight"
        )
