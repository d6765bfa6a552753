"""Components and responsibilities of the rows of a table.

The component of a row is the one most responsible for it. With a column of labels, the
F-measure says how well components and labels agree.
"""

from __future__ import annotations

import argparse
from typing import Any

from land.cli import options as shared
from land.cli.console import Console

HELP = "clusters of the rows of a table, and responsibilities"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_model(parser)
    shared.add_data(parser, fitted=True)
    shared.add_output(parser, "components and responsibilities")
    shared.add_with_data(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.output import TABLES, check_output, deliver
    from land.cli.rows import read_for_model, row_columns
    from land.cli.summaries import compare
    from land.estimators.scoring import reporting_to

    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    with console.working(f"assigning {len(data.X)} rows"), reporting_to(console.rows):
        found = _assign(stored.model, stored.to_model(data.X))
    components = found["component"]
    sizes = [int((components == k).sum()) for k in range(len(stored.means()))]
    result: dict[str, Any] = {"rows": len(components), "sizes": sizes}
    result |= compare(data, components)
    text = "rows in each component: " + ", ".join(str(size) for size in sizes)
    if "f_measure" in result:
        text += f"; F-measure against {result['label']}: {result['f_measure']:.4f}"
    columns = row_columns(data, options.with_data) | found
    listed = {"row": data.rows} | found
    deliver(options, console, columns, "components", result, listed, text)
    return 0


def _assign(model: Any, points: Any) -> dict[str, Any]:
    """Columns of the output: component, and responsibilities or distances."""
    import numpy as np

    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(points)
        components = np.argmax(shares, axis=1)
        names = [f"responsibility_{k}" for k in range(shares.shape[1])]
    elif hasattr(model, "predict"):
        shares = model.transform(points)
        components = np.argmin(np.nan_to_num(shares, nan=np.inf), axis=1)
        names = [f"distance_{k}" for k in range(shares.shape[1])]
    else:  # a single distribution
        shares = np.ones((len(points), 1))
        components = np.zeros(len(points), dtype=int)
        names = ["responsibility_0"]
    return {"component": components, **dict(zip(names, shares.T, strict=True))}
