"""Sigma and rho, learned: those with which held-out rows have the largest log density.

Each candidate is fitted to some of the rows, metric included, and scored on the others.
The flat metric is always a candidate.
"""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

from land.estimators.callbacks import tell
from land.estimators.held_out import (
    FLAT,
    SMOOTH,
    Candidate,
    Judgement,
    Place,
    behind,
    judge,
    mean_and_error,
)

Array = NDArray[np.float64]

# Rows on which candidates are compared at most; parts of them, each held out once.
_ROWS, _FOLDS = 300, 2
# Curved candidates that are fitted at most.
_TRIALS = 8
# What the fits are eased to: a constant of the same accuracy as the scores.
_N_SAMPLES = 1000
# First steps of log sigma and log rho; they are halved once, where none is better.
_STEPS = np.log([1.6, 4.0])
# Tolerance of the fits. A step that gains less leads nowhere: ever smoother metrics
# approach the flat one.
_TOL = 5e-3


class Learned(NamedTuple):
    """What a search has found.

    `candidate` is the one chosen; `gain` is by how much held-out rows have a larger
    mean log density than with the flat metric, `table` the `learning_` of `land.LAND`,
    and `n_log_maps` the work of all fits.
    """

    candidate: Candidate
    gain: float
    table: list[dict[str, Any]]
    n_log_maps: int
    interrupted: bool


def learn(estimator: Any, data: Array, seed: int) -> Learned:
    """Sigma and rho with which held-out rows have the largest log density.

    A compass search from the better of the sharp and the smooth values that `land.LAND`
    compares: steps to both sides in log sigma and log rho, the last good direction
    first, and half as long where none is better. One half of a sample of the rows is
    held out. Then the best candidate, the smoothest within a standard error of it and
    the flat metric are fitted to the other half too, and the smoothest within a
    standard error of the best is chosen. An interrupt ends the search.

    `estimator` is unfitted; its `sigma`, its `rho` or both are ``"learn"``.
    """
    if len(data) < 2 * _FOLDS:
        raise ValueError(
            f"sigma='learn' and rho='learn' hold out rows, and need at least "
            f"{2 * _FOLDS} of them, got {len(data)}"
        )
    search, interrupted = _Search(estimator, data, seed), False
    try:
        search.run()
    except KeyboardInterrupt:
        if not search.judged:
            raise
        interrupted = True
    return search.outcome(interrupted)


