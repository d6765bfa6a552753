"""Model files: fitted estimators as plain arrays and JSON, read without trust.

A file is an archive of arrays as `numpy.savez` writes it, with a ``header.json``.
Nothing is compressed, so no member is larger than the file; nothing is pickled, so
nothing is executed; nothing is extracted, so names of members lead nowhere. Checksums
tell whether a file is damaged; that its numbers make a model is not checked again.
"""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from land._validation import shown
from land.estimators.standardized import Standardized, parts_of
from land.fitting import Step
from land.metrics import KINDS, EuclideanMetric, Metric, MixtureMetric

PathLike = str | os.PathLike[str]
Arrays = dict[str, np.ndarray]

# Version 3: all fitted numbers are arrays, the history and parameters are JSON.
FORMAT, VERSION = "land-model", 3
_HEADER = "header.json"

_FIT = ("n_features_in_", "n_iter_", "converged_")
_DENSITY = (
    *_FIT,
    *("interrupted_", "objective_", "geometry_gain_"),
    *("n_failed_log_maps_", "n_log_maps_"),
)
# Attributes that are stored as arrays, by the name of the class.
FIELDS: dict[str, tuple[str, ...]] = {
    "LAND": (
        *_DENSITY,
        *("mean_", "covariance_", "precision_"),
        *("log_constant_", "log_constant_stderr_", "effective_samples_"),
    ),
    "LANDMixture": (
        *_DENSITY,
        *("weights_", "means_", "covariances_", "precisions_"),
        *("log_constants_", "log_constants_stderr_"),
    ),
    "RiemannianKMeans": (*_FIT, "cluster_centers_", "labels_", "inertia_"),
    "GeodesicPCA": (
        *_FIT,
        *("mean_", "components_", "n_components_"),
        *("explained_variance_", "explained_variance_ratio_"),
    ),
    "LANDClassifier": ("n_features_in_", "n_iter_", "priors_"),
}
# Arguments of metrics that are stored, by their classes.
_METRICS: dict[Any, tuple[str, ...]] = {
    **dict.fromkeys(KINDS.values(), ("data", "sigma", "rho")),
    MixtureMetric: ("centers", "tensors", "sigma"),
}
# Parameters that mean nothing in another process.
_NOT_STORED = ("callback", "n_jobs")


class ModelFileError(ValueError):
    """A model file cannot be used; the message says why, in one line."""


def _require(good: Any, otherwise: str) -> None:
    if not good:
        raise ModelFileError(otherwise)


# Models.


def save(model: Any, path: PathLike, extra: Mapping[str, Any] | None = None) -> None:
    """Write a fitted model to a file, see `LAND.save`."""
    check_is_fitted(model)
    if extra is not None and not isinstance(extra, Mapping):
        raise ValueError(f"extra must be a mapping or None, got {shown(extra)}")
    header, arrays = _pack(model)
    write_archive(path, header | {"extra": dict(extra or {})}, arrays)


def _pack(model: Any) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a model."""
    name = type(model).__name__
    words = f"model must be one of {', '.join(FIELDS)} to be saved, got {name}"
    _require(name in FIELDS, words)
    arrays = {each: np.asarray(getattr(model, each)) for each in FIELDS[name]}
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
    if name == "LANDClassifier":
        header |= _pack_classes(model, arrays)
    return header, arrays


def _pack_classes(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Entries of a classifier; arrays of its distributions are added to `arrays`."""
    parts = []
    for k, each in enumerate(model.distributions_):
        header, own = _pack(each)
        parts.append(header)
        arrays |= {f"{k}.{name}": array for name, array in own.items()}
    classes = model.classes_
    return {
        "classes": classes.tolist(),
        "classes_dtype": "O" if classes.dtype == object else classes.dtype.str,
        "parts": parts,
    }


