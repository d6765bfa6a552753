"""Models in the units and columns of the user's table, and what there is to say."""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from land.cli import cache
from land.cli.console import Console
from land.cli.data import Data, read_data
from land.cli.errors import CommandError

# Columns that a summary shows.
_MOST_COLUMNS = 6


@dataclass(frozen=True)
class StoredModel:
    """A fitted model with what the command line keeps beside it.

    Attributes
    ----------
    model : LAND, LANDMixture or RiemannianKMeans
    columns : list of str
        Names of the columns it was fitted to.
    label : str or None
        Name of the column of labels.
    center, scale : ndarray of shape (D,)
        The model's coordinates are ``(x - center) / scale``.
    """

    model: Any
    columns: list[str]
    label: str | None
    center: np.ndarray
    scale: np.ndarray

    @property
    def standardized(self) -> bool:
        """Whether the model's coordinates are not the data's."""
        return bool(np.any(self.center != 0.0) or np.any(self.scale != 1.0))

    @property
    def log_scale(self) -> float:
        """Logarithm of the volume that one unit of the model's coordinates has."""
        return float(np.sum(np.log(self.scale)))

    def to_model(self, X: np.ndarray) -> np.ndarray:
        """Points in the coordinates of the model."""
        return (X - self.center) / self.scale

    def to_data(self, Z: np.ndarray) -> np.ndarray:
        """Points of the model in the units of the data."""
        return Z * self.scale + self.center

    def means(self) -> np.ndarray:
        """Means in the units of the data, (K, D)."""
        return self.to_data(
            np.atleast_2d(self._first_of("mean_", "means_", "cluster_centers_"))
        )

    def covariances(self) -> np.ndarray | None:
        """Covariances in the units of the data, (K, D, D), if there are any."""
        stored = self._first_of("covariance_", "covariances_")
        if stored is None:
            return None
        dim = len(self.columns)
        return stored.reshape(-1, dim, dim) * np.outer(self.scale, self.scale)

    def log_density(self, X: np.ndarray, measure: str) -> np.ndarray:
        """Log densities of points of the data, in their units.

        A density with respect to dx changes with the units; one with respect to the
        metric's volume does not.
        """
        if not hasattr(self.model, "score_samples"):
            raise CommandError(
                f"a {type(self.model).__name__} has clusters but no density; fit a LAND"
            )
        values = self.model.score_samples(self.to_model(X), measure)
        return values - self.log_scale if measure == "lebesgue" else values

    def gaussian_log_density(self, X: np.ndarray) -> np.ndarray | None:
        """Log densities under normal distributions in the place of the model.

        It is the scale to judge a model by: a Gaussian mixture with as many components,
        fitted to the rows that the model's metric was learned from, if it was.
        """
        from sklearn.mixture import GaussianMixture

        rows, count = self.model.metric_.landmarks, len(self.means())
        if rows is None or len(rows) <= count:
            return None
        mixture = GaussianMixture(count, n_init=5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a rough one will do
            mixture.fit(rows)
        values: np.ndarray = mixture.score_samples(self.to_model(X))
        return values - self.log_scale

    def save(self, path: Path) -> None:
        """Write the model; if that fails, where it will not be lost."""
        extra: dict[str, Any] = {"columns": self.columns}
        if self.label is not None:
            extra["label"] = self.label
        if self.standardized:
            extra |= {"center": self.center, "scale": self.scale}
        try:
            self.model.save(path, extra=extra)
        except OSError as error:
            descriptor, spare = tempfile.mkstemp(prefix="land-", suffix=".land")
            os.close(descriptor)
            try:
                self.model.save(spare, extra=extra)
            except OSError:
                Path(spare).unlink(missing_ok=True)
                raise error from None
            raise CommandError(
                f"{path}: {error.strerror}; the model was written to {spare} instead"
            ) from None

    def summary(self) -> dict[str, Any]:
        """What there is to know about the model."""
        model, means = self.model, self.means()
        even = np.full(len(means), 1.0 / len(means))
        landmarks = model.metric_.landmarks
        result: dict[str, Any] = {
            "class": type(model).__name__,
            "components": len(means),
            "columns": self.columns,
            "label": self.label,
            "standardized": self.standardized,
            "rows": None if landmarks is None else len(landmarks),
            "metric": type(model.metric_).__name__,
            "parameters": getattr(model, "n_parameters_", None),
            "steps": model.n_iter_,
            "objective": self._first_of("objective_", "inertia_"),
            "mean_log_density": self._mean_log_density(),
            "weights": getattr(model, "weights_", even),
            "means": means,
            "covariances": self.covariances(),
        }
        for name in ("method", "volume", "reference", "covariance_type"):
            result[name] = getattr(model, name, None)
        for name in ("sigma", "rho", "geometry_gain", "converged", "interrupted"):
            result[name] = getattr(model, f"{name}_", None)
        return result | {"failed_log_maps": getattr(model, "n_failed_log_maps_", None)}

    def _mean_log_density(self) -> float | None:
        """Mean log density of the rows of the fit, in their units, if it is known.

        The objective is about dx with these settings only.
        """
        settings = [getattr(self.model, name, None) for name in ("reference", "volume")]
        if settings != ["lebesgue", "exact"]:
            return None
        return float(-self.model.objective_ - self.log_scale)

    def _first_of(self, *names: str) -> Any:
        found = (
            getattr(self.model, each) for each in names if hasattr(self.model, each)
        )
        return next(found, None)


def standardized_model(model: Any, data: Data, options: Any) -> StoredModel:
    """The model as it is yet to be fitted, with the scaling that was asked for."""
    dim = len(data.names)
    center, scale = np.zeros(dim), np.ones(dim)
    if options.standardize:
        center, scale = data.X.mean(axis=0), data.X.std(axis=0)
    return StoredModel(model, data.names, data.label_name, center, scale)


def load_model(path: Path, console: Console) -> StoredModel:
    """Read a model file, of the command line or of Python."""
    console.say(f"reading {path}")
    from land.estimators.files import load_with_extra

    cache.enable()
    model, extra = load_with_extra(path)
    dim = model.n_features_in_
    numbered = [f"x{k + 1}" for k in range(dim)]
    columns = extra.get("columns", getattr(model, "feature_names_in_", numbered))
    center = np.asarray(extra.get("center", np.zeros(dim)))
    scale = np.asarray(extra.get("scale", np.ones(dim)))
    if len(columns) != dim or center.shape != (dim,) or scale.shape != (dim,):
        raise CommandError(f"{path}: its columns do not go with its model")
    if not np.all(scale > 0.0):
        raise CommandError(f"{path}: its scale must be positive")
    label = extra.get("label")
    return StoredModel(
        model,
        [str(name) for name in columns],
        None if label is None else str(label),
        center,
        scale,
    )


def read_for_model(options: Any, console: Console) -> tuple[StoredModel, Data]:
    """The model, and the rows of the table in the columns it was fitted to."""
    stored = load_model(options.model, console)
    return stored, read_data(options, console, stored.columns, stored.label)


# In words.


def model_text(result: dict[str, Any]) -> str:
    """The summary for people."""
    lines = [_kind(result), *_metric_lines(result)]
    if result["mean_log_density"] is not None:
        lines.append(f"mean log density of the rows: {result['mean_log_density']:.6g}")
    elif result["class"] == "RiemannianKMeans":
        lines.append(f"sum of squared distances: {result['objective']:.6g}")
    state = "converged" if result["converged"] else "not converged"
    state = "interrupted" if result["interrupted"] else state
    lines.append(f"{state} after {counted(result['steps'], 'step')}")
    return "\n".join([*lines, *_component_lines(result)])


def counted(count: int, what: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{count} {what}{'s' * (count != 1)}"


def _kind(result: dict[str, Any]) -> str:
    name = "k-means" if result["class"] == "RiemannianKMeans" else "LAND"
    parts = [f"{name}, {counted(result['components'], 'component')}"]
    if result["parameters"] is not None:
        kind = result["covariance_type"]
        parts.append(
            f"{kind} covariances ({counted(result['parameters'], 'parameter')})"
        )
    columns = ", ".join(result["columns"][:_MOST_COLUMNS])
    more = ", ..." * (len(result["columns"]) > _MOST_COLUMNS)
    scaled = " (standardised)" * result["standardized"]
    return f"{', '.join(parts)}; columns {columns}{more}{scaled}"


def _metric_lines(result: dict[str, Any]) -> list[str]:
    """Sigma and rho, and what the curved space is worth."""
    sigma, gain = result["sigma"], result["geometry_gain"]
    if sigma is None:
        return []
    known = gain is not None and np.isfinite(gain)
    lines = []
    if np.isfinite(sigma):
        units = " in standardised units" * result["standardized"]
        lines.append(f"sigma {sigma:.4g}, rho {result['rho']:.4g}{units}")
        if known:
            lines.append(
                f"following the data gains {gain:.2g} in log density per row over an "
                "ordinary Gaussian"
            )
    else:
        found = (
            f"gains {gain:+.2g} in log density per row" if known else "was not tried"
        )
        lines.append(f"an ordinary Gaussian does: following the data {found}")
    return lines


def _component_lines(result: dict[str, Any]) -> list[str]:
    """A line for each component: weight, mean and standard deviations."""
    names = result["columns"][:_MOST_COLUMNS]
    lines = ["component  weight  " + "  ".join(f"{name[:18]:>18}" for name in names)]
    covariances = result["covariances"]
    for k, weight in enumerate(result["weights"]):
        cells = [f"{value:.4g}" for value in result["means"][k][: len(names)]]
        if covariances is not None:
            spreads = np.sqrt(np.diagonal(covariances[k]))
            pairs = zip(cells, spreads, strict=False)
            cells = [f"{cell} ± {spread:.2g}" for cell, spread in pairs]
        row = "  ".join(f"{cell:>18}" for cell in cells)
        lines.append(f"{k:>9}  {weight:6.3f}  {row}")
    if covariances is not None:
        lines.append("(mean ± standard deviation, as measured at the mean)")
    return lines
