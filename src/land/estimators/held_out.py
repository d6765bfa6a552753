"""Models judged by rows that they have not seen, and compared row by row."""

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
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

from land.estimators.health import WORTHWHILE
from land.metrics import EuclideanMetric

Array = NDArray[np.float64]

# Share of the rows that are held out, and components at most of the mixtures.
_HELD_OUT, _MOST = 0.2, 10
# Rows of data at least: five are held out, and each fold has some.
LEAST_ROWS = 25
# Bandwidths to choose from, for columns of variance 1.
_BANDWIDTHS = np.geomspace(0.03, 2.0, 25)
# Standard errors that a difference must have to count: once in twenty by chance.
_CLEAR = 2.0


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


# A model beside ordinary densities.


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
    clear = abs(gap) > max(_CLEAR * stderr, WORTHWHILE)
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
