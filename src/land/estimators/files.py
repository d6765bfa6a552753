"""Model files: fitted estimators as plain arrays and JSON, never pickle."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from land.estimators.archive import ModelFileError, read_archive, write_archive
from land.estimators.base import CHOICES, RiemannianEstimator
from land.estimators.clustering import RiemannianKMeans
from land.estimators.distribution import LAND
from land.estimators.fields import (
    NUMBER,
    Arrays,
    Field,
    check_array,
    check_number,
    means_of,
    pack_fitted,
    unpack_fitted,
)
from land.estimators.mixture import LANDMixture
from land.metrics import EuclideanMetric, LocalDiagonalMetric, Metric

# Version 2: the default volume is the exact one, and "paper" means another.
FORMAT, VERSION = "land-model", 2

CLASSES: dict[str, type[RiemannianEstimator]] = {
    each.__name__: each for each in (LAND, LANDMixture, RiemannianKMeans)
}
# Parameters that mean nothing in another process.
_NOT_STORED = ("callback", "n_jobs")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
# A metric is the same if its tensors at the means agree to this relative error.
_SAME_METRIC = 1e-6


def save(
    model: RiemannianEstimator,
    path: str | os.PathLike[str],
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, see `RiemannianEstimator.save`."""
    check_is_fitted(model)
    name = type(model).__name__
    if CLASSES.get(name) is not type(model):
        raise ModelFileError(
            f"model must be one of {', '.join(CLASSES)} to be saved, got {name}"
        )
    arrays: Arrays = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "land": version("land"),
        "class": name,
        "parameters": _pack_parameters(model, arrays),
        "fitted": pack_fitted(model, arrays),
        "metric": _pack_metric(model, arrays),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "extra": _pack_extra(extra or {}, arrays),
    }
    write_archive(path, header, arrays)


def load(
    path: str | os.PathLike[str], *, metric: Metric | None = None
) -> LAND | LANDMixture | RiemannianKMeans:
    """Read a model from a file that `save` has written.

    Nothing in the file is executed. Format, version, names, types, shapes and values
    are checked, and anything unexpected is refused.

    Parameters
    ----------
    path : path-like
        The file.
    metric : Metric, optional
        The metric of a model that was fitted with one of your own: a function cannot
        be stored. It must be given then, and only then.

    Returns
    -------
    LAND, LANDMixture or RiemannianKMeans
        A fitted model that scores, predicts and samples as the one that was saved, bit
        for bit. Its `random_state` is None if it was not an integer, and it has no
        `callback` and no `n_jobs`.

    Raises
    ------
    ModelFileError
        A ValueError: the file is no model file, is damaged, or needs another metric.
    OSError
        If the file cannot be opened.

    Warns
    -----
    UserWarning
        If ``land fit --standardize`` wrote the file: the model expects standardised
        columns.

    Examples
    --------
    >>> import land, tempfile, pathlib
    >>> X = land.datasets.make_half_ellipse(50, random_state=0)
    >>> model = land.LAND(method="least_squares", n_samples=200).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.land"
    ...     model.save(file)
    ...     loaded = land.load(file)
    >>> bool((loaded.score_samples(X) == model.score_samples(X)).all())
    True
    """
    model, extra = load_with_extra(path, metric=metric)
    if "scale" in extra:
        warnings.warn(
            f"{os.fspath(path)} was fitted to standardised columns: hand it "
            "(X - center) / scale, which land.estimators.files.load_with_extra returns",
            UserWarning,
            stacklevel=2,
        )
    return model


def load_with_extra(
    path: str | os.PathLike[str], *, metric: Metric | None = None
) -> tuple[Any, dict[str, Any]]:
    """Read a model, and what was stored beside it; see `load`."""
    header, arrays = read_archive(path)
    try:
        return _unpack(header, arrays, metric)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{os.fspath(path)} has a malformed header ({' '.join(reason.split())})"
        ) from None


def _unpack(
    header: dict[str, Any], arrays: Arrays, metric: Metric | None
) -> tuple[Any, dict[str, Any]]:
    if header["format"] != FORMAT:
        raise ModelFileError("it is not a land model file")
    if header["version"] != VERSION:
        raise ModelFileError(
            f"it is in version {header['version']!r} of the format, this land reads "
            f"version {VERSION}, in which densities have another constant; fit the "
            f"model again, or use the land that wrote it ({header.get('land')!r})"
        )
    if header["class"] not in CLASSES:
        raise ModelFileError(f"it holds an unknown class, {header['class']!r}")
    fitted = unpack_fitted(header["class"], header["fitted"], arrays)
    found = _unpack_metric(header["metric"], arrays, fitted, metric)
    parameters = _unpack_parameters(header, arrays, found)
    extra = _unpack_extra(header["extra"], arrays)
    if arrays:
        raise ModelFileError(f"it holds unexpected arrays: {sorted(arrays)}")
    model = CLASSES[header["class"]](**parameters)
    fitted["metric_"] = found
    if header["metric"]["learned"]:
        numbers = (header["metric"].get(name, math.inf) for name in ("sigma", "rho"))
        fitted["sigma_"], fitted["rho_"] = numbers
    for name, value in fitted.items():
        setattr(model, name, value)
    names = header["feature_names"]
    if names:
        if len(names) != fitted["n_features_in_"] or not _all_text(names):
            raise ModelFileError("feature_names must be one string for each dimension")
        model.feature_names_in_ = np.array(names, dtype=object)
    return model, extra


