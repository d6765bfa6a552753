"""Sigma and rho, learned: a search by the log density of held-out rows.

Each candidate is fitted to some of the rows, metric included, and scored on the others.
Values are in units of the automatic ones, so that they carry over between data of
different size. The flat metric is always a candidate.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from land.estimators.base import is_word
from land.metrics import KINDS, EuclideanMetric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]
# Logarithms of sigma and rho in units of the automatic values.
Place = tuple[float, float]


@dataclass(frozen=True)
class _Settings:
    """How sigma and rho are searched for.

    Attributes
    ----------
    rows : int
        Rows on which candidates are compared at most.
    folds : int
        Parts of the data, each of which is held out once.
    trials : int
        Curved candidates that are fitted at most.
    steps : tuple of float
        First steps of log sigma and log rho. They are halved where no step is better.
    halvings : int
        How often, before the search ends.
    hopeless : tuple of float
        A candidate that is behind the best by this much after a fold, and by so many
        standard errors, is given up.
    worthwhile : float
        A step that gains less leads nowhere: ever smoother metrics approach the flat
        one.
    tol, max_iter, n_samples
        Of the fits: candidates differ by more than these leave open.
    """

    rows: int = 300
    folds: int = 2
    trials: int = 8
    steps: tuple[float, float] = (math.log(1.6), math.log(4.0))
    halvings: int = 1
    hopeless: tuple[float, float] = (0.1, 4.0)
    worthwhile: float = 5e-3
    tol: float = 5e-3
    max_iter: int = 10
    n_samples: int = 1000


_SETTINGS = _Settings()
_FLAT: Place = (math.inf, math.inf)


class _HopelessError(Exception):
    """A candidate is far behind; `behind` says by how much."""

    def __init__(self, behind: float) -> None:
        super().__init__("given up: far behind the best")
        self.behind = behind


@dataclass(frozen=True)
class Learned:
    """What a search has found.

    Attributes
    ----------
    parameters : dict
        Of the estimator: `sigma` and `rho`, or a flat `metric`.
    gain : float
        By how much held-out rows have a larger mean log density than with the flat
        metric.
    table : list of dict
        The candidates, see `learning_` of `land.LAND`.
    """

    parameters: dict[str, Any]
    gain: float
    table: list[dict[str, Any]]


def learn(estimator: Any, data: Array, seed: int) -> Learned:
    """Sigma and rho with which held-out rows have the largest log density.

    A compass search: steps to both sides in log sigma and log rho, the last good
    direction first, and half as long where none is better. Each fit starts from the
    model of the nearest candidate before it. Of candidates within a standard error of
    the best the smoothest is chosen. An interrupt ends the search.

    Parameters
    ----------
    estimator
        The model, unfitted; its `sigma`, its `rho` or both are ``"learn"``.
    data : ndarray of shape (N, D)
    seed
        Randomness of the folds and of the fits.
    """
    trials = _Trials(estimator, data, seed)
    try:
        _search(trials)
    except KeyboardInterrupt:
        if not trials.scores:
            raise
    return trials.outcome(data)


def _search(trials: _Trials) -> None:
    trials.score(_FLAT)
    given = (trials.estimator.sigma, trials.estimator.rho)
    pairs = zip(np.eye(2), given, strict=True)
    axes = [axis for axis, value in pairs if is_word(value, "learn")]
    directions = [sign * axis for axis in axes[::-1] for sign in (1.0, -1.0)]
    place, best = np.zeros(2), trials.score((0.0, 0.0))
    steps, halvings = np.array(_SETTINGS.steps), 0
    while trials.left > 0:
        for direction in directions:
            there = place + direction * steps
            value = trials.score((float(there[0]), float(there[1])))
            if value > best + _SETTINGS.worthwhile:
                place, best = there, value
                # On in this direction first, and not back.
                rest = [other for other in directions if other @ direction == 0.0]
                directions = [direction, *rest, -direction]
                break
            if trials.left <= 0:
                return
        else:
            halvings += 1
            if halvings > _SETTINGS.halvings:
                return
            steps = 0.5 * steps


class _Trials:
    """Candidates that were tried, with the log densities of all rows, held out."""

    def __init__(self, estimator: Any, data: Array, seed: int) -> None:
        self.parts = getattr(estimator, "n_components", 1)
        if len(data) < 2 * _SETTINGS.folds:
            raise ValueError(
                f"sigma='learn' and rho='learn' hold out rows, and need at least "
                f"{2 * _SETTINGS.folds} of them, got {len(data)}"
            )
        order = np.random.default_rng(seed).permutation(len(data))
        self.data = data[order[: _SETTINGS.rows]]
        self.folds = list(KFold(_SETTINGS.folds).split(self.data))
        self.estimator, self.seed = estimator, seed
        self.scores: dict[Place, Array] = {}
        self.models: dict[Place, list[Any]] = {}
        self.rows: dict[Place, dict[str, Any]] = {}

    @property
    def left(self) -> int:
        return _SETTINGS.trials - sum(place != _FLAT for place in self.rows)

    def score(self, place: Place) -> float:
        """Mean log density of held-out rows; minus infinity if a fit fails.

        Of one that is given up, as it seems.
        """
        if place not in self.rows:
            start = time.perf_counter()
            error, value = "", -math.inf
            try:
                self.scores[place], self.models[place] = self._held_out(place)
                value = self._mean(place)
            except _HopelessError as problem:
                error, value = str(problem), self._best()[1] - problem.behind
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
            self.rows[place] = {
                "score": value,
                "seconds": time.perf_counter() - start,
                "error": error,
            }
            if self.estimator.verbose:
                self._report(place)
        return float(self.rows[place]["score"])

    def _mean(self, place: Place) -> float:
        return float(np.mean(self.scores[place]))

    def _best(self) -> tuple[Place, float]:
        best = max(self.scores, key=self._mean)
        return best, self._mean(best)

    def _held_out(self, place: Place) -> tuple[Array, list[Any]]:
        near = self._nearest(place)
        values, models = np.empty(len(self.data)), []
        for index, (fitted, held_out) in enumerate(self.folds):
            rows = self.data[fitted]
            model = clone(self.estimator).set_params(
                **self._metric(place, rows),
                tol=_SETTINGS.tol,
                max_iter=_SETTINGS.max_iter,
                n_samples=min(self.estimator.n_samples, _SETTINGS.n_samples),
                random_state=self.seed,
                callback=None,
                verbose=0,
            )
            if near is not None:
                means = np.stack([own.mean for own in near[index]._components()])
                single = not hasattr(model, "n_components")
                model.set_params(init=means[0] if single else means)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(rows)
                values[held_out] = model.score_samples(self.data[held_out])
            if model.interrupted_:
                raise KeyboardInterrupt
            models.append(model)
            if self.scores and index + 1 < len(self.folds):
                gaps = (self.scores[self._best()[0]] - values)[held_out]
                error, (least, times) = np.std(gaps), _SETTINGS.hopeless
                if np.mean(gaps) > max(least, times * error / math.sqrt(len(gaps))):
                    raise _HopelessError(float(np.mean(gaps)))
        if not np.isfinite(values).all():
            count = int(np.sum(~np.isfinite(values)))
            raise ValueError(f"{count} of {len(values)} rows have no density")
        return values, models

    def _metric(self, place: Place, rows: Array) -> dict[str, Any]:
        """Parameters of an estimator for a candidate, if it is fitted to these rows."""
        if place == _FLAT:
            flat = EuclideanMetric(rows.shape[1])
            return {"metric": flat, "sigma": "auto", "rho": "auto"}
        sigma, rho = self.estimator.sigma, self.estimator.rho
        if isinstance(sigma, str):
            sigma = math.exp(place[0]) * automatic_sigma(rows, self.parts, sharp=True)
        if isinstance(rho, str):
            kind = KINDS[self.estimator.metric or "diagonal"]
            rho = automatic_rho(rows, sigma, kind=kind, sharp=True)
            rho *= math.exp(place[1])
        return {"sigma": sigma, "rho": rho}

    def _nearest(self, place: Place) -> list[Any] | None:
        """Models of the nearest curved candidate."""
        others = [other for other in self.models if other != _FLAT]
        if place == _FLAT or not others:
            return None
        unit = np.array(_SETTINGS.steps)
        gaps = (np.array(others) - np.array(place)) / unit
        return self.models[others[int(np.argmin(np.sum(gaps**2, axis=1)))]]

    def outcome(self, data: Array) -> Learned:
        """The smoothest candidate within a standard error of the best."""
        best, _ = self._best()
        for place, row in self.rows.items():
            own = {"sigma": math.inf, "rho": math.inf}
            own |= {} if place == _FLAT else self._metric(place, data)
            row |= own | {"behind": math.inf, "stderr": math.nan, "chosen": False}
            if place in self.scores:
                gaps = self.scores[best] - self.scores[place]
                row["behind"] = float(np.mean(gaps))
                row["stderr"] = float(np.std(gaps) / math.sqrt(len(gaps)))
        near = [
            place
            for place in self.scores
            if self.rows[place]["behind"] <= self.rows[place]["stderr"]
        ]
        chosen = max(near, key=lambda place: (place[1], place[0]))
        self.rows[chosen]["chosen"] = True
        gain = self._mean(chosen) - self.rows[_FLAT]["score"]
        return Learned(self._metric(chosen, data), gain, list(self.rows.values()))

    def _report(self, place: Place) -> None:
        row, (sigma, rho) = self.rows[place], np.exp(place)
        what = f"automatic sigma x {sigma:.2g}, rho x {rho:.2g}"
        what = "flat metric" if place == _FLAT else what
        outcome = row["error"] or f"held-out log density {row['score']:.4f}"
        sys.stderr.write(
            f"learn: {len(self.rows)}  {what}  {outcome}  {row['seconds']:.1f} s\n"
        )
        sys.stderr.flush()
