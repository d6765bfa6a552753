"""Models judged by rows that they have not seen.

`learn` chooses sigma and rho with which held-out rows have the largest log density;
`compare` puts a model beside Gaussian mixtures and a kernel density.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

from land.estimators.callbacks import tell
from land.estimators.health import WORTHWHILE
from land.metrics import KINDS, EuclideanMetric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]


class Trial(NamedTuple):
    """A model fitted to some rows, the log densities of others, the time of the fit."""

    model: Any
    values: Array
    seconds: float


def try_out(model: Any, train: Any, test: Any) -> Trial:
    """Fit a model to rows and score others.

    An interrupt, which a fit answers with what it has reached so far, is passed on.
    """
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    if getattr(getattr(model, "estimator_", model), "interrupted_", False):
        raise KeyboardInterrupt
    return Trial(model, model.score_samples(test), seconds)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean of the known values, and its standard error."""
    known = values[~np.isnan(values)]
    return float(np.mean(known)), float(np.std(known, ddof=1) / math.sqrt(len(known)))


# Sigma and rho, learned. Each candidate is fitted to some of the rows, metric included,
# and scored on the others. Values are in units of the automatic ones, so that they
# carry over between data of different size. The flat metric is always a candidate.

# Logarithms of sigma and rho in units of the automatic values.
Place = tuple[float, ...]

_FLAT: Place = (math.inf, math.inf)
# Rows on which candidates are compared at most; parts of them, each held out once.
_ROWS, _FOLDS = 300, 2
# Curved candidates that are fitted at most: each takes as long as a fit.
_TRIALS = 8
# First steps of log sigma and log rho; they are halved once, where none is better.
_STEPS = np.log([1.6, 4.0])
# Tolerance of the fits. A step that gains less leads nowhere: ever smoother metrics
# approach the flat one.
_TOL = 5e-3


class Learned(NamedTuple):
    """What a search has found.

    `parameters` are those of the estimator: `sigma` and `rho`, or a flat `metric`.
    `gain` is by how much held-out rows have a larger mean log density than with the
    flat metric, and `table` is the `learning_` of `land.LAND`.
    """

    parameters: dict[str, Any]
    gain: float
    table: list[dict[str, Any]]


