"""Quadrature along rays: for any metric, without data, accurate where it is smooth.

An integral over the tangent space at the mean, of a Gaussian-like weight times the
volume element m(v), becomes a sum over nodes. All points of a ray, Exp(t v), come from
one solve, so nodes lie on rays: radial quadrature along each ray, and directions that
fill the sphere evenly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import chi2, norm, qmc

from land._precision import in_float64
from land.density.nodes import Law, Nodes
from land.geodesics.exponential import MAX_STEPS, integrate
from land.geodesics.jacobi import follow_rays
from land.metrics import Metric

Array = NDArray[np.float64]

# Rays end where the standard normal has this much mass left beyond.
TAIL = 1e-8
# Each group of directions is an even filling of the sphere on its own: the differences
# between the groups' answers measure the error of their mean, cautiously. Four groups
# agreed by chance too often.
GROUPS = 8
# The seven ways to divide eight groups evenly: rows of a Hadamard matrix.
_PARITY = np.array([[bin(i & j).count("1") % 2 for j in range(1, 8)] for i in range(8)])


@dataclass(frozen=True)
class RayNodes(Nodes):
    """Nodes on rays, one ray after the other, the innermost node of each first.

    Attributes
    ----------
    rays : ndarray of shape (n,)
        Which ray a node lies on.
    """

    rays: NDArray[np.int64]


def ray_nodes(
    metric: Metric,
    mean: Array,
    factor: Array,
    n_rays: int,
    n_radii: int,
    law: Law,
    rng: np.random.Generator,
    tol: float,
) -> RayNodes:
    """Nodes on rays, placed for a normal distribution with covariance L L^T.

    Parameters
    ----------
    metric
        The metric.
    mean : ndarray of shape (D,)
        Where the tangent space is.
    factor : ndarray of shape (D, D)
        L: nodes are L z for z spread like a standard normal.
    n_rays, n_radii
        Number of rays and of nodes on each ray.
    law
        Which law, and so which volume element.
    rng
        Randomness of the directions.
    tol
        Tolerance of the exponential maps.
    """
    dim = metric.dim
    reach = float(np.sqrt(chi2.isf(TAIL, dim)))
    nodes, weights = np.polynomial.legendre.leggauss(n_radii)
    fractions = (nodes + 1.0) / 2.0
    directions, groups = sphere_directions(dim, n_rays, rng)
    rays = reach * directions @ factor.T
    found = volumes_along_rays(metric, mean, rays, fractions, law, tol)
    # dv = |L| r^(D-1) dr dw, with w on the sphere of area 2 pi^(D/2) / Gamma(D/2)
    log_area = np.log(2.0) + 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim)
    radial = np.log(0.5 * reach * weights) + (dim - 1) * np.log(reach * fractions)
    radial += log_area - np.log(len(rays)) + np.linalg.slogdet(factor)[1]
    good = np.flatnonzero(~found.failed)
    contrasts = (1 - 2 * _PARITY[groups[good]]).astype(np.int8)
    if dim == 1:  # both directions are taken: nothing is left to chance
        contrasts = contrasts[:, :0]
    return RayNodes(
        tangents=(fractions[:, None] * rays[good, None]).reshape(-1, dim),
        points=found.points[good].reshape(-1, dim),
        log_weights=np.tile(radial, len(good)),
        log_volumes=found.log_volumes[good].reshape(-1),
        contrasts=np.repeat(contrasts, n_radii, axis=0),
        n_maps=len(rays),
        n_failed=len(rays) - len(good),
        rays=np.repeat(np.arange(len(good)), n_radii),
    )


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
    failed : ndarray of shape (n,)
    """

    points: Array
    log_volumes: Array
    failed: NDArray[np.bool_]


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
        log_volumes = np.where(found.conjugate, -np.inf, log_volumes)
        return RayVolumes(center + found.points, log_volumes, found.failed)
    arrivals = integrate(
        metric, starts[:, None], rays[:, None], fractions, tol, MAX_STEPS
    )
    points = arrivals.samples[:, :, 0]
    log_volumes = here + metric.log_volume(points)
    return RayVolumes(center + points, log_volumes, arrivals.failed)


# Times at which a single tangent is looked at for conjugate points on the way.
_ON_THE_WAY = np.arange(1, 17) / 16.0


def volumes_at(
    metric: Metric, mean: Array, tangents: Array, law: Law, tol: float
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Points Exp(v) and values log m(v) for tangents v (n, D); which maps failed."""
    times = np.ones(1) if law == "paper" else _ON_THE_WAY
    found = volumes_along_rays(metric, mean, tangents, times, law, tol)
    return found.points[:, -1], found.log_volumes[:, -1], found.failed
