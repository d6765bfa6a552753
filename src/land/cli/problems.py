"""What can be wrong with columns and rows, in words that say what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from land.cli.text_tables import is_number

_MOST_NAMED = 8
# Columns that vary more unequally than this should be standardised.
_MOST_UNEQUAL = 20.0
# A column with no more different values than this, all whole numbers, may be a code.
_MOST_CLASSES = 10


def listed(names: Sequence[str]) -> str:
    """Names for a message, not too many of them."""
    shown = ", ".join(names[:_MOST_NAMED])
    rest = len(names) - _MOST_NAMED
    return shown if rest <= 0 else f"{shown} and {rest} more"


def text_problem(
    name: str, column: np.ndarray, decimal: str, ignorable: bool
) -> str | None:
    """Say so if a column is text; `ignorable` if it was not asked for by name."""
    if column.dtype != object:
        return None
    row, value = next(
        (row, cell)
        for row, cell in enumerate(column, 1)
        if cell is not None and not is_number(cell, decimal)
    )
    if re.fullmatch(r"[-+]?\d+,\d+", value):
        remedy = "if the comma is a decimal sign, give --decimal ,"
    elif ignorable:
        keep = f"keep it aside with --labels {name!r}, " if _has_classes(column) else ""
        remedy = f"{keep}leave it out with --exclude, or all text with --ignore-text"
    else:
        remedy = "correct it, or choose other columns"
    return f"column {name!r} holds text, {value[:40]!r} in row {row} ({remedy})"


def _has_classes(column: np.ndarray) -> bool:
    """Whether words are repeated, as the names of classes are."""
    words = [cell for cell in column if cell is not None]
    return len(set(words)) <= max(_MOST_CLASSES, len(words) // 2)


def missing_problem(names: Sequence[str], X: np.ndarray, drop: bool) -> str | None:
    """Say so if rows have missing values, unless these are to be dropped."""
    complete = np.all(np.isfinite(X), axis=1)
    if complete.all():
        return None
    first = int(np.argmin(complete))
    name = names[int(np.argmin(np.isfinite(X[first])))]
    if not complete.any():
        return (
            f"every row lacks a value, the first one in column {name!r} (leave out "
            "columns with --exclude)"
        )
    if drop:
        return None
    return (
        f"{np.sum(~complete)} of {len(X)} rows have missing or infinite values, the "
        f"first in row {first + 1}, column {name!r} (leave out these rows with "
        "--drop-missing, or fill them in)"
    )


def constant_problem(names: Sequence[str], X: np.ndarray) -> str | None:
    """Say so if columns do not vary."""
    columns = zip(names, X.T, strict=True)
    constant = [name for name, column in columns if is_constant(column)]
    if not constant:
        return None
    return (
        f"constant and says nothing: {listed(constant)} (leave out with --exclude, or "
        "all such columns with --ignore-constant)"
    )


def is_constant(column: np.ndarray) -> bool:
    """Whether all values that are there are equal."""
    values = column[np.isfinite(column)]
    return not len(values) or bool(np.ptp(values) == 0.0)


def scales_problem(names: Sequence[str], X: np.ndarray) -> str | None:
    """Say so if columns vary on very different scales."""
    spreads = X.std(axis=0)
    if spreads.max() <= _MOST_UNEQUAL * spreads.min():
        return None
    wide, narrow = names[int(spreads.argmax())], names[int(spreads.argmin())]
    return (
        f"column {wide!r} varies {spreads.max() / spreads.min():.2g} times as much as "
        f"{narrow!r}, and distances are hardly about the latter; --standardize gives "
        "all columns the same say"
    )


def is_code(column: np.ndarray) -> bool:
    """Whether a column looks like codes of a few classes."""
    values = column[np.isfinite(column)]
    few = len(np.unique(values)) <= min(_MOST_CLASSES, len(values) // 5)
    return bool(few and np.all(values == np.round(values)))


def is_row_number(column: np.ndarray) -> bool:
    """Whether a column counts the rows."""
    return len(column) > 2 and bool(np.all(np.diff(column) == 1.0))
