"""What the estimators share: checks of parameters and data, and the metric."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from land._device import device
from land._validation import (
    check_count,
    check_points,
    check_positive,
    check_word,
    refuse,
    shown,
)
from land.density.nodes import Reference, Volume
from land.estimators import files
from land.estimators.callbacks import fingerprint
from land.estimators.rows import check_rows
from land.estimators.scoring import check_n_jobs, in_chunks
from land.fitting import COVARIANCE_TYPES, FitProblem
from land.geodesics import log_map
from land.metrics import KINDS, Metric
from land.metrics.bandwidth import automatic_rho, automatic_sigma

Array = NDArray[np.float64]

CHOICES = {
    "method": ("ml", "least_squares"),
    "optimizer": ("auto", "paper"),
    "volume": get_args(Volume),
    "reference": get_args(Reference),
    "covariance_type": tuple(COVARIANCE_TYPES),
    "covariance": ("full", "shared", "diag"),
    "measure": ("lebesgue", "riemannian"),
    "criterion": ("held_out", "bic", "aic"),
    "purpose": ("density", "clusters"),
    "statistic": ("energy", "likelihood_ratio"),
}
# The smallest values of counts.
_COUNTS = {"max_iter": 1, "n_init": 1, "n_samples": 2}


@dataclass(eq=False, repr=False, kw_only=True)
class RiemannianEstimator(BaseEstimator):
    """Base of the estimators that learn from data with a Riemannian metric."""

    sigma: float | str = "auto"
    rho: float | str = "auto"
    metric: Any = None
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Any = None
    n_jobs: int | None = None

    def save(
        self, path: str | os.PathLike[str], extra: Mapping[str, Any] | None = None
    ) -> None:
        """Write the fitted model to a file of plain arrays and JSON, never pickle.

        `land.load` reads it. An existing file is replaced once the new one is complete.
        A metric of your own is not stored, as code cannot be: pass it to `land.load`
        again. `callback`, `n_jobs`, and a `random_state` that is not an integer, are
        left out.

        Parameters
        ----------
        path : path-like
            The file; by custom its name ends in ``.land``.
        extra : mapping, optional
            JSON values and arrays to store beside the model, by name;
            `land.estimators.files.load_with_extra` returns them.
        """
        files.save(self, path, extra)

    @property
    def _words(self) -> tuple[str, ...]:
        """What sigma and rho may be, beside numbers."""
        return ("auto",)

    def _check_parameters(self) -> None:
        """Refuse words and numbers that make no sense, before any work."""
        given = self.get_params(deep=False)
        for name in CHOICES.keys() & given.keys():
            check_choice(name, given[name])
        for name in _COUNTS.keys() & given.keys():
            check_count(name, given[name], _COUNTS[name])
        check_positive("tol", self.tol)
        check_n_jobs(self.n_jobs)
        for name in ("sigma", "rho") if is_learned(self.metric) else ():
            if not isinstance(given[name], str):
                check_positive(name, given[name])
            elif given[name] not in self._words:
                refuse(name, self._words, ["a positive number"], given[name])

    def _start_fit(
        self, X: Any, sample_weight: Any, checkpoint: Any = None, **options: Any
    ) -> tuple[FitProblem, Array, np.random.Generator]:
        """Validate the data, learn the metric, set up the problem."""
        data = self._check_rows(X, ensure_min_samples=2)
        weights = _check_fit_weights(sample_weight, len(data))
        self.metric_ = self._learn_metric(data)
        if len(data) > device().few_tabulated:
            self.metric_ = self.metric_.tabulated()
        _warn_about_columns(data)
        entropy = draw_integers(self.random_state, 4)
        if checkpoint is not None:
            own = fingerprint(self, self.metric_, data, weights)
            opened = checkpoint.open(own, entropy)
            entropy = opened.entropy
            options |= {"save_progress": opened.keep, "progress": opened.progress}
        rng = np.random.default_rng(entropy)
        seed = int(rng.integers(2**31))
        problem = FitProblem(self.metric_, data, seed=seed, **options)
        return problem, weights, rng

    def _for_rows(
        self, function: Callable[..., Array], X: ArrayLike, **arguments: Any
    ) -> Array:
        """Values of a function of points, the metric and more at each row of X."""
        points = self._check_rows(X, reset=False)
        bound = partial(function, metric=self.metric_, **arguments)
        return in_chunks(bound, points, self.n_jobs)

    def _check_rows(self, X: Any, **options: Any) -> Array:
        """The rows of X as scikit-learn takes them, if they are numbers."""
        return check_rows(self, X, **options)

    @property
    def _sharp(self) -> bool:
        """Whether the automatic metric may follow the noise of the data."""
        return False

    @property
    def _parts(self) -> int:
        """Components or clusters of the model, for the automatic metric."""
        return getattr(self, "n_components", getattr(self, "n_clusters", 1))

    def _learn_metric(self, data: Array) -> Metric:
        """The metric given, or one learned from the data."""
        metric = self.metric
        if is_learned(metric):
            kind, sigma, rho = KINDS[metric or "diagonal"], self.sigma, self.rho
            parts, sharp = self._parts, self._sharp
            if isinstance(sigma, str):
                sigma = automatic_sigma(data, parts, sharp=sharp)
            else:
                _check_sigma(sigma, data)
            if isinstance(rho, str):
                rho = automatic_rho(data, sigma, parts, kind=kind, sharp=sharp)
            self.sigma_, self.rho_ = float(sigma), float(rho)
            return kind(data, self.sigma_, self.rho_)
        if not isinstance(metric, Metric):
            others = "None", "an instance of land.metrics.Metric"
            refuse("metric", KINDS, others, metric)
        if metric.dim != data.shape[1]:
            raise ValueError(
                f"metric has dimension {metric.dim}, but X has {data.shape[1]} features"
            )
        _check_geodesics(metric, data)
        return metric


def is_learned(metric: Any) -> bool:
    """Whether an estimator with this parameter learns its metric from the data."""
    return metric is None or (isinstance(metric, str) and metric in KINDS)


def draw_integers(random_state: Any, count: int) -> list[int]:
    """Integers below 2^31 from what scikit-learn takes, or from a NumPy Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(2**31, size=count).tolist()
    try:
        return check_random_state(random_state).randint(2**31, size=count).tolist()
    except ValueError:
        raise ValueError(
            "random_state must be None, an integer between 0 and 2^32 - 1, a NumPy "
            f"RandomState or a NumPy Generator, got {shown(random_state)}"
        ) from None


