"""Choice of the number of components, the metric and the measure."""

from __future__ import annotations

import math
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import ParameterGrid, RepeatedKFold
from sklearn.utils import check_array

from land._validation import check_count
from land.estimators.base import check_choice, draw_integers, refuse
from land.estimators.callbacks import tell
from land.estimators.clustering import f_measure
from land.estimators.density import information_criteria
from land.estimators.health import WORTHWHILE
from land.estimators.held_out import (
    FLAT,
    LEAST_ROWS,
    Candidate,
    Entry,
    Judgement,
    behind,
    beside,
    judge,
    mean_and_error,
)
from land.estimators.learning import learn
from land.estimators.mixture import LANDMixture
from land.estimators.scoring import spread
from land.metrics import KINDS, EuclideanMetric, Metric

Array = NDArray[np.float64]
Criterion = Literal["held_out", "bic", "aic"]
Purpose = Literal["density", "clusters"]
Row = dict[str, Any]

# Signs that make the best value the smallest.
SIGNS = {"held_out": -1.0, "bic": 1.0, "aic": 1.0}


@dataclass(frozen=True, eq=False)
class Selection:
    """Candidates of `select` and the one chosen.

    Attributes
    ----------
    table : pandas.DataFrame, or list of dict where pandas is not installed
        One row for each candidate, the best first, and one for each rival, see
        `select`.
    best : dict
        The row of the chosen candidate.
    model : LANDMixture
        The chosen model, fitted to all rows of the data.
    sentence : str
        Whether geometry pays for these data, or how stable the clusters are.
    criterion, purpose : str
        What it was chosen by, and for.
    interrupted : bool
        Whether an interrupt (Ctrl-C) has ended the search.
    """

    table: Any
    best: Row
    model: LANDMixture
    sentence: str
    criterion: Criterion
    purpose: Purpose
    interrupted: bool = False


