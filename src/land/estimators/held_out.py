"""Models judged by rows that they have not seen: the one way to compare them.

`judge` has the log density of every row under a fit to others; `behind` ranks models by
them; `beside` puts Gaussian mixtures and a kernel density next to a model.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import StandardScaler

from land.estimators.health import WORTHWHILE
from land.metrics import KINDS, EuclideanMetric
from land.metrics.bandwidth import SMOOTHER, automatic_rho, automatic_sigma

Array = NDArray[np.float64]
Name = TypeVar("Name", bound=Hashable)
# Rows to fit to and rows held out, by their positions.
Splits = Sequence[tuple[Any, Any]]

# Logarithms of sigma and rho in units of the automatic ones, so that they carry over
# between data of different size.
Place = tuple[float, ...]
FLAT: Place = (math.inf, math.inf)
SMOOTH: Place = (0.0, math.log(SMOOTHER))


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


@dataclass(frozen=True)
class Candidate:
    """An unfitted model; where its sigma and rho are to be learned, also their place.

    Without a place they are automatic.
    """

    model: Any
    place: Place | None = None

    def parameters(self, rows: Array) -> dict[str, Any]:
        """Parameters of the model, if it is fitted to these rows."""
        model, place = self.model, self.place
        sigma, rho = model.sigma, model.rho
        if place is None:
            return {"sigma": _not_learned(sigma), "rho": _not_learned(rho)}
        if place == FLAT:
            flat = EuclideanMetric(rows.shape[1])
            return {"metric": flat, "sigma": "auto", "rho": "auto"}
        if isinstance(sigma, str):
            sigma = automatic_sigma(rows, model._parts, sharp=True)
            sigma *= math.exp(place[0])
        if isinstance(rho, str):
            kind = KINDS[model.metric or "diagonal"]
            rho = automatic_rho(rows, sigma, model._parts, kind=kind, sharp=True)
            rho *= math.exp(place[1])
        return {"sigma": sigma, "rho": rho}

    def for_rows(self, rows: Array) -> Any:
        """The unfitted model for these rows."""
        return clone(self.model).set_params(**self.parameters(rows))


def _not_learned(value: Any) -> Any:
    return "auto" if isinstance(value, str) else value


class Judgement(NamedTuple):
    """How a candidate does on rows that it was not fitted to.

    `values` are log densities of all rows, NaN for those that were not held out;
    `labels` the clusters of all rows by each of the fits, if asked for; `sigma` and
    `rho` medians over the fits.
    """

    values: Array
    labels: list[NDArray[np.intp]]
    sigma: float
    rho: float
    n_log_maps: int
    n_parameters: int

    @property
    def score(self) -> float:
        """Mean log density of held-out rows."""
        return float(np.nanmean(self.values))


def judge(
    candidate: Candidate, data: Array, splits: Splits, clusters: bool = False
) -> Judgement:
    """Fit a candidate, metric included, to parts of the rows and score the others.

    A ValueError if a row has no density.
    """
    total, counts = np.zeros(len(data)), np.zeros(len(data))
    fitted, labels = [], []
    for train, test in splits:
        rows = data[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial = try_out(candidate.for_rows(rows), rows, data[test])
            if clusters:
                labels.append(trial.model.predict(data))
        lost = int(np.sum(~np.isfinite(trial.values)))
        if lost:
            raise ValueError(f"{lost} of {len(test)} rows have no density")
        total[test] += trial.values
        counts[test] += 1.0
        fitted.append(trial.model)
    values = np.divide(total, counts, out=np.full(len(data), np.nan), where=counts > 0)
    sigma, rho = np.median([_sizes(each) for each in fitted], axis=0).tolist()
    work, count = sum(m.n_log_maps_ for m in fitted), fitted[0].n_parameters_
    return Judgement(values, labels, sigma, rho, work, count)


def _sizes(model: Any) -> tuple[float, float]:
    """Sigma and rho; infinite for the flat metric, NaN for others that were given."""
    unknown = math.inf if model.metric_.is_flat else math.nan
    return getattr(model, "sigma_", unknown), getattr(model, "rho_", unknown)


def behind(values: Mapping[Name, Array]) -> dict[Name, tuple[float, float]]:
    """By how much each is behind the best, row by row, and the standard error of it.

    `values` are log densities of the same rows, by the names of models.
    """
    best = max(values, key=lambda name: float(np.nanmean(values[name])))
    return {name: mean_and_error(values[best] - own) for name, own in values.items()}


# A model beside ordinary densities.

# A rough fit, in the plane in seconds: rows, and how much effort is spent on them.
QUICK_ROWS, QUICK = 200, {"n_samples": 300, "tol": 1e-2}
# Share of the rows that are held out, and components at most of the mixtures.
_HELD_OUT, _MOST = 0.2, 10
# Rows of data at least: five are held out, and each fold has some.
LEAST_ROWS = 25
# Bandwidths to choose from, for columns of variance 1.
_BANDWIDTHS = np.geomspace(0.03, 2.0, 25).tolist()
# Rows that are left out for that at most.
_LEFT_OUT = 1000


@dataclass(frozen=True)
class Entry:
    """Log densities of the held-out rows under one model, and the time of its fits."""

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
        best = max(others, key=lambda each: np.nanmean(each.values))
        ahead = verdict(best, model)
        if ahead > 0:
            text += f" If the density is all you need, a {best.name} is better than "
            text += f"LAND, by {_gap(best, model)}."
        elif better > 0 and ahead < 0:
            text += " No other model that was tried comes near."
        elif better > 0:
            text += f" If the density is all you need, a {best.name} is as good, "
            text += "as far as these rows can tell."
        return text


def verdict(one: Entry, other: Entry) -> int:
    """1 if one is clearly better than the other, -1 if clearly worse, else 0."""
    gap, stderr = one.ahead_of(other)
    # Two standard errors are exceeded once in twenty by chance.
    clear = abs(gap) > max(2.0 * stderr, WORTHWHILE)
    return int(math.copysign(1, gap)) if clear else 0


def compare(model: Any, X: Array, seed: int, say: Callable[[str], None]) -> Comparison:
    """Fit a model and others beside it to 80 % of the rows, and score the rest."""
    split = train_test_split(np.arange(len(X)), test_size=_HELD_OUT, random_state=seed)
    train, test = split
    say(f"comparing: fitting to {len(train)} of {len(X)} rows")
    fitted, values, seconds = try_out(clone(model), X[train], X[test])
    own = Entry("LAND", "as fitted, to these rows", values, seconds)
    say("comparing with Gaussian mixtures and a kernel density estimate")
    inner = getattr(fitted, "estimator_", fitted)
    size = getattr(inner, "n_components_", 1)
    flat = isinstance(inner.metric_, EuclideanMetric)
    return beside(own, size, flat, X, [(train, test)], seed)


def beside(
    own: Entry, size: int, flat: bool, data: Array, splits: Splits, seed: int
) -> Comparison:
    """A model of so many components, and others on the same held-out rows.

    The others see columns of variance 1: that is all the same to mixtures, and one
    bandwidth then suits all columns. Densities are in the units of the data.
    """
    entries = [own]
    order = np.argsort(np.concatenate([test for _, test in splits]))
    for note, fit in _OTHERS.items():
        parts = [(data[train], data[test]) for train, test in splits]
        start = time.perf_counter()
        tried = [_try_scaled(fit, size, *part, seed) for part in parts]
        seconds = time.perf_counter() - start
        known = np.concatenate([values for _, values in tried])
        known = known[order] if len(splits) > 1 else known
        entries.append(
            Entry(_name([model for model, _ in tried]), note, known, seconds)
        )
    return Comparison(entries, min(len(train) for train, _ in splits), flat)


def _try_scaled(fit, size: int, train: Array, test: Array, seed: int) -> Any:
    """A model of columns that are scaled to variance 1, and densities of other rows."""
    scaler = StandardScaler().fit(train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mixtures of too many components
        model = fit(scaler.transform(train), size, seed)
        values = model.score_samples(scaler.transform(test))
    return model, values - float(np.log(scaler.scale_).sum())


def _same_size(rows: Array, size: int, seed: int) -> Any:
    return GaussianMixture(size, n_init=3, random_state=seed).fit(rows)


def _best_by_bic(rows: Array, _: int, seed: int) -> Any:
    sizes = range(1, min(_MOST, len(rows) // 2) + 1)
    return min((_same_size(rows, k, seed) for k in sizes), key=lambda g: g.bic(rows))


def _kernel_density(rows: Array, _: int, seed: int) -> Any:
    """The bandwidth is the best for rows that are left out, one at a time."""
    some = np.random.default_rng(seed).permutation(len(rows))[:_LEFT_OUT]
    squares = cdist(rows[some], rows, "sqeuclidean")
    squares[np.arange(len(some)), some] = np.inf

    def score(width: float) -> float:
        values = logsumexp(-0.5 * squares / width**2, axis=1)
        return float(np.mean(values) - rows.shape[1] * math.log(width))

    width = max(_BANDWIDTHS, key=score)
    return KernelDensity(bandwidth=width, rtol=1e-4).fit(rows)


# What is put beside a model: notes, and what fits it to rows.
_OTHERS: dict[str, Callable[[Array, int, int], Any]] = {
    "as many components": _same_size,
    f"the best by BIC, up to {_MOST}": _best_by_bic,
    "bandwidth cross-validated": _kernel_density,
}


def _name(fitted: Sequence[Any]) -> str:
    counts = sorted({getattr(each, "n_components", 0) for each in fitted})
    if counts == [0]:
        return "kernel density estimate"
    words = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    return f"Gaussian mixture of {words} component{'s' * (counts[-1] > 1)}"


def _gap(one: Entry, other: Entry) -> str:
    return "{:z.2f} ± {:.2f}".format(*one.ahead_of(other))
