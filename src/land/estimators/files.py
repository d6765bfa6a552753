"""Model files: fitted estimators as plain arrays and JSON, never pickle."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from land._validation import check_points
from land.estimators.archive import (
    Arrays,
    ModelFileError,
    PathLike,
    read_archive,
    write_archive,
)
from land.estimators.base import CHOICES, RiemannianEstimator
from land.estimators.clustering import RiemannianKMeans
from land.estimators.distribution import LAND
from land.estimators.fields import (
    FIELDS,
    METRIC_FIELDS,
    ROUNDING,
    fitted_arrays,
    fitted_attributes,
    take,
)
from land.estimators.mixture import LANDMixture
from land.fitting import Step
from land.metrics import EuclideanMetric, LocalDiagonalMetric, Metric

# Version 3: all fitted numbers are arrays, the history and parameters are JSON.
FORMAT, VERSION = "land-model", 3

_CLASSES = {each.__name__: each for each in FIELDS}
# Parameters that mean nothing in another process; the metric has its own entry.
_NOT_STORED = ("callback", "n_jobs", "metric")
_SCALARS = (bool, int, float, str, type(None))


def save(
    model: RiemannianEstimator,
    path: PathLike,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to a file, see `RiemannianEstimator.save`."""
    check_is_fitted(model)
    name = type(model).__name__
    if type(model) not in FIELDS:
        raise ModelFileError(
            f"model must be one of {', '.join(_CLASSES)} to be saved, got {name}"
        )
    arrays = fitted_arrays(model)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "land": version("land"),
        "class": name,
        "parameters": _parameters(model),
        "history": [_plain(asdict(step)) for step in getattr(model, "history_", [])],
        "metric": _pack_metric(model, arrays),
        "feature_names": getattr(model, "feature_names_in_", np.array([])).tolist(),
        "extra": _plain(dict(extra or {})),
    }
    write_archive(path, header, arrays)


def load(
    path: PathLike, *, metric: Metric | None = None
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
    path: PathLike, *, metric: Metric | None = None
) -> tuple[Any, dict[str, Any]]:
    """Read a model, and what was stored beside it; see `load`.

    Arrays that were stored beside it come back as lists.
    """
    header, arrays = read_archive(path)
    try:
        return _unpack(header, arrays, metric)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{os.fspath(path)} has a malformed header ({' '.join(reason.split())})"
        ) from None


def _unpack(
    header: dict[str, Any], arrays: Arrays, given: Metric | None
) -> tuple[Any, dict[str, Any]]:
    kind = _check_kind(header)
    parameters = _check_parameters(kind, header["parameters"])
    fitted = fitted_attributes(kind, arrays)
    if kind is not RiemannianKMeans:
        shape = _means(fitted).shape
        fitted["history_"] = [_step(entry, shape) for entry in header["history"]]
    metric = _unpack_metric(header["metric"], arrays, fitted, given)
    if arrays:
        raise ModelFileError(f"it holds unexpected arrays: {sorted(arrays)}")
    fitted["metric_"] = metric
    if header["metric"]["learned"]:
        for name in ("sigma", "rho"):
            fitted[f"{name}_"] = getattr(metric, name, math.inf)
    else:
        parameters["metric"] = metric
    model = kind(**parameters)
    for name, value in fitted.items():
        setattr(model, name, value)
    names = header["feature_names"]
    if names:
        words = isinstance(names, list) and all(isinstance(each, str) for each in names)
        if len(names) != model.n_features_in_ or not words:
            raise ModelFileError("feature_names must be one string for each dimension")
        model.feature_names_in_ = np.array(names, dtype=object)
    return model, dict(header["extra"])


def _check_kind(header: dict[str, Any]) -> type[RiemannianEstimator]:
    """The class of the model, if this is a model file of this version."""
    if header["format"] != FORMAT:
        raise ModelFileError("it is not a land model file")
    if header["version"] != VERSION:
        raise ModelFileError(
            f"it is in version {header['version']!r} of the format, and this land "
            f"reads version {VERSION}; fit the model again, or use the land that wrote "
            f"it ({header.get('land')!r})"
        )
    if header["class"] not in _CLASSES:
        raise ModelFileError(f"it holds an unknown class, {header['class']!r}")
    return _CLASSES[header["class"]]