def select(
    X: ArrayLike,
    n_components: Any = (1, 2, 3, 4),
    metric: Any = ("flat", "diagonal"),
    reference: Any = "lebesgue",
    *,
    purpose: Purpose = "density",
    criterion: Criterion = "held_out",
    labels: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    **parameters: Any,
) -> Selection:
    """Choose the number of components, the metric and the measure of a mixture.

    Candidates are compared by the log density of rows that were held out of their fits.
    All are fitted to few rows first, and roughly; the best third goes on with more, and
    the last ones with all. Flat candidates, which are Gaussian mixtures, go all the
    way. Of those within a standard error of the best, flat ones and then those of
    fewer components are preferred. The chosen one is fitted to all rows.

    A candidate that fails leaves its error in the table, and the others go on. An
    interrupt (Ctrl-C) ends the search and chooses among the candidates so far. A
    RuntimeError if there are none.

    Parameters
    ----------
    X : array_like of shape (N, D)
        The data, 25 rows at least.
    n_components : int or sequence of int
        Numbers of components to try.
    metric : {"flat", "diagonal", "full", "density"}, Metric or sequence of these
        Metrics to try, see `LAND`; the flat one always is.
    reference : {"lebesgue", "riemannian"} or sequence of these
        Measures to try, see `LAND`.
    purpose : {"density", "clusters"}
        ``"clusters"`` takes for each number of components the metric with the best
        density, and chooses the number whose clusters are the most stable: models
        fitted to two halves of the rows agree on them. One component is chosen unless
        others have a better density.
    criterion : {"held_out", "bic", "aic"}
        What to choose a density by. BIC and AIC are those of fits to all rows, and
        there is one round.
    labels : sequence of length N, optional
        Known classes of the rows, None where unknown. The clusters of each candidate
        are compared with them; they have no part in the choice.
    n_jobs : int, optional
        Number of candidates fitted at the same time, in processes of their own, see
        `LAND`. Each compiles for itself: one job is faster for a few small fits.
    random_state : None, int, RandomState or Generator
        Randomness of the fits and of the choice of the held-out rows, the same for all
        candidates.
    verbose : int
        Whether to report every candidate on the standard error stream, and about how
        much time is left.
    **parameters
        Further parameters of `LANDMixture`. With ``sigma="learn"`` or ``rho="learn"``
        they are learned for the two best candidates, and automatic for the others.

    Returns
    -------
    Selection
        Its table has ``model``, ``n_components``, ``metric`` and ``reference``;
        ``sigma`` and ``rho``, medians over the fits; the ``round`` in which the
        candidate dropped out; of that round the mean log density ``held_out`` (with
        respect to dx), by how much it is ``behind`` the best and the ``stderr`` of
        that; ``stability``, the mean adjusted Rand index of the halves; ``bic`` and
        ``aic`` if asked for; ``f_measure``, the agreement with `labels`;
        ``n_log_maps`` and ``seconds``, over all rounds; whether it was ``chosen``; and
        the ``error`` if it failed. Rivals are Gaussian mixtures and a kernel density,
        fitted and scored as the candidates of the last round.

    Examples
    --------
    >>> import numpy as np
    >>> from land import select
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> X[20:] += 9.0
    >>> found = select(X, (1, 2, 3), metric="flat", random_state=0)
    >>> found.best["n_components"], found.model.means_.shape
    (2, (2, 2))
    """
    check_choice("criterion", criterion)
    check_choice("purpose", purpose)
    if purpose == "clusters" and criterion != "held_out":
        raise ValueError(f"criterion={criterion!r} is for purpose='density' only")
    rows = check_array(
        X, dtype=np.float64, ensure_min_samples=LEAST_ROWS, input_name="X"
    )
    whole = isinstance(random_state, int) and not isinstance(random_state, bool)
    # One seed for all candidates, so that they differ by what is compared.
    seed = random_state if whole else draw_integers(random_state, 1)[0]
    template = LANDMixture(**parameters, random_state=seed)
    grid = {"n_components": n_components, "metric": metric, "reference": reference}
    candidates = _candidates(grid, template, rows.shape[1])
    known = _check_labels(labels, len(rows))
    contest = _Contest(rows, candidates, purpose, criterion, known, seed)
    reason, interrupted = "", False
    try:
        contest.run(n_jobs, verbose > 0)
    except (KeyboardInterrupt, Exception) as error:
        # Errors of a fit are in its row: this is Ctrl-C, or a process that was killed.
        if not contest.standing:
            raise
        interrupted = isinstance(error, KeyboardInterrupt)
        reason = "interrupted" if interrupted else f"{type(error).__name__}: {error}"
        warnings.warn(
            f"the search ended early ({reason}); the choice is among the candidates "
            "so far",
            UserWarning if interrupted else RuntimeWarning,
            stacklevel=2,
        )
    chosen = contest.choose()
    rivals: list[Row] = []
    sentence = ""
    if criterion == "held_out" and not reason:
        rivals, sentence = contest.compare(chosen)
    best = contest.rows[chosen]
    _warn_about_edge(contest.rows, best)
    model = contest.candidates[chosen].for_rows(rows)
    model.fit(X if hasattr(X, "columns") else rows)  # names of columns are kept
    if chosen in contest.learning:
        model.learning_ = contest.learning[chosen]
    table: Any = sorted(contest.rows, key=_rank) + rivals
    with suppress(ImportError):
        import pandas

        counts = dict.fromkeys(("n_components", "round", "n_log_maps"), "Int64")
        table = pandas.DataFrame(table).astype(counts)
    return Selection(table, best, model, sentence, criterion, purpose, interrupted)