def load(path: PathLike, *, metric: Metric | None = None) -> Any:
    """Read a model from a file that `save` has written; execute nothing in it.

    The model scores, predicts and samples as the one that was saved, bit for bit. Its
    `random_state` is None if it was not an integer, and it has no `callback` and no
    `n_jobs`. One of ``land fit --standardize`` is a `Standardized` model. A file that
    is no model file, is damaged, or needs another metric is a `ModelFileError`, which
    is a ValueError.

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
        units = extra.get("center", ()), extra["scale"]
        return Standardized.around(model, *units)
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
    name = _check_header(header)
    parameters = dict(header["parameters"])
    if name == "LANDMixture":
        parameters.pop("optimizer", None)  # earlier files have it; it had one value
    estimators = import_module("land.estimators")  # which imports this file
    model = getattr(estimators, name)(**parameters)
    for field, array in zip(FIELDS[name], _take(arrays, FIELDS[name]), strict=True):
        # Arrays stay arrays, numbers become Python's, as a fit leaves them.
        setattr(model, field, array if array.ndim else array.item())
    if hasattr(model, "objective_"):
        model.history_ = [
            Step(**step | {"means": np.asarray(step["means"], dtype=np.float64)})
            for step in header["history"]
        ]
        model.health_ = header.get("health", [])  # which earlier files lack
    of_its_own = True
    if name == "LANDClassifier":
        metric = _unpack_classes(header, arrays, given, model)
        of_its_own = model.covariance == "shared"
    else:
        metric = model.metric_ = _metric(header["metric"], arrays, model, given)
    _require(not arrays, f"it holds unexpected arrays: {sorted(arrays)}")
    if not header["metric"]["learned"]:
        model.metric = metric
    elif of_its_own:
        model.sigma_ = getattr(metric, "sigma", math.inf)
        model.rho_ = getattr(metric, "rho", math.inf)
    if header["feature_names"]:
        model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    return model


def _unpack_classes(header: dict, arrays: Arrays, given: Any, model: Any) -> Metric:
    """Give a classifier its classes and distributions; the metric of the first."""
    model.distributions_ = []
    for k, part in enumerate(header["parts"]):
        start = f"{k}."
        names = [name for name in arrays if name.startswith(start)]
        own = {name.removeprefix(start): arrays.pop(name) for name in names}
        model.distributions_.append(_unpack(part, own, given))
    model.classes_ = np.array(header["classes"], dtype=header["classes_dtype"])
    return model.distributions_[0].metric_


def _check_header(header: dict[str, Any]) -> str:
    """The class of the model, if this is a model file of this version."""
    _require(header["format"] == FORMAT, "it is not a land model file")
    _require(
        header["version"] == VERSION,
        f"it is in version {header['version']!r} of the format, and this land reads "
        f"version {VERSION}; fit the model again, or use the land that wrote it "
        f"({header.get('land')!r})",
    )
    name = header["class"]
    _require(name in FIELDS, f"it holds an unknown class, {name!r}")
    return name


def _take(arrays: Arrays, names: Sequence[str]) -> list[np.ndarray]:
    """Take the arrays of these names out of `arrays`."""
    for name in names:
        _require(name in arrays, f"it has no {name}")
    return [arrays.pop(name) for name in names]


def _pack_metric(model: Any, arrays: Arrays) -> dict[str, Any]:
    """The metric's entry in the header; its arrays are added to `arrays`."""
    if type(model).__name__ == "LANDClassifier":  # its distributions have them
        given = isinstance(model.metric, Metric)
        return {"kind": "parts", "learned": not given, "table": False}
    metric: Any = model.metric_
    kind, table = type(metric).__name__, getattr(metric, "is_tabulated", False)
    if type(metric) in _METRICS:
        names = _METRICS[type(metric)]
        arrays |= {
            f"metric.{name}": np.asarray(getattr(metric, name)) for name in names
        }
    elif type(metric) is not EuclideanMetric:
        # The metric itself is code and is not stored; its tensors at the means show
        # whether the one that is given on loading is the same.
        kind, table = "given", False
        arrays["metric.tensors"] = metric.tensor(parts_of(model).means)
    return {"kind": kind, "learned": hasattr(model, "sigma_"), "table": table}


