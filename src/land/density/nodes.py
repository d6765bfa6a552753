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
from land.metrics import Metric

Array = NDArray[np.float64]
Volume = Literal["paper", "exact"]

# Rays end where the standard normal has this much mass left beyond.
_TAIL = 1e-10
# Each group of directions is an even filling of the sphere on its own: the spread of
# the groups' answers is a (cautious) measure of the error of their mean.
GROUPS = 4


@dataclass(frozen=True)
class TangentNodes:
    """Nodes of a quadrature rule on a tangent space.

    Integrals become ``sum(exp(log_weights + log_volumes) * f(tangents))``.

    Attributes
    ----------
    tangents : ndarray of shape (n, D)
    log_weights : ndarray of shape (n,)
        Logarithms of the weights of the rule for the Lebesgue measure dv.
    log_volumes : ndarray of shape (n,)
        log m(v): the volume element of the model.
    groups : ndarray of shape (n,)
        Which randomised replicate of the rule a node belongs to.
    n_maps : int
        Initial value problems that were solved.
    n_failed : int
        How many of them failed; their nodes are left out.
    """

    tangents: Array
    log_weights: Array
    log_volumes: Array
    groups: NDArray[np.int64]
    n_maps: int
    n_failed: int


def ray_nodes(
    metric: Metric,
    means: Sequence[Array],
    factors: Sequence[Array],
    n_rays: int,
    n_radii: int,
    volume: Volume,
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
    volume
        Which volume element.
    rng
        Randomness of the directions, which all means share.
    tol
        Tolerance of the exponential maps.
    """
    dim = metric.dim
    reach = float(np.sqrt(chi2.isf(_TAIL, dim)))
    nodes, weights = np.polynomial.legendre.leggauss(n_radii)
    fractions = (nodes + 1.0) / 2.0
    radii = reach * fractions
    directions, groups = sphere_directions(dim, n_rays, rng)
    rays = np.stack([reach * directions @ factor.T for factor in factors])
    bases = np.repeat(np.asarray(means), len(directions), axis=0)
    log_volumes, failed = volumes_along_rays(
        metric, bases, rays.reshape(-1, dim), fractions, volume, tol
    )
    log_volumes = log_volumes.reshape(len(rays), len(directions), n_radii)
    good = ~failed.reshape(len(rays), len(directions))
    # dv = |L| r^(D-1) dr dw, with w on the sphere of area 2 pi^(D/2) / Gamma(D/2)
    log_area = np.log(2.0) + 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim)
    radial = np.log(0.5 * reach * weights) + (dim - 1) * np.log(radii)
    radial += log_area - np.log(len(directions))
    tangents = fractions[:, None] * rays[:, :, None]
    return [
        TangentNodes(
            tangents=tangents[k, good[k]].reshape(-1, dim),
            log_weights=np.tile(
                radial + np.linalg.slogdet(factor)[1], int(good[k].sum())
            ),
            log_volumes=log_volumes[k, good[k]].reshape(-1),
            groups=np.repeat(groups[good[k]], n_radii),
            n_maps=len(directions),
            n_failed=int((~good[k]).sum()),
        )
        for k, factor in enumerate(factors)
    ]


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
    level = int(np.ceil(np.log2(GROUPS * size)))
    uniform = qmc.Sobol(dim, rng=rng).random_base2(level)
    normal = norm.ppf(np.clip(uniform, 1e-15, 1.0 - 1e-15))
    directions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return directions, np.arange(len(directions)) * GROUPS // len(directions)


@in_float64
def volumes_along_rays(
    metric: Metric,
    bases: Array,
    rays: Array,
    fractions: Array,
    volume: Volume,
    tol: float,
) -> tuple[Array, NDArray[np.bool_]]:
    """Values log m(t v), (n, k), for rays v (n, D) and fractions t (k,); failures.

    Rays start at `bases`, of shape (D,) or (n, D).
    """
    n, dim = rays.shape
    metric.prepare(n)
    metric, center = metric.centred()
    exact = volume == "exact"
    rows = dim + 1 if exact else 1
    position = np.zeros((n, rows, dim))
    position[:, 0] = bases - center
    velocity = np.zeros((n, rows, dim))
    velocity[:, 0] = rays
    if exact:
        velocity[:, 1:] = np.eye(dim)
    arrivals = integrate(metric, position, velocity, fractions, tol, MAX_STEPS)
    points = arrivals.samples[:, :, 0]
    log_volumes = metric.log_volume(points)
    if exact:
        # Jacobi fields J(t) of the ray give DExp(t v) = J(t) / t.
        jacobians = arrivals.samples[:, :, 1:] / fractions[None, :, None, None]
        log_volumes = log_volumes + np.linalg.slogdet(jacobians)[1]
    return log_volumes, arrivals.failed


@in_float64
def volumes_at(
    metric: Metric, mean: Array, tangents: Array, volume: Volume, tol: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Values log m(v) for tangents v (n, D): (n,), and which maps failed."""
    values, failed = volumes_along_rays(metric, mean, tangents, np.ones(1), volume, tol)
    return values[:, 0], failed
