"""Model files: fitted estimators as plain arrays and JSON, never pickle.

The table below lists each stored attribute once. Checksums tell whether a file is
damaged; that its numbers make a model is not checked again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from land.estimators.archive import (
    Arrays,
    ModelFileError,
    PathLike,
    read_archive,
    require,
    write_archive,
)
from land.estimators.base import RiemannianEstimator, is_learned
from land.estimators.classification import LANDClassifier
from land.estimators.clustering import RiemannianKMeans
from land.estimators.decomposition import GeodesicPCA
from land.estimators.density import RiemannianDensity
from land.estimators.distribution import LAND
from land.estimators.mixture import LANDMixture
from land.estimators.standardized import Standardized
from land.fitting import Step
from land.metrics import KINDS, EuclideanMetric, Metric

# Version 3: all fitted numbers are arrays, the history and parameters are JSON.
FORMAT, VERSION = "land-model", 3


_FIT = ("n_features_in_", "n_iter_", "converged_")
_DENSITY = (
    *_FIT,
    *("interrupted_", "objective_", "geometry_gain_"),
    *("n_failed_log_maps_", "n_log_maps_"),
)
FIELDS: dict[type[RiemannianEstimator], tuple[str, ...]] = {
    LAND: (
        *_DENSITY,
        *("mean_", "covariance_", "precision_"),
        *("log_constant_", "log_constant_stderr_", "effective_samples_"),
    ),
    LANDMixture: (
        *_DENSITY,
        *("weights_", "means_", "covariances_", "precisions_"),
        *("log_constants_", "log_constants_stderr_"),
    ),
    RiemannianKMeans: (*_FIT, "cluster_centers_", "labels_", "inertia_"),
    GeodesicPCA: (
        *_FIT,
        *("mean_", "components_", "n_components_"),
        *("explained_variance_", "explained_variance_ratio_"),
    ),
    LANDClassifier: ("n_features_in_", "n_iter_", "priors_"),
}
_METRIC = ("metric.data", "metric.sigma", "metric.rho")
# Attributes that have entries of their own in the header, and one that is not kept.
_ELSEWHERE = (
    *("metric_", "sigma_", "rho_", "feature_names_in_", "history_", "health_"),
    *("classes_", "distributions_"),
    "learning_",
)
# Parameters that mean nothing in another process.
_NOT_STORED = ("callback", "n_jobs")
_CLASSES = {each.__name__: each for each in FIELDS}
# Relative difference of tensors that rounding leaves on any machine; those of another
# metric differ by far more.
_ROUNDING = 1e-6


def save(
    model: RiemannianEstimator, path: PathLike, extra: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to a file, see `RiemannianEstimator.save`."""
    check_is_fitted(model)
    header, arrays = _packed(model)
    write_archive(path, header | {"extra": dict(extra or {})}, arrays)


