"""The locally adaptive normal distribution, and what it shares with mixtures of it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count
from land.density.likelihood import Measure
from land.density.nodes import (
    Law,
    LogConstant,
    Reference,
    Volume,
    cholesky,
    law_of,
)
from land.density.sampling import draw
from land.estimators.base import (
    RiemannianEstimator,
    check_choice,
    check_init,
    draw_integers,
    is_learned,
)
from land.estimators.callbacks import heard
from land.estimators.drawing import DrawnMixin
from land.estimators.health import WORTHWHILE, Outcome, attempt, findings
from land.estimators.learning import learn
from land.estimators.scoring import (
    Component,
    component_log_densities,
    log_joint,
    tangents_at,
    warn_about_points,
)
from land.fitting import (
    COVARIANCE_TYPES,
    FitProblem,
    FitSettings,
    Snapshot,
    fit_one,
    log_densities,
)
from land.fitting.pruning import component_charge
from land.fitting.single import Method
from land.metrics import EuclideanMetric, Metric
from land.metrics.bandwidth import SMOOTHER

Array = NDArray[np.float64]

LEFT_OUT = "the components concerned are left out there"


def information_criteria(
    log_likelihood: float, n_parameters: int, n: int
) -> dict[str, float]:
    """AIC and BIC of a model of n rows; lower is better."""
    fit = -2.0 * log_likelihood
    return {"aic": fit + 2.0 * n_parameters, "bic": fit + math.log(n) * n_parameters}


@dataclass(eq=False, repr=False, kw_only=True)
class RiemannianDensity(DrawnMixin, DensityMixin, RiemannianEstimator):
    """Base of the distributions.

    Subclasses have three methods: `_run` fits with one metric, `_store` sets the fitted
    attributes, and `_components` returns them as a list.
    """

    method: Method = "ml"
    volume: Volume = "exact"
    reference: Reference = "lebesgue"
    covariance_type: str = "full"
    n_samples: int = 3000
    warm_start: bool = False
    verbose: int = 0
    callback: Any = None

    @property
    def _words(self) -> tuple[str, ...]:
        return ("auto", "learn")

    def fit(self, X: ArrayLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to the rows of `X`, (N, D); `y` is ignored.

        `sample_weight` (N,) are weights of the rows in the likelihood; the metric is
        learned from the rows as they are. An interrupt (Ctrl-C) ends the fit early and
        keeps the model reached so far.
        """
        self._check_parameters()
        self.__dict__.pop("learning_", None)  # of an earlier fit
        if "learn" in (self.sigma, self.rho):
            return self._fit_learned(X, sample_weight)
        optimizer: Any = getattr(self, "optimizer", "auto")
        settings = FitSettings(self.method, optimizer, self.max_iter, self.tol)
        name = type(self).__name__
        callback, checkpoint = heard(self.callback, self.verbose, name)
        if checkpoint is not None and getattr(self, "n_init", 1) > 1:
            raise ValueError(
                "a checkpoint needs n_init=1; fit once for each random_state instead"
            )
        problem, weights, rng = self._start_fit(
            X,
            sample_weight,
            checkpoint,
            law=self._law,
            covariance_type=COVARIANCE_TYPES[self.covariance_type],
            n_samples=self.n_samples,
            callback=callback,
        )
        outcome = self._fit_metric(problem, weights, settings, rng)
        if checkpoint is not None and not outcome.interrupted:
            Path(checkpoint.path).unlink(missing_ok=True)
        self._store(outcome.snapshot)
        self.objective_ = outcome.snapshot.objective
        self.history_ = outcome.history
        self.interrupted_ = outcome.interrupted
        self.n_iter_ = max(len(outcome.history) - 1, 1)
        self.converged_ = outcome.converged
        self.n_log_maps_ = outcome.work.log_maps
        self.n_failed_log_maps_ = outcome.n_failed
        self.health_ = []
        for text, category in findings(outcome, problem, weights, self):
            self.health_.append(text)
            if category is not None:
                warnings.warn(text, category, stacklevel=2)
        return self

    def _fit_learned(self, X: ArrayLike, sample_weight: Any) -> Self:
        """Learn sigma and rho, and fit with them to all rows."""
        if not is_learned(self.metric) or self.method != "ml":
            raise ValueError(
                "sigma='learn' and rho='learn' need a metric that is learned, and "
                "method='ml'"
            )
        data = self._check_rows(X, ensure_min_samples=2)
        (seed,) = draw_integers(self.random_state, 1)
        learned = learn(self, data, seed)
        model = learned.candidate.for_rows(data).fit(X, None, sample_weight)
        fitted = {k: value for k, value in vars(model).items() if k.endswith("_")}
        self.__dict__.update(fitted)
        self.learning_, self.geometry_gain_ = learned.table, learned.gain
        if isinstance(self.metric_, EuclideanMetric):
            self._use(self.metric_)
        return self

    @property
    def _compares_metrics(self) -> bool:
        """Whether the flat metric is tried as well."""
        automatic = isinstance(self.sigma, str) and isinstance(self.rho, str)
        return automatic and is_learned(self.metric) and self.method == "ml"

    @property
    def _goes_on(self) -> bool:
        """Whether a fit starts from the model of the one before."""
        return self.warm_start and hasattr(self, "objective_")

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
        """Fit with the metric of the problem, or with a simpler one if that suffices.

        Others are tried only if sigma and rho are both automatic: the flat one, and for
        a single component a smooth one. Each is kept unless the next has a clearly
        better likelihood. A fit ends early if its search for a start shows that it will
        not.
        """
        self.geometry_gain_ = math.nan
        if not self._compares_metrics:
            return self._run(problem, weights, settings, rng)
        flat = EuclideanMetric(problem.metric.dim)
        metrics = [*self._smoother(problem.metric), problem.metric]
        flat_rng, *rngs = rng.spawn(1 + len(metrics))
        aside = replace(problem, save_progress=None, progress=None)
        quiet = replace(aside, metric=flat, callback=None)
        kept = self._run(quiet, weights, settings, flat_rng)
        self._use(flat)
        work, gain, gains = kept.work, 0.0, []
        for metric, own_rng in zip(metrics, rngs, strict=True):
            if kept.interrupted:
                break
            own = problem if metric is problem.metric else aside
            own = replace(own, metric=metric, baseline=self._densities(kept, problem))
            found = self._run(own, weights, settings, own_rng)
            work += found.work
            ahead = found.gain
            if ahead is None:
                ahead = own.gain(found.snapshot.objective, weights)
                # Where components were removed there may be more of them than before.
                surplus = len(found.snapshot.estimates) - len(kept.snapshot.estimates)
                ahead -= surplus * component_charge(own, weights)
            gains.append(gain + ahead)
            if ahead > WORTHWHILE:
                kept, gain = found, gain + ahead
                self._use(metric)
            kept = replace(kept, interrupted=found.interrupted)
        if not kept.interrupted:
            self.geometry_gain_ = gain or max(gains)
        return replace(kept, work=work)

    def _densities(self, outcome: Outcome, problem: FitProblem) -> Array:
        """Log densities of the data, with respect to the reference of a problem."""
        densities = log_densities(outcome.snapshot)
        if self._law != "lebesgue" and self.metric_.is_flat:
            densities -= problem.metric.log_volume(problem.data)
        return densities

    def _smoother(self, metric: Any) -> list[Metric]:
        """For one component, a metric under which a curve is a guide to geodesics.

        Sharp metrics drive them apart: the farther from the mean, the wider the
        density. Under a nearly flat one that varies across the curve they stay with it,
        if it is open and bends little.
        """
        if self._parts > 1 or not self._sharp:
            return []
        smooth = type(metric)(metric.data, metric.sigma, SMOOTHER * metric.rho)
        return [smooth.tabulated() if metric.is_tabulated else smooth]

    def _use(self, metric: Metric) -> None:
        """Take this metric for that of the model."""
        self.metric_ = metric
        self.sigma_ = getattr(metric, "sigma", math.inf)
        self.rho_ = getattr(metric, "rho", math.inf)

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
        total = float(np.sum(values))
        return information_criteria(total, self.n_parameters_, len(values))

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
        return log_joint(densities, [each.weight for each in self._components()])


