"""What `LAND` and `LANDMixture` share: how they are fitted, scored and drawn from."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from land._validation import as_generator, check_count, check_positive
from land.density.likelihood import Measure
from land.density.nodes import Law, cholesky, law_of
from land.density.sampling import draw
from land.estimators.base import (
    CHOICES,
    RiemannianEstimator,
    check_choice,
    check_number_or_word,
    draw_integers,
    is_learned,
    is_word,
    warn_about_points,
)
from land.estimators.callbacks import check_callbacks, combine
from land.estimators.health import WORTHWHILE, findings
from land.estimators.learning import learn
from land.estimators.scoring import component_log_densities
from land.fitting import (
    COVARIANCE_TYPES,
    FitProblem,
    FitSettings,
    NotWorthwhileError,
    Snapshot,
    Step,
    log_densities,
)
from land.fitting.estimate import Work
from land.metrics import EuclideanMetric

Array = NDArray[np.float64]

LEFT_OUT = "the components concerned are left out there"


@dataclass(frozen=True)
class Outcome:
    """What one run of a fit has come to.

    `starved` are components that have lost their data to others in the course of EM.
    `gain` is that over the baseline, if the run was given up because it is too small.
    """

    snapshot: Snapshot
    converged: bool = False
    starved: list[int] = field(default_factory=list)
    interrupted: bool = False
    history: list[Step] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    gain: float | None = None


def attempt(problem: FitProblem, fit: Callable[[FitProblem], Outcome]) -> Outcome:
    """Run a fit; an interrupt ends it with what it has reached, if anything."""
    own = replace(problem, work=Work(), history=[], latest=None)
    try:
        return replace(fit(own), history=own.history, work=own.work)
    except NotWorthwhileError as error:
        assert own.latest is not None  # the search has recorded it
        return Outcome(own.latest, work=own.work, gain=error.gain)
    except KeyboardInterrupt:
        if own.latest is None:
            raise
        stopped = Outcome(own.latest, interrupted=True)
        return replace(stopped, history=own.history, work=own.work)


def information_criteria(
    log_likelihood: float, n_parameters: int, n: int
) -> dict[str, float]:
    """AIC and BIC of a model of n rows; lower is better."""
    fit = -2.0 * log_likelihood
    return {"aic": fit + 2.0 * n_parameters, "bic": fit + math.log(n) * n_parameters}


class RiemannianDensity(DensityMixin, RiemannianEstimator):
    """Base of the distributions.

    Subclasses also have the parameters `method`, `volume`, `reference`,
    `covariance_type`, `n_samples`, `verbose` and `callback`, and three methods:
    `_run` fits with one metric, `_store` sets the fitted attributes, and `_components`
    returns them as a list.
    """

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to the rows of `X`, (N, D); `y` is ignored.

        `sample_weight` (N,) are weights of the rows in the likelihood; the metric is
        learned from the rows as they are. An interrupt (Ctrl-C) ends the fit early and
        keeps the model reached so far.
        """
        for name in CHOICES.keys() & self.get_params(deep=False).keys():
            check_choice(name, getattr(self, name))
        self.__dict__.pop("learning_", None)  # of an earlier fit
        if is_word(self.sigma, "learn") or is_word(self.rho, "learn"):
            return self._fit_learned(X, sample_weight)
        settings = FitSettings(
            method=self.method,
            optimizer=getattr(self, "optimizer", "auto"),
            max_iter=check_count("max_iter", self.max_iter),
            tol=check_positive("tol", self.tol),
        )
        n_init = check_count("n_init", getattr(self, "n_init", 1))
        callbacks, checkpoint = check_callbacks(self.callback, n_init)
        problem, weights, rng = self._start_fit(
            X,
            sample_weight,
            checkpoint,
            law=self._law,
            covariance_type=COVARIANCE_TYPES[self.covariance_type],
            n_samples=check_count("n_samples", self.n_samples, minimum=2),
            callback=combine(callbacks, self.verbose, type(self).__name__),
        )
        outcome = self._fit_metric(problem, weights, settings, rng)
        if checkpoint is not None and not outcome.interrupted:
            checkpoint.remove()
        self._store(outcome.snapshot)
        self.objective_ = outcome.snapshot.objective
        self.history_ = outcome.history
        self.interrupted_ = outcome.interrupted
        self.n_iter_ = max(len(outcome.history) - 1, 1)
        self.converged_ = outcome.converged
        self.n_log_maps_ = outcome.work.log_maps
        estimates = outcome.snapshot.estimates
        self.n_failed_log_maps_ = sum(each.n_failed for each in estimates)
        self.health_ = []
        for text, category in findings(outcome, problem, weights, self):
            self.health_.append(text)
            if category is not None:
                warnings.warn(text, category, stacklevel=2)
        return self

    _words = ("auto", "learn")

    def _fit_learned(self, X: ArrayLike, sample_weight: Any) -> Self:
        """Learn sigma and rho, and fit with them to all rows."""
        if not is_learned(self.metric) or self.method != "ml":
            raise ValueError(
                "sigma='learn' and rho='learn' need a metric that is learned, and "
                "method='ml'"
            )
        for name in ("sigma", "rho"):
            check_number_or_word(name, getattr(self, name), self._words)
        data = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        (seed,) = draw_integers(self.random_state, 1)
        learned = learn(self, np.asarray(data), seed)
        model = clone(self).set_params(**learned.parameters).fit(X, None, sample_weight)
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.learning_, self.geometry_gain_ = learned.table, learned.gain
        if isinstance(self.metric_, EuclideanMetric):
            self.sigma_ = self.rho_ = math.inf
        return self

    @property
    def _compares_metrics(self) -> bool:
        """Whether the flat metric is tried as well."""
        automatic = isinstance(self.sigma, str) and isinstance(self.rho, str)
        return automatic and is_learned(self.metric) and self.method == "ml"

    @property
    def _sharp(self) -> bool:
        """If the flat metric is there to fall back on.

        Densities with respect to the metric's volume need a smooth one: that volume
        varies far more than distances do.
        """
        return self._compares_metrics and self._law == "lebesgue"

    @property
    def _law(self) -> Law:
        """What the density is one of."""
        return law_of(self.volume, self.reference)

    def _fit_metric(self, problem, weights, settings, rng) -> Outcome:
        """Fit with the metric of the problem, or with the flat one if that suffices.

        The flat one is tried only if sigma and rho are both automatic, and kept unless
        the curved one has a clearly better likelihood. The fit with the curved one
        ends early if its search for a start shows that it will not.
        """
        self.geometry_gain_ = math.nan
        (other_rng,) = rng.spawn(1)
        if not self._compares_metrics:
            return self._run(problem, weights, settings, rng)
        metric = EuclideanMetric(problem.metric.dim)
        quiet = replace(problem, callback=None, save_progress=None, progress=None)
        flat = self._run(replace(quiet, metric=metric), weights, settings, other_rng)
        if flat.interrupted:
            self._use_flat(metric)
            return flat
        densities = log_densities(flat.snapshot)
        if self._law != "lebesgue":
            densities -= problem.metric.log_volume(problem.data)
        problem = replace(problem, baseline=densities)
        curved = self._run(problem, weights, settings, rng)
        work = flat.work + curved.work
        if curved.interrupted:
            return replace(curved, work=work)
        gain = curved.gain
        if gain is None:
            gain = problem.gain(curved.snapshot.objective, weights)
        self.geometry_gain_ = gain
        if gain < WORTHWHILE:
            self._use_flat(metric)
            return replace(flat, work=work)
        return replace(curved, work=work)

    def _use_flat(self, metric: EuclideanMetric) -> None:
        self.metric_, self.sigma_, self.rho_ = metric, math.inf, math.inf

    @property
    def n_parameters_(self) -> int:
        """Number of parameters of the means, the covariances and the weights."""
        check_is_fitted(self)
        components, dim = self._components(), self.n_features_in_
        each = dim + COVARIANCE_TYPES[self.covariance_type].n_entries(dim)
        return len(components) * each + len(components) - 1

    def score_samples(self, X: ArrayLike, measure: Measure = "lebesgue") -> Array:
        """Log densities (n,) of the rows of `X`, (n, D).

        ``measure="lebesgue"`` is with respect to dx, and can be compared with any other
        density on R^D; ``"riemannian"`` is the paper's, with respect to the metric's
        volume. NaN, with a warning, where no component could be reached by a geodesic;
        one of several that could not be reached is left out, with a warning.
        """
        densities = self._log_densities(X, measure)
        lost = np.isnan(densities)
        some = lost.any(axis=1) & ~lost.all(axis=1)
        warn_about_points(np.where(some, np.nan, 0.0), LEFT_OUT)
        values = logsumexp(self._weighted(densities), axis=1)
        values = np.where(lost.all(axis=1), np.nan, values)
        warn_about_points(values, "their log density is NaN")
        return values

    def score(
        self, X: ArrayLike, y: Any = None, measure: Measure = "lebesgue"
    ) -> float:
        """Mean log density of the rows of `X`, see `score_samples`."""
        return float(np.mean(self.score_samples(X, measure)))

    def aic(self, X: ArrayLike, measure: Measure = "lebesgue") -> float:
        """Akaike information criterion of the model on `X`; lower is better."""
        return self._criteria(X, measure)["aic"]

    def bic(self, X: ArrayLike, measure: Measure = "lebesgue") -> float:
        """Bayesian information criterion of the model on `X`; lower is better."""
        return self._criteria(X, measure)["bic"]

    def _criteria(self, X: ArrayLike, measure: Measure) -> dict[str, float]:
        values = self.score_samples(X, measure)
        return information_criteria(
            float(np.sum(values)), self.n_parameters_, len(values)
        )

    def sample(
        self, n: int = 1, random_state: Any = None
    ) -> tuple[Array, NDArray[np.intp]]:
        """Draw n independent points from the fitted model, exactly, by rejection.

        Returns the points (n, D), and the components (n,) they were drawn from, in
        ascending order; all 0 for `LAND`.
        """
        check_is_fitted(self)
        components, rng = self._components(), as_generator(random_state)
        shares = [each.weight for each in components]
        counts = rng.multinomial(check_count("n", n), shares)
        points = []
        for own, count in zip(components, counts.tolist(), strict=True):
            if count:
                factor = cholesky(own.covariance)
                drawn = draw(self.metric_, own.mean, factor, count, self._law, rng)
                points.append(drawn.points)
        return np.concatenate(points), np.repeat(np.arange(len(counts)), counts)

    def _log_densities(self, X: ArrayLike, measure: Measure) -> Array:
        """Log densities of all components, (n, K); NaN where a geodesic failed."""
        check_is_fitted(self)
        check_choice("measure", measure)
        model = {"components": self._components(), "law": self._law}
        return self._for_rows(component_log_densities, X, **model, measure=measure)

    def _weighted(self, densities: Array) -> Array:
        """Log of weight times density; no density where a geodesic failed."""
        with np.errstate(divide="ignore"):
            log_weights = np.log([each.weight for each in self._components()])
        return np.where(np.isnan(densities), -np.inf, densities) + log_weights
