"""What fitted models consist of: every attribute with its type and shape, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from land.estimators.archive import ModelFileError
from land.fitting import Step

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Field:
    """Type and shape of an attribute.

    Letters of the shape are sizes that all fields share: D dimensions, K components,
    N rows, T steps. Without letters it is a number.
    """

    dtype: str
    shape: str = ""
    finite: bool = True
    default: float | None = None  # for files that were written before it existed


NUMBER, _COUNT, _FLAG = Field("<f8"), Field("<i8"), Field("|b1")
_ANY_NUMBER = Field("<f8", finite=False)

_HISTORY = "history_."
_FIT = {"n_features_in_": _COUNT, "n_iter_": _COUNT, "converged_": _FLAG}
_DENSITY = {
    **_FIT,
    "interrupted_": _FLAG,
    "objective_": _ANY_NUMBER,
    "geometry_gain_": Field("<f8", finite=False, default=math.nan),
    "n_failed_log_maps_": _COUNT,
    "n_log_maps_": _COUNT,
}
_STEPS = {
    "history_.iteration": Field("<i8", "T"),
    "history_.objective": Field("<f8", "T", finite=False),
    "history_.means": Field("<f8", "TKD", finite=False),
    "history_.n_log_maps": Field("<i8", "T"),
    "history_.seconds": Field("<f8", "T", finite=False),
}
# By class; attributes of the metric and names of features are stored elsewhere.
FIELDS: dict[str, dict[str, Field]] = {
    "LAND": {
        **_DENSITY,
        "mean_": Field("<f8", "D"),
        "covariance_": Field("<f8", "DD"),
        "precision_": Field("<f8", "DD"),
        "log_constant_": NUMBER,
        "log_constant_stderr_": _ANY_NUMBER,
        "effective_samples_": _ANY_NUMBER,
        **_STEPS,
    },
    "LANDMixture": {
        **_DENSITY,
        "weights_": Field("<f8", "K"),
        "means_": Field("<f8", "KD"),
        "covariances_": Field("<f8", "KDD"),
        "precisions_": Field("<f8", "KDD"),
        "log_constants_": Field("<f8", "K"),
        "log_constants_stderr_": Field("<f8", "K", finite=False),
        **_STEPS,
    },
    "RiemannianKMeans": {
        **_FIT,
        "cluster_centers_": Field("<f8", "KD"),
        "labels_": Field("<i4", "N"),
        "inertia_": NUMBER,
    },
}
_ELSEWHERE = ("metric_", "sigma_", "rho_", "feature_names_in_", "history_")


def pack_fitted(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Fitted numbers for the header; arrays are added to `arrays`."""
    name = type(model).__name__
    known = {*_ELSEWHERE, *FIELDS[name]}
    unknown = [each for each in vars(model) if each.endswith("_") and each not in known]
    if unknown:
        raise ModelFileError(
            f"{name} has attributes that model files do not know: {unknown}; "
            "remove them, or add them to land.estimators.fields"
        )
    numbers: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    for field_name, field in _present(name, getattr(model, "history_", [])):
        part = field_name.removeprefix(_HISTORY)
        if part != field_name:
            value = np.array([getattr(step, part) for step in model.history_])
        else:
            value = np.asarray(getattr(model, field_name))
        array = check_array(field_name, value.astype(field.dtype), field, sizes)
        if field.shape:
            arrays[field_name] = array
        else:  # JSON has no infinity
            number = array.item()
            numbers[field_name] = number if math.isfinite(number) else repr(number)
    return numbers


def unpack_fitted(name: str, numbers: Any, arrays: Arrays) -> dict[str, Any]:
    """Fitted attributes of class `name`; takes what it uses out of `arrays`."""
    fitted: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    sizes: dict[str, int] = {}
    numbers = dict(numbers)
    has_history = any(each.startswith(_HISTORY) for each in arrays)
    for field_name, field in _present(name, has_history):
        if not field.shape:
            if field.default is not None:
                numbers.setdefault(field_name, repr(field.default))
            number = numbers.pop(field_name)
            fitted[field_name] = check_number(field_name, number, field)
            sizes.setdefault("D", fitted["n_features_in_"])
            continue
        if field_name not in arrays:
            raise ModelFileError(f"it has no {field_name}")
        array = check_array(field_name, arrays.pop(field_name), field, sizes)
        if field_name.startswith(_HISTORY):
            # Arrays stay arrays, numbers become Python's, as a fit leaves them.
            part = field_name.removeprefix(_HISTORY)
            steps[part] = list(array) if array.ndim > 1 else array.tolist()
        else:
            fitted[field_name] = array
    if numbers:
        raise ModelFileError(f"it has unknown attributes: {sorted(numbers)}")
    if "objective_" in fitted:
        rows = zip(*steps.values(), strict=True)
        fitted["history_"] = [
            Step(**dict(zip(steps, row, strict=True))) for row in rows
        ]
    shares = fitted.get("weights_", np.ones(1))
    if shares.min() < 0.0 or abs(shares.sum() - 1.0) > 1e-6:
        raise ModelFileError("weights_ must not be negative, and sum to one")
    return fitted


def means_of(attributes: Mapping[str, Any]) -> np.ndarray:
    """The mean, the means or the centres, (K, D)."""
    names = ("mean_", "means_", "cluster_centers_")
    return np.atleast_2d(next(attributes[name] for name in names if name in attributes))


def check_array(
    name: str, value: np.ndarray, field: Field, sizes: dict[str, int]
) -> np.ndarray:
    """Return `value` if it is what `field` says and goes with the `sizes` so far."""
    if value.dtype != np.dtype(field.dtype):
        raise ModelFileError(f"{name} must hold {field.dtype}, got {value.dtype}")
    if value.ndim != len(field.shape):
        raise ModelFileError(
            f"{name} must have {len(field.shape)} axes, got shape {value.shape}"
        )
    for letter, size in zip(field.shape, value.shape, strict=True):
        if sizes.setdefault(letter, size) != size or size == 0:
            raise ModelFileError(
                f"{name} has shape {value.shape}, which does not go with the others"
            )
    if field.finite and not np.all(np.isfinite(value)):
        raise ModelFileError(f"{name} must be finite")
    if field.shape.endswith("DD"):
        _check_definite(name, value.reshape(-1, *value.shape[-2:]))
    return value


def check_number(name: str, value: Any, field: Field) -> Any:
    """Return a number of the header if it is what `field` says."""
    if field.dtype == "|b1":
        if isinstance(value, bool):
            return value
    elif field.dtype == "<i8":
        if type(value) is int and 0 <= value < 2**63:
            return value
    elif not field.finite and value in ("nan", "inf", "-inf"):
        return float(value)
    elif type(value) is float and math.isfinite(value):
        return value
    raise ModelFileError(f"{name} must be a number of type {field.dtype}")


def _present(name: str, history: Any) -> list[tuple[str, Field]]:
    """Fields of a class; those of the history only if there is one."""
    return [
        (each, field)
        for each, field in FIELDS[name].items()
        if history or not each.startswith(_HISTORY)
    ]


def _check_definite(name: str, matrices: np.ndarray) -> None:
    scales = np.abs(matrices).max(axis=(1, 2))
    skews = np.abs(matrices - matrices.swapaxes(1, 2)).max(axis=(1, 2))
    if np.any(skews > 1e-6 * scales) or np.any(np.linalg.eigvalsh(matrices) <= 0.0):
        raise ModelFileError(f"{name} must be symmetric and positive definite")