def _packed(model: RiemannianEstimator) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a model."""
    name = type(model).__name__
    words = f"model must be one of {', '.join(_CLASSES)} to be saved, got {name}"
    require(type(model) in FIELDS, words)
    fields = FIELDS[type(model)]
    unknown = {each for each in vars(model) if each.endswith("_")}
    unknown -= {*_ELSEWHERE, *fields}
    require(
        not unknown,
        f"{name} has attributes that model files do not know: {sorted(unknown)}; "
        "remove them, or add them to land.estimators.files",
    )
    arrays = {each: np.asarray(getattr(model, each)) for each in fields}
    parameters = model.get_params(deep=False)
    if not isinstance(parameters["random_state"], Integral):
        parameters["random_state"] = None  # a generator has moved on since the fit
    if not isinstance(parameters["metric"], str):
        del parameters["metric"]  # it has its own entry
    header = {
        "format": FORMAT,
        "version": VERSION,
        "land": version("land"),
        "class": name,
        "parameters": {k: v for k, v in parameters.items() if k not in _NOT_STORED},
        "history": [asdict(step) for step in getattr(model, "history_", [])],
        "health": getattr(model, "health_", []),
        "metric": _pack_metric(model, arrays),
        "feature_names": getattr(model, "feature_names_in_", []),
    }
    if isinstance(model, LANDClassifier):
        header |= _pack_classes(model, arrays)
    return header, arrays


def _pack_classes(model: LANDClassifier, arrays: Arrays) -> dict[str, Any]:
    """Entries of a classifier; arrays of its distributions are added to `arrays`."""
    parts = []
    for k, each in enumerate(model.distributions_):
        header, own = _packed(each)
        parts.append(header)
        arrays |= {f"{k}.{name}": array for name, array in own.items()}
    classes = model.classes_
    return {
        "classes": classes.tolist(),
        "classes_dtype": "O" if classes.dtype == object else classes.dtype.str,
        "parts": parts,
    }


def load(
    path: PathLike, *, metric: Metric | None = None
) -> (
    LAND | LANDMixture | RiemannianKMeans | GeodesicPCA | LANDClassifier | Standardized
):
    """Read a model from a file that `save` has written.

    Nothing in the file is executed; damaged files are refused. A model of
    ``land fit --standardize`` comes back as a `Standardized` one.

    The model scores, predicts and samples as the one that was saved, bit for bit. Its
    `random_state` is None if it was not an integer, and it has no `callback` and no
    `n_jobs`. A file that is no model file, is damaged, or needs another metric is a
    `ModelFileError`, which is a ValueError.

    Parameters
    ----------
    path : path-like
        The file.
    metric : Metric, optional
        The metric of a model that was fitted with one of your own, which cannot be
        stored. It must be given then, and only then.

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
    if "scale" not in extra:
        return model
    try:
        return Standardized.around(model, extra.get("center", ()), extra["scale"])
    except ValueError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None


def load_with_extra(
    path: PathLike, *, metric: Metric | None = None
) -> tuple[Any, dict[str, Any]]:
    """Read a model, and what was stored beside it; see `load`.

    Arrays that were stored beside it come back as lists.
    """
    header, arrays = read_archive(path)
    try:
        return _unpack(header, arrays, metric), dict(header["extra"])
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelFileError(
            f"{os.fspath(path)} has a malformed header ({reason})"
        ) from None


def _unpack(header: dict, arrays: Arrays, given: Any) -> Any:
    kind = _kind(header)
    parameters = dict(header["parameters"])
    if kind is LANDMixture:
        parameters.pop("optimizer", None)  # earlier files have it; it had one value
    fitted: dict[str, Any] = {
        # Arrays stay arrays, numbers become Python's, as a fit leaves them.
        name: array if array.ndim else array.item()
        for name, array in zip(FIELDS[kind], _take(arrays, FIELDS[kind]), strict=True)
    }
    if issubclass(kind, RiemannianDensity):
        fitted["history_"] = [
            Step(**step | {"means": np.asarray(step["means"], dtype=np.float64)})
            for step in header["history"]
        ]
        fitted["health_"] = header.get("health", [])  # which earlier files lack
    learned, own = header["metric"]["learned"], True
    if kind is LANDClassifier:
        metric = _unpack_classes(header, arrays, given, fitted)
        own = parameters["covariance"] == "shared"
    else:
        metric = fitted["metric_"] = _metric(header["metric"], arrays, fitted, given)
    require(not arrays, f"it holds unexpected arrays: {sorted(arrays)}")
    if not learned:
        parameters["metric"] = metric
    elif own:
        for name in ("sigma", "rho"):
            fitted[f"{name}_"] = getattr(metric, name, math.inf)
    if header["feature_names"]:
        fitted["feature_names_in_"] = np.array(header["feature_names"], dtype=object)
    model = kind(**parameters)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _unpack_classes(header: dict, arrays: Arrays, given: Any, fitted: dict) -> Metric:
    """Add the classes and their distributions to `fitted`; the metric of the first."""
    parts = fitted["distributions_"] = []
    for k, part in enumerate(header["parts"]):
        start = f"{k}."
        names = [name for name in arrays if name.startswith(start)]
        own = {name.removeprefix(start): arrays.pop(name) for name in names}
        parts.append(_unpack(part, own, given))
    fitted["classes_"] = np.array(header["classes"], dtype=header["classes_dtype"])
    return parts[0].metric_


