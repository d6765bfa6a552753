"""From a table to a matrix: which columns, which rows, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from land.cli.console import Console
from land.cli.errors import CommandError
from land.cli.tables import read_table, to_number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Limits:
    """How much of a table is listed, and what in it is suspicious.

    Attributes
    ----------
    named : int
        Names that a message lists.
    unequal : float
        Ratio of spreads above which columns should be standardised.
    classes : int
        A column of at most so many different whole numbers, or words, may be a code.
    """

    named: int = 8
    unequal: float = 20.0
    classes: int = 10


LIMITS = Limits()
# Decimal sign and sign between thousands, other than the usual ones.
_READINGS = {
    "--thousands ,": (".", ","),
    "--decimal ,": (",", None),
    "--decimal , --thousands .": (",", "."),
}


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
        import land

        if self.labels is None:
            return {}
        known = np.array([label is not None for label in self.labels])
        if not known.any():
            return {}
        value = land.f_measure(self.labels[known].tolist(), clusters[known].tolist())
        return {"f_measure": value, "label": self.label_name}


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
        Of the command line, see `land.cli.options`.
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
    source = table.attrs["source"]
    label = usual_label if usual_label in table else None
    if options.labels:
        (label,) = _find(table, options.labels)
    names = _choose(table, options, label, expected)
    if expected is None:
        names = _leave_out(table, names, options, console)
    problems = list(_problems(table, names, options, fitting=expected is None))
    if problems:
        raise CommandError(f"{source}: {'; '.join(problems)}")
    X = table[names].to_numpy(dtype=np.float64)
    complete = np.isfinite(X).all(axis=1)
    lost = int(np.sum(~complete))
    if lost:
        console.warn(f"left out {lost} of {len(X)} rows: values are missing")
    data = Data(
        X=np.ascontiguousarray(X[complete]),
        names=names,
        rows=np.flatnonzero(complete) + 1,
        labels=None if label is None else _labels(table[label])[complete],
        label_name=label,
    )
    console.say(f"{len(data.X)} rows, columns {listed(names)}")
    if expected is None and not options.standardize:
        _compare_scales(data, console)
    return data


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    rest = len(names) - LIMITS.named
    shown = ", ".join(names[: LIMITS.named])
    return shown if rest <= 0 else f"{shown} and {rest} more"


# Which columns.


def _choose(
    table: pd.DataFrame, options: Any, label: str | None, expected: list[str] | None
) -> list[str]:
    """The columns that were asked for, or are expected."""
    source = table.attrs["source"]
    chosen = [name for name in table if name != label]
    if options.columns:
        wanted = [_find(table, each) for each in options.columns]
        chosen = [name for found in wanted for name in found]
    elif expected is not None:
        missing = [name for name in expected if name not in table]
        if missing:
            raise CommandError(
                f"{source}: no column {missing[0]!r}, it has {listed(list(table))}; "
                f"say which columns stand for {listed(expected)} with --columns"
            )
        return expected
    for each in options.exclude or []:
        left_out = _find(table, each)
        chosen = [name for name in chosen if name not in left_out]
    if not chosen or len(set(chosen)) < len(chosen):
        raise CommandError(
            "--columns and --exclude must leave columns that are all different; "
            f"{source} has {listed(list(table))}"
        )
    if expected is not None and len(chosen) != len(expected):
        raise CommandError(
            f"--columns must name {len(expected)} columns, which stand for "
            f"{listed(expected)}, got {len(chosen)}"
        )
    return chosen


def _find(table: pd.DataFrame, wanted: str) -> list[str]:
    """Columns by name or number from one, several of them separated by commas."""
    names, source = list(table), table.attrs["source"]
    if wanted in names:
        return [wanted]
    found: list[str] = []
    for part in (each.strip() for each in wanted.split(",")):
        numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if part in names:
            found.append(part)
        elif numbers is not None:
            first, last = int(numbers[1]), int(numbers[2] or numbers[1])
            if not 1 <= first <= last <= len(names):
                raise CommandError(
                    f"{source}: no columns {part}; it has {len(names)} columns, "
                    "numbered from 1"
                )
            found += names[first - 1 : last]
        else:
            raise CommandError(f"{source}: no column {part!r}; it has {listed(names)}")
    return found


def _leave_out(
    table: pd.DataFrame, names: list[str], options: Any, console: Console
) -> list[str]:
    """The columns without those that were not meant, as far as that was said."""
    texts = [name for name in names if _is_text(table[name])]
    constant = [name for name in names if _is_constant(table[name])]
    for wanted, left_out, reason in (
        (options.ignore_text and not options.columns, texts, "hold text"),
        (options.ignore_constant, constant, "do not vary"),
    ):
        if wanted and left_out:
            names = [name for name in names if name not in left_out]
            reason = f"because they {reason}: {listed(left_out)}"
            console.warn(f"columns left out {reason}")
    if not names:
        raise CommandError(f"{table.attrs['source']}: no column of numbers is left")
    for name in () if options.columns else names:
        if _is_text(table[name]) or _is_constant(table[name]):
            continue
        if len(table) > 2 and np.all(np.diff(table[name]) == 1.0):
            console.warn(
                f"column {name!r} counts the rows; if it means nothing, leave it out "
                f"with --exclude {name!r}"
            )
        elif _is_code(table[name]):
            console.warn(
                f"column {name!r} has a few whole numbers only; if they name classes, "
                f"keep it aside with --labels {name!r}"
            )
    return names


def _labels(column: pd.Series) -> np.ndarray:
    """Labels as they are to be shown: text, or whole numbers without a point."""
    shown = [
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in column.astype(object).where(column.notna(), None)
    ]
    return np.array(shown, dtype=object)


# What is wrong with them.


def _problems(
    table: pd.DataFrame, names: list[str], options: Any, fitting: bool
) -> Iterator[str]:
    """All that is wrong with the columns, with what to do about it."""
    ignorable = fitting and not options.columns
    texts = [name for name in names if _is_text(table[name])]
    for name in texts:
        yield _text_problem(table, name, options, ignorable)
    numeric = [name for name in names if name not in texts]
    X = table[numeric].to_numpy(dtype=np.float64)
    finite = np.isfinite(X)
    complete = finite.all(axis=1)
    if not complete.all():
        first = int(np.argmin(complete))
        name = numeric[int(np.argmin(finite[first]))]
        if not complete.any():
            yield (
                f"every row lacks a value, the first one in column {name!r} (leave out "
                "columns with --exclude)"
            )
        elif not options.drop_missing:
            yield (
                f"{np.sum(~complete)} of {len(X)} rows have missing or infinite "
                f"values, the first in row {first + 1}, column {name!r} (leave out "
                "these rows with --drop-missing, or fill them in)"
            )
    constant = [name for name in numeric if _is_constant(table[name])]
    if fitting and complete.sum() == 1:
        yield "one row of data is too few to fit a model to (add rows)"
    elif fitting and constant:
        yield (
            f"constant and says nothing: {listed(constant)} (leave out with --exclude, "
            "or all such columns with --ignore-constant)"
        )


def _text_problem(table: pd.DataFrame, name: str, options: Any, ignorable: bool) -> str:
    """Where there is text, and what to do; `ignorable` if it was not asked for."""
    words = table[name].dropna()
    signs = options.decimal, options.thousands
    row, value = next(each for each in words.items() if not _is_number(each[1], *signs))
    readings = [
        option
        for option, other in _READINGS.items()
        if all(_is_number(word, *other) for word in words)
    ]
    if "--decimal ," in readings:  # simpler than with thousands
        del readings[readings.index("--decimal ,") + 1 :]
    if table.attrs.get("delimiter") == ",":
        del readings[1:]  # a comma in quotes groups digits, if it can
    if readings:
        remedy = f"numbers if read with {' or '.join(readings)}"
    elif ignorable:
        few = words.nunique() <= max(LIMITS.classes, len(words) // 2)
        keep = f"keep it aside with --labels {name!r}, " if few else ""
        remedy = f"{keep}leave it out with --exclude, or all text with --ignore-text"
    else:
        remedy = "correct it, or choose other columns"
    return f"column {name!r} holds text, {value[:40]!r} in row {row + 1} ({remedy})"


def _is_number(cell: str, decimal: str, thousands: str | None) -> bool:
    try:
        to_number(cell, decimal, thousands)
    except ValueError:
        return False
    return True


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object


def _is_constant(column: pd.Series) -> bool:
    """Whether it has numbers, and all that are there are equal."""
    return not _is_text(column) and _finite(column).nunique() < 2


def _is_code(column: pd.Series) -> bool:
    """Whether a column looks like codes of a few classes."""
    values = _finite(column)
    few = values.nunique() <= min(LIMITS.classes, len(values) // 5)
    return few and bool(np.all(values % 1 == 0.0))


def _finite(column: pd.Series) -> pd.Series:
    return column[np.isfinite(column)]


def _compare_scales(data: Data, console: Console) -> None:
    spreads = data.X.std(axis=0)
    if spreads.max() <= LIMITS.unequal * spreads.min():
        return
    wide, narrow = data.names[int(spreads.argmax())], data.names[int(spreads.argmin())]
    console.warn(
        f"column {wide!r} varies {spreads.max() / spreads.min():.2g} times as much as "
        f"{narrow!r}, and distances are hardly about the latter; --standardize gives "
        "all columns the same say"
    )
