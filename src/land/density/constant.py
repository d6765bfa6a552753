"""The normalisation constant of the locally adaptive normal distribution."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._validation import (
    as_generator,
    check_count,
    check_covariance,
    check_points,
)
from land.density.cut_locus import within_cut_locus
from land.density.nodes import (
    Law,
    LogConstant,
    Nodes,
    Reference,
    Volume,
    cholesky,
    invert,
    law_of,
    model_shares,
    summarise,
)
from land.density.rays import ray_nodes, volumes_at
from land.geodesics.problem import check_metric
from land.metrics import Metric

Array = NDArray[np.float64]

_N_RADII = 32
# Of `n_samples` plain samples, one ray replaces this many: it costs a few of them, and
# the rays together are far more accurate.
_SAMPLES_PER_RAY = 12
_FEWEST_RAYS = 24


def log_constant(
    metric: Metric,
    mean: ArrayLike,
    covariance: ArrayLike,
    volume: Volume = "exact",
    n_samples: int = 3000,
    random_state: Any = None,
    *,
    reference: Reference = "riemannian",
    method: Literal["rays", "monte_carlo"] = "rays",
    tol: float = 1e-6,
) -> LogConstant:
    """Logarithm of the normalisation constant C(mean, covariance).

    C is the integral of m(v) exp(-v^T covariance^-1 v / 2) over the tangent space at
    the mean, where m is the volume element.

    Parameters
    ----------
    metric : Metric
        The metric.
    mean : array_like of shape (D,)
        The mean.
    covariance : array_like of shape (D, D)
        The covariance, in tangent coordinates at the mean.
    volume : {"exact", "paper"}
        ``"exact"`` integrates over the manifold, as the paper defines the constant
        (Eq. 6): ``m(v) = sqrt|M(Exp v)| |det DExp(v)|`` up to the cut locus, so that
        each point counts once. ``"paper"`` leaves out the determinant, as the paper
        does on the way to its Eq. 7, in normal coordinates of the tangent space:
        ``m(v) = sqrt|M(Exp v)| sqrt|M(mean)|``.
    reference : {"riemannian", "lebesgue"}
        What the density is one of, with the exact volume: the metric's volume, or dx,
        for which ``m(v) = |det DExp(v)|``.
    n_samples : int
        Effort: the number of samples of plain Monte Carlo. Rays are fewer by a factor
        of twelve, and at the default of 3000 their error is smaller by a factor of ten
        or more.
    random_state : None, int, RandomState or Generator
        Randomness of the nodes.
    method : {"rays", "monte_carlo"}
        ``"rays"`` places the nodes on evenly spread rays, one solve for each ray.
        ``"monte_carlo"`` is the paper's plain estimator, one solve for each sample.
    tol : float
        Tolerance of the exponential maps.

    Returns
    -------
    LogConstant
        The value with its standard error and diagnostics.

    Examples
    --------
    In flat space the constant is that of the normal distribution:

    >>> import land, numpy as np
    >>> flat = land.metrics.EuclideanMetric(2)
    >>> result = land.log_constant(flat, [0, 0], np.eye(2), random_state=0)
    >>> bool(abs(result.value - np.log(2 * np.pi)) < 1e-6)
    True
    """
    center = check_points("mean", mean, metric.dim, ndim=1)
    factor = cholesky(check_covariance("covariance", covariance, metric.dim))
    law = law_of(volume, reference)
    if method not in ("rays", "monte_carlo"):
        raise ValueError(f"method must be 'rays' or 'monte_carlo', got {method!r}")
    n_samples = check_count("n_samples", n_samples, minimum=2)
    check_metric(metric, mean=center)
    rng = as_generator(random_state)
    if method == "rays":
        n_rays = max(_FEWEST_RAYS, -(-n_samples // _SAMPLES_PER_RAY))
        rays = ray_nodes(metric, center, factor, n_rays, _N_RADII, law, rng, tol)
        nodes: Nodes = rays
    else:
        normal = rng.standard_normal((n_samples, metric.dim))
        nodes = monte_carlo_nodes(metric, center, factor, normal, law, tol)
    _warn_about_failures(nodes)
    precision, lost = invert(factor @ factor.T), 0.0
    if law != "paper":
        shares = model_shares(nodes, precision)
        ray = rays.rays if method == "rays" else np.arange(len(nodes.tangents))
        nodes, lost = within_cut_locus(metric, center, nodes, ray, shares, tol)
    return summarise(nodes, precision, tol, lost)


def monte_carlo_nodes(
    metric: Metric,
    mean: Array,
    factor: Array,
    normal: Array,
    law: Law,
    tol: float,
) -> Nodes:
    """The paper's Eq. 8: tangents L z for standard normal draws z."""
    tangents = normal @ factor.T
    points, log_volumes, failed = volumes_at(metric, mean, tangents, law, tol)
    log_normaliser = 0.5 * len(mean) * np.log(2.0 * np.pi)
    log_density = -0.5 * np.sum(normal**2, axis=1) - log_normaliser
    log_density -= np.linalg.slogdet(factor)[1]
    good = ~failed
    return Nodes(
        tangents=tangents[good],
        points=points[good],
        log_weights=-log_density[good] - np.log(good.sum()),
        log_volumes=log_volumes[good],
        contrasts=None,
        n_maps=len(normal),
        n_failed=int(failed.sum()),
    )


def _warn_about_failures(nodes: Nodes) -> None:
    if nodes.n_failed:
        warnings.warn(
            f"{nodes.n_failed} of {nodes.n_maps} exponential maps failed and are left "
            "out of the constant; try a smaller covariance or a larger rho",
            RuntimeWarning,
            stacklevel=3,
        )
