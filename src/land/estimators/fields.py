"""What fitted models consist of: every attribute with its shape and type, checked.

The tables list each stored attribute once. A new one takes one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from land.estimators.archive import Arrays, ModelFileError
from land.estimators.base import RiemannianEstimator
from land.estimators.clustering import RiemannianKMeans
from land.estimators.distribution import LAND
from land.estimators.mixture import LANDMixture


@dataclass(frozen=True)
class Field:
    """Shape and type of an array.

    Letters of the shape are sizes that all fields share: D dimensions, K components,
    N rows, R rows of the metric. Without letters it is a number. Square matrices (DD)
    are symmetric and positive definite; integers are not negative.
    """

    shape: str = ""
    dtype: str = "<f8"
    finite: bool = True


_COUNT, _FLAG, _MAYBE_NAN = Field("", "<i8"), Field("", "|b1"), Field(finite=False)

_FIT = {"n_features_in_": _COUNT, "n_iter_": _COUNT, "converged_": _FLAG}
_DENSITY = {
    **_FIT,
    "interrupted_": _FLAG,
    "objective_": _MAYBE_NAN,
    "geometry_gain_": _MAYBE_NAN,
    "n_failed_log_maps_": _COUNT,
    "n_log_maps_": _COUNT,
}
FIELDS: dict[type[RiemannianEstimator], dict[str, Field]] = {
    LAND: {
        **_DENSITY,
        "mean_": Field("D"),
        "covariance_": Field("DD"),
        "precision_": Field("DD"),
        "log_constant_": Field(),
        "log_constant_stderr_": _MAYBE_NAN,
        "effective_samples_": _MAYBE_NAN,
    },
    LANDMixture: {
        **_DENSITY,
        "weights_": Field("K"),
        "means_": Field("KD"),
        "covariances_": Field("KDD"),
        "precisions_": Field("KDD"),
        "log_constants_": Field("K"),
        "log_constants_stderr_": Field("K", finite=False),
    },
    RiemannianKMeans: {
        **_FIT,
        "cluster_centers_": Field("KD"),
        "labels_": Field("N", "<i4"),
        "inertia_": Field(),
    },
}
METRIC_FIELDS = {
    "metric.data": Field("RD"),
    "metric.sigma": Field(),
    "metric.rho": Field(),
}
# Their entries in a file are made by `land.estimators.files`.
_ELSEWHERE = ("metric_", "sigma_", "rho_", "feature_names_in_", "history_")
# Relative error of matrices and sums: more than rounding leaves, on any machine, and
# far less than another matrix would have.
ROUNDING = 1e-6


def fitted_arrays(model: RiemannianEstimator) -> Arrays:
    """Fitted attributes of a model, all as arrays."""
    fields = FIELDS[type(model)]
    known = {*_ELSEWHERE, *fields}
    unknown = [each for each in vars(model) if each.endswith("_") and each not in known]
    if unknown:
        raise ModelFileError(
            f"{type(model).__name__} has attributes that model files do not know: "
            f"{unknown}; remove them, or add them to land.estimators.fields"
        )
    arrays = {
        name: np.asarray(getattr(model, name), dtype=field.dtype)
        for name, field in fields.items()
    }
    return take(arrays, fields)


def fitted_attributes(
    kind: type[RiemannianEstimator], arrays: Arrays
) -> dict[str, Any]:
    """Attributes of a fitted model, taken out of `arrays`."""
    fields = FIELDS[kind]
    found = take(arrays, fields, {"D": int(arrays["n_features_in_"])})
    shares = found.get("weights_", np.ones(1))
    if shares.min() < 0.0 or abs(shares.sum() - 1.0) > ROUNDING:
        raise ModelFileError("weights_ must not be negative, and sum to one")
    # Arrays stay arrays, numbers become Python's, as a fit leaves them.
    return {
        name: array if array.ndim else array.item() for name, array in found.items()
    }


def take(
    arrays: Arrays, fields: Mapping[str, Field], sizes: Mapping[str, int] | None = None
) -> Arrays:
    """Take the fields out of `arrays`; refuse what does not match them."""
    sizes = dict(sizes or {})
    for name, field in fields.items():
        if name not in arrays:
            raise ModelFileError(f"it has no {name}")
        _check(name, arrays[name], field)
        for letter, size in zip(field.shape, arrays[name].shape, strict=True):
            if sizes.setdefault(letter, size) != size or size == 0:
                raise ModelFileError(
                    f"{name} has shape {arrays[name].shape}, which does not go with "
                    "the others"
                )
    return {name: arrays.pop(name) for name in fields}


def _check(name: str, value: np.ndarray, field: Field) -> None:
    if value.dtype != np.dtype(field.dtype):
        raise ModelFileError(f"{name} must hold {field.dtype}, got {value.dtype}")
    if value.ndim != len(field.shape):
        raise ModelFileError(
            f"{name} must have {len(field.shape)} axes, got shape {value.shape}"
        )
    if field.finite and not np.all(np.isfinite(value)):
        raise ModelFileError(f"{name} must be finite")
    if value.dtype.kind == "i" and np.any(value < 0):
        raise ModelFileError(f"{name} must not be negative")
    if field.shape.endswith("DD") and not _are_definite(value):
        raise ModelFileError(f"{name} must be symmetric and positive definite")


def _are_definite(matrices: np.ndarray) -> bool:
    if matrices.shape[-1] != matrices.shape[-2]:
        return False
    skew = np.abs(matrices - matrices.swapaxes(-1, -2)).max(axis=(-1, -2))
    scale = np.abs(matrices).max(axis=(-1, -2))
    lowest = np.linalg.eigvalsh(matrices).min(axis=-1)
    return bool(np.all((skew <= ROUNDING * scale) & (lowest > 0.0)))