def learn(estimator: Any, data: Array, seed: int) -> Learned:
    """Sigma and rho with which held-out rows have the largest log density.

    A compass search: steps to both sides in log sigma and log rho, the last good
    direction first, and half as long where none is better. Of candidates within a
    standard error of the best the smoothest is chosen. An interrupt ends the search.

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
    return search.outcome()


class _Search:
    """Candidates that were tried, by their places, and log densities of held-out rows.

    `data` are all rows; candidates are compared on a sample of them.
    """

    def __init__(self, estimator: Any, data: Array, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(data))
        self.data, self.sample = data, data[order[:_ROWS]]
        self.folds = list(KFold(_FOLDS).split(self.sample))
        self.estimator, self.seed = estimator, seed
        self.found: dict[Place, dict[str, Any]] = {}
        self.values: dict[Place, Array] = {}

    def run(self) -> None:
        """Try candidates until none is better, or enough were tried."""
        self.score(_FLAT)
        given = self.estimator.rho, self.estimator.sigma
        pairs = zip(np.eye(2)[::-1], given, strict=True)
        axes = [axis for axis, value in pairs if value == "learn"]
        directions = [sign * axis for axis in axes for sign in (1.0, -1.0)]
        place = np.zeros(2)
        for steps in (_STEPS, 0.5 * _STEPS):
            while (way := self._ascent(place, directions, steps)) is not None:
                place = place + way * steps
                # On in this direction first, and not back.
                across = [other for other in directions if other @ way == 0.0]
                directions = [way, *across, -way]

    def _ascent(self, place: Array, directions: list[Array], steps: Array) -> Any:
        """The first direction in which a step is better, if there is one."""
        least = self.score(tuple(place)) + _TOL
        for direction in directions:
            if len(self.found) > _TRIALS:  # and the flat one
                return None
            if self.score(tuple(place + direction * steps)) > least:
                return direction
        return None

    def score(self, place: Place) -> float:
        """Mean log density of held-out rows; minus infinity if a fit failed."""
        if place not in self.found:
            start = time.perf_counter()
            score, error = -math.inf, ""
            try:
                self.values[place] = self._held_out(place)
                score = float(np.mean(self.values[place]))
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
            row = {"sigma": math.inf, "rho": math.inf}
            if place != _FLAT:
                row = self._parameters(place, self.data)
            row |= {"score": score, "behind": math.inf, "stderr": math.nan}
            row |= {"chosen": False, "seconds": time.perf_counter() - start}
            self.found[place] = row | {"error": error}
            if self.estimator.verbose:
                self._report(place)
        return self.found[place]["score"]

    def _held_out(self, place: Place) -> Array:
        """Log densities of all rows, held out."""
        values = np.empty(len(self.sample))
        quiet = {"callback": None, "verbose": 0, "random_state": self.seed}
        model = clone(self.estimator).set_params(tol=_TOL, **quiet)
        for fitted, held_out in self.folds:
            rows = self.sample[fitted]
            model.set_params(**self._parameters(place, rows))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                values[held_out] = try_out(model, rows, self.sample[held_out]).values
        lost = int(np.sum(~np.isfinite(values)))
        if lost:
            raise ValueError(f"{lost} of {len(values)} rows have no density")
        return values

    def _parameters(self, place: Place, rows: Array) -> dict[str, Any]:
        """Parameters of an estimator for a candidate, if it is fitted to these rows."""
        if place == _FLAT:
            flat = EuclideanMetric(rows.shape[1])
            return {"metric": flat, "sigma": "auto", "rho": "auto"}
        sigma, rho = self.estimator.sigma, self.estimator.rho
        parts = self.estimator._parts
        if isinstance(sigma, str):
            sigma = math.exp(place[0]) * automatic_sigma(rows, parts, sharp=True)
        if isinstance(rho, str):
            kind = KINDS[self.estimator.metric or "diagonal"]
            rho = automatic_rho(rows, sigma, parts, kind=kind, sharp=True)
            rho *= math.exp(place[1])
        return {"sigma": sigma, "rho": rho}

    def outcome(self) -> Learned:
        """The smoothest candidate within a standard error of the best."""
        if not self.values:
            error = self.found[_FLAT]["error"]
            raise RuntimeError(f"no sigma and rho could be learned; the first: {error}")
        best = max(self.values, key=lambda place: self.found[place]["score"])
        for place, values in self.values.items():
            gap = mean_and_error(self.values[best] - values)
            self.found[place] |= zip(("behind", "stderr"), gap, strict=True)
        rows = self.found.items()
        near = [place for place, row in rows if row["behind"] <= row["stderr"]]
        chosen = max(near, key=lambda place: (place[1], place[0]))
        self.found[chosen]["chosen"] = True
        gain = self.found[chosen]["score"] - self.found[_FLAT]["score"]
        parameters = self._parameters(chosen, self.data)
        return Learned(parameters, gain, list(self.found.values()))

    def _report(self, place: Place) -> None:
        row, (sigma, rho) = self.found[place], np.exp(place)
        what = f"automatic sigma x {sigma:.2g}, rho x {rho:.2g}"
        what = "flat metric" if place == _FLAT else what
        outcome = row["error"] or f"held-out log density {row['score']:.4f}"
        tell(f"learn: {len(self.found)}  {what}  {outcome}  {row['seconds']:.1f} s")


# A model beside ordinary densities.

# Share of the rows that are held out, and components at most of the mixtures.
_HELD_OUT, _MOST = 0.2, 10
# Rows of data at least: five are held out, and each fold has some.
LEAST_ROWS = 25
# Bandwidths to choose from, for columns of variance 1.
_BANDWIDTHS = np.geomspace(0.03, 2.0, 25)


@dataclass(frozen=True)
class Entry:
    """Log densities of the held-out rows under one model, and the time of its fit."""

    name: str
    note: str
    values: Array
    seconds: float

    def ahead_of(self, other: Entry) -> tuple[float, float]:
        """Mean difference of the log densities, row by row, and its standard error."""
        return mean_and_error(self.values - other.values)


@dataclass(frozen=True)
class Comparison:
    """LAND, the Gaussian mixture of its size, the best by BIC, a kernel density.

    `flat` says whether the metric of the LAND is flat.
    """

    entries: list[Entry]
    n_fitted: int
    flat: bool

    @property
    def sentence(self) -> str:
        """What the numbers mean."""
        model, same, *others = self.entries
        better = verdict(model, same)
        if better > 0:
            text = "The curved metric pays here: the log density of held-out rows is "
            text += f"higher by {_gap(model, same)} than under a {same.name}."
        elif better < 0:
            text = f"LAND as fitted does not suit these data: a {same.name} is better, "
            text += f"by {_gap(same, model)} in the log density of held-out rows."
        else:
            text = "A Gaussian mixture is as good and far quicker for these data, as "
            text += f"far as {len(model.values)} held-out rows can tell: LAND minus a "
            text += f"{same.name} is {_gap(model, same)} in log density."
        if self.flat:
            text += " The metric is flat: this LAND is itself a Gaussian mixture."
        rival = max(others, key=lambda each: np.nanmean(each.values))
        ahead = verdict(rival, model)
        if ahead > 0:
            text += f" If the density is all you need, a {rival.name} is better than "
            text += f"LAND, by {_gap(rival, model)}."
        elif better > 0 and ahead < 0:
            text += " No other model that was tried comes near."
        elif better > 0:
            text += f" If the density is all you need, a {rival.name} is as good."
        return text


def verdict(one: Entry, other: Entry) -> int:
    """1 if one is clearly better than the other, -1 if clearly worse, else 0."""
    gap, stderr = one.ahead_of(other)
    # Two standard errors are exceeded once in twenty by chance.
    clear = abs(gap) > max(2.0 * stderr, WORTHWHILE)
    return int(math.copysign(1, gap)) if clear else 0


def compare(model: Any, X: Array, seed: int, say: Callable[[str], None]) -> Comparison:
    """Fit a model and its rivals to 80 % of the rows, and score the others.

    Rivals see columns of variance 1: it makes no difference to the mixtures, and one
    bandwidth then suits all columns. Densities are in the units of the data.
    """
    train, test = train_test_split(X, test_size=_HELD_OUT, random_state=seed)
    scaler = StandardScaler().fit(train)
    scaled, unseen = scaler.transform(train), scaler.transform(test)
    log_scale = float(np.log(scaler.scale_).sum())
    size = getattr(getattr(model, "estimator", model), "n_components", 1)
    mixture = GaussianMixture(size, n_init=5, random_state=seed)
    sizes = {"n_components": list(range(1, min(_MOST, len(train) // 2) + 1))}
    all_rows = [(np.arange(len(train)), np.arange(len(train)))]
    by_bic = GridSearchCV(mixture, sizes, scoring=_minus_bic, cv=all_rows)
    widths = GridSearchCV(KernelDensity(rtol=1e-4), {"bandwidth": _BANDWIDTHS})
    say(f"comparing: fitting to {len(train)} of {len(X)} rows")
    own, values, seconds = try_out(clone(model), train, test)
    entries = [Entry("LAND", "as fitted, to these rows", values, seconds)]
    say("comparing with Gaussian mixtures and a kernel density estimate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mixtures of too many components
        for rival, note in (
            (mixture, "as many components"),
            (by_bic, f"the best by BIC, up to {_MOST}"),
            (widths, "bandwidth cross-validated"),
        ):
            fitted, values, seconds = try_out(rival, scaled, unseen)
            fitted = getattr(fitted, "best_estimator_", fitted)
            entries.append(Entry(_name(fitted), note, values - log_scale, seconds))
    metric = getattr(own, "estimator_", own).metric_
    return Comparison(entries, len(train), isinstance(metric, EuclideanMetric))


def _minus_bic(mixture: GaussianMixture, X: Array) -> float:
    return -float(mixture.bic(X))


def _name(rival: Any) -> str:
    count = getattr(rival, "n_components", None)
    if count is None:
        return "kernel density estimate"
    return f"Gaussian mixture of {count} component{'s' * (count > 1)}"


def _gap(one: Entry, other: Entry) -> str:
    return "{:z.2f} ± {:.2f}".format(*one.ahead_of(other))