def _parameters(model: RiemannianEstimator) -> dict[str, Any]:
    parameters = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in _NOT_STORED
    }
    if not isinstance(parameters["random_state"], Integral):
        parameters["random_state"] = None  # a generator has moved on since the fit
    return _plain(parameters)


def _plain(value: Any) -> Any:
    """A value for JSON; the digits of a float survive."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (*_SCALARS, list)):
        return value
    return np.asarray(value).tolist()


def _step(entry: dict[str, Any], shape: tuple[int, ...]) -> Step:
    """An entry of the history."""
    step = Step(**entry | {"means": np.asarray(entry["means"], dtype=np.float64)})
    others = [value for name, value in entry.items() if name != "means"]
    if step.means.shape != shape or not all(isinstance(x, _SCALARS) for x in others):
        raise ModelFileError("the history does not go with the others")
    return step


def _check_parameters(
    kind: type[RiemannianEstimator], parameters: dict[str, Any]
) -> dict[str, Any]:
    known = set(kind._get_param_names()) - set(_NOT_STORED)
    parameters = dict(parameters)
    if kind is LANDMixture:
        parameters.pop("optimizer", None)  # earlier files have it; it had one value
    for name, value in parameters.items():
        if name not in known:
            raise ModelFileError(f"it has an unknown parameter, {name!r}")
        if name == "init" and isinstance(value, list):
            check_points(name, value)
        elif not isinstance(value, _SCALARS):
            raise ModelFileError(f"parameter {name!r} must be a number or a word")
        if name in CHOICES and value not in CHOICES[name]:
            raise ModelFileError(f"parameter {name!r} must not be {value!r}")
    return parameters


def _pack_metric(model: RiemannianEstimator, arrays: Arrays) -> dict[str, Any]:
    """The metric's entry in the header; its arrays are added to `arrays`."""
    metric = model.metric_
    kind, table = type(metric).__name__, getattr(metric, "is_tabulated", False)
    if type(metric) is LocalDiagonalMetric:
        arrays["metric.data"] = metric.data
        arrays["metric.sigma"] = np.asarray(metric.sigma, dtype=np.float64)
        arrays["metric.rho"] = np.asarray(metric.rho, dtype=np.float64)
    elif type(metric) is not EuclideanMetric:
        # The metric itself is code and is not stored; its tensors at the means show
        # whether the one that is given on loading is the same.
        kind, table = "given", False
        arrays["metric.tensors"] = metric.tensor(_means(vars(model)))
    return {"kind": kind, "learned": hasattr(model, "sigma_"), "table": table}


def _unpack_metric(
    packed: dict[str, Any],
    arrays: Arrays,
    fitted: dict[str, Any],
    given: Metric | None,
) -> Metric:
    kind, dim = packed["kind"], fitted["n_features_in_"]
    if not all(isinstance(packed[name], bool) for name in ("learned", "table")):
        raise ModelFileError("metric.learned and metric.table must be true or false")
    if kind == "given" and not packed["learned"]:
        return _check_given(given, arrays.pop("metric.tensors"), _means(fitted))
    if given is not None:
        raise ModelFileError("it has its own metric; leave out metric=")
    if kind == "EuclideanMetric":
        return EuclideanMetric(dim)
    if kind != "LocalDiagonalMetric":
        raise ModelFileError(f"it has an unknown metric, {kind!r}")
    data, sigma, rho = take(arrays, METRIC_FIELDS, {"D": dim}).values()
    metric = LocalDiagonalMetric(data, sigma.item(), rho.item())
    return metric.tabulated() if packed["table"] else metric


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
    tolerance = ROUNDING * float(np.abs(again).max())
    if again.shape != tensors.shape or not np.allclose(
        again, tensors, rtol=ROUNDING, atol=tolerance
    ):
        raise ModelFileError(
            "metric is not the one the model was fitted with: its tensors at the means "
            "differ"
        )
    return given


def _means(attributes: Mapping[str, Any]) -> np.ndarray:
    """The mean, the means or the centres, (K, D)."""
    names = ("mean_", "means_", "cluster_centers_")
    return np.atleast_2d(next(attributes[name] for name in names if name in attributes))
