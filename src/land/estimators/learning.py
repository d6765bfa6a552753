"""Sigma and rho, learned: a search by the log density of held-out rows.

Each candidate is fitted to some of the rows, metric included, and scored on the others.
Values are in units of the automatic ones, so that they carry over between data of
different size. The flat metric is always a candidate.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from land.estimators.base import is_word
from land.estimators.callbacks import tell
from land.estimators.held_out import mean_and_error, try_out
from land.metrics import KINDS, EuclideanMetric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]
# Logarithms of sigma and rho in units of the automatic values.
Place = tuple[float, float]

_FLAT: Place = (math.inf, math.inf)
# Rows on which candidates are compared at most; parts of them, each held out once.
_ROWS, _FOLDS = 300, 2
# Curved candidates that are fitted at most.
_TRIALS = 8
# First steps of log sigma and log rho; they are halved once, where none is better.
_STEPS = np.log([1.6, 4.0])
# A step that gains less leads nowhere: ever smoother metrics approach the flat one.
_WORTHWHILE = 5e-3
# Settings of the fits: candidates differ by more than these leave open.
_ROUGH = {"tol": 5e-3, "max_iter": 10}
_N_SAMPLES = 1000


class Learned(NamedTuple):
    """What a search has found.

    `parameters` are those of the estimator: `sigma` and `rho`, or a flat `metric`.
    `gain` is by how much held-out rows have a larger mean log density than with the
    flat metric, and `table` is the `learning_` of `land.LAND`.
    """

    parameters: dict[str, Any]
    gain: float
    table: list[dict[str, Any]]


class _Candidate(NamedTuple):
    """Log densities of all rows, held out, the means of all folds; or an error."""

    values: Array | None
    means: list[Array]
    seconds: float
    error: str

    @property
    def score(self) -> float:
        """Mean log density of held-out rows; minus infinity if a fit failed."""
        return -math.inf if self.values is None else float(np.mean(self.values))


def learn(estimator: Any, data: Array, seed: int) -> Learned:
    """Sigma and rho with which held-out rows have the largest log density.

    A compass search: steps to both sides in log sigma and log rho, the last good
    direction first, and half as long where none is better. Each fit starts from the
    means of the nearest candidate before it. Of candidates within a standard error of
    the best the smoothest is chosen. An interrupt ends the search.

    `estimator` is unfitted; its `sigma`, its `rho` or both are ``"learn"``.
    """
    if len(data) < 2 * _FOLDS:
        raise ValueError(
            f"sigma='learn' and rho='learn' hold out rows, and need at least "
            f"{2 * _FOLDS} of them, got {len(data)}"
        )
    search = _Search(estimator, data, seed)
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.found:
            raise
    return search.outcome(data)


class _Search:
    """Candidates that were tried, by their places."""

    def __init__(self, estimator: Any, data: Array, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(data))
        self.data = data[order[:_ROWS]]
        self.folds = list(KFold(_FOLDS).split(self.data))
        self.estimator, self.seed = estimator, seed
        self.found: dict[Place, _Candidate] = {}

    def run(self) -> None:
        """Try candidates until none is better, or enough were tried."""
        self.score(_FLAT)
        given = self.estimator.sigma, self.estimator.rho
        pairs = zip(np.eye(2), given, strict=True)
        axes = [axis for axis, value in pairs if is_word(value, "learn")]
        directions = [sign * axis for axis in axes[::-1] for sign in (1.0, -1.0)]
        place = np.zeros(2)
        for steps in (_STEPS, 0.5 * _STEPS):
            while (way := self._ascent(place, directions, steps)) is not None:
                place = place + way * steps
                # On in this direction first, and not back.
                across = [other for other in directions if other @ way == 0.0]
                directions = [way, *across, -way]

    def _ascent(self, place: Array, directions: list[Array], steps: Array) -> Any:
        """The first direction in which a step is better, if there is one."""
        least = self.score(tuple(place.tolist())) + _WORTHWHILE
        for direction in directions:
            if len(self.found) > _TRIALS:  # and the flat one
                return None
            there = place + direction * steps
            if self.score(tuple(there.tolist())) > least:
                return direction
        return None

    def score(self, place: Place) -> float:
        """Mean log density of held-out rows with a candidate."""
        if place not in self.found:
            start = time.perf_counter()
            values, error = None, ""
            means: list[Array] = []
            try:
                values, means = self._held_out(place)
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
            seconds = time.perf_counter() - start
            self.found[place] = _Candidate(values, means, seconds, error)
            if self.estimator.verbose:
                self._report(place)
        return self.found[place].score

    def _held_out(self, place: Place) -> tuple[Array, list[Array]]:
        """Log densities of all rows, held out, and the means of the fits."""
        near = self._nearest(place)
        values, means = np.empty(len(self.data)), []
        for fold, (fitted, held_out) in enumerate(self.folds):
            rows = self.data[fitted]
            model = clone(self.estimator).set_params(
                **self._parameters(place, rows),
                **_ROUGH,
                n_samples=min(self.estimator.n_samples, _N_SAMPLES),
                random_state=self.seed,
                callback=None,
                verbose=0,
            )
            if near is not None:
                several = hasattr(model, "n_components")
                model.set_params(init=near[fold] if several else near[fold][0])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trial = try_out(model, rows, self.data[held_out])
            values[held_out] = trial.values
            means.append(np.stack([own.mean for own in trial.model._components()]))
        lost = int(np.sum(~np.isfinite(values)))
        if lost:
            raise ValueError(f"{lost} of {len(values)} rows have no density")
        return values, means

    def _parameters(self, place: Place, rows: Array) -> dict[str, Any]:
        """Parameters of an estimator for a candidate, if it is fitted to these rows."""
        if place == _FLAT:
            flat = EuclideanMetric(rows.shape[1])
            return {"metric": flat, "sigma": "auto", "rho": "auto"}
        sigma, rho = self.estimator.sigma, self.estimator.rho
        parts = getattr(self.estimator, "n_components", 1)
        if isinstance(sigma, str):
            sigma = math.exp(place[0]) * automatic_sigma(rows, parts, sharp=True)
        if isinstance(rho, str):
            kind = KINDS[self.estimator.metric or "diagonal"]
            rho = automatic_rho(rows, sigma, parts, kind=kind, sharp=True)
            rho *= math.exp(place[1])
        return {"sigma": sigma, "rho": rho}

    def _nearest(self, place: Place) -> list[Array] | None:
        """Means of the nearest curved candidate, one array for each fold."""
        others = {
            other: candidate.means
            for other, candidate in self.found.items()
            if other != _FLAT and candidate.means
        }
        if place == _FLAT or not others:
            return None
        gaps = (np.array(list(others)) - np.array(place)) / _STEPS
        return list(others.values())[int(np.argmin(np.sum(gaps**2, axis=1)))]

    def outcome(self, data: Array) -> Learned:
        """The smoothest candidate within a standard error of the best."""
        best = max(self.found.values(), key=lambda each: each.score).values
        table: dict[Place, dict[str, Any]] = {}
        for place, own in self.found.items():
            behind, stderr = math.inf, math.nan
            if own.values is not None and best is not None:
                behind, stderr = mean_and_error(best - own.values)
            used = {"sigma": math.inf, "rho": math.inf}
            if place != _FLAT:
                used = self._parameters(place, data)
            table[place] = used | {
                "score": own.score,
                "behind": behind,
                "stderr": stderr,
                "chosen": False,
                "seconds": own.seconds,
                "error": own.error,
            }
        near = [each for each, row in table.items() if row["behind"] <= row["stderr"]]
        chosen = max(near, key=lambda place: (place[1], place[0]))
        table[chosen]["chosen"] = True
        gain = self.found[chosen].score - self.found[_FLAT].score
        return Learned(self._parameters(chosen, data), gain, list(table.values()))

    def _report(self, place: Place) -> None:
        own, (sigma, rho) = self.found[place], np.exp(place)
        what = f"automatic sigma x {sigma:.2g}, rho x {rho:.2g}"
        what = "flat metric" if place == _FLAT else what
        outcome = own.error or f"held-out log density {own.score:.4f}"
        tell(f"learn: {len(self.found)}  {what}  {outcome}  {own.seconds:.1f} s")