class _Search:
    """Candidates that were tried, by their places, and how they do on held-out rows.

    `data` are all rows; candidates are compared on a sample of them.
    """

    def __init__(self, estimator: Any, data: Array, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(data))
        self.data, self.sample = data, data[order[:_ROWS]]
        self.splits = list(KFold(_FOLDS).split(self.sample))
        self.estimator = estimator
        quiet = {"callback": None, "verbose": 0, "random_state": seed}
        rough = {"tol": max(_TOL, estimator.tol)}
        rough["n_samples"] = min(_N_SAMPLES, estimator.n_samples)
        self.model = clone(estimator).set_params(**quiet, **rough)
        self.rows: dict[Place, dict[str, Any]] = {}
        self.judged: dict[Place, Judgement] = {}

    def run(self) -> None:
        """Try candidates until none is better, or enough were tried."""
        self.score(FLAT)
        given = self.estimator.rho, self.estimator.sigma
        pairs = zip(np.eye(2)[::-1], given, strict=True)
        axes = [axis for axis, value in pairs if value == "learn"]
        directions = [sign * axis for axis in axes for sign in (1.0, -1.0)]
        starts = [(0.0, 0.0), SMOOTH][: 1 + (self.estimator.rho == "learn")]
        place = np.array(max(starts, key=self.score))
        for steps in (_STEPS, 0.5 * _STEPS):
            while (way := self._ascent(place, directions, steps)) is not None:
                place = place + way * steps
                # On in this direction first, and not back.
                across = [other for other in directions if other @ way == 0.0]
                directions = [way, *across, -way]
        curved = {p: found.values for p, found in self.judged.items() if p != FLAT}
        if curved:
            best = max(curved, key=lambda each: self.judged[each].score)
            finalists = dict.fromkeys((best, _smoothest(curved), FLAT))
            for each in filter(self.judged.get, finalists):
                self.confirm(each)

    def _ascent(self, place: Array, directions: list[Array], steps: Array) -> Any:
        """The first direction in which a step is better, if there is one."""
        least = self.score(tuple(place)) + _TOL
        for direction in directions:
            if len(self.rows) > _TRIALS:  # and the flat one
                return None
            if self.score(tuple(place + direction * steps)) > least:
                return direction
        return None

    def score(self, place: Place) -> float:
        """Mean log density of the first rows held out; minus infinity if a fit failed.

        Candidates that were tried before are known.
        """
        if place not in self.rows:
            row = {"sigma": math.inf, "rho": math.inf}
            if place != FLAT:
                row = Candidate(self.model, place).parameters(self.data)
            row |= {"score": -math.inf, "behind": math.inf, "stderr": math.nan}
            self.rows[place] = row | {"chosen": False, "seconds": 0.0, "error": ""}
            found = self._judge(place, self.splits[:1])
            if found is not None:
                self.judged[place], self.rows[place]["score"] = found, found.score
            if self.estimator.verbose:
                self._report(place)
        return self.rows[place]["score"]

    def confirm(self, place: Place) -> None:
        """Hold out the other rows too."""
        first, found = self.judged[place], self._judge(place, self.splits[1:])
        if found is None:
            del self.judged[place]
        else:
            values = np.where(np.isnan(first.values), found.values, first.values)
            work = first.n_log_maps + found.n_log_maps
            self.judged[place] = found._replace(values=values, n_log_maps=work)

    def _judge(self, place: Place, splits: Any) -> Judgement | None:
        row, start, found = self.rows[place], time.perf_counter(), None
        try:
            found = judge(Candidate(self.model, place), self.sample, splits)
        except Exception as problem:
            row |= {"score": -math.inf, "error": f"{type(problem).__name__}: {problem}"}
        row["seconds"] += time.perf_counter() - start
        return found

    def outcome(self, interrupted: bool) -> Learned:
        """The smoothest of those that know most rows, near the best of them."""
        if not self.judged:
            error = self.rows[FLAT]["error"]
            raise RuntimeError(f"no sigma and rho could be learned; the first: {error}")
        known = {p: np.isfinite(found.values) for p, found in self.judged.items()}
        most = max(each.sum() for each in known.values())
        final = {p: self.judged[p].values for p in known if known[p].sum() == most}
        chosen = _smoothest(final)
        best = max(final, key=lambda place: self.judged[place].score)
        for place, found in self.judged.items():
            # Rows differ in their densities by more than models do.
            gap, stderr = mean_and_error(self.judged[best].values - found.values)
            score = self.judged[best].score - gap
            self.rows[place] |= {"score": score, "behind": gap, "stderr": stderr}
        self.rows[chosen]["chosen"] = True
        gain = self.rows[chosen]["score"] - self.rows[FLAT]["score"]
        work = sum(found.n_log_maps for found in self.judged.values())
        candidate, table = Candidate(self.estimator, chosen), list(self.rows.values())
        return Learned(candidate, gain, table, work, interrupted)

    def _report(self, place: Place) -> None:
        row, (sigma, rho) = self.rows[place], np.exp(place)
        what = f"automatic sigma x {sigma:.2g}, rho x {rho:.2g}"
        what = "flat metric" if place == FLAT else what
        outcome = row["error"] or f"held-out log density {row['score']:.4f}"
        tell(f"learn: {len(self.rows)}  {what}  {outcome}  {row['seconds']:.1f} s")


def _smoothest(values: dict[Place, Array]) -> Place:
    """The smoothest within a standard error of the best."""
    gaps = behind(values).items()
    near = [place for place, (gap, stderr) in gaps if gap <= stderr]
    return max(near, key=lambda place: (place[1], place[0]))
