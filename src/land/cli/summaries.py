"""Models in a few lines and as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.data import Data
from land.cli.models import StoredModel

_MOST_COLUMNS = 6


def summary(stored: StoredModel) -> dict[str, Any]:
    """What there is to know about a model."""
    model = stored.model
    means, covariances = stored.means(), stored.covariances()
    result: dict[str, Any] = {
        "class": type(model).__name__,
        "components": len(means),
        "columns": stored.columns,
        "label": stored.label,
        "standardized": stored.standardized,
        "rows": _n_rows(model),
        "sigma": getattr(model, "sigma_", None),
        "rho": getattr(model, "rho_", None),
        "metric": type(model.metric_).__name__,
        "geometry_gain": getattr(model, "geometry_gain_", None),
        "method": getattr(model, "method", None),
        "volume": getattr(model, "volume", None),
        "reference": getattr(model, "reference", None),
        "double_counted": getattr(model, "double_counted_", None),
        "covariance_type": getattr(model, "covariance_type", None),
        "parameters": getattr(model, "n_parameters_", None),
        "converged": model.converged_,
        "interrupted": getattr(stored.model, "interrupted_", False),
        "steps": model.n_iter_,
        "objective": getattr(model, "objective_", getattr(model, "inertia_", None)),
        "failed_log_maps": getattr(model, "n_failed_log_maps_", None),
        "weights": stored.weights(),
        "means": means,
    }
    if covariances is not None:
        result["covariances"] = covariances
    return result


def agreement(stored: StoredModel, data: Data, console: Console) -> dict[str, Any]:
    """F-measure of the model's clusters against the labels, if both are there."""
    if data.labels is None or not hasattr(stored.model, "predict"):
        return {}
    with console.working("comparing clusters with labels"):
        labels = stored.model.predict(stored.to_model(data.X))
    return compare(data, labels)


def compare(data: Data, clusters: np.ndarray) -> dict[str, Any]:
    """F-measure of clusters against the labels of the rows that have one."""
    from land.estimators import f_measure

    if data.labels is None:
        return {}
    known = np.array([label is not None for label in data.labels])
    if not known.any():
        return {}
    value = f_measure(data.labels[known].tolist(), clusters[known].tolist())
    return {"f_measure": value, "label": data.label_name}


def model_text(result: dict[str, Any]) -> str:
    """The summary for people."""
    count = result["components"]
    kind = {"RiemannianKMeans": "k-means"}.get(result["class"], "LAND")
    lines = [
        f"{kind}, {count} component{'s' * (count > 1)}, columns "
        + ", ".join(result["columns"][:_MOST_COLUMNS])
        + (", ..." if len(result["columns"]) > _MOST_COLUMNS else "")
        + (" (standardised)" if result["standardized"] else "")
    ]
    lines += _metric_lines(result)
    if result["parameters"] is not None:
        lines.append(
            f"{result['covariance_type']} covariance{'s' * (count > 1)}, "
            f"{result['parameters']} parameters"
        )
    state = "converged" if result["converged"] else "not converged"
    state = "interrupted" if result["interrupted"] else state
    steps = f"{result['steps']} step{'s' * (result['steps'] != 1)}"
    lines.append(f"{state} after {steps}, {_objective(result)}")
    return "\n".join([*lines, *_component_lines(result)])


def _metric_lines(result: dict[str, Any]) -> list[str]:
    """Sigma and rho, and what the metric is worth."""
    if result["sigma"] is None:
        return []
    gain = result["geometry_gain"]
    known = gain is not None and np.isfinite(gain)
    if np.isinf(result["sigma"]):
        lead = f" gains {gain:+.2g} for each row" if known else " was not compared"
        return [f"flat metric (Gaussian): a curved one{lead}"]
    units = " in standardised units" if result["standardized"] else ""
    line = f"sigma {result['sigma']:.4g}, rho {result['rho']:.4g}{units}"
    if known:
        line += f"; gains {gain:.2g} for each row over the flat metric (Gaussian)"
    return [line]


def _component_lines(result: dict[str, Any]) -> list[str]:
    """A line for each component: weight, mean and standard deviations."""
    names = result["columns"][:_MOST_COLUMNS]
    lines = ["component  weight  " + "  ".join(f"{name[:18]:>18}" for name in names)]
    covariances = result.get("covariances")
    for k, (weight, mean) in enumerate(
        zip(result["weights"], result["means"], strict=True)
    ):
        cells = [f"{value:.4g}" for value in mean[: len(names)]]
        if covariances is not None:
            spreads = np.sqrt(np.diagonal(covariances[k]))
            cells = [
                f"{cell} ± {spread:.2g}"
                for cell, spread in zip(cells, spreads, strict=False)
            ]
        row = "  ".join(f"{cell:>18}" for cell in cells)
        lines.append(f"{k:>9}  {weight:6.3f}  {row}")
    if covariances is not None:
        lines.append(
            "(mean ± standard deviation along the axis, in tangent coordinates)"
        )
    return lines


def _objective(result: dict[str, Any]) -> str:
    if result["objective"] is None:
        return "objective unknown"
    if result["class"] == "RiemannianKMeans":
        return f"sum of squared distances {result['objective']:.6g}"
    riemannian = result["reference"] == "riemannian" or result["volume"] == "paper"
    measure = "the metric's volume; 'land score' has dx" if riemannian else "dx"
    return (
        f"objective {result['objective']:.6g} (mean negative log density with respect "
        f"to {measure})"
    )


def _n_rows(model: Any) -> int | None:
    landmarks = model.metric_.landmarks
    return None if landmarks is None else len(landmarks)