def _metric(packed: dict, arrays: Arrays, model: Any, given: Any) -> Metric:
    """The metric of an entry in the header, or the one given if they agree."""
    kind = packed["kind"]
    if kind == "given" and not packed["learned"]:
        means = parts_of(model).means
        return _check_given(given, arrays.pop("metric.tensors"), means)
    _require(given is None, "it has its own metric; leave out metric=")
    if kind == "EuclideanMetric":
        return EuclideanMetric(model.n_features_in_)
    kinds = {each.__name__: each for each in _METRICS}
    _require(kind in kinds, f"it has an unknown metric, {kind!r}")
    names = [f"metric.{name}" for name in _METRICS[kinds[kind]]]
    metric = kinds[kind](*_take(arrays, names))
    return metric.tabulated() if packed["table"] else metric


def _check_given(given: Any, tensors: np.ndarray, means: np.ndarray) -> Metric:
    _require(
        given is not None,
        "its metric is a function, which cannot be stored; give the same one again: "
        "land.load(path, metric=...)",
    )
    dim = means.shape[1]
    _require(
        isinstance(given, Metric) and given.dim == dim,
        f"metric must be a land.metrics.Metric in {dim} dimensions, got {shown(given)}",
    )
    again = given.tensor(means)
    # Rounding leaves less on any machine; the tensors of another metric differ by more.
    rounding = 1e-6
    tolerance = {"rtol": rounding, "atol": rounding * np.abs(again).max()}
    _require(
        again.shape == tensors.shape and np.allclose(again, tensors, **tolerance),
        "metric is not the one the model was fitted with: its tensors at the means "
        "differ",
    )
    return given


# Archives: a JSON header and plain arrays.


def write_archive(
    path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write header and arrays to `path`, all of them or nothing.

    Equal contents give equal bytes: members have the date that zipfile begins with.
    """
    text = json.dumps(header, indent=1, default=_as_list).encode()
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
            np.lib.format.write_array(buffer, plain, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getbuffer())


def read_archive(path: PathLike) -> tuple[dict[str, Any], Arrays]:
    """Read what `write_archive` wrote; anything else is a `ModelFileError`."""
    name = os.fspath(path)
    with Path(path).open("rb") as stream:
        status = os.fstat(stream.fileno())
        _require(stat.S_ISREG(status.st_mode), f"{name} is not a regular file")
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_members(archive, status.st_size)
                header = json.loads(archive.read(_HEADER))
            _require(isinstance(header, dict), "the header is not a JSON object")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as members:
                names = [each for each in members.files if each != _HEADER]
                arrays = {each: members[each] for each in names}
        except Exception as error:  # whatever a crafted file makes the parsers raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ModelFileError(
                f"{name} is not a land model file, or it is damaged: {reason}"
            ) from None
    return header, arrays


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """A stream whose contents take the place of `path` once all is written.

    Until then they are in a file of another name in the same folder, which is removed
    if anything goes wrong. Links are followed; devices and pipes are written directly.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        buffer = io.BytesIO()  # a zip archive needs a stream that can seek
        yield buffer
        with target.open("wb") as stream:
            stream.write(buffer.getbuffer())
        return
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _as_list(value: Any) -> Any:
    """NumPy's and JAX's arrays and numbers as JSON has them."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
    return value.tolist()


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive, in a file of that size, that `write_archive` did not write."""
    members = archive.infolist()
    names = [member.filename for member in members]
    _require(len(set(names)) == len(names), "it has two members of the same name")
    for member in members:
        plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        _require(plain, f"member {member.filename[:60]!r} is compressed or encrypted")
    total = sum(member.file_size for member in members)
    _require(total <= size, "members are larger than the file")
    # NumPy reads no further than an array's shape says, and would miss a checksum.
    _require(archive.testzip() is None, "a checksum is wrong")
    for name in names:
        if name != _HEADER:
            _check_array(io.BytesIO(archive.read(name)), name)


def _check_array(stream: IO[bytes], name: str) -> None:
    """Refuse an array whose shape asks for more memory than the file has bytes."""
    what = f"member {name[:60]!r}"
    _require(np.lib.format.read_magic(stream) == (1, 0), f"{what} has another format")
    shape, _, kind = np.lib.format.read_array_header_1_0(stream)
    _require(not kind.hasobject, "Object arrays cannot be loaded")
    _require(kind.kind in "biuf", f"{what} is no array of numbers")
    size = math.prod(shape) * kind.itemsize
    _require(size == len(stream.read()), f"{what} is not of the size it declares")