def _candidates(
    grid: dict[str, Any], template: LANDMixture, dim: int
) -> list[Candidate]:
    """All combinations, without repetitions; the flat ones first."""
    tried = {}
    for name, given in grid.items():
        one = np.ndim(given) == 0 or isinstance(given, Metric)
        tried[name] = list(dict.fromkeys([given] if one else given))
        if not tried[name]:
            raise ValueError(f"{name} must have at least one value to try")
    for each in tried["metric"]:
        if not isinstance(each, Metric) and each not in ("flat", *KINDS):
            refuse("metric", ("flat", *KINDS), ["a Metric"], each)
    for count in tried["n_components"]:
        check_count("n_components", count)
    flat = {"n_components": tried["n_components"], "metric": [EuclideanMetric(dim)]}
    curved = tried | {"metric": [each for each in tried["metric"] if each != "flat"]}
    found = []
    for values in ParameterGrid([flat, curved] if curved["metric"] else [flat]):
        model = clone(template).set_params(**values)
        model._check_parameters()
        found.append(Candidate(model))
    return found


def _check_labels(labels: Any, n: int) -> NDArray[Any] | None:
    if labels is None:
        return None
    values = list(labels)
    if len(values) != n:
        raise ValueError(
            f"labels must have one entry for each row of X, {n}, got {len(values)}"
        )
    if all(label is None for label in values):
        raise ValueError("labels must be known (not None) for at least one row")
    return np.array(values, dtype=object)


# The contest: rounds in which candidates are fitted and compared.


class _Round(NamedTuple):
    """Rows at most, in how many parts, how often, and the effort of the fits."""

    rows: float
    folds: int
    repeats: int = 1
    n_samples: int = 2**31
    tol: float = 0.0

    def eased(self, candidate: Candidate) -> Candidate:
        """The candidate with no more effort than the round is worth."""
        model = clone(candidate.model)
        model.n_samples = min(model.n_samples, self.n_samples)
        model.tol = max(model.tol, self.tol)
        return replace(candidate, model=model)


_ROUNDS = {
    "density": (
        _Round(200, 2, 1, 300, 1e-2),
        _Round(400, 2, 1, 1000, 3e-3),
        _Round(math.inf, 3),
    ),
    # Halves, so that models whose clusters are compared share no rows.
    "clusters": (_Round(300, 2, 1, 300, 1e-2), _Round(400, 2, 3, 500, 3e-3)),
}
# Curved candidates that are fitted to all rows.
_FINALISTS = 2
# Agreement of the clusters of two halves below which there are none.
_STABLE = 0.8


class _Result(NamedTuple):
    """What has become of a candidate in a round; `learning` is what was learned."""

    candidate: Candidate
    judgement: Judgement | None
    seconds: float
    learning: Any = None
    error: str = ""


