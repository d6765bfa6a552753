"""The normalisation constant of the locally adaptive normal distribution."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from land._validation import check_count, check_covariance, check_points
from land.density.cut_locus import within_cut_locus
from land.density.nodes import (
    Law,
    Reference,
    TangentNodes,
    Volume,
    ray_nodes,
    volumes_at,
)
from land.geodesics.problem import check_metric
from land.metrics import Metric

Array = NDArray[np.float64]

N_RADII = 32
# Of `n_samples` plain samples, one ray replaces this many: it costs a few of them, and
# the rays together are far more accurate.
SAMPLES_PER_RAY = 12
# Fewer directions could not tell the entries of a covariance apart.
_FEWEST_RAYS, _RAYS_PER_ENTRY = 16, 8


@dataclass(frozen=True)
class LogConstant:
    """Result of `land.log_constant`.

    Attributes
    ----------
    value : float
        log C.
    stderr : float
        Standard error of `value`.
    effective_samples : float
        Number of equally important nodes that would be as good; a small share of
        `n_nodes` means that the volume element is concentrated on a few of them.
    n_nodes : int
        Number of tangent vectors at which the volume element was evaluated.
    n_maps : int
        Initial value problems that were solved for them.
    n_failed : int
        How many of those failed and were left out.
    double_counted : float
        Mass past the cut locus, relative to that within it: points that are reached on
        a shorter way and must not count twice. It is not part of `value`.
    """

    value: float
    stderr: float
    effective_samples: float
    n_nodes: int
    n_maps: int
    n_failed: int
    double_counted: float = 0.0


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
        n_rays = rays_for(n_samples, metric.dim * (metric.dim + 1) // 2)
        (nodes,) = ray_nodes(metric, [center], [factor], n_rays, N_RADII, law, rng, tol)
    else:
        normal = rng.standard_normal((n_samples, metric.dim))
        nodes = monte_carlo_nodes(metric, center, factor, normal, law, tol)
    _warn_about_failures(nodes)
    precision, double_counted = invert(factor @ factor.T), 0.0
    if law != "paper":
        shares = model_shares(nodes, precision)
        ((nodes, double_counted),) = within_cut_locus(
            metric, [center], [nodes], [shares], tol
        )
    return summarise(nodes, precision, tol, double_counted)


def law_of(volume: Volume, reference: Reference) -> Law:
    """What the density is one of; the paper's Eq. 7 leaves no choice."""
    for name, value, allowed in (
        ("volume", volume, get_args(Volume)),
        ("reference", reference, get_args(Reference)),
    ):
        if value not in allowed:
            words = " or ".join(repr(word) for word in allowed)
            raise ValueError(f"{name} must be {words}, got {value!r}")
    return "paper" if volume == "paper" else reference


def rays_for(n_samples: int, n_entries: int) -> int:
    """Number of rays for an effort of `n_samples`, enough for so many entries."""
    fewest = max(_FEWEST_RAYS, _RAYS_PER_ENTRY * n_entries)
    return max(fewest, -(-n_samples // SAMPLES_PER_RAY))


def summarise(
    nodes: TangentNodes, precision: Array, tol: float, double_counted: float = 0.0
) -> LogConstant:
    """The constant for a precision, from nodes placed for a similar one."""
    terms = log_terms(nodes, precision)
    total = float(logsumexp(terms))
    n_groups = int(nodes.groups.max()) + 1
    shares = n_groups * np.bincount(nodes.groups, np.exp(terms - total))
    if n_groups > 1:
        spread = np.std(shares, ddof=1) / np.sqrt(n_groups)
    else:  # on a line both directions are taken, and nothing is left to chance
        spread = 0.0 if nodes.tangents.shape[1] == 1 and not nodes.n_failed else np.inf
    # Importance weights against the normal distribution are the volumes themselves.
    first, second = logsumexp(terms), logsumexp(terms + nodes.log_volumes)
    gaussian = logsumexp(log_terms(nodes, precision, volumes=False))
    share = np.exp(2.0 * first - second - gaussian)
    return LogConstant(
        value=total,
        stderr=float(np.hypot(spread, tol)),
        effective_samples=float(share * len(terms)),
        n_nodes=len(terms),
        n_maps=nodes.n_maps,
        n_failed=nodes.n_failed,
        double_counted=double_counted,
    )


def log_terms(nodes: TangentNodes, precision: Array, *, volumes: bool = True) -> Array:
    """Logarithms of the terms whose sum is C, or that of a normal distribution."""
    terms = nodes.log_weights - 0.5 * squared_lengths(nodes.tangents, precision)
    return terms + nodes.log_volumes if volumes else terms


def squared_lengths(tangents: Array, precision: Array) -> Array:
    """v^T Gamma v for tangents v (n, D)."""
    # A matrix product: one call of einsum would take D^2 steps for every tangent.
    with np.errstate(invalid="ignore"):
        return np.einsum("ni,ni->n", tangents @ precision, tangents)


def model_shares(nodes: TangentNodes, precision: Array) -> Array:
    """The model's probabilities of the nodes, which sum to one."""
    terms = log_terms(nodes, precision)
    shares = np.exp(terms - terms.max())
    return np.asarray(shares / shares.sum())


def cholesky(covariance: Array) -> Array:
    """Lower triangular L with L L^T = covariance."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def invert(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, symmetric to the last digit."""
    inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return 0.5 * (inverse + inverse.T)


def as_generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from anything scikit-learn takes for a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def monte_carlo_nodes(
    metric: Metric,
    mean: Array,
    factor: Array,
    normal: Array,
    law: Law,
    tol: float,
) -> TangentNodes:
    """The paper's Eq. 8: tangents L z for standard normal draws z."""
    tangents = normal @ factor.T
    points, log_volumes, failed = volumes_at(metric, mean, tangents, law, tol)
    log_normaliser = 0.5 * len(mean) * np.log(2.0 * np.pi)
    log_density = -0.5 * np.sum(normal**2, axis=1) - log_normaliser
    log_density -= np.linalg.slogdet(factor)[1]
    good = ~failed
    return TangentNodes(
        tangents=tangents[good],
        points=points[good],
        log_weights=-log_density[good] - np.log(good.sum()),
        log_volumes=log_volumes[good],
        groups=np.arange(int(good.sum())),
        rays=np.arange(int(good.sum())),
        n_maps=len(normal),
        n_failed=int(failed.sum()),
    )


def _warn_about_failures(nodes: TangentNodes) -> None:
    if nodes.n_failed:
        warnings.warn(
            f"{nodes.n_failed} of {nodes.n_maps} exponential maps failed and are left "
            "out of the constant; try a smaller covariance or a larger rho",
            RuntimeWarning,
            stacklevel=3,
        )
