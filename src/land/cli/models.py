"""Models in the units and columns of the user's table."""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from land.cli.console import Console
from land.cli.data import Data
from land.cli.errors import CommandError


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
    standardized : bool
    """

    model: Any
    columns: list[str]
    label: str | None
    center: np.ndarray
    scale: np.ndarray
    standardized: bool = False

    @property
    def log_scale(self) -> float:
        """Logarithm of the volume that one unit of the model's coordinates has."""
        return float(np.sum(np.log(self.scale)))

    def to_model(self, X: np.ndarray) -> np.ndarray:
        """Points in the coordinates of the model."""
        return (X - self.center) / self.scale if self.standardized else X

    def to_data(self, Z: np.ndarray) -> np.ndarray:
        """Points of the model in the units of the data."""
        return Z * self.scale + self.center if self.standardized else Z

    def means(self) -> np.ndarray:
        """Means in the units of the data, (K, D)."""
        names = ("mean_", "means_", "cluster_centers_")
        found = next(getattr(self.model, name) for name in names if self._has(name))
        return self.to_data(np.atleast_2d(found))

    def covariances(self) -> np.ndarray | None:
        """Covariances in the units of the data, (K, D, D), if there are any."""
        names = [name for name in ("covariance_", "covariances_") if self._has(name)]
        if not names:
            return None
        stored = np.asarray(getattr(self.model, names[0]))
        stored = stored.reshape(-1, *stored.shape[-2:])
        return stored * np.outer(self.scale, self.scale)

    def weights(self) -> np.ndarray:
        """Weights of the components, (K,)."""
        even = np.full(len(self.means()), 1.0 / len(self.means()))
        return np.asarray(getattr(self.model, "weights_", even))

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

    def save(self, path: Path, console: Console) -> Path:
        """Write the model; if that fails, where it will not be lost."""
        extra: dict[str, Any] = {"columns": self.columns}
        if self.label is not None:
            extra["label"] = self.label
        if self.standardized:
            extra |= {"center": self.center, "scale": self.scale}
        try:
            self.model.save(path, extra=extra)
            return path
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

    def _has(self, name: str) -> bool:
        return hasattr(self.model, name)


def describe_new(model: Any, data: Data, scaling: tuple | None) -> StoredModel:
    """A model that was just fitted, in the scaling that `standardize` gave."""
    dim = len(data.names)
    center, scale = scaling or (np.zeros(dim), np.ones(dim))
    return StoredModel(
        model, data.names, data.label_name, center, scale, scaling is not None
    )


def standardize(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the columns."""
    return X.mean(axis=0), X.std(axis=0)


def load_model(path: Path) -> StoredModel:
    """Read a model file, of the command line or of Python."""
    from land.cli import cache
    from land.estimators.files import load_with_extra

    cache.enable()
    model, extra = load_with_extra(path)
    dim = model.n_features_in_
    numbered = [f"x{k + 1}" for k in range(dim)]
    columns = extra.get("columns", getattr(model, "feature_names_in_", numbered))
    columns = [str(name) for name in columns]
    center, scale = (
        np.asarray(extra.get(name, default))
        for name, default in (("center", np.zeros(dim)), ("scale", np.ones(dim)))
    )
    if len(columns) != dim or center.shape != (dim,) or scale.shape != (dim,):
        raise CommandError(f"{path}: its columns do not go with its model")
    if not np.all(scale > 0.0):
        raise CommandError(f"{path}: its scale must be positive")
    label = extra.get("label")
    return StoredModel(
        model=model,
        columns=columns,
        label=None if label is None else str(label),
        center=center,
        scale=scale,
        standardized="scale" in extra,
    )
