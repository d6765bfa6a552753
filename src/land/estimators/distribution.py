"""The locally adaptive normal distribution as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from land._validation import as_generator, check_count, check_points
from land.density.likelihood import Measure
from land.density.nodes import Reference, Volume, cholesky
from land.density.sampling import Draws, draw
from land.estimators.archive import PathLike
from land.estimators.base import RiemannianDensity, warn_about_points
from land.estimators.restarts import Outcome, attempt
from land.estimators.scoring import Component, tangents_at
from land.fitting import Estimate, FitProblem, Snapshot, fit_one

Array = NDArray[np.float64]


class LAND(RiemannianDensity):
    """Locally adaptive normal distribution.

    A normal distribution whose distances are measured along geodesics of a metric that
    is learned from the data, so that mean, covariance and density follow their shape.

    Parameters
    ----------
    sigma : float or "auto"
        Size of the neighbourhoods from which the metric is learned. ``"auto"`` goes by
        the median distance to the k-th neighbour, ``k = ceil(sqrt(N) / 2)``.
    rho : float or "auto"
        Added to the local variances; the smaller, the more it costs to leave the data.
        ``"auto"`` takes the typical local variance on the data. If sigma and rho are
        both automatic, they are chosen smaller, so that geodesics follow curves all the
        way round, and the flat metric is tried as well: see `geometry_gain_`.
    metric : Metric or None
        A metric to use in place of the learned one.
    method : {"ml", "least_squares"}
        Maximum likelihood, or intrinsic mean and empirical covariance.
    optimizer : {"auto", "paper"}
        ``"auto"`` descends with exact covariance steps and a quasi-Newton method for
        the mean, from several starts. ``"paper"`` is the paper's Algorithms 1
        and 2 as printed.
    volume : {"exact", "paper"}
        How the normalisation constant is computed: ``"exact"`` integrates over the
        manifold, as the paper defines it; ``"paper"`` leaves out ``|det DExp|``, as the
        paper does on the way, see `land.log_constant`.
    reference : {"lebesgue", "riemannian"}
        What ``exp(-q(x)) / C`` is the density of, with half the squared Mahalanobis
        length q of Log(x): dx, or the metric's volume as in the paper. The latter is
        small where data are many, so that it puts mass beside them. ``volume="paper"``
        is always with respect to the metric's volume.
    covariance_type : {"full", "diag", "spherical"}
        Which covariances are allowed, in tangent coordinates at the mean: any, diagonal
        ones, or multiples of the identity. The fewer parameters, the more dimensions a
        fit can bear.
    init : {"least_squares", "random"} or array_like of shape (D,)
        Where to start: central points of the data, which are compared; a random
        row, or a given mean.
    n_samples : int
        Effort for the normalisation constant, see `land.log_constant`.
    max_iter : int
        Largest number of steps of the mean.
    tol : float
        Stop when a step is predicted to lower the objective by less than this. For
        ``optimizer="paper"``: when its squared change is at most this.
    random_state : None, int or RandomState
        Randomness of starting points and quadrature. The same value gives the same
        fit.
    verbose : int
        Whether to report every step on the standard error stream.
    callback : callable or None
        Called with a `Step` after every step.
    n_jobs : int or None
        Number of processes that score points, a chunk of about a thousand at a time,
        see joblib; -1 for one on each core. None is one, or what
        `joblib.parallel_config` says. Results do not depend on it.

    Attributes
    ----------
    mean_ : ndarray of shape (D,)
    covariance_, precision_ : ndarray of shape (D, D)
        In tangent coordinates at the mean; matrices for every `covariance_type`.
    log_constant_ : float
        Logarithm of the normalisation constant.
    log_constant_stderr_ : float
        Its standard error.
    effective_samples_ : float
        Effective number of quadrature nodes behind it.
    objective_ : float
        Mean negative log likelihood with respect to the reference.
    history_ : list of Step
        Objective, mean and work after each step.
    converged_, interrupted_ : bool
        Whether the stopping rule was met; whether Ctrl-C ended the fit early.
    n_iter_ : int
    n_failed_log_maps_ : int
        Rows of the training data whose log map failed at the final mean.
    n_log_maps_ : int
        Geodesics computed in the fit.
    metric_ : Metric
    sigma_, rho_ : float
        The values used; infinite if the flat metric was kept. Only if the metric was
        learned.
    geometry_gain_ : float
        Mean log density of the training data with the curved metric, less that with the
        flat one, which is an ordinary normal distribution. Below 0.05 the flat one is
        kept. NaN if they were not compared.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if `X` has column names that are all strings.

    Examples
    --------
    >>> import land
    >>> X = land.datasets.make_half_ellipse(100, random_state=0)
    >>> model = land.LAND(random_state=0).fit(X)
    >>> model.score_samples(X[:3]).shape
    (3,)
    >>> model.sample(5, random_state=0).shape
    (5, 2)
    """

    def __init__(
        self,
        sigma: float | str = "auto",
        rho: float | str = "auto",
        metric: Any = None,
        method: str = "ml",
        optimizer: str = "auto",
        volume: Volume = "exact",
        reference: Reference = "lebesgue",
        covariance_type: str = "full",
        init: Any = "least_squares",
        n_samples: int = 3000,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.sigma = sigma
        self.rho = rho
        self.metric = metric
        self.method = method
        self.optimizer = optimizer
        self.volume = volume
        self.reference = reference
        self.covariance_type = covariance_type
        self.init = init
        self.n_samples = n_samples
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.n_jobs = n_jobs

    def fit(
        self,
        X: ArrayLike,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: PathLike | None = None,
    ) -> Self:
        """Fit mean and covariance.

        An interrupt (Ctrl-C) ends the fit early and keeps the model reached so far.

        Parameters
        ----------
        X : array_like of shape (N, D)
            The data.
        y : None
            Ignored.
        sample_weight : array_like of shape (N,), optional
            Weights of the rows in the likelihood. The metric is learned from the rows
            as they are.
        checkpoint : path-like, optional
            File in which the progress of a long fit is kept. If it exists, a fit of the
            same data with the same parameters goes on from there, and ends with the
            same model as one that was never interrupted. It is deleted when the fit
            has ended. Maximum likelihood with the default optimizer keeps its progress
            after the search for a start and every few steps; others start anew.
        """
        problem, weights, settings, rng = self._start_distribution(
            X, sample_weight, checkpoint
        )
        init = self._check_init(problem.data.shape[1])

        def run(problem: FitProblem, rng: np.random.Generator) -> Outcome:
            def fit(own: FitProblem) -> tuple[Snapshot, bool, list[int]]:
                estimate, converged = fit_one(own, weights, init, settings, rng)
                snapshot = Snapshot([estimate], np.ones(1), estimate.objective)
                return snapshot, converged, []

            return attempt(problem, fit)

        outcome = self._fit_metric(problem, weights, rng, run)
        (estimate,) = outcome.snapshot.estimates
        self._store(estimate)
        self._store_progress(outcome, checkpoint)
        return self

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters, as AIC and BIC count them.

        Those of the mean and of the covariance.
        """
        check_is_fitted(self)
        return self._n_parameters_each(len(self.mean_))

    def score_samples(self, X: ArrayLike, measure: Measure = "lebesgue") -> Array:
        """Log densities.

        Parameters
        ----------
        X : array_like of shape (n, D)
            Points.
        measure : {"lebesgue", "riemannian"}
            ``"lebesgue"`` is the density with respect to dx; it can be compared with
            any other density on R^D. ``"riemannian"`` is the paper's, with respect to
            the metric's volume.

        Returns
        -------
        ndarray of shape (n,)
            NaN, with a warning, where a geodesic could not be computed.
        """
        values = self._log_densities(X, measure)[:, 0]
        warn_about_points(values, "their log density is NaN")
        return values

    def tangents(self, X: ArrayLike) -> Array:
        """Tangent coordinates Log(x) at the mean, of which `covariance_` speaks.

        NaN, with a warning, where a log map failed.
        """
        check_is_fitted(self)
        tangents = self._for_rows(tangents_at, X, mean=self.mean_)
        warn_about_points(tangents[:, 0], "their tangents are NaN")
        return tangents

    def sample(
        self,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        return_diagnostics: bool = False,
    ) -> Array | tuple[Array, Draws]:
        """Draw independent points from the fitted model, exactly, by rejection.

        Parameters
        ----------
        n_samples : int
            Number of points.
        random_state : None, int, RandomState or Generator
            Randomness of the draws.
        return_diagnostics : bool
            Whether to return also the tangents and the share of accepted proposals.

        Returns
        -------
        ndarray of shape (n_samples, D), or a tuple of that and `Draws`
        """
        check_is_fitted(self)
        count = check_count("n_samples", n_samples)
        draws = draw(
            self.metric_,
            self.mean_,
            cholesky(self.covariance_),
            count,
            self._law,
            as_generator(random_state),
        )
        return (draws.points, draws) if return_diagnostics else draws.points

    def _check_init(self, dim: int) -> Any:
        if isinstance(self.init, str):
            if self.init not in ("least_squares", "random"):
                raise ValueError(
                    "init must be 'least_squares', 'random' or a mean, "
                    f"got {self.init!r}"
                )
            return self.init
        return check_points("init", self.init, dim, ndim=1)

    def _store(self, estimate: Estimate) -> None:
        self.mean_ = estimate.mean
        self.covariance_ = estimate.covariance
        self.precision_ = estimate.precision
        self.log_constant_ = estimate.log_constant.value
        self.log_constant_stderr_ = estimate.log_constant.stderr
        self.effective_samples_ = estimate.log_constant.effective_samples
        self.objective_ = estimate.objective

    def _components(self) -> list[Component]:
        return [Component(self.mean_, self.precision_, self.log_constant_)]
