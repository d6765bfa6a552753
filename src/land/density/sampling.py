"""Exact draws by rejection, under an envelope read off the quadrature rays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from land.density.nodes import Volume, ray_nodes, volumes_at
from land.geodesics import exp_map
from land.metrics import Metric

Array = NDArray[np.float64]

_RINGS = 64
_RAYS = 256
_BATCH = 1024
# The envelope exceeds the largest volume seen in a ring and its neighbours by this
# factor; a draw above it is detected, the envelope raised, and the sampling restarted.
_SAFETY = 1.3
_TAIL = 1e-10


@dataclass(frozen=True)
class Draws:
    """Samples of a model, with what they cost.

    Attributes
    ----------
    points : ndarray of shape (n, D)
    tangents : ndarray of shape (n, D)
        Log of the points at the mean.
    acceptance : float
        Share of the proposals that were accepted.
    restarts : int
        How often the envelope had to be raised; the last run was under a valid one.
    """

    points: Array
    tangents: Array
    acceptance: float
    restarts: int


def draw(
    metric: Metric,
    mean: Array,
    factor: Array,
    n: int,
    volume: Volume,
    rng: np.random.Generator,
    tol: float = 1e-6,
) -> Draws:
    """Draw tangents with density proportional to m(v) N(v; 0, L L^T), and map them.

    Proposals have uniform directions in the whitened tangent space and radii from the
    standard normal's radius times the envelope of m on rings; they are accepted with
    probability m / envelope, so that the draws are independent and exact wherever the
    envelope holds.
    """
    dim = len(mean)
    edges = np.sqrt(chi2.isf(_TAIL, dim)) * np.linspace(0.0, 1.0, _RINGS + 1)
    envelope = _envelope(metric, mean, factor, edges, volume, rng, tol)
    for restarts in range(20):
        tangents, acceptance, excess = _reject(
            metric, mean, factor, n, edges, envelope, volume, rng, tol
        )
        if excess is None:
            points = exp_map(metric, mean, tangents, tol=tol).points
            return Draws(points, tangents, acceptance, restarts)
        envelope = np.maximum(envelope, excess)
    raise RuntimeError(
        "sampling did not find an envelope of the volume element in 20 attempts; "
        "try a smaller covariance or a larger rho"
    )


def _envelope(
    metric: Metric,
    mean: Array,
    factor: Array,
    edges: Array,
    volume: Volume,
    rng: np.random.Generator,
    tol: float,
) -> Array:
    """Log of an upper bound of m on each ring of whitened radii."""
    n_radii = 2 * _RINGS
    (nodes,) = ray_nodes(metric, [mean], [factor], _RAYS, n_radii, volume, rng, tol)
    whitened = np.linalg.solve(factor, nodes.tangents.T).T
    ring = _ring(edges, np.linalg.norm(whitened, axis=1))
    highest = np.full(len(edges) - 1, -np.inf)
    np.maximum.at(highest, ring, nodes.log_volumes)
    padded = np.pad(highest, 1, mode="edge")
    return np.max([padded[:-2], padded[1:-1], padded[2:]], axis=0) + np.log(_SAFETY)


def _ring(edges: Array, radii: Array) -> NDArray[np.intp]:
    return np.clip(np.searchsorted(edges, radii) - 1, 0, len(edges) - 2)


def _reject(
    metric: Metric,
    mean: Array,
    factor: Array,
    n: int,
    edges: Array,
    envelope: Array,
    volume: Volume,
    rng: np.random.Generator,
    tol: float,
) -> tuple[Array, float, Array | None]:
    """Rejection sampling; the third value is a raised envelope if it was exceeded."""
    dim = len(mean)
    below = chi2.cdf(edges**2, dim)
    log_mass = np.log(np.diff(below)) + envelope
    chances = np.exp(log_mass - log_mass.max())
    chances /= chances.sum()
    kept: list[Array] = []
    n_kept = n_proposed = 0
    while n_kept < n:
        rings = rng.choice(len(chances), size=_BATCH, p=chances)
        share = rng.uniform(size=_BATCH)
        radii = np.sqrt(
            chi2.ppf(below[rings] + share * (below[rings + 1] - below[rings]), dim)
        )
        normal = rng.standard_normal((_BATCH, dim))
        whitened = radii[:, None] * normal / np.linalg.norm(normal, axis=1)[:, None]
        tangents = whitened @ factor.T
        log_volumes, failed = volumes_at(metric, mean, tangents, volume, tol)
        log_volumes[failed] = -np.inf
        excess = log_volumes - envelope[rings]
        if np.any(excess > 0.0):
            raised = envelope.copy()
            np.maximum.at(raised, rings, log_volumes + np.log(_SAFETY))
            return np.empty((0, dim)), 0.0, raised
        accepted = np.log(rng.uniform(size=_BATCH)) < excess
        kept.append(tangents[accepted])
        n_kept += int(accepted.sum())
        n_proposed += _BATCH
    return np.concatenate(kept)[:n], n_kept / n_proposed, None