def _pack_parameters(model: RiemannianEstimator, arrays: Arrays) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name in _NOT_STORED or name == "metric":
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if name == "random_state" and not isinstance(value, int):
            value = None  # a generator has moved on since the fit
        if value is None or isinstance(value, (bool, int, float, str)):
            packed[name] = value
        else:
            key = f"parameter.{name}"
            arrays[key] = np.asarray(value, dtype=np.float64)
            packed[name] = {"array": key}
    return packed


def _unpack_parameters(
    header: dict[str, Any], arrays: Arrays, metric: Metric
) -> dict[str, Any]:
    known = CLASSES[header["class"]]._get_param_names()
    parameters: dict[str, Any] = {}
    for name, value in header["parameters"].items():
        if name not in known or name in (*_NOT_STORED, "metric"):
            raise ModelFileError(f"it has an unknown parameter, {name!r}")
        if isinstance(value, dict):
            if value != {"array": f"parameter.{name}"}:
                raise ModelFileError(f"parameter {name!r} must be a number or a word")
            value = arrays.pop(value["array"])
        elif not (value is None or isinstance(value, (bool, int, float, str))):
            raise ModelFileError(f"parameter {name!r} must be a number or a word")
        if name in CHOICES and value not in CHOICES[name]:
            raise ModelFileError(f"parameter {name!r} must not be {value!r}")
        parameters[name] = value
    if not header["metric"]["learned"]:
        parameters["metric"] = metric
    return parameters


def _pack_metric(model: RiemannianEstimator, arrays: Arrays) -> dict[str, Any]:
    metric = model.metric_
    packed = {"learned": hasattr(model, "sigma_"), "kind": type(metric).__name__}
    if type(metric) is LocalDiagonalMetric:
        arrays["metric.data"] = metric.data
        numbers = {"sigma": metric.sigma, "rho": metric.rho}
        return packed | numbers | {"table": metric.is_tabulated}
    if type(metric) is EuclideanMetric:
        return packed
    # The metric itself is code and stays behind; its tensors at the means tell whether
    # the one that is given on loading is the same.
    arrays["metric.tensors"] = metric.tensor(means_of(vars(model)))
    return packed | {"kind": "given"}


def _unpack_metric(
    packed: dict[str, Any],
    arrays: Arrays,
    fitted: dict[str, Any],
    given: Metric | None,
) -> Metric:
    dim = fitted["n_features_in_"]
    kind = packed["kind"]
    if not isinstance(packed["learned"], bool):
        raise ModelFileError("metric.learned must be true or false")
    if kind == "given" and not packed["learned"]:
        return _check_given(given, arrays.pop("metric.tensors"), means_of(fitted))
    if given is not None:
        raise ModelFileError("it has its own metric; leave out metric=")
    if kind == "EuclideanMetric":
        return EuclideanMetric(dim)
    if kind != "LocalDiagonalMetric":
        raise ModelFileError(f"it has an unknown metric, {kind!r}")
    data = arrays.pop("metric.data")
    check_array("metric.data", data, Field("<f8", "RD"), {"D": dim})
    sigma, rho = (check_number(name, packed[name], NUMBER) for name in ("sigma", "rho"))
    table = packed.get("table", False)
    if not isinstance(table, bool):
        raise ModelFileError("metric.table must be true or false")
    metric = LocalDiagonalMetric(data, sigma, rho)
    return metric.tabulated() if table else metric


def _check_given(
    given: Metric | None, tensors: np.ndarray, means: np.ndarray
) -> Metric:
    if given is None:
        raise ModelFileError(
            "its metric is a function, which cannot be stored; give the same one "
            "again: land.load(path, metric=...)"
        )
    if not isinstance(given, Metric) or given.dim != means.shape[1]:
        raise ModelFileError(
            f"metric must be a land.metrics.Metric in {means.shape[1]} dimensions, "
            f"got {given!r}"
        )
    again = given.tensor(means)
    scale = float(np.abs(again).max())
    if again.shape != tensors.shape or not np.allclose(
        again, tensors, rtol=_SAME_METRIC, atol=_SAME_METRIC * scale
    ):
        raise ModelFileError(
            "metric is not the one the model was fitted with: its tensors at the means "
            "differ"
        )
    return given


def _pack_extra(extra: Mapping[str, Any], arrays: Arrays) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, value in extra.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"extra must have names of letters and _, got {name!r}")
        if isinstance(value, np.ndarray):
            arrays[f"extra.{name}"] = np.asarray(value, dtype=np.float64)
            packed[name] = {"array": f"extra.{name}"}
        else:
            packed[name] = {"value": value}
    return packed


def _unpack_extra(packed: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    for name, stored in packed.items():
        if stored == {"array": f"extra.{name}"}:
            extra[name] = arrays.pop(f"extra.{name}")
            if not np.all(np.isfinite(extra[name])):
                raise ModelFileError(f"extra {name!r} must be finite")
        else:
            extra[name] = stored["value"]
    return extra


def _all_text(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(each, str) for each in values)
