"""Models in the units and columns of a table: score, predict, sample, plot and info."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from land.cli.console import CommandError, Console
from land.cli.tables import (
    TABLES,
    Data,
    check_output,
    listed,
    read_data,
    text_table,
    write_table,
)
from land.estimators.classification import LANDClassifier
from land.estimators.decomposition import GeodesicPCA
from land.estimators.density import information_criteria
from land.estimators.files import load_with_extra
from land.estimators.standardized import (
    Standardized,
    column_names,
    parts_in_units,
    parts_of,
    responsibilities,
)

_FIGURES = (".png", ".pdf", ".svg")
# Attributes that a summary has as they are, where the model has them.
_SETTINGS = ("method", "volume", "reference", "covariance_type")
_WORK = ("n_log_maps", "n_failed_log_maps")
_RESULTS = ("sigma", "rho", "geometry_gain", "converged", "interrupted", *_WORK)


@dataclass(frozen=True)
class StoredModel:
    """A fitted model for rows of a table, with the names of columns and labels.

    `signs` of the table are the decimal one and that between thousands, if any.
    """

    scaled: Standardized
    columns: list[str]
    label: str | None = None
    signs: tuple[str, str | None] = (".", None)

    @property
    def model(self) -> Any:
        """The model in its own coordinates."""
        return self.scaled.estimator_

    @property
    def log_scale(self) -> float:
        """Logarithm of the volume that one unit of the model's coordinates has."""
        return float(np.sum(np.log(self.scaled.scale_)))

    @property
    def standardized(self) -> bool:
        """Whether the model's coordinates are not the table's."""
        return bool(
            np.any(self.scaled.center_ != 0.0) or np.any(self.scaled.scale_ != 1.0)
        )

    def save(self, path: Path) -> None:
        """Write the model; if that fails, where it will not be lost."""
        extra: dict[str, Any] = {"columns": self.columns}
        if self.label is not None:
            extra["label"] = self.label
        if self.standardized:
            extra |= {"center": self.scaled.center_, "scale": self.scaled.scale_}
        if self.signs != (".", None):
            extra["signs"] = list(self.signs)
        try:
            self.model.save(path, extra=extra)
        except OSError as error:
            spare = Path(tempfile.mkdtemp(prefix="land-")) / path.name
            self.model.save(spare, extra=extra)
            raise CommandError(
                f"{path}: {error.strerror}; the model was written to {spare} instead"
            ) from None

    def summary(self) -> dict[str, Any]:
        """What there is to know about the model."""
        model, landmarks = self.model, self.model.metric_.landmarks
        parts = parts_in_units(self.scaled)
        density = None
        # The objective is about dx with these settings only.
        if getattr(model, "reference", None) == "lebesgue" and model.volume == "exact":
            density = float(-model.objective_ - self.log_scale)
        return {
            "class": type(model).__name__,
            "components": len(parts.means),
            "columns": self.columns,
            "label": self.label,
            "standardized": self.standardized,
            "rows": None if landmarks is None else len(landmarks),
            "metric": type(model.metric_).__name__,
            **{name: getattr(model, name, None) for name in _SETTINGS},
            **{name: getattr(model, f"{name}_", None) for name in _RESULTS},
            "parameters": getattr(model, "n_parameters_", None),
            "steps": model.n_iter_,
            "objective": getattr(model, "objective_", getattr(model, "inertia_", None)),
            "mean_log_density": density,
            **parts._asdict(),
            "health": getattr(model, "health_", []),
        }


def load_model(path: Path, console: Console) -> StoredModel:
    """Read a model file, of the command line or of Python."""
    console.say(f"reading {path}")
    model, extra = load_with_extra(path)
    if isinstance(model, (GeodesicPCA, LANDClassifier)):
        name = type(model).__name__
        raise CommandError(f"{path} holds a {name}, which is for Python only")
    dim = model.n_features_in_
    columns = extra.get("columns", column_names(model, dim=dim))
    if len(columns) != dim:
        raise CommandError(f"{path}: its columns do not go with its model; fit it anew")
    center, scale = extra.get("center", np.zeros(dim)), extra.get("scale", np.ones(dim))
    scaled = Standardized.around(model, center, scale)
    decimal, thousands = extra.get("signs", (".", None))
    names, label = [str(name) for name in columns], extra.get("label")
    return StoredModel(scaled, names, label, (decimal, thousands))


def _read(options: Any, console: Console) -> tuple[StoredModel, Data]:
    """The model, and the rows of the table in the columns it was fitted to."""
    check_output(options.output, TABLES)
    stored = load_model(options.model, console)
    if options.decimal is None:
        options.decimal = stored.signs[0]
        options.thousands = options.thousands or stored.signs[1]
    return stored, read_data(options, console, stored.columns, stored.label)


# The commands.


def score(options: argparse.Namespace, console: Console) -> int:
    """Log densities of rows."""
    stored, data = _read(options, console)
    need_density(stored)
    with console.working(f"scoring {len(data.X)} rows"):
        values = stored.scaled.score_samples(data.X)
    n, total = len(values), float(values.sum())
    result: dict[str, Any] = {"rows": n, "mean_log_density": total / n}
    result |= information_criteria(total, stored.model.n_parameters_, n)
    result["failed_rows"] = int(np.isnan(values).sum())
    text = (
        f"{n} rows: mean log density {result['mean_log_density']:.6g}, "
        f"AIC {result['aic']:.6g}, BIC {result['bic']:.6g}"
    )
    columns = data.columns(options.with_data) | {"log_density": values}
    return _deliver(options, console, columns, result, text)


