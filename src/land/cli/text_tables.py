"""Text in rows and columns: delimiters, headers, missing values."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

from land.cli.errors import CommandError

_MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-", "."}
_DELIMITERS = (",", ";", "\t", "|")


class Cells(NamedTuple):
    """Columns of stripped cells, None where a value is missing."""

    names: list[str]
    columns: list[list[str | None]]
    header: bool


def read_text(source: str, content: bytes, kind: str, options: Any) -> Cells:
    """Cells of a text file.

    Parameters
    ----------
    source
        The file's name, for messages.
    content
        What is in it.
    kind
        The ending of its name.
    options
        With `header` (True, False or None to look for one), `delimiter`, `decimal`
        and `encoding`.
    """
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
    rows = _rows(text, options.delimiter or _delimiter(text, kind, options.decimal))
    if not rows:
        raise CommandError(f"{source}: the file is empty")
    # As numpy.savetxt marks its header.
    rows[0][0] = rows[0][0].removeprefix("#").strip()
    _check_widths(source, rows)
    header = options.header
    if header is None:
        header = _has_header(rows, options.decimal)
    names = _unique(rows[0]) if header else [f"x{k + 1}" for k in range(len(rows[0]))]
    body = [
        [None if is_missing(cell) else cell for cell in row]
        for row in (rows[1:] if header else rows)
    ]
    columns = [list(column) for column in zip(*body, strict=True)]
    return Cells(names, columns, header)


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value."""
    return cell.lower() in _MISSING


def to_number(cell: str, decimal: str = ".") -> float:
    """The number in a cell; a ValueError if it is none."""
    if "_" in cell:  # Python's own way to group digits
        raise ValueError
    return float(cell if decimal == "." else cell.replace(decimal, "."))


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number."""
    try:
        to_number(cell, decimal)
    except ValueError:
        return False
    return True


def _rows(text: str, delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        rows = [line.split() for line in text.splitlines()]
    else:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            rows = [[cell.strip() for cell in row] for row in reader]
        except csv.Error as error:
            raise CommandError(f"the table cannot be read: {error}") from None
    return [row for row in rows if any(row)]


def _delimiter(text: str, kind: str, decimal: str) -> str:
    """What separates the cells of the first line, for which no one has told us."""
    if kind in (".tsv", ".tab"):
        return "\t"
    line = next((each for each in text.splitlines() if each.strip()), "")
    counts = {each: line.count(each) for each in _DELIMITERS if each != decimal}
    best = max(counts, key=lambda each: counts[each])
    if counts[best]:
        return best
    return " " if len(line.split()) > 1 and kind != ".csv" else ","


def _has_header(rows: list[list[str]], decimal: str) -> bool:
    """Whether the first row has names: it has no number, or text above numbers."""
    first = rows[0]
    if not any(is_number(cell, decimal) or is_missing(cell) for cell in first):
        return True
    for cell, below in zip(first, zip(*rows[1:], strict=True), strict=False):
        if not (is_number(cell, decimal) or is_missing(cell)):
            values = [each for each in below if not is_missing(each)]
            if values and all(is_number(each, decimal) for each in values):
                return True
    return False


def _unique(names: list[str]) -> list[str]:
    """Names of which no two are equal and none is empty."""
    taken: list[str] = []
    for position, name in enumerate(names, 1):
        name = name or f"x{position}"
        candidate, count = name, 2
        while candidate in taken:
            candidate, count = f"{name}.{count}", count + 1
        taken.append(candidate)
    return taken


def _check_widths(source: str, rows: list[list[str]]) -> None:
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise CommandError(
                f"{source}: line {number} has {len(row)} cells, the first has {width}; "
                "check the delimiter (--delimiter) and quotes"
            )
