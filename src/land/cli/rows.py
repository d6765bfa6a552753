"""Rows of a table for a model, and the columns that identify them in output."""

from __future__ import annotations

from typing import Any

from land.cli.console import Console
from land.cli.data import Data, read_data
from land.cli.models import StoredModel, load_model


def read_for_model(options: Any, console: Console) -> tuple[StoredModel, Data]:
    """The model, and the rows of the table in the columns it was fitted to."""
    console.say(f"reading {options.model}")
    stored = load_model(options.model)
    data = read_data(options, console, stored.columns, stored.label)
    return stored, data


def row_columns(data: Data, with_data: bool) -> dict[str, Any]:
    """Number and label of each row, and its data if they are wanted."""
    columns: dict[str, Any] = {"row": data.rows}
    if with_data:
        columns |= dict(zip(data.names, data.X.T, strict=True))
    if data.labels is not None and data.label_name is not None:
        columns[data.label_name] = data.labels
    return columns
