"""Models in the units and columns of the user's table, and the commands that use them.

These are score, predict, sample, plot and info.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.console import CommandError, Console
from land.cli.data import SHOWN, Data, listed, read_data
from land.cli.tables import FIGURES, TABLES, check_output, text_table, write_table
from land.estimators.classification import LANDClassifier
from land.estimators.decomposition import GeodesicPCA
from land.estimators.density import information_criteria
from land.estimators.files import load_with_extra
from land.estimators.standardized import Parts, Standardized, parts_of


@dataclass(frozen=True)
class StoredModel:
    """A fitted model, with the columns and labels of the table it was fitted to.

    Its coordinates are ``(x - center) / scale`` for a row x of the table. `signs` of
    the table are the decimal one and that between thousands, if there is one.
    """

    model: Any
    columns: list[str]
    label: str | None
    center: np.ndarray
    scale: np.ndarray
    signs: tuple[str, str | None] = (".", None)

    @property
    def standardized(self) -> bool:
        """Whether the model's coordinates are not the table's."""
        return bool(np.any(self.center != 0.0) or np.any(self.scale != 1.0))

    @property
    def log_scale(self) -> float:
        """Logarithm of the volume that one unit of the model's coordinates has."""
        return float(np.sum(np.log(self.scale)))

    def to_model(self, X: np.ndarray) -> np.ndarray:
        """Points of the table in the coordinates of the model."""
        return (X - self.center) / self.scale

    def in_units(self) -> Standardized:
        """The model for points of the table."""
        return Standardized.around(self.model, self.center, self.scale)

    @property
    def parts(self) -> Parts:
        """Means and covariances in the units of the table."""
        return parts_of(self.model).in_units(self.center, self.scale)

    def save(self, path: Path) -> None:
        """Write the model; if that fails, where it will not be lost."""
        extra: dict[str, Any] = {"columns": self.columns}
        if self.label is not None:
            extra["label"] = self.label
        if self.standardized:
            extra |= {"center": self.center, "scale": self.scale}
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
        model, parts, landmarks = self.model, self.parts, self.model.metric_.landmarks
        kept = "method volume reference covariance_type"
        fitted = "sigma rho geometry_gain converged interrupted n_log_maps"
        fitted += " n_failed_log_maps"
        # The objective is about dx with these settings only.
        settings = [getattr(model, name, None) for name in ("reference", "volume")]
        density = None
        if settings == ["lebesgue", "exact"]:
            density = float(-model.objective_ - self.log_scale)
        return {
            "class": type(model).__name__,
            "components": len(parts.means),
            "columns": self.columns,
            "label": self.label,
            "standardized": self.standardized,
            "rows": None if landmarks is None else len(landmarks),
            "metric": type(model.metric_).__name__,
            **{name: getattr(model, name, None) for name in kept.split()},
            **{name: getattr(model, f"{name}_", None) for name in fitted.split()},
            "parameters": getattr(model, "n_parameters_", None),
            "steps": model.n_iter_,
            "objective": getattr(model, "objective_", getattr(model, "inertia_", None)),
            "mean_log_density": density,
            **parts._asdict(),
            "health": getattr(model, "health_", []),
        }


def new_model(model: Any, data: Data, options: Any) -> StoredModel:
    """A model that is yet to be fitted, with the scaling that was asked for."""
    center, scale = np.zeros(len(data.names)), np.ones(len(data.names))
    if options.standardize:
        center, scale = data.X.mean(axis=0), data.X.std(axis=0)
    signs = options.decimal, options.thousands
    return StoredModel(model, data.names, data.label_name, center, scale, signs)


def load_model(path: Path, console: Console) -> StoredModel:
    """Read a model file, of the command line or of Python."""
    console.say(f"reading {path}")
    model, extra = load_with_extra(path)
    if isinstance(model, (GeodesicPCA, LANDClassifier)):
        name = type(model).__name__
        raise CommandError(f"{path} holds a {name}, which is for Python only")
    dim, label = model.n_features_in_, extra.get("label")
    numbered = [f"x{k + 1}" for k in range(dim)]
    columns = extra.get("columns", getattr(model, "feature_names_in_", numbered))
    if len(columns) != dim:
        raise CommandError(f"{path}: its columns do not go with its model; fit it anew")
    center, scale = extra.get("center", np.zeros(dim)), extra.get("scale", np.ones(dim))
    scaled = Standardized.around(model, center, scale)
    decimal, thousands = extra.get("signs", (".", None))
    parts = scaled.center_, scaled.scale_, (decimal, thousands)
    return StoredModel(model, [str(name) for name in columns], label, *parts)


def read_for_model(options: Any, console: Console) -> tuple[StoredModel, Data]:
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
    stored, data = read_for_model(options, console)
    _need_density(stored)
    with console.working(f"scoring {len(data.X)} rows"):
        values = stored.in_units().score_samples(data.X)
    n, total = len(values), float(values.sum())
    result: dict[str, Any] = {"rows": n, "mean_log_density": total / n}
    result |= information_criteria(total, stored.model.n_parameters_, n)
    result["failed_rows"] = int(np.isnan(values).sum())
    text = (
        f"{n} rows: mean log density {result['mean_log_density']:.6g}, "
        f"AIC {result['aic']:.6g}, BIC {result['bic']:.6g}"
    )
    columns = data.columns(options.with_data) | {"log_density": values}
    return _deliver(options, console, columns, result, "log densities", text)


