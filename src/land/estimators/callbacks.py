"""Callbacks of fits; one keeps the progress in a file, so that a fit can be resumed."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from land._validation import refuse, shown
from land.estimators.files import ModelFileError, read_archive, write_archive
from land.fitting import Step
from land.metrics import KINDS

Array = NDArray[np.float64]
Callback = Callable[[Step], None]

_KIND = {"format": "land checkpoint", "version": 6}
# Parameters that do not change what is fitted; the metric is known by its values.
_IRRELEVANT = ("callback", "verbose", "metric", "n_jobs")


@dataclass(frozen=True)
class Checkpoint:
    """Callback that keeps the progress of a long fit in a file.

    To resume, fit the same data with the same parameters and the same file. The fit
    then ends with the model, to the last digit, of a fit that was never interrupted,
    also if `random_state` is None. The file is deleted when the fit has ended, and
    refused if it belongs to another fit.

    Parameters
    ----------
    path : path-like
        The file. It is replaced as a whole, so it is never half written.

    Notes
    -----
    Maximum likelihood with the default optimizer keeps its progress after the search
    for a start and every few steps; other fits start anew. `LANDMixture` needs
    ``n_init=1``.

    Examples
    --------
    >>> import land, tempfile, pathlib
    >>> X = land.datasets.make_half_ellipse(50, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = land.callbacks.Checkpoint(pathlib.Path(folder) / "checkpoint")
    ...     model = land.LAND(sigma=0.5, n_samples=200, callback=checkpoint).fit(X)
    ...     checkpoint.path.exists()
    False
    """

    path: str | os.PathLike[str]

    def __call__(self, step: Step) -> None:
        """Do nothing: a step is too little to go on from, and fits call `open`."""

    def open(self, fingerprint: str, entropy: list[int]) -> OpenCheckpoint:
        """The checkpoint of a certain fit, with its progress if the file exists.

        A ValueError if the file is something else, or belongs to another fit.
        """
        opened = OpenCheckpoint(Path(self.path), fingerprint, entropy)
        folder = opened.path.absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(
                errno.ENOENT, "there is no such folder for a checkpoint", str(folder)
            )
        if opened.path.exists():
            opened.resume()
        return opened


@dataclass
class OpenCheckpoint:
    """The file of one fit: its randomness, and its progress when it was last kept."""

    path: Path
    fingerprint: str
    entropy: list[int]
    progress: dict[str, Any] | None = None
    warned: bool = False

    def resume(self) -> None:
        """Take over randomness and progress from the file."""
        try:
            contents, _ = read_archive(self.path)
        except ModelFileError:
            contents = {}
        wrong = None
        if not _KIND.items() <= contents.items():
            wrong = "is not a checkpoint of this version of land, or it is damaged"
        elif contents["fingerprint"] != self.fingerprint:
            wrong = "belongs to a fit of other data, or with other settings"
        if wrong is not None:
            raise ValueError(
                f"{self.path} {wrong}; name another file, or delete it to start anew"
            )
        self.entropy, self.progress = contents["entropy"], contents["progress"]

    def keep(self, progress: dict[str, Any]) -> None:
        """Write the progress; a failure costs a warning and not the fit."""
        own = {"fingerprint": self.fingerprint, "entropy": self.entropy}
        try:
            write_archive(self.path, _KIND | own | {"progress": progress}, {})
        except OSError as error:
            if not self.warned:
                warnings.warn(
                    f"cannot write the checkpoint {self.path}: {error.strerror}; "
                    "the fit goes on without",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self.warned = True


def fingerprint(
    estimator: BaseEstimator, metric: Any, data: Array, weights: Array
) -> str:
    """What makes a fit what it is: data, weights, metric, parameters, version."""
    given = estimator.get_params(deep=False).items()
    parameters = {name: value for name, value in given if name not in _IRRELEVANT}
    if not isinstance(parameters["random_state"], (Integral, type(None))):
        del parameters["random_state"]  # what a generator gave is in the checkpoint
    if type(metric) in KINDS.values():
        # Not its tensors: their last digits depend on whether there is a table.
        values = [metric.data, np.array([metric.sigma, metric.rho])]
    else:
        values = [metric.tensor(data)]
    name = type(estimator).__name__
    return joblib.hash([version("land"), name, parameters, data, weights, values])


def heard(
    callback: Any, verbose: Any, name: str
) -> tuple[Callback | None, Checkpoint | None]:
    """One function that calls all callbacks of a fit, and the checkpoint among them.

    It reports each step if `verbose`.
    """
    if not isinstance(verbose, (bool, np.bool_, Integral)):
        refuse("verbose", (), ("a bool", "an integer"), verbose)
    given = list(callback) if isinstance(callback, (list, tuple)) else [callback]
    calls = [] if callback is None else given
    if not all(callable(each) for each in calls):
        raise ValueError(
            "callback must be callable, a list of callables or None, got "
            f"{shown(callback)}"
        )
    checkpoints = [each for each in calls if isinstance(each, Checkpoint)]
    if len(checkpoints) > 1:
        raise ValueError(f"callback must have one checkpoint, got {len(checkpoints)}")

    def call(step: Step) -> None:
        if verbose:
            tell(
                f"{name}: {step.stage} {step.iteration:3d}  "
                f"objective {step.objective:.5f}  {step.n_log_maps} log maps  "
                f"{step.seconds:.1f} s"
            )
        for each in calls:
            each(step)

    return call if calls or verbose else None, next(iter(checkpoints), None)


def tell(line: str) -> None:
    """Report progress on the standard error stream."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