def check_choice(name: str, value: Any) -> None:
    """Refuse what is not one of the words allowed for `name`."""
    check_word(name, value, CHOICES[name])


def check_parts(name: str, value: Any, n: int) -> int:
    """A number of components or clusters of n rows."""
    count = check_count(name, value)
    if count > n:
        raise ValueError(f"{name}={count} must not exceed the number of rows, {n}")
    return count


def check_init(
    init: Any, words: tuple[str, ...], what: str, shape: tuple[int, ...]
) -> Any:
    """Where a fit starts: one of the words, or points as an array of that shape."""
    if isinstance(init, str):
        if init not in words:
            refuse("init", words, (what,), init)
        return init
    points = check_points("init", init, shape[-1], ndim=len(shape))
    if points.shape != shape:
        raise ValueError(
            f"init must have {shape[0]} rows, one for each of the {what}, "
            f"got {len(points)}"
        )
    return points


def warn_unless_converged(converged: bool, max_iter: int) -> None:
    """Warn that an estimator's `fit`, which calls this, took all of its steps."""
    if not converged:
        warnings.warn(
            f"the fit did not converge within {max_iter} steps; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def check_weights(sample_weight: Any, n: int) -> Array:
    """Weights of n rows."""
    if sample_weight is None:
        return np.ones(n)
    weights = check_points("sample_weight", sample_weight)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape {(n,)}, one weight for each row of X, "
            f"got {weights.shape}"
        )
    return weights


def _check_fit_weights(sample_weight: Any, n: int) -> Array:
    """Weights that sum to one."""
    weights = check_weights(sample_weight, n)
    if weights.min() < 0.0:
        raise ValueError("sample_weight must not be negative")
    if np.sum(weights > 0.0) < 2:
        raise ValueError(
            "sample_weight must be positive for at least 2 rows, the others may be zero"
        )
    return np.asarray(weights / weights.sum())


def _check_sigma(sigma: float, data: Array) -> None:
    """Refuse a sigma without neighbours; warn of one that covers all of the data."""
    points = np.unique(data, axis=0)
    if len(points) < 2:
        return
    spacing = float(np.median(KDTree(points).query(points, 2)[0][:, 1]))
    extent = float(np.sqrt(np.sum(np.var(data, axis=0))))
    remedy = f"try sigma='auto' ({automatic_sigma(data):.3g})"
    # Between these bounds the metric follows the data.
    if sigma < 0.5 * spacing:
        raise ValueError(
            f"sigma={sigma:g} is far smaller than the distance of neighbouring rows "
            f"({spacing:.3g}): the metric is flat between them; {remedy}"
        )
    if sigma > 3.0 * extent:
        warnings.warn(
            f"sigma={sigma:g} is far larger than the extent of the data "
            f"({extent:.3g}): the metric does not follow them; {remedy}",
            UserWarning,
            stacklevel=5,
        )


def _check_geodesics(metric: Metric, data: Array) -> None:
    """Refuse a metric under which most geodesics between rows cannot be found.

    A fit would take minutes to find out: every failure costs all its iterations.
    """
    if metric.is_flat:
        return
    rows = np.random.default_rng(0).permutation(len(data))[:32]
    middle = np.argmin(np.sum((data - np.median(data, axis=0)) ** 2, axis=1))
    lost = int(np.sum(~log_map(metric, data[middle], data[rows]).converged))
    if 3 * lost > len(rows):
        raise ValueError(
            "metric must be smooth at the scale of the distances between rows, and not "
            f"vary by too many orders of magnitude: geodesics to {lost} of {len(rows)} "
            "rows of X, from one in their middle, were not found"
        )


def _warn_about_columns(data: Array) -> None:
    constant = np.flatnonzero(np.ptp(data, axis=0) == 0.0)
    n, dim = data.shape
    if len(constant):
        warnings.warn(
            f"X is constant in column(s) {constant.tolist()}: the covariance there is "
            "regularised; drop the column(s)",
            UserWarning,
            stacklevel=4,
        )
    if n <= dim:
        warnings.warn(
            f"X has {n} rows for {dim} columns: the covariance is regularised in the "
            "directions without data; reduce the dimension first, with PCA for example",
            UserWarning,
            stacklevel=4,
        )