class _Contest:
    """Candidates, their rows of the table, and the standing.

    The standing are judgements of the latest round that is complete, or of the first;
    `kept` and `splits` are its rows and their parts.
    """

    def __init__(self, data, candidates, purpose, criterion, labels, seed) -> None:
        self.data, self.candidates = data, candidates
        self.purpose, self.criterion, self.labels = purpose, criterion, labels
        self.seed, self.started = seed, time.perf_counter()
        self.rows = [_row_of(candidate) for candidate in candidates]
        self.curved = [k for k, row in enumerate(self.rows) if row["metric"] != "flat"]
        self.learning: dict[int, Any] = {}
        self.standing: dict[int, Judgement] = {}
        self.kept, self.splits = np.arange(0), [(np.arange(0), np.arange(0))]

    def _rounds(self) -> tuple[_Round, ...]:
        """As many as it takes to come to the finalists by thirds."""
        rounds = _ROUNDS[self.purpose]
        if self.criterion != "held_out":
            return rounds[-1:]
        if self.purpose == "clusters":
            return rounds
        ratio = max(len(self.curved), 1) / _FINALISTS
        return rounds[-1 - math.ceil(math.log(max(ratio, 1.0), 3.0)) :]

    def run(self, n_jobs: int | None, verbose: bool) -> None:
        """Go through the rounds; each is for the best of the one before."""
        rounds, running = self._rounds(), list(range(len(self.rows)))
        order = np.random.default_rng(self.seed).permutation(len(self.data))
        for number, effort in enumerate(rounds, 1):
            kept = np.sort(order[: int(min(len(order), effort.rows))])
            parts = RepeatedKFold(
                n_splits=effort.folds, n_repeats=effort.repeats, random_state=self.seed
            )
            splits = list(parts.split(kept))
            work = partial(
                _work,
                data=self.data[kept],
                splits=splits,
                criterion=self.criterion,
                clusters=self.purpose == "clusters" or self.labels is not None,
                seed=self.seed,
            )
            last = number == len(rounds)
            learners = [k for k in running if k in self.curved][: last * _FINALISTS]
            jobs = [(effort.eased(self.candidates[k]), k in learners) for k in running]
            found: dict[int, Judgement] = {}
            if number == 1:
                self.standing, self.kept, self.splits = found, kept, splits
            for done, (position, result) in enumerate(spread(work, jobs, n_jobs), 1):
                k = running[position]
                self._record(k, number, result, kept)
                if result.judgement is not None:
                    found[k] = result.judgement
                if verbose:
                    where = f"round {number} of {len(rounds)}, {done} of {len(jobs)}"
                    self._report(where, self.rows[k])
            if found:
                self.standing, self.kept, self.splits = found, kept, splits
            running = self._best()

    def _record(self, k: int, number: int, result: _Result, kept: Any) -> None:
        """Write what has become of a candidate in a round."""
        row, found = self.rows[k], result.judgement
        self.candidates[k] = replace(self.candidates[k], place=result.candidate.place)
        row |= {"round": number, "error": result.error, "held_out": math.nan}
        row["seconds"] += result.seconds
        if result.learning is not None:
            self.learning[k] = result.learning.table
            row["n_log_maps"] += result.learning.n_log_maps
        if found is None:
            return
        row |= {"sigma": found.sigma, "rho": found.rho}
        row["n_log_maps"] += found.n_log_maps
        name = self.criterion
        scale = 1.0 if name == "held_out" else -2.0 * len(found.values)
        row[name] = scale * found.score
        if self.purpose == "clusters":
            pairs = zip(found.labels[::2], found.labels[1::2], strict=True)
            row["stability"] = float(np.mean([adjusted_rand_score(*p) for p in pairs]))
        if self.labels is not None:
            known = np.array([label is not None for label in self.labels[kept]])
            truth = self.labels[kept][known].tolist()
            values = [f_measure(truth, each[known].tolist()) for each in found.labels]
            row["f_measure"] = float(np.mean(values))

    def _best(self) -> list[int]:
        """Those that go on: flat ones, and the best third of the others, best first.

        For clusters, the best with each number of components.
        """
        ranked = sorted(self.standing, key=lambda k: -self.standing[k].score)
        if self.purpose == "clusters":
            counts = [self.rows[k]["n_components"] for k in ranked]
            return [k for n, k in enumerate(ranked) if counts[n] not in counts[:n]]
        curved = [k for k in ranked if k in self.curved]
        most = max(_FINALISTS, math.ceil(len(curved) / 3))
        return [k for k in ranked if k not in self.curved] + curved[:most]

    def choose(self) -> int:
        """The position of the chosen candidate; the table says how others are behind.

        The simplest of those within a standard error of the best, or the most stable.
        """
        if not self.standing:
            reasons = (row["error"] for row in self.rows if row["error"])
            first = next(reasons, "no reason is known")
            raise RuntimeError(f"all {len(self.rows)} candidates failed; {first}")
        values = {k: found.values for k, found in self.standing.items()}
        gaps = behind(values)
        for k, gap in gaps.items():
            self.rows[k] |= zip(("behind", "stderr"), gap, strict=True)
        near = [k for k, (gap, stderr) in gaps.items() if gap <= stderr]
        if self.criterion != "held_out":
            near = [k for k, (gap, _) in gaps.items() if gap == 0.0]
        if self.purpose == "clusters":
            near = self._stable(values)
        chosen = min(near, key=self._complexity)
        self.rows[chosen]["chosen"] = True
        return chosen

    def _complexity(self, k: int) -> tuple[bool, int, float]:
        return (
            k in self.curved,
            self.rows[k]["n_components"],
            -self.standing[k].score,
        )

    def _stable(self, values: dict[int, Array]) -> list[int]:
        """The candidate with the most stable clusters; one component if none is."""
        single = [k for k in values if self.rows[k]["n_components"] == 1]
        several = [k for k in values if k not in single]
        if single:
            gains = {k: mean_and_error(values[k] - values[single[0]]) for k in several}
            several = [k for k in several if gains[k][0] > max(gains[k][1], WORTHWHILE)]
            several = [k for k in several if self.rows[k]["stability"] > _STABLE]
        if not several:
            return single
        return [max(several, key=lambda k: self.rows[k]["stability"])]

    def compare(self, chosen: int) -> tuple[list[Row], str]:
        """Rows of the table for the rivals, and what the comparison means."""
        row, values = self.rows[chosen], self.standing[chosen].values
        own, flat = Entry("LAND", "", values, row["seconds"]), chosen not in self.curved
        data, splits = self.data[self.kept], self.splits
        once = len(splits) * len(data) // sum(len(test) for _, test in splits)
        model = own, row["n_components"], flat
        found = beside(*model, data, splits[:once], self.seed)
        best = max(self.standing.values(), key=lambda each: each.score).values
        rows = []
        for entry in found.entries[1:]:
            gap, stderr = mean_and_error(best - entry.values)
            score, _ = mean_and_error(entry.values)
            own_row = {"model": entry.name, "held_out": score, "behind": gap}
            own_row |= {"stderr": stderr, "seconds": entry.seconds, "chosen": False}
            rows.append(own_row | {"error": ""})
        return rows, found.sentence

    def _report(self, where: str, row: Row) -> None:
        what = f"{row['metric']}, n_components {row['n_components']}"
        outcome = row["error"] or f"{self.criterion} {row[self.criterion]:.4f}"
        tell(f"select: {where}  {what}  {outcome}  {row['seconds']:.1f} s")


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
    everything = [(np.arange(len(data)), np.arange(len(data)))]
    found = judge(candidate, data, everything, clusters)
    total, count = float(found.values.sum()), found.n_parameters
    value = information_criteria(total, count, len(data))[criterion]
    penalty = 0.5 * value + total
    return found._replace(values=found.values - penalty / len(data))