def predict(options: argparse.Namespace, console: Console) -> int:
    """Clusters of rows, with responsibilities if there are any."""
    stored, data = read_for_model(options, console)
    model, count = stored.in_units(), len(stored.parts.means)
    shares = np.ones((len(data.X), 1))  # of the only component
    with console.working(f"assigning {len(data.X)} rows"):
        if hasattr(model, "predict_proba"):
            shares = model.predict_proba(data.X)
        elif count > 1:
            shares = np.eye(count)[model.predict(data.X)]
    components = np.argmax(shares, axis=1)
    sizes = np.bincount(components, minlength=count).tolist()
    result = {"rows": len(data.X), "sizes": sizes} | data.agreement(components)
    text = "rows in each component: " + ", ".join(str(size) for size in sizes)
    if "f_measure" in result:
        text += f"; F-measure against {result['label']}: {result['f_measure']:.4f}"
    columns = data.columns(options.with_data) | {"component": components}
    columns |= {f"responsibility_{k}": share for k, share in enumerate(shares.T)}
    return _deliver(options, console, columns, result, "components", text)


def sample(options: argparse.Namespace, console: Console) -> int:
    """Draw points."""
    check_output(options.output, TABLES)
    stored = load_model(options.model, console)
    _need_density(stored)
    with console.working(f"drawing {options.number} points"):
        points, components = stored.in_units().sample(options.number, options.seed)
    columns = dict(zip(stored.columns, points.T, strict=True))
    if len(stored.parts.means) > 1:
        columns["component_" if "component" in columns else "component"] = components
    n = len(points)
    return _deliver(options, console, columns, {"points": n}, f"{n} points", "")


def _deliver(
    options: Any, console: Console, columns: Any, result: dict, what: str, text: str
) -> int:
    """Hand over a table: in a file, which holds `what`, as JSON, or as it is.

    The `text` is the result for people; beside a table on standard output it is
    progress.
    """
    to_file = str(options.output) != "-"
    if to_file or not options.json:
        write_table(options.output, columns)
    if to_file:
        lines = [text] * bool(text) + [f"{what}: {options.output}"]
        console.result("\n".join(lines), result | {"output": str(options.output)})
    elif options.json:
        console.result("", result | {"columns": columns})
    elif text:
        console.say(text)
    return 0


def _need_density(stored: StoredModel) -> None:
    if not hasattr(stored.model, "score_samples"):
        name = type(stored.model).__name__
        raise CommandError(f"a {name} has clusters but no density; fit a LAND")


def plot(options: argparse.Namespace, console: Console) -> int:
    """Draw a model."""
    check_output(options.output, FIGURES)
    stored = load_model(options.model, console)
    kind = options.kind or ("density" if len(stored.columns) <= 2 else "pairs")
    with console.working(f"drawing {kind}"):
        from land.plotting.figures import model_figure, save_figure

        save_figure(model_figure(stored, kind, options.grid), options.output)
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
        kept = "" if curved else ", which is kept"
        lines.append(
            f"following the data gains {gain:+.2g} in log density per row over an "
            f"ordinary {plain}{kept}"
        )
    if result["mean_log_density"] is not None:
        lines.append(f"mean log density of the rows: {result['mean_log_density']:.6g}")
    if details and result["parameters"] is not None:
        parameters = counted(result["parameters"], "parameter")
        lines.append(f"{result['covariance_type']} covariances ({parameters})")
    if details and curved:
        units = " in standardised units" * result["standardized"]
        lines.append(f"sigma {sigma:.4g}, rho {result['rho']:.4g}{units}")
    if details and result["n_log_maps"] is not None:
        work = f"{counted(result['n_log_maps'], 'geodesic')} computed"
        lines.append(f"{work}, {result['n_failed_log_maps']} failed at the end")
    state = "converged" if result["converged"] else "not converged"
    state = "interrupted" if result["interrupted"] else state
    lines.append(f"{state} after {counted(result['steps'], 'step')}")
    return "\n".join([*lines, _component_table(result)])


def _component_table(result: dict[str, Any]) -> str:
    """A line for each component: weight, mean and standard deviations."""
    means, covariances = result["means"], result["covariances"]
    columns: dict[str, Any] = {"component": range(result["components"])}
    columns["weight"] = [f"{weight:.3f}" for weight in result["weights"]]
    for k, name in enumerate(result["columns"][:SHOWN]):
        spreads = [""] * len(means)
        if covariances is not None:
            spreads = [f" ± {np.sqrt(each[k, k]):.2g}" for each in covariances]
        pairs = zip(means, spreads, strict=True)
        key = f"{name}_" if name in columns else name  # a column may be named weight
        columns[key] = [f"{mean[k]:.4g}{spread}" for mean, spread in pairs]
    note = "\n(mean ± standard deviation, as measured at the mean)"
    return text_table(columns) + note * (covariances is not None)
