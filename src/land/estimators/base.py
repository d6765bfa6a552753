"""What the estimators share: parameters, the metric, the problem, interrupts."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from land._device import device
from land._validation import check_count, check_points, check_positive
from land.density.likelihood import Measure
from land.density.nodes import Law, Reference, Volume, law_of
from land.estimators.archive import PathLike
from land.estimators.checkpoint import Checkpoint, fingerprint
from land.estimators.parallel import check_n_jobs
from land.estimators.restarts import Outcome
from land.estimators.scoring import component_log_densities, in_chunks
from land.fitting import (
    COVARIANCE_TYPES,
    Baseline,
    FitProblem,
    FitSettings,
    Step,
    log_densities,
)
from land.metrics import EuclideanMetric, LocalDiagonalMetric, Metric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]

CHOICES = {
    "method": ("ml", "least_squares"),
    "optimizer": ("auto", "paper"),
    "volume": get_args(Volume),
    "reference": get_args(Reference),
    "covariance_type": tuple(COVARIANCE_TYPES),
    "measure": ("lebesgue", "riemannian"),
}
# Bounds on sigma, in units of the data's spacing and of their extent.
_TOO_SMALL, _TOO_LARGE = 0.5, 3.0
# Nats for each row of the data that a curved metric must gain over the flat one. On
# clouds it gained up to 0.04 by chance, and on curves at least 0.07.
_WORTH_IT = 0.05


class RiemannianEstimator(BaseEstimator):
    """Base of the estimators that learn from data with a Riemannian metric.

    Subclasses have the parameters `sigma`, `rho`, `metric`, `max_iter`, `tol`,
    `random_state` and `n_jobs`.
    """

    def save(
        self, path: str | os.PathLike[str], extra: Mapping[str, Any] | None = None
    ) -> None:
        """Write the fitted model to a file; `land.load` reads it.

        The file holds plain arrays and JSON, never pickle. It is written under another
        name in the same folder and put in place once it is complete.

        Parameters
        ----------
        path : path-like
            The file; by custom its name ends in ``.land``.
        extra : mapping, optional
            JSON values and arrays to store beside the model, by name;
            `land.estimators.files.load_with_extra` returns them.

        Notes
        -----
        A metric of your own is not stored, as code cannot be: hand it to `land.load`
        again. `callback`, `n_jobs`, and a `random_state` that is not an integer, are
        left out.
        """
        from land.estimators import files  # it knows all estimators

        files.save(self, path, extra)

    def _start_fit(
        self,
        X: Any,
        sample_weight: Any,
        checkpoint: PathLike | None = None,
        **options: Any,
    ) -> tuple[FitProblem, Array, np.random.Generator]:
        """Validate the data, learn the metric, set up the problem."""
        check_n_jobs(self.n_jobs)
        data = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        weights = check_weights(sample_weight, len(data))
        self.metric_ = self._learn_metric(data)
        if len(data) > device().few_tabulated:
            self.metric_ = self.metric_.tabulated()
        _warn_about_columns(data)
        entropy = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        if checkpoint is not None:
            name = fingerprint(self, self.metric_, data, weights)
            kept = Checkpoint.open(checkpoint, name, entropy)
            entropy = kept.entropy
            options |= {"save_progress": kept.keep, "progress": kept.progress}
        rng = np.random.default_rng(entropy)
        seed = int(rng.integers(2**31))
        problem = FitProblem(self.metric_, data, seed=seed, **options)
        return problem, weights, rng

    def _validate_points(self, X: Any) -> Array:
        """Points to be scored or predicted, like the data that were fitted."""
        points = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return np.asarray(points)

    def _for_rows(
        self, function: Callable[..., Array], X: ArrayLike, **arguments: Any
    ) -> Array:
        """What a function of points, the metric and more says about each row of X."""
        points = self._validate_points(X)
        bound = partial(function, metric=self.metric_, **arguments)
        return in_chunks(bound, points, self.n_jobs)

    @property
    def _sharp(self) -> bool:
        """Whether the automatic metric may follow the noise of the data."""
        return False

    @property
    def _n_components(self) -> Any:
        """Number of distributions or clusters that share the metric."""
        return getattr(self, "n_components", getattr(self, "n_clusters", 1))

    def _learn_metric(self, data: Array) -> Metric:
        """The metric given, or one learned from the data."""
        if self.metric is not None:
            if not isinstance(self.metric, Metric):
                raise ValueError(
                    "metric must be None or an instance of land.metrics.Metric, "
                    f"got {self.metric!r}"
                )
            if self.metric.dim != data.shape[1]:
                raise ValueError(
                    f"metric has dimension {self.metric.dim}, "
                    f"but X has {data.shape[1]} features"
                )
            return self.metric
        sharp = self._sharp
        sigma = _number_or_auto("sigma", self.sigma)
        if sigma is None:
            sigma = automatic_sigma(data, self._n_components, sharp=sharp)
        else:
            _check_sigma(sigma, data)
        rho = _number_or_auto("rho", self.rho)
        rho = automatic_rho(data, sigma, sharp=sharp) if rho is None else rho
        self.sigma_, self.rho_ = sigma, rho
        return LocalDiagonalMetric(data, sigma=sigma, rho=rho)


class RiemannianDensity(DensityMixin, RiemannianEstimator):
    """Base of the distributions.

    Subclasses also have the parameters `method`, `optimizer`, `volume`,
    `reference`, `covariance_type`, `n_samples`, `verbose` and `callback`, the attribute
    `n_parameters_`, and a method `_components`.
    """

    def _start_distribution(
        self, X: Any, sample_weight: Any, checkpoint: PathLike | None
    ) -> tuple[FitProblem, Array, FitSettings, np.random.Generator]:
        """Validate everything, learn the metric, set up the problem."""
        for name in CHOICES.keys() - {"measure"}:
            check_choice(name, getattr(self, name))
        settings = FitSettings(
            method=self.method,
            optimizer=self.optimizer,
            max_iter=check_count("max_iter", self.max_iter),
            tol=check_positive("tol", self.tol),
        )
        problem, weights, rng = self._start_fit(
            X,
            sample_weight,
            checkpoint,
            law=self._law,
            covariance_type=COVARIANCE_TYPES[self.covariance_type],
            n_samples=check_count("n_samples", self.n_samples, minimum=2),
            callback=_listener(self.verbose, self.callback, type(self).__name__),
        )
        return problem, weights, settings, rng

    @property
    def _compares_metrics(self) -> bool:
        """Whether the flat metric is tried as well."""
        automatic = isinstance(self.sigma, str) and isinstance(self.rho, str)
        return automatic and self.metric is None and self.method == "ml"

    @property
    def _sharp(self) -> bool:
        """If the flat metric is there to fall back on.

        Densities with respect to the metric's volume want a smooth one: that volume
        varies far more than distances do.
        """
        return self._compares_metrics and self._law == "lebesgue"

    @property
    def _law(self) -> Law:
        """What the density is one of."""
        return law_of(self.volume, self.reference)

    def _fit_metric(
        self,
        problem: FitProblem,
        weights: Array,
        rng: np.random.Generator,
        run: Callable[[FitProblem, np.random.Generator], Outcome],
    ) -> Outcome:
        """Fit with the metric of the problem; or with the flat one, if that does.

        Only if sigma and rho are both automatic: the better of the two in the
        likelihood of the data is then kept, and the flat one in case of doubt. A search
        for a start that is no better ends the fit with the curved one.
        """
        self.geometry_gain_ = math.nan
        (other_rng,) = rng.spawn(1)
        if not self._compares_metrics:
            return run(problem, rng)
        metric = EuclideanMetric(problem.metric.dim)
        quiet = replace(problem, callback=None, save_progress=None, progress=None)
        flat = run(replace(quiet, metric=metric), other_rng)
        if flat.interrupted:
            self._use_flat(metric)
            return flat
        densities = log_densities(flat.snapshot)
        if self._law != "lebesgue":
            densities -= problem.metric.log_volume(problem.data)
        problem = replace(problem, baseline=Baseline(densities, _WORTH_IT))
        curved = run(problem, rng)
        work = flat.work + curved.work
        if curved.interrupted:
            return replace(curved, work=work)
        gain = curved.gain
        if gain is None:
            gain = problem.gain(curved.snapshot.objective, weights)
        self.geometry_gain_ = gain
        if gain < _WORTH_IT:
            self._use_flat(metric)
            return replace(flat, work=work)
        return replace(curved, work=work)

    def _use_flat(self, metric: EuclideanMetric) -> None:
        self.metric_, self.sigma_, self.rho_ = metric, math.inf, math.inf

    def _store_progress(self, outcome: Outcome, checkpoint: PathLike | None) -> None:
        """Keep the history, drop the checkpoint; warn about what did not go well."""
        if checkpoint is not None and not outcome.interrupted:
            Path(checkpoint).unlink(missing_ok=True)
        self.history_ = outcome.history
        self.interrupted_ = outcome.interrupted
        self.n_iter_ = max(len(outcome.history) - 1, 1)
        self.converged_ = outcome.converged
        self.n_log_maps_ = outcome.work.log_maps
        estimates = outcome.snapshot.estimates
        self.n_failed_log_maps_ = sum(item.n_failed for item in estimates)
        if outcome.interrupted:
            warn_about_interrupt(outcome.history, stacklevel=4)
        elif not outcome.converged:
            self._warn_about_convergence()
        if self.n_failed_log_maps_:
            total = sum(len(item.logs.converged) for item in estimates)
            warnings.warn(
                f"{self.n_failed_log_maps_} of {total} log maps did not converge in "
                "the fit; try a larger sigma or rho",
                RuntimeWarning,
                stacklevel=4,
            )

    def _warn_about_convergence(self) -> None:
        what = f"did not converge within {self.max_iter} steps; raise max_iter or tol"
        warnings.warn(f"the fit {what}", ConvergenceWarning, stacklevel=5)

    def score(
        self, X: ArrayLike, y: Any = None, measure: Measure = "lebesgue"
    ) -> float:
        """Mean log density of the rows of `X`, see `score_samples`."""
        return float(np.mean(self.score_samples(X, measure)))

    def aic(self, X: ArrayLike, measure: Measure = "lebesgue") -> float:
        """Akaike information criterion of the model on `X`; lower is better."""
        log_likelihood = float(np.sum(self.score_samples(X, measure)))
        return 2.0 * self.n_parameters_ - 2.0 * log_likelihood

    def bic(self, X: ArrayLike, measure: Measure = "lebesgue") -> float:
        """Bayesian information criterion of the model on `X`; lower is better."""
        values = self.score_samples(X, measure)
        penalty = np.log(len(values)) * self.n_parameters_
        return float(penalty - 2.0 * np.sum(values))

    def _n_parameters_each(self, dim: int) -> int:
        """Free parameters of a component: those of its mean and of its covariance."""
        return dim + COVARIANCE_TYPES[self.covariance_type].n_entries(dim)

    def _log_densities(self, X: ArrayLike, measure: Measure) -> Array:
        """Log densities of all components, (n, K); NaN where a geodesic failed."""
        check_is_fitted(self)
        check_choice("measure", measure)
        return self._for_rows(
            component_log_densities,
            X,
            components=self._components(),
            law=self._law,
            measure=measure,
        )


def check_choice(name: str, value: Any) -> Any:
    """Return `value` if it is one of the words allowed for `name`."""
    allowed = CHOICES[name]
    if not isinstance(value, str) or value not in allowed:
        *others, last = (repr(word) for word in allowed)
        words = f"{', '.join(others)} or {last}"
        raise ValueError(f"{name} must be {words}, got {value!r}")
    return value


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights that sum to one."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = check_points("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape {(n,)}, one weight for each row of X, "
            f"got {weights.shape}"
        )
    if weights.min() < 0.0:
        raise ValueError("sample_weight must not be negative")
    if np.sum(weights > 0.0) < 2:
        raise ValueError(
            "sample_weight must be positive for at least 2 rows, the others may be zero"
        )
    return np.asarray(weights / weights.sum())


def warn_about_interrupt(history: list[Step], stacklevel: int = 3) -> None:
    """Say how far an interrupted fit had come."""
    steps = len(history)
    where = f"after {steps} steps" if steps else "while it searched for a start"
    warnings.warn(
        f"the fit was interrupted {where}; the model reached so far is kept",
        UserWarning,
        stacklevel=stacklevel,
    )


def warn_about_points(values: Array, consequence: str) -> None:
    """Warn about points whose value is NaN."""
    lost = int(np.sum(np.isnan(values)))
    if lost:
        warnings.warn(
            f"the geodesics to {lost} of {len(values)} points did not converge: "
            f"{consequence}; try a larger sigma or rho",
            RuntimeWarning,
            stacklevel=3,
        )


def _number_or_auto(name: str, value: Any) -> float | None:
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(
                f"{name} must be 'auto' or a positive number, got {value!r}"
            )
        return None
    return check_positive(name, value)


def _check_sigma(sigma: float, data: Array) -> None:
    """Refuse a sigma that sees no neighbours; warn of one that sees nothing else."""
    points = np.unique(data, axis=0)
    if len(points) < 2:
        return
    spacing = float(np.median(KDTree(points).query(points, 2)[0][:, 1]))
    extent = float(np.sqrt(np.sum(np.var(data, axis=0))))
    if sigma < _TOO_SMALL * spacing:
        raise ValueError(
            f"sigma={sigma:g} is far smaller than the distance of neighbouring rows "
            f"({spacing:.3g}): the metric is flat between them; try sigma='auto' "
            f"({automatic_sigma(data):.3g})"
        )
    if sigma > _TOO_LARGE * extent:
        warnings.warn(
            f"sigma={sigma:g} is far larger than the extent of the data "
            f"({extent:.3g}): the metric does not follow them; try sigma='auto' "
            f"({automatic_sigma(data):.3g})",
            UserWarning,
            stacklevel=6,
        )


def _warn_about_columns(data: Array) -> None:
    constant = np.flatnonzero(np.ptp(data, axis=0) == 0.0)
    if len(constant):
        warnings.warn(
            f"X is constant in column(s) {constant.tolist()}: the covariance there is "
            "a token; drop them if they mean nothing",
            UserWarning,
            stacklevel=5,
        )
    n, dim = data.shape
    if n <= dim:
        warnings.warn(
            f"X has {n} rows for {dim} columns: the covariance is regularised in the "
            "directions without data; reduce the dimension first, with PCA for example",
            UserWarning,
            stacklevel=5,
        )


def _listener(
    verbose: Any, callback: Callable[[Step], None] | None, name: str
) -> Callable[[Step], None] | None:
    """Whoever wants to hear of each step, as one function."""
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable or None, got {callback!r}")
    if not verbose:
        return callback

    def tell(step: Step) -> None:
        sys.stderr.write(
            f"{name}: {step.stage} {step.iteration:3d}  "
            f"objective {step.objective:.5f}  "
            f"{step.n_log_maps} log maps  "
            f"{step.seconds:.1f} s\n"
        )
        sys.stderr.flush()
        if callback is not None:
            callback(step)

    return tell