def predict(options: argparse.Namespace, console: Console) -> int:
    """Clusters of rows, with responsibilities if there are any."""
    stored, data = _read(options, console)
    with console.working(f"assigning {len(data.X)} rows"):
        shares = responsibilities(stored.scaled, data.X)
    components = np.argmax(shares, axis=1)
    sizes = np.bincount(components, minlength=shares.shape[1]).tolist()
    result = {"rows": len(data.X), "sizes": sizes} | data.agreement(components)
    text = "rows in each component: " + ", ".join(str(size) for size in sizes)
    if "f_measure" in result:
        text += f"; F-measure against {result['label']}: {result['f_measure']:.4f}"
    columns = data.columns(options.with_data) | {"component": components}
    columns |= {f"responsibility_{k}": share for k, share in enumerate(shares.T)}
    return _deliver(options, console, columns, result, text)


def sample(options: argparse.Namespace, console: Console) -> int:
    """Draw points."""
    check_output(options.output, TABLES)
    stored = load_model(options.model, console)
    need_density(stored)
    with console.working(f"drawing {options.number} points"):
        points, components = stored.scaled.sample(options.number, options.seed)
    columns = dict(zip(stored.columns, points.T, strict=True))
    if len(parts_of(stored.model).means) > 1:
        columns["component_" if "component" in columns else "component"] = components
    n = len(points)
    return _deliver(options, console, columns, {"points": n}, f"{n} points")


def _deliver(
    options: Any, console: Console, columns: Any, result: dict, text: str
) -> int:
    """Hand over a table: in a file, as JSON, or on standard output.

    The `text` is the result for people; beside a table on standard output it is
    progress.
    """
    to_file = str(options.output) != "-"
    if to_file or not options.json:
        write_table(options.output, columns)
    if to_file:
        result["output"] = str(options.output)
        console.result(f"{text}\ntable: {options.output}", result)
    elif options.json:
        console.result("", result | {"columns": columns})
    else:
        console.say(text)
    return 0


def need_density(stored: StoredModel) -> None:
    """Refuse a model that has no density."""
    if not hasattr(stored.model, "score_samples"):
        name = type(stored.model).__name__
        raise CommandError(f"a {name} has clusters but no density; fit a LAND")


def plot(options: argparse.Namespace, console: Console) -> int:
    """Draw a model."""
    check_output(options.output, _FIGURES)
    stored = load_model(options.model, console)
    kind = options.kind or ("density" if len(stored.columns) <= 2 else "pairs")
    with console.working(f"drawing {kind}"):
        from land.plotting.figures import View, model_figure, save_figure

        view = View(stored.scaled, stored.columns)
        save_figure(model_figure(view, kind, options.grid), options.output)
    console.result(f"figure: {options.output}", {"figure": str(options.output)})
    return 0


def info(options: argparse.Namespace, console: Console) -> int:
    """Show a model."""
    result = load_model(options.model, console).summary()
    lines = [model_text(result, details=True), *result["health"]]
    console.result("\n".join(lines), result)
    return 0


# In words.


def counted(count: int, what: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{count} {what}{'s' * (count != 1)}"


def model_text(result: dict[str, Any], details: bool) -> str:
    """The summary for people; the `details` are for those who know the method."""
    sigma, gain, many = result["sigma"], result["geometry_gain"], result["components"]
    name = "k-means" if result["class"] == "RiemannianKMeans" else "LAND"
    scaled = " (standardised)" * result["standardized"]
    columns = listed(result["columns"])
    lines = [f"{name}, {counted(many, 'component')}; columns {columns}{scaled}"]
    curved = sigma is not None and np.isfinite(sigma)
    if gain is not None and np.isfinite(gain):
        plain = "Gaussian mixture" if many > 1 else "Gaussian"
        change = f"gains {gain:.2g}" if gain >= 0.0 else f"loses {-gain:.2g}"
        kept = "" if curved else ", which is kept"
        lines.append(
            f"following the data {change} in log density per row against an ordinary "
            f"{plain}{kept}"
        )
    if result["mean_log_density"] is not None:
        lines.append(f"mean log density of the rows: {result['mean_log_density']:.6g}")
    if details:
        if result["standardized"]:
            lines.append("sigma and rho are in standardised units")
        for name in ("metric", "sigma", "rho", *_SETTINGS, "parameters", *_WORK):
            value = result[name]
            shown = f"{value:.4g}" if isinstance(value, float) else value
            lines += [] if value is None else [f"{name}: {shown}"]
    state = "converged" if result["converged"] else "not converged"
    state = "interrupted" if result["interrupted"] else state
    lines.append(f"{state} after {counted(result['steps'], 'step')}")
    return "\n".join([*lines, _component_table(result)])


def _component_table(result: dict[str, Any]) -> str:
    """A line for each component: weight, mean and standard deviations."""
    means, covariances = np.asarray(result["means"]), result["covariances"]
    cells = [[f"{value:.4g}" for value in mean] for mean in means]
    note = ""
    if covariances is not None:
        spreads = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        cells = [
            [f"{value:.4g} ± {spread:.2g}" for value, spread in zip(*each, strict=True)]
            for each in zip(means, spreads, strict=True)
        ]
        note = "\n(mean ± standard deviation, as measured at the mean)"
    table = pd.DataFrame(cells, columns=result["columns"])
    table.insert(0, "weight", [f"{w:.3f}" for w in result["weights"]], True)
    table.insert(0, "component", range(len(cells)), True)
    return text_table(table) + note