def _kind(header: dict[str, Any]) -> type[RiemannianEstimator]:
    """The class of the model, if this is a model file of this version."""
    require(header["format"] == FORMAT, "it is not a land model file")
    require(
        header["version"] == VERSION,
        f"it is in version {header['version']!r} of the format, and this land reads "
        f"version {VERSION}; fit the model again, or use the land that wrote it "
        f"({header.get('land')!r})",
    )
    name = header["class"]
    require(name in _CLASSES, f"it holds an unknown class, {name!r}")
    return _CLASSES[name]


def _take(arrays: Arrays, names: Sequence[str]) -> list[np.ndarray]:
    """Take the arrays of these names out of `arrays`."""
    for name in names:
        require(name in arrays, f"it has no {name}")
    return [arrays.pop(name) for name in names]


def _pack_metric(model: RiemannianEstimator, arrays: Arrays) -> dict[str, Any]:
    """The metric's entry in the header; its arrays are added to `arrays`."""
    if isinstance(model, LANDClassifier):  # its distributions have them
        return {"kind": "parts", "learned": is_learned(model.metric), "table": False}
    metric: Any = model.metric_
    kind, table = type(metric).__name__, getattr(metric, "is_tabulated", False)
    if type(metric) in KINDS.values():
        arrays["metric.data"] = metric.data
        arrays["metric.sigma"] = np.asarray(metric.sigma, dtype=np.float64)
        arrays["metric.rho"] = np.asarray(metric.rho, dtype=np.float64)
    elif type(metric) is not EuclideanMetric:
        # The metric itself is code and is not stored; its tensors at the means show
        # whether the one that is given on loading is the same.
        kind, table = "given", False
        arrays["metric.tensors"] = metric.tensor(_means(vars(model)))
    return {"kind": kind, "learned": hasattr(model, "sigma_"), "table": table}


def _metric(packed: dict, arrays: Arrays, fitted: dict, given: Any) -> Metric:
    """The metric of an entry in the header, or the one given if they agree."""
    kind = packed["kind"]
    if kind == "given" and not packed["learned"]:
        return _check_given(given, arrays.pop("metric.tensors"), _means(fitted))
    require(given is None, "it has its own metric; leave out metric=")
    if kind == "EuclideanMetric":
        return EuclideanMetric(fitted["n_features_in_"])
    kinds = {each.__name__: each for each in KINDS.values()}
    require(kind in kinds, f"it has an unknown metric, {kind!r}")
    data, sigma, rho = _take(arrays, _METRIC)
    metric = kinds[kind](data, sigma.item(), rho.item())
    return metric.tabulated() if packed["table"] else metric


def _check_given(given: Any, tensors: np.ndarray, means: np.ndarray) -> Metric:
    require(
        given is not None,
        "its metric is a function, which cannot be stored; give the same one again: "
        "land.load(path, metric=...)",
    )
    dim = means.shape[1]
    require(
        isinstance(given, Metric) and given.dim == dim,
        f"metric must be a land.metrics.Metric in {dim} dimensions, got {given!r}",
    )
    again = given.tensor(means)
    tolerance = {"rtol": _ROUNDING, "atol": _ROUNDING * np.abs(again).max()}
    require(
        again.shape == tensors.shape and np.allclose(again, tensors, **tolerance),
        "metric is not the one the model was fitted with: its tensors at the means "
        "differ",
    )
    return given


def _means(attributes: Mapping[str, Any]) -> np.ndarray:
    """The mean, the means or the centres, (K, D)."""
    names = ("mean_", "means_", "cluster_centers_")
    return np.atleast_2d(next(attributes[name] for name in names if name in attributes))