@dataclass(eq=False, repr=False, kw_only=True)
class LAND(RiemannianDensity):
    """Locally adaptive normal distribution.

    A normal distribution whose distances are measured along geodesics of a metric that
    is learned from the data, so that mean, covariance and density follow their shape.

    Parameters
    ----------
    sigma : float, "auto" or "learn"
        Size of the neighbourhoods from which the metric is learned. ``"auto"`` goes by
        the median distance to the k-th neighbour, ``k = ceil(sqrt(N) / 2)``.
        ``"learn"`` searches for the value with which held-out rows have the largest log
        density: about ten fits, see `learning_`.
    rho : float, "auto" or "learn"
        Added to the local variances; the smaller, the more it costs to leave the data.
        ``"auto"`` takes the typical local variance on the data. If sigma and rho are
        both automatic, a flat, a smooth and a sharp metric are tried, whose geodesics
        follow curves all the way round: see `geometry_gain_`.
    metric : {"diagonal", "full", "density"}, Metric or None
        Which metric is learned: from the local variances along the axes, as in the
        paper (None means the same); from the local covariances, so that turning the
        data turns the result; or from a kernel density. Or a metric of `land.metrics`
        to use in place of a learned one.
    method : {"ml", "least_squares"}
        Maximum likelihood, or intrinsic mean and empirical covariance.
    optimizer : {"auto", "paper"}
        ``"auto"`` descends with exact covariance steps and a trust-region method for
        the mean, from several starts. ``"paper"`` is the paper's Algorithms 1 and 2.
    volume : {"exact", "paper"}
        The normalisation constant: ``"exact"`` integrates over the manifold, as the
        paper defines it; ``"paper"`` leaves out ``|det DExp|``, as the paper does on
        the way, see `land.log_constant`.
    reference : {"lebesgue", "riemannian"}
        What the density is one of: dx, or the metric's volume as in the paper, which is
        small where data are many, so that it puts mass beside them. ``volume="paper"``
        is always with respect to the metric's volume.
    covariance_type : {"full", "diag", "spherical"}
        Which covariances are allowed, in tangent coordinates at the mean.
    init : {"least_squares", "random"} or array_like of shape (D,)
        Where to start: the best of central points of the data; a random row, or a given
        mean.
    n_samples : int
        Effort spent on the normalisation constant, see `land.log_constant`.
    max_iter : int
        Largest number of steps of the mean.
    tol : float
        Stop when a step is predicted to lower the objective by less than this. For
        ``optimizer="paper"``: when its squared change is at most this.
    random_state : None, int, RandomState or Generator
        Randomness of starts and quadrature. The same integer gives the same fit.
    warm_start : bool
        Whether a second fit starts from the mean of the first one, in place of `init`.
    verbose : int
        Whether to report every step on the standard error stream.
    callback : callable, list of callables or None
        Called with a `Step` after every step, see `land.callbacks`.
    n_jobs : int or None
        Number of processes that score points, in chunks; the fit itself is one process.
        -1 is one on each core; None is one, or what `joblib.parallel_config` says.
        Results do not depend on it.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
    covariance_, precision_ : ndarray of shape (D, D)
        In tangent coordinates at the mean; matrices for every `covariance_type`.
    log_constant_, log_constant_stderr_, effective_samples_ : float
        Logarithm of the normalisation constant, its standard error, and the effective
        number of quadrature nodes behind it.
    objective_ : float
        Mean negative log likelihood with respect to the reference.
    history_ : list of Step
        Objective, mean and work after each step.
    converged_, interrupted_ : bool
        Whether the stopping rule was met; whether Ctrl-C ended the fit early.
    n_iter_, n_log_maps_, n_failed_log_maps_ : int
        Number of steps, of geodesics computed, and of rows of the training data whose
        log map failed at the final mean.
    metric_ : Metric
    sigma_, rho_ : float
        The values of a learned metric; infinite if the flat one was kept.
    geometry_gain_ : float
        Mean log density of the training data, or of held-out rows if sigma or rho were
        learned, less that with the flat metric, an ordinary normal distribution. Of
        three metrics, flat, smooth and sharp, each must be ahead of the one before by
        0.05, and by what BIC charges for components that pruning left in it only. NaN
        if they were not compared.
    learning_ : list of dict
        Candidates for a learned `sigma` and `rho`: their values, the mean log density
        ``score`` of held-out rows, by how much it is ``behind`` the best one, the
        standard error ``stderr`` of that, ``seconds``, and the ``error`` of one that
        failed. Of those behind by less than the standard error the smoothest is
        ``chosen``. Weights have no part in it, and files do not keep it.
    health_ : list of str
        What did not go well, each with what to do about it; empty if all is well.
    n_features_in_, feature_names_in_ : int, ndarray of str
        Number of columns of `X`, and their names if all are strings.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(50, random_state=0)
    >>> model = land.LAND(sigma=0.5, n_samples=300, random_state=0).fit(X)
    >>> model.score_samples(X[:3]).shape
    (3,)
    >>> points, components = model.sample(5, random_state=0)
    >>> points.shape
    (5, 2)
    """

    optimizer: str = "auto"
    init: Any = "least_squares"

    def tangents(self, X: ArrayLike) -> Array:
        """Tangent coordinates Log(x) at the mean, those of `covariance_`.

        NaN, with a warning, where a log map failed.
        """
        check_is_fitted(self)
        tangents = self._for_rows(tangents_at, X, mean=self.mean_)
        warn_about_points(tangents[:, 0], "their tangents are NaN")
        return tangents

    def _run(self, problem, weights, settings, rng) -> Outcome:
        shape = problem.data.shape[1:]
        init = self.mean_ if self._goes_on else self.init
        init = check_init(init, ("least_squares", "random"), "a mean", shape)

        def fit(own: FitProblem) -> Outcome:
            estimate, converged = fit_one(own, weights, init, settings, rng)
            snapshot = Snapshot([estimate], np.ones(1), estimate.objective)
            return Outcome(snapshot, converged)

        return attempt(problem, fit)

    def _store(self, snapshot: Snapshot) -> None:
        (own,) = snapshot.estimates
        self._store_normal(own.mean, own.covariance, own.precision, own.log_constant)

    def _store_normal(self, mean, covariance, precision, constant: LogConstant) -> None:
        self.mean_, self.covariance_, self.precision_ = mean, covariance, precision
        self.log_constant_ = constant.value
        self.log_constant_stderr_ = constant.stderr
        self.effective_samples_ = constant.effective_samples

    def _components(self) -> list[Component]:
        parts = self.mean_, self.covariance_, self.precision_, self.log_constant_
        return [Component(1.0, *parts)]