def _row_of(candidate: Candidate) -> Row:
    model = candidate.model
    flat = isinstance(model.metric, EuclideanMetric)
    name = (
        model.metric if isinstance(model.metric, str) else type(model.metric).__name__
    )
    row: Row = {"model": "LAND", "n_components": model.n_components}
    row |= {"metric": "flat" if flat else name, "reference": model.reference}
    unknown = "sigma rho round held_out behind stderr stability bic aic f_measure"
    row |= dict.fromkeys(unknown.split(), math.nan)
    return row | {"n_log_maps": 0, "seconds": 0.0, "chosen": False, "error": ""}


def _rank(row: Row) -> tuple:
    """The chosen one, then those that came farthest, the best first."""
    scores = [s * row[c] for c, s in SIGNS.items() if math.isfinite(row[c])]
    score = scores[0] if scores else math.inf
    return not row["chosen"], bool(row["error"]), -np.nan_to_num(row["round"]), score


def _warn_about_edge(rows: list[Row], chosen: Row) -> None:
    """Warn of a choice at the edge of the numbers of components fitted."""
    counts = {row["n_components"] for row in rows if not row["error"]}
    best = chosen["n_components"]
    if len(counts) > 1 and (best == max(counts) or best == min(counts) > 1):
        largest = best == max(counts)
        edge, remedy = ("largest", "more") if largest else ("smallest", "fewer")
        warnings.warn(
            f"the chosen number of components, {best}, is the {edge} that was tried; "
            f"try {remedy} of them",
            UserWarning,
            stacklevel=3,
        )
