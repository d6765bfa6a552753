"""The locally adaptive normal distribution as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from land.density.nodes import Reference, Volume
from land.estimators.base import check_init, warn_about_points
from land.estimators.density import Outcome, RiemannianDensity, attempt
from land.estimators.scoring import Component, tangents_at
from land.fitting import FitProblem, Snapshot, fit_one

Array = NDArray[np.float64]


@dataclass(eq=False, repr=False)
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
        density: ten to thirty fits, see `learning_`.
    rho : float, "auto" or "learn"
        Added to the local variances; the smaller, the more it costs to leave the data.
        ``"auto"`` takes the typical local variance on the data. If sigma and rho are
        both automatic, they are smaller, so that geodesics follow curves all the way
        round, and the flat metric is tried as well: see `geometry_gain_`.
    metric : {"diagonal", "full", "density"}, Metric or None
        Which metric is learned: from the local variances along the axes, as in the
        paper (None means the same); from the local covariances, so that turning the
        data turns the result; or from a kernel density. See `land.metrics`. Or a metric
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
        What ``exp(-q(x)) / C`` is the density of, with half the squared Mahalanobis
        length q of Log(x): dx, or the metric's volume as in the paper. The latter is
        small where data are many, so that it puts mass beside them. ``volume="paper"``
        is always with respect to the metric's volume.
    covariance_type : {"full", "diag", "spherical"}
        Which covariances are allowed, in tangent coordinates at the mean. Fewer
        parameters suit more dimensions.
    init : {"least_squares", "random"} or array_like of shape (D,)
        Where to start: central points of the data, which are compared; a random
        row, or a given mean.
    n_samples : int
        Effort spent on the normalisation constant, see `land.log_constant`.
    max_iter : int
        Largest number of steps of the mean.
    tol : float
        Stop when a step is predicted to lower the objective by less than this. For
        ``optimizer="paper"``: when its squared change is at most this.
    random_state : None, int, RandomState or Generator
        Randomness of starts and quadrature. The same integer gives the same fit.
    verbose : int
        Whether to report every step on the standard error stream.
    callback : callable, list of callables or None
        Called with a `Step` after every step, see `land.callbacks`.
    n_jobs : int or None
        Number of processes that score points, in chunks of up to 4096 rows; the fit
        itself is one process. -1 is one on each core; None is one, or what
        `joblib.parallel_config` says. Results do not depend on it.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
    covariance_, precision_ : ndarray of shape (D, D)
        In tangent coordinates at the mean; matrices for every `covariance_type`.
    log_constant_, log_constant_stderr_ : float
        Logarithm of the normalisation constant, and its standard error.
    effective_samples_ : float
        Effective number of quadrature nodes behind it.
    objective_ : float
        Mean negative log likelihood with respect to the reference.
    history_ : list of Step
        Objective, mean and work after each step.
    converged_, interrupted_ : bool
        Whether the stopping rule was met; whether Ctrl-C ended the fit early.
    n_iter_, n_log_maps_ : int
        Number of steps, and of geodesics computed.
    n_failed_log_maps_ : int
        Rows of the training data whose log map failed at the final mean.
    metric_ : Metric
    sigma_, rho_ : float
        The values used; infinite if the flat metric was kept. Only if the metric was
        learned.
    geometry_gain_ : float
        Mean log density of the training data with the curved metric, less that with the
        flat one, which is an ordinary normal distribution. Below 0.05 the flat one is
        kept. Of held-out rows, if sigma or rho were learned; NaN if the metrics were
        not compared.
    learning_ : list of dict
        Candidates that were tried to learn `sigma` and `rho`: their values, the mean
        log density ``score`` of held-out rows, by how much it is ``behind`` the best
        one, the standard error ``stderr`` of that difference, ``seconds``, and the
        ``error`` of one that failed. Of those that are behind by less than the standard
        error the smoothest is ``chosen``. Weights have no part in it. Only if something
        was learned; files do not keep it.
    health_ : list of str
        What did not go well, each with what to do about it; empty if all is well.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if `X` has column names that are all strings.

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

    sigma: float | str = "auto"
    rho: float | str = "auto"
    metric: Any = None
    method: str = "ml"
    optimizer: str = "auto"
    volume: Volume = "exact"
    reference: Reference = "lebesgue"
    covariance_type: str = "full"
    init: Any = "least_squares"
    n_samples: int = 3000
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Any = None
    verbose: int = 0
    callback: Any = None
    n_jobs: int | None = None

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
        init = check_init(self.init, ("least_squares", "random"), "a mean", shape)

        def fit(own: FitProblem) -> Outcome:
            estimate, converged = fit_one(own, weights, init, settings, rng)
            snapshot = Snapshot([estimate], np.ones(1), estimate.objective)
            return Outcome(snapshot, converged)

        return attempt(problem, fit)

    def _store(self, snapshot: Snapshot) -> None:
        (estimate,) = snapshot.estimates
        self.mean_ = estimate.mean
        self.covariance_ = estimate.covariance
        self.precision_ = estimate.precision
        self.log_constant_ = estimate.log_constant.value
        self.log_constant_stderr_ = estimate.log_constant.stderr
        self.effective_samples_ = estimate.log_constant.effective_samples

    def _components(self) -> list[Component]:
        parts = self.mean_, self.covariance_, self.precision_, self.log_constant_
        return [Component(1.0, *parts)]
