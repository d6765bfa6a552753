"""Rounds in which candidates are fitted and compared: few rows first, then more."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import RepeatedKFold

from land.estimators.callbacks import tell
from land.estimators.clustering import f_measure
from land.estimators.density import information_criteria
from land.estimators.health import WORTHWHILE
from land.estimators.held_out import (
    FLAT,
    Candidate,
    Entry,
    Judgement,
    behind,
    beside,
    judge,
    mean_and_error,
)
from land.estimators.learning import learn
from land.estimators.scoring import spread
from land.metrics import EuclideanMetric

Array = NDArray[np.float64]
Criterion = Literal["held_out", "bic", "aic"]
Purpose = Literal["density", "clusters"]
Row = dict[str, Any]


class _Effort(NamedTuple):
    """Rows at most, in how many parts, how often, and how accurate the fits are."""

    rows: float
    folds: int
    repeats: int = 1
    n_samples: int = 2**31
    tol: float = 0.0


_EFFORTS = {
    "density": (
        _Effort(200, 2, 1, 300, 1e-2),
        _Effort(400, 2, 1, 1000, 3e-3),
        _Effort(math.inf, 3),
    ),
    # Halves, so that models whose clusters are compared share no rows.
    "clusters": (_Effort(300, 2, 1, 300, 1e-2), _Effort(400, 2, 3, 500, 3e-3)),
}
# Curved candidates that are fitted to all rows.
_FINALISTS = 2
# Few rows are held out in more parts: of two normal clusters of 20 rows each, fits to
# two thirds of the rows were so poor that a single one was chosen.
_FEW_ROWS, _PARTS_OF_FEW = 200, 5
# Agreement of the clusters of two halves below which there are none.
_STABLE = 0.8


class _Result(NamedTuple):
    """What has become of a candidate in a round; `learning` is what was learned."""

    candidate: Candidate
    judgement: Judgement | None
    seconds: float
    learning: Any = None
    error: str = ""


@dataclass(frozen=True)
class _Round:
    """Rows of the data, their parts, and the effort of the fits to them."""

    kept: NDArray[np.intp]
    splits: list[tuple[Any, Any]]
    effort: _Effort

    def eased(self, candidate: Candidate) -> Candidate:
        """The candidate with no more effort than the round is worth."""
        model = clone(candidate.model)
        model.n_samples = min(model.n_samples, self.effort.n_samples)
        model.tol = max(model.tol, self.effort.tol)
        return replace(candidate, model=model)


class Contest:
    """Candidates, their rows of the table, and how they were judged.

    `judged` has the judgements of the latest round that is complete, or of the first.
    """

    def __init__(self, data, candidates, purpose, criterion, labels, seed) -> None:
        self.data, self.candidates = data, candidates
        self.purpose, self.criterion, self.labels = purpose, criterion, labels
        self.seed, self.started, self.work = seed, time.perf_counter(), 0.0
        self.rows = [_row_of(candidate) for candidate in candidates]
        self.curved = [k for k, row in enumerate(self.rows) if row["metric"] != "flat"]
        self.learning: dict[int, Any] = {}
        self.judged: dict[int, Judgement] = {}
        self.rounds = [self._round(effort) for effort in self._efforts()]

    def _efforts(self) -> tuple[_Effort, ...]:
        """As many as it takes to come to the finalists by thirds."""
        efforts = _EFFORTS[self.purpose]
        if self.criterion != "held_out":
            return efforts[-1:]
        if self.purpose == "clusters":
            return efforts
        ratio = max(len(self.curved) / _FINALISTS, 1.0)
        return efforts[-1 - math.ceil(math.log(ratio, 3.0)) :]

    def _round(self, effort: _Effort) -> _Round:
        order = np.random.default_rng(self.seed).permutation(len(self.data))
        kept = np.sort(order[: int(min(len(order), effort.rows))])
        if self.purpose == "density" and len(kept) <= _FEW_ROWS:
            effort = effort._replace(folds=_PARTS_OF_FEW)
        times = {"n_splits": effort.folds, "n_repeats": effort.repeats}
        parts = RepeatedKFold(**times, random_state=self.seed)
        return _Round(kept, list(parts.split(kept)), effort)

    def run(self, n_jobs: int | None, verbose: bool) -> None:
        """Go through the rounds; each is for the best of the one before."""
        running = list(range(len(self.rows)))
        for number, own in enumerate(self.rounds, 1):
            work = partial(
                _work,
                data=self.data[own.kept],
                splits=own.splits,
                criterion=self.criterion,
                clusters=self.purpose == "clusters" or self.labels is not None,
                seed=self.seed,
            )
            last = number == len(self.rounds)
            learners = [k for k in running if k in self.curved][: last * _FINALISTS]
            jobs = [(own.eased(self.candidates[k]), k in learners) for k in running]
            results: dict[int, _Result] = {}
            try:
                for position, result in spread(work, jobs, n_jobs):
                    k = running[position]
                    results[k] = result
                    if verbose:
                        todo = [other for other in running if other not in results]
                        self._report(number, k, result, todo)
            finally:
                if number == 1 or len(results) == len(jobs):
                    self._settle(number, results)
            running = self._best()

    def _settle(self, number: int, results: dict[int, _Result]) -> None:
        """Keep the judgements of a round, and write them into the rows."""
        for k, result in results.items():
            self._record(k, number, result)
        found = {k: result.judgement for k, result in results.items()}
        judged = {k: each for k, each in found.items() if each is not None}
        if judged:
            self.judged, self.latest = judged, self.rounds[number - 1]
            gaps = behind({k: each.values for k, each in judged.items()})
            for k, gap in gaps.items():
                self.rows[k] |= zip(("behind", "stderr"), gap, strict=True)

    def _record(self, k: int, number: int, result: _Result) -> None:
        row, found = self.rows[k], result.judgement
        self.candidates[k] = replace(self.candidates[k], place=result.candidate.place)
        row |= {"round": number, "error": result.error}
        row |= dict.fromkeys(("held_out", "behind", "stderr"), math.nan)
        row["seconds"] += result.seconds
        if result.learning is not None:
            self.learning[k] = result.learning.table
            row["n_log_maps"] += result.learning.n_log_maps
        if found is None:
            return
        row |= {"sigma": found.sigma, "rho": found.rho}
        row["n_log_maps"] += found.n_log_maps
        scale = 1.0 if self.criterion == "held_out" else -2.0 * len(found.values)
        row[self.criterion] = scale * found.score
        if self.purpose == "clusters":
            pairs = zip(found.labels[::2], found.labels[1::2], strict=True)
            row["stability"] = float(np.mean([adjusted_rand_score(*p) for p in pairs]))
        if self.labels is not None:
            labels = self.labels[self.rounds[number - 1].kept]
            known = np.array([label is not None for label in labels])
            truth = labels[known].tolist()
            values = [f_measure(truth, each[known].tolist()) for each in found.labels]
            row["f_measure"] = float(np.mean(values))

    def _best(self) -> list[int]:
        """Those that go on: flat ones, and the best third of the others, best first.

        For clusters, the best with each number of components.
        """
        ranked = sorted(self.judged, key=lambda k: -self.judged[k].score)
        if self.purpose == "clusters":
            counts = [self.rows[k]["n_components"] for k in ranked]
            return [k for n, k in enumerate(ranked) if counts[n] not in counts[:n]]
        curved = [k for k in ranked if k in self.curved]
        flat = [k for k in ranked if k not in self.curved]
        return flat + curved[: _next(len(curved))]

    def _report(self, number: int, k: int, result: _Result, todo: list[int]) -> None:
        """Say how a candidate did, and how long the rest will take."""
        row, found = self.rows[k], result.judgement
        outcome = result.error or f"log density {found.score if found else 0.0:.4f}"
        costs = [len(own.kept) * len(own.splits) for own in self.rounds]
        self.work += self._size(k) * costs[number - 1]
        ahead = sum(map(self._size, todo)) * costs[number - 1]
        count = len(self.curved)
        mean = sum(map(self._size, self.curved)) / max(count, 1)
        for later, cost in enumerate(costs, 1):
            ahead += cost * count * mean * (later > number)
            count = _next(count)
        spent = time.perf_counter() - self.started
        left = f", about {spent * ahead / self.work:.0f} s left" if ahead else ""
        what = f"{row['metric']}, n_components {row['n_components']}"
        where = f"round {number} of {len(self.rounds)}"
        tell(f"select: {where}  {what}  {outcome}  {result.seconds:.1f} s{left}")

    def _size(self, k: int) -> float:
        """How long the fits of a candidate take, relative to others."""
        return self.rows[k]["n_components"] * (1.0 if k in self.curved else 0.03)

    def choose(self) -> int:
        """The position of the chosen candidate.

        The simplest of those within a standard error of the best, or the most stable.
        """
        if not self.judged:
            reasons = (row["error"] for row in self.rows if row["error"])
            first = next(reasons, "no reason is known")
            raise RuntimeError(f"all {len(self.rows)} candidates failed; {first}")
        allowed = 1.0 if self.criterion == "held_out" else 0.0  # standard errors
        rows = {k: self.rows[k] for k in self.judged}
        near = [
            k for k, row in rows.items() if row["behind"] <= allowed * row["stderr"]
        ]
        if self.purpose == "clusters":
            near = self._stable()
        chosen = min(near, key=self._complexity)
        self.rows[chosen]["chosen"] = True
        return chosen

    def _complexity(self, k: int) -> tuple[bool, int, float]:
        count = self.rows[k]["n_components"]
        return k in self.curved, count, -self.judged[k].score

    def _stable(self) -> list[int]:
        """The candidate with the most stable clusters; one component if none is."""
        rows, values = self.rows, {k: own.values for k, own in self.judged.items()}
        single = [k for k in values if rows[k]["n_components"] == 1][:1]
        several = [k for k in values if rows[k]["n_components"] > 1]
        for one in single:
            gains = {k: mean_and_error(values[k] - values[one]) for k in several}
            several = [k for k in several if gains[k][0] > max(gains[k][1], WORTHWHILE)]
            several = [k for k in several if rows[k]["stability"] > _STABLE]
        best = sorted(several, key=lambda k: -rows[k]["stability"])[:1]
        return best or single

    def compare(self, chosen: int) -> tuple[list[Row], str]:
        """Rows of the table for other models, and what the outcome means."""
        row, values, latest = (
            self.rows[chosen],
            self.judged[chosen].values,
            self.latest,
        )
        own, flat = Entry("LAND", "", values, row["seconds"]), chosen not in self.curved
        model = own, row["n_components"], flat
        once = latest.splits[: latest.effort.folds]
        found = beside(*model, self.data[latest.kept], once, self.seed)
        best = max(self.judged.values(), key=lambda each: each.score).values
        others = []
        for entry in found.entries[1:]:
            gap, stderr = mean_and_error(best - entry.values)
            other: Row = {"model": entry.name, "held_out": float(np.mean(entry.values))}
            other |= {"behind": gap, "stderr": stderr, "seconds": entry.seconds}
            others.append(other | {"chosen": False, "error": ""})
        if self.purpose == "density":
            return others, found.sentence
        if row["n_components"] == 1:
            return others, "No clusters: none are stable and raise the log density."
        return others, (
            f"The clusters of {row['n_components']} components are the most stable: "
            "those of two halves of the rows agree with an adjusted Rand index of "
            f"{row['stability']:.2f}."
        )


def _next(count: int) -> int:
    """How many of so many curved candidates go on."""
    return min(count, max(_FINALISTS, math.ceil(count / 3)))


def _work(job, data, splits, criterion, clusters, seed) -> _Result:
    """Judge a candidate, if need be once sigma and rho are learned.

    What goes wrong is in the result.
    """
    (candidate, learning), learned, found, error = job, None, None, ""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if learning and "learn" in (candidate.model.sigma, candidate.model.rho):
                learned = learn(candidate.model, data, seed)
                if learned.interrupted:
                    raise KeyboardInterrupt
                if learned.candidate.place != FLAT:
                    candidate = replace(candidate, place=learned.candidate.place)
            if criterion == "held_out":
                found = judge(candidate, data, splits, clusters)
            else:
                found = _in_sample(candidate, data, criterion, clusters)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    seconds = time.perf_counter() - start
    return _Result(candidate, found, seconds, learned, error)


def _in_sample(candidate, data, criterion, clusters) -> Judgement:
    """Log densities of the rows of the fit, less the penalty of an AIC or BIC."""
    rows = np.arange(len(data))
    found = judge(candidate, data, [(rows, rows)], clusters)
    total = float(found.values.sum())
    value = information_criteria(total, found.n_parameters, len(data))[criterion]
    return found._replace(values=found.values - (0.5 * value + total) / len(data))


def _row_of(candidate: Candidate) -> Row:
    model, name = candidate.model, candidate.model.metric
    if not isinstance(name, str):
        flat = isinstance(name, EuclideanMetric)
        name = "flat" if flat else type(name).__name__
    row: Row = {"model": "LAND", "n_components": model.n_components}
    row |= {"metric": name, "reference": model.reference}
    unknown = "sigma rho round held_out behind stderr stability bic aic f_measure"
    row |= dict.fromkeys(unknown.split(), math.nan)
    return row | {"n_log_maps": 0, "seconds": 0.0, "chosen": False, "error": ""}


def rank(row: Row) -> tuple:
    """Order of the table: the chosen, then those that came farthest, the best first."""
    values = [-row["held_out"], row["bic"], row["aic"]]
    score = next((value for value in values if math.isfinite(value)), math.inf)
    return not row["chosen"], bool(row["error"]), -np.nan_to_num(row["round"]), score
