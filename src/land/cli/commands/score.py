"""Log densities of the rows of a table under a model.

They are with respect to the units of the table, whether or not the model was fitted
to standardised columns, and can be compared with those of any other density.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from land.cli import options as shared
from land.cli.console import Console

HELP = "log densities of the rows of a table"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    shared.add_model(parser)
    shared.add_data(parser, fitted=True)
    shared.add_output(parser, "the log densities")
    parser.add_argument(
        "--measure",
        choices=("lebesgue", "riemannian"),
        default="lebesgue",
        help="density with respect to dx (default), or to the metric's volume",
    )
    shared.add_with_data(parser)


def run(options: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    from land.cli.output import TABLES, check_output, deliver
    from land.cli.rows import read_for_model, row_columns
    from land.estimators.scoring import reporting_to

    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    with console.working(f"scoring {len(data.X)} rows"), reporting_to(console.rows):
        values = stored.log_density(data.X, options.measure)
    total = float(values.sum())
    n_parameters = stored.model.n_parameters_
    result = {
        "rows": len(values),
        "measure": options.measure,
        "mean_log_density": total / len(values),
        "aic": 2.0 * n_parameters - 2.0 * total,
        "bic": math.log(len(values)) * n_parameters - 2.0 * total,
        "failed_rows": int((values != values).sum()),
    }
    text = (
        f"{len(values)} rows: mean log density {result['mean_log_density']:.6g}, "
        f"AIC {result['aic']:.6g}, BIC {result['bic']:.6g}"
    )
    gaussian = None
    if options.measure == "lebesgue":
        gaussian = stored.gaussian_log_density(data.X)
    if gaussian is not None:
        result["gaussian_mean_log_density"] = float(gaussian.mean())
        text += f"\n{_compared(result)}"
    columns = row_columns(data, options.with_data) | {"log_density": values}
    listed = {"row": data.rows, "log_density": values}
    deliver(options, console, columns, "log densities", result, listed, text)
    return 0


def _compared(result: dict[str, Any]) -> str:
    """How the model does beside normal distributions."""
    ours, theirs = result["mean_log_density"], result["gaussian_mean_log_density"]
    text = f"a Gaussian mixture with as many components: {theirs:.6g}"
    if ours >= theirs:
        return text
    return f"{text}; try 'land fit' with a larger --rho, which flattens the metric"
