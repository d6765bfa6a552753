"""Progress of a fit in a file, so that it can go on after an interrupt or a crash."""

from __future__ import annotations

import errno
import hashlib
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from land.estimators.archive import (
    ModelFileError,
    PathLike,
    read_archive,
    write_archive,
)
from land.metrics import LocalDiagonalMetric, Metric

Array = NDArray[np.float64]

# Version 4: an archive, whose checksums tell if it is damaged.
_FORMAT, _VERSION = "land checkpoint", 4
# Parameters that do not change what is fitted; the metric is known by its values.
_IRRELEVANT = ("callback", "verbose", "metric", "n_jobs")
# Rows at which the tensors of a metric tell it from others.
_PROBES = 16


class Checkpoint:
    """A file with the progress of one fit: that of certain data with certain settings.

    It is replaced as a whole, so that it is never half written.

    Attributes
    ----------
    entropy : list of int
        The randomness of the fit.
    progress : dict or None
        How the fit stood when it was last kept.
    """

    def __init__(self, path: PathLike, fingerprint: str, entropy: list[int]) -> None:
        self.path = Path(path)
        self.fingerprint, self.entropy = fingerprint, entropy
        self.progress: dict[str, Any] | None = None
        self._warned = False

    @classmethod
    def open(cls, path: PathLike, fingerprint: str, entropy: list[int]) -> Self:
        """The checkpoint of a fit, with its progress if the file exists.

        Raises
        ------
        ValueError
            If the file is something else, or belongs to another fit.
        OSError
            If it cannot be read, or its folder does not exist.
        """
        checkpoint = cls(path, fingerprint, entropy)
        folder = checkpoint.path.absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                errno.ENOENT, "there is no such folder for a checkpoint", str(folder)
            )
        if checkpoint.path.exists():
            checkpoint._read()
        return checkpoint

    def keep(self, progress: dict[str, Any]) -> None:
        """Write the progress; a failure costs a warning and not the fit."""
        self.progress = progress
        contents = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": self.fingerprint,
            "entropy": self.entropy,
            "progress": progress,
        }
        try:
            write_archive(self.path, contents, {})
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"cannot write the checkpoint {self.path}: {error.strerror}; "
                    "the fit goes on without",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True

    def _read(self) -> None:
        try:
            contents, _ = read_archive(self.path)
        except ModelFileError:
            contents = {}
        if (contents.get("format"), contents.get("version")) != (_FORMAT, _VERSION):
            raise ValueError(
                f"{self.path} is not a checkpoint of this version of land, or it is "
                "damaged; name another file, or delete it to start anew"
            )
        if contents["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"the checkpoint {self.path} belongs to a fit of other data, with "
                "other settings, or by another version of land; name another file, "
                "or delete it to start anew"
            )
        self.entropy, self.progress = contents["entropy"], contents["progress"]


def fingerprint(
    estimator: BaseEstimator, metric: Metric, data: Array, weights: Array
) -> str:
    """What makes a fit what it is: data, weights, metric, parameters, version."""
    digest = hashlib.sha256(f"{version('land')} {type(estimator).__name__}".encode())
    for name, value in sorted(estimator.get_params(deep=False).items()):
        if name in _IRRELEVANT:
            continue
        if not isinstance(value, (str, int, float, bool, type(None))):
            # A generator has no name; what it gave is in the checkpoint.
            value = "" if name == "random_state" else np.asarray(value).tolist()
        digest.update(f" {name}={value!r}".encode())
    if type(metric) is LocalDiagonalMetric:
        # Not its tensors: their last digits depend on whether there is a table.
        values = [metric.data, np.array([metric.sigma, metric.rho])]
    else:
        values = [metric.tensor(data[:_PROBES])]
    for array in (data, weights, *values):
        digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
