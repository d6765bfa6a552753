"""The commands that use a fitted model: score, predict, sample, plot, info."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from land.cli.console import CommandError, Console
from land.cli.models import load_model, model_text, read_for_model
from land.cli.tables import FIGURES, TABLES, check_output, deliver


def score(options: argparse.Namespace, console: Console) -> int:
    """Log densities of rows."""
    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    with console.counting(f"scoring {len(data.X)} rows"):
        values = stored.log_density(data.X, options.measure)
    total, n_parameters = float(values.sum()), stored.model.n_parameters_
    result = {
        "rows": len(values),
        "measure": options.measure,
        "mean_log_density": total / len(values),
        "aic": 2.0 * n_parameters - 2.0 * total,
        "bic": math.log(len(values)) * n_parameters - 2.0 * total,
        "failed_rows": int(np.isnan(values).sum()),
    }
    text = (
        f"{len(values)} rows: mean log density {result['mean_log_density']:.6g}, "
        f"AIC {result['aic']:.6g}, BIC {result['bic']:.6g}"
    )
    gaussian = None
    if options.measure == "lebesgue":
        gaussian = stored.gaussian_log_density(data.X)
    if gaussian is not None:
        theirs = result["gaussian_mean_log_density"] = float(gaussian.mean())
        text += f"\na Gaussian mixture with as many components: {theirs:.6g}"
        if theirs > result["mean_log_density"]:
            text += "; try 'land fit' with a larger --rho"
    columns = data.columns(options.with_data) | {"log_density": values}
    deliver(options, console, columns, result, "log densities", text)
    return 0


def predict(options: argparse.Namespace, console: Console) -> int:
    """Clusters of rows."""
    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    with console.counting(f"assigning {len(data.X)} rows"):
        found = _assigned(stored.model, stored.to_model(data.X))
    sizes = np.bincount(found["component"], minlength=len(stored.means())).tolist()
    result: dict[str, Any] = {"rows": len(data.X), "sizes": sizes}
    result |= data.agreement(found["component"])
    text = "rows in each component: " + ", ".join(str(size) for size in sizes)
    if "f_measure" in result:
        text += f"; F-measure against {result['label']}: {result['f_measure']:.4f}"
    columns = data.columns(options.with_data) | found
    deliver(options, console, columns, result, "components", text)
    return 0


def _assigned(model: Any, points: np.ndarray) -> dict[str, Any]:
    """Columns of the output: component, and responsibilities or distances."""
    if hasattr(model, "transform"):
        values, name = model.transform(points), "distance"
        components = np.argmin(np.nan_to_num(values, nan=np.inf), axis=1)
    else:
        mixture, name = hasattr(model, "predict_proba"), "responsibility"
        values = model.predict_proba(points) if mixture else np.ones((len(points), 1))
        components = np.argmax(values, axis=1)
    columns = {f"{name}_{k}": column for k, column in enumerate(values.T)}
    return {"component": components} | columns


def sample(options: argparse.Namespace, console: Console) -> int:
    """Draw points."""
    check_output(options.output, TABLES)
    stored = load_model(options.model, console)
    if not hasattr(stored.model, "sample"):
        raise CommandError(
            f"a {type(stored.model).__name__} has no density to draw from; fit a LAND"
        )
    with console.working(f"drawing {options.number} points"):
        points, components = stored.model.sample(options.number, options.seed)
    columns = dict(zip(stored.columns, stored.to_data(points).T, strict=True))
    if len(stored.means()) > 1:
        columns["component_" if "component" in columns else "component"] = components
    what = f"{len(points)} points"
    deliver(options, console, columns, {"points": len(points)}, what)
    return 0


def plot(options: argparse.Namespace, console: Console) -> int:
    """Draw a model."""
    check_output(options.output, FIGURES)
    stored = load_model(options.model, console)
    kind = options.kind or ("density" if len(stored.columns) == 2 else "pairs")
    with console.counting(f"drawing {kind}"):
        from land.cli.figures import model_figure, save_figure

        save_figure(model_figure(stored, kind, options.grid), options.output)
    console.result(f"figure: {options.output}", {"figure": str(options.output)})
    return 0


def info(options: argparse.Namespace, console: Console) -> int:
    """Show a model."""
    result = load_model(options.model, console).summary()
    console.result(model_text(result, details=True), result)
    return 0
