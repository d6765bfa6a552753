"""Quadrature nodes in a tangent space, with the volume element at each of them.

An integral over the tangent space at the mean, of a Gaussian-like weight times the
volume element m(v), becomes a sum over nodes. The costly part, m(v), needs Exp(v); but
all points of a ray, Exp(t v), come from one solve, so nodes lie on rays: radial
quadrature along each ray, and directions that fill the sphere evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import chi2, norm, qmc

from land._precision import in_float64
from land.geodesics.exponential import MAX_STEPS, integrate
from land.geodesics.jacobi import follow_rays
from land.metrics import Metric

Array = NDArray[np.float64]
Volume = Literal["exact", "paper"]
Reference = Literal["lebesgue", "riemannian"]
# What exp(-q) / C is a density of: dx, the metric's volume, or the paper's Eq. 7.
Law = Literal["lebesgue", "riemannian", "paper"]

# Rays end where the standard normal has this much mass left beyond.
TAIL = 1e-8
# Each group of directions is an even filling of the sphere on its own: the spread of
# the groups' answers is a (cautious) measure of the error of their mean. Four groups
# agreed by chance too often.
GROUPS = 8


@dataclass(frozen=True)
class TangentNodes:
    """Nodes of a quadrature rule on a tangent space.

    Integrals become ``sum(exp(log_weights + log_volumes) * f(tangents))``.

    Attributes
    ----------
    tangents : ndarray of shape (n, D)
    points : ndarray of shape (n, D)
        Exp(v), where the tangents lead.
    log_weights : ndarray of shape (n,)
        Logarithms of the weights of the rule for the Lebesgue measure dv.
    log_volumes : ndarray of shape (n,)
        log m(v): the volume element of the model; minus infinity past the first
        conjugate point.
    groups : ndarray of shape (n,)
        Which randomised replicate of the rule a node belongs to.
    rays : ndarray of shape (n,)
        Which ray a node lies on, and so which row of `across`.
    n_maps : int
        Initial value problems that were solved.
    n_failed : int
        How many of them failed; their nodes are left out.
    hessians : ndarray of shape (n, D - 1, D - 1) or None
        Across the rays, of half the squared distance from the mean to Exp(v). Only for
        the laws of points, not for the paper's.
    across : ndarray of shape (n_rays, D, D - 1) or None
        Orthonormal vectors at the mean that the hessians speak of.
    """

    tangents: Array
    points: Array
    log_weights: Array
    log_volumes: Array
    groups: NDArray[np.int64]
    rays: NDArray[np.int64]
    n_maps: int
    n_failed: int
    hessians: Array | None = None
    across: Array | None = None


def ray_nodes(
    metric: Metric,
    means: Sequence[Array],
    factors: Sequence[Array],
    n_rays: int,
    n_radii: int,
    law: Law,
    rng: np.random.Generator,
    tol: float,
) -> list[TangentNodes]:
    """Nodes on rays, placed for normal distributions with covariances L L^T.

    The rays of all means are followed in one batch.

    Parameters
    ----------
    metric
        The metric.
    means : k arrays of shape (D,)
        Where the tangent spaces are.
    factors : k arrays of shape (D, D)
        L: nodes are L z for z spread like a standard normal.
    n_rays, n_radii
        Number of rays for each mean and of nodes on each ray.
    law
        Which law, and so which volume element.
    rng
        Randomness of the directions, which all means share.
    tol
        Tolerance of the exponential maps.
    """
    dim = metric.dim
    reach = float(np.sqrt(chi2.isf(TAIL, dim)))
    nodes, weights = np.polynomial.legendre.leggauss(n_radii)
    fractions = (nodes + 1.0) / 2.0
    radii = reach * fractions
    directions, groups = sphere_directions(dim, n_rays, rng)
    count = len(directions)
    rays = np.stack([reach * directions @ factor.T for factor in factors])
    bases = np.repeat(np.asarray(means), count, axis=0)
    found = volumes_along_rays(
        metric, bases, rays.reshape(-1, dim), fractions, law, tol
    )
    # dv = |L| r^(D-1) dr dw, with w on the sphere of area 2 pi^(D/2) / Gamma(D/2)
    log_area = np.log(2.0) + 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim)
    radial = np.log(0.5 * reach * weights) + (dim - 1) * np.log(radii)
    radial += log_area - np.log(count)
    placed = []
    for k, factor in enumerate(factors):
        good = k * count + np.flatnonzero(~found.failed[k * count : (k + 1) * count])
        n_good = len(good)
        hessians, across = found.hessians, found.across
        tangents = fractions[:, None] * rays[k, good - k * count, None]
        placed.append(
            TangentNodes(
                tangents=tangents.reshape(-1, dim),
                points=found.points[good].reshape(-1, dim),
                log_weights=np.tile(radial + np.linalg.slogdet(factor)[1], n_good),
                log_volumes=found.log_volumes[good].reshape(-1),
                groups=np.repeat(groups[good - k * count], n_radii),
                rays=np.repeat(np.arange(n_good), n_radii),
                n_maps=count,
                n_failed=count - n_good,
                hessians=None
                if hessians is None
                else hessians[good].reshape(n_good * n_radii, dim - 1, dim - 1),
                across=None if across is None else across[good],
            )
        )
    return placed


def sphere_directions(
    dim: int, n: int, rng: np.random.Generator
) -> tuple[Array, NDArray[np.int64]]:
    """At least `n` directions that fill the unit sphere evenly, and their groups."""
    size = max(1, int(np.ceil(n / GROUPS)))
    if dim == 1:
        return np.array([[1.0], [-1.0]]), np.zeros(2, dtype=np.int64)
    if dim == 2:
        # Equally spaced angles integrate smooth periodic functions best of all.
        count = GROUPS * size
        angles = 2.0 * np.pi * (np.arange(count) + rng.uniform()) / count
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return directions, np.arange(count) % GROUPS
    # Opposite directions: odd functions then integrate to nothing, as they should.
    level = int(np.ceil(np.log2(GROUPS * size / 2)))
    uniform = qmc.Sobol(dim, rng=rng).random_base2(level)
    normal = norm.ppf(np.clip(uniform, 1e-15, 1.0 - 1e-15))
    directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    groups = np.arange(len(directions)) * GROUPS // len(directions)
    return np.concatenate([directions, -directions]), np.tile(groups, 2)


@dataclass(frozen=True)
class RayVolumes:
    """The volume element at points of rays.

    Attributes
    ----------
    points : ndarray of shape (n, k, D)
    log_volumes : ndarray of shape (n, k)
    hessians : ndarray of shape (n, k, D - 1, D - 1) or None
    across : ndarray of shape (n, D, D - 1) or None
        See `TangentNodes`.
    failed : ndarray of shape (n,)
    log_volume_at_base : ndarray of shape (n, 1)
        Where all rays start.
    """

    points: Array
    log_volumes: Array
    hessians: Array | None
    across: Array | None
    failed: NDArray[np.bool_]
    log_volume_at_base: Array


@in_float64
def volumes_along_rays(
    metric: Metric,
    bases: Array,
    rays: Array,
    fractions: Array,
    law: Law,
    tol: float,
) -> RayVolumes:
    """Values log m(t v), (n, k), for rays v (n, D) and ascending fractions t (k,).

    With respect to dv in coordinates, like the covariance. Rays start at `bases`, of
    shape (D,) or (n, D). The volume element of the manifold is

        m(v) = sqrt|M(mu)| |det DExp(v)|  in normal coordinates,

    and zero past the first conjugate point, where no geodesic is shortest. That of dx
    is smaller by sqrt|M(Exp v)|; the paper's Eq. 7 has this factor in place of the
    determinant.
    """
    metric, center = metric.centred()
    starts = np.broadcast_to(bases, rays.shape) - center
    here = metric.log_volume(np.atleast_2d(bases) - center)
    here = np.broadcast_to(here, len(rays))[:, None]
    if law != "paper":
        found = follow_rays(metric, starts, rays, fractions, tol)
        log_volumes = here + found.log_dets
        if law == "lebesgue":
            log_volumes = log_volumes - metric.log_volume(found.points)
            here = np.zeros_like(here)
        log_volumes = np.where(found.conjugate, -np.inf, log_volumes)
        return RayVolumes(
            center + found.points,
            log_volumes,
            found.hessians,
            found.across,
            found.failed,
            here,
        )
    arrivals = integrate(
        metric, starts[:, None], rays[:, None], fractions, tol, MAX_STEPS
    )
    points = arrivals.samples[:, :, 0]
    log_volumes = here + metric.log_volume(points)
    return RayVolumes(
        center + points, log_volumes, None, None, arrivals.failed, 2.0 * here
    )


# Times at which a single tangent is looked at for conjugate points on the way.
_ON_THE_WAY = np.arange(1, 17) / 16.0


def volumes_at(
    metric: Metric, mean: Array, tangents: Array, law: Law, tol: float
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Points Exp(v) and values log m(v) for tangents v (n, D); which maps failed."""
    times = np.ones(1) if law == "paper" else _ON_THE_WAY
    found = volumes_along_rays(metric, mean, tangents, times, law, tol)
    return found.points[:, -1], found.log_volumes[:, -1], found.failed
