"""The commands that use a fitted model: score, predict, sample, plot, info."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from land.cli.console import CommandError, Console
from land.cli.models import load_model, model_text, read_for_model
from land.cli.tables import FIGURES, TABLES, check_output, deliver
from land.estimators.density import information_criteria


def score(options: argparse.Namespace, console: Console) -> int:
    """Log densities of rows."""
    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    with console.counting(f"scoring {len(data.X)} rows"):
        values = stored.log_density(data.X, options.measure)
    n, total = len(values), float(values.sum())
    result: dict[str, Any] = {"rows": n, "measure": options.measure}
    result["mean_log_density"] = total / n
    result |= information_criteria(total, stored.model.n_parameters_, n)
    result["failed_rows"] = int(np.isnan(values).sum())
    text = (
        f"{n} rows: mean log density {result['mean_log_density']:.6g}, "
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
    """Clusters of rows, with responsibilities or distances."""
    check_output(options.output, TABLES)
    stored, data = read_for_model(options, console)
    model, name = stored.model, "responsibility"
    with console.counting(f"assigning {len(data.X)} rows"):
        points = stored.to_model(data.X)
        if hasattr(model, "transform"):
            values, name = model.transform(points), "distance"
            components = np.argmin(np.nan_to_num(values, nan=np.inf), axis=1)
        else:
            values = np.ones((len(points), 1))
            if hasattr(model, "predict_proba"):
                values = model.predict_proba(points)
            components = np.argmax(values, axis=1)
    sizes = np.bincount(components, minlength=values.shape[1]).tolist()
    result = {"rows": len(points), "sizes": sizes} | data.agreement(components)
    text = "rows in each component: " + ", ".join(str(size) for size in sizes)
    if "f_measure" in result:
        text += f"; F-measure against {result['label']}: {result['f_measure']:.4f}"
    columns = data.columns(options.with_data) | {"component": components}
    columns |= {f"{name}_{k}": column for k, column in enumerate(values.T)}
    deliver(options, console, columns, result, "components", text)
    return 0


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
    n = len(points)
    deliver(options, console, columns, {"points": n}, f"{n} points")
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
