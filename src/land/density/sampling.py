"""Exact draws by rejection, under an envelope read off the quadrature rays.

The whitened tangent space is cut into cells, a ring of radii times a set of directions
closest to one ray, and the volume element is bounded in each cell by what was seen on
the ray and its neighbours. Proposals are thinned to that envelope before any geodesic
is followed, and by the volume element itself afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.stats import chi2

from land.density.nodes import Volume, sphere_directions, volumes_along_rays
from land.geodesics import exp_map
from land.metrics import Metric

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

_RINGS = 48
_RADII_PER_RING = 3
_RAYS = 512
_SMALLEST_BATCH, _LARGEST_BATCH = 1024, 8192
# The envelope exceeds the largest volume seen in a cell and its neighbours by this
# factor; a draw above it is detected, the envelope raised, and the sampling restarted.
_SAFETY = 1.4
_RESTARTS = 50
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
        Share of the proposals followed along a geodesic that were accepted.
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

    The draws are independent, and exact wherever the envelope holds.
    """
    envelope = _Envelope(metric, mean, factor, volume, rng, tol)
    for restarts in range(_RESTARTS):
        kept: list[Array] = []
        n_kept = n_followed = 0
        valid = True
        while n_kept < n and valid:
            rate = max(n_kept / max(n_followed, 1), 0.1)
            size = int(np.clip((n - n_kept) / rate, _SMALLEST_BATCH, _LARGEST_BATCH))
            tangents, cells = envelope.propose(size, rng)
            log_volumes = envelope.log_volumes(tangents)
            valid = envelope.holds(cells, log_volumes)
            bounds = envelope.values[cells]
            accepted = np.log(rng.uniform(size=size)) < log_volumes - bounds
            kept.append(tangents[accepted])
            n_kept += int(accepted.sum())
            n_followed += size
        if valid:
            chosen = np.concatenate(kept)[:n]
            points = exp_map(metric, mean, chosen, tol=tol).points
            return Draws(points, chosen, n_kept / n_followed, restarts)
    raise RuntimeError(
        f"sampling found no envelope of the volume element in {_RESTARTS} attempts; "
        "try a smaller covariance or a larger rho"
    )


class _Envelope:
    """Upper bounds of log m on cells of the whitened tangent space."""

    def __init__(
        self,
        metric: Metric,
        mean: Array,
        factor: Array,
        volume: Volume,
        rng: np.random.Generator,
        tol: float,
    ) -> None:
        self.metric, self.mean, self.factor = metric, mean, factor
        self.volume, self.tol = volume, tol
        dim = len(mean)
        self.edges = np.sqrt(chi2.isf(_TAIL, dim)) * np.linspace(0.0, 1.0, _RINGS + 1)
        self.below = chi2.cdf(self.edges**2, dim)
        directions, _ = sphere_directions(dim, _RAYS, rng)
        self.tree = KDTree(directions)
        seen = self._along_rays(directions)
        # The largest value on the neighbouring rays, then in the neighbouring rings.
        _, near = self.tree.query(directions, min(2 * dim + 1, len(directions)))
        seen = seen[near.reshape(len(directions), -1)].max(axis=1)
        padded = np.pad(seen, ((0, 0), (1, 1)), mode="edge")
        stacked = np.stack([padded[:, :-2], padded[:, 1:-1], padded[:, 2:]])
        self.values = stacked.max(axis=0) + np.log(_SAFETY)  # (directions, rings)

    def propose(
        self, size: int, rng: np.random.Generator
    ) -> tuple[Array, tuple[Indices, Indices]]:
        """Tangents from the normal distribution times the envelope, and their cells."""
        highest = self.values.max(axis=0)
        log_mass = np.log(np.diff(self.below)) + highest
        chances = np.exp(log_mass - log_mass.max())
        chances /= chances.sum()
        whitened: list[Array] = []
        rays: list[Indices] = []
        rings: list[Indices] = []
        found = 0
        while found < size:
            ring = rng.choice(len(chances), size=size, p=chances)
            normal = rng.standard_normal((size, len(self.mean)))
            normal /= np.linalg.norm(normal, axis=1)[:, None]
            _, ray = self.tree.query(normal)
            excess = self.values[ray, ring] - highest[ring]
            kept = np.log(rng.uniform(size=size)) < excess
            span = self.below[ring + 1] - self.below[ring]
            share = self.below[ring] + rng.uniform(size=size) * span
            radii = np.sqrt(chi2.ppf(share, len(self.mean)))
            whitened.append((radii[:, None] * normal)[kept])
            rays.append(ray[kept])
            rings.append(ring[kept])
            found += int(kept.sum())
        cells = np.concatenate(rays)[:size], np.concatenate(rings)[:size]
        return np.concatenate(whitened)[:size] @ self.factor.T, cells

    def log_volumes(self, tangents: Array) -> Array:
        """Values log m at tangents; none where a geodesic cannot be followed."""
        values, failed = volumes_along_rays(
            self.metric, self.mean, tangents, np.ones(1), self.volume, self.tol
        )
        return np.where(failed, -np.inf, values[:, 0])

    def holds(self, cells: tuple[Indices, Indices], log_volumes: Array) -> bool:
        """Whether the envelope is above all values; it is raised where it is not."""
        if np.all(log_volumes <= self.values[cells]):
            return True
        np.maximum.at(self.values, cells, log_volumes + np.log(_SAFETY))
        return False

    def _along_rays(self, directions: Array) -> Array:
        """Largest log m in every ring of every ray."""
        fractions = (np.arange(_RINGS * _RADII_PER_RING) + 0.5) / (
            _RINGS * _RADII_PER_RING
        )
        log_volumes, failed = volumes_along_rays(
            self.metric,
            self.mean,
            self.edges[-1] * directions @ self.factor.T,
            fractions,
            self.volume,
            self.tol,
        )
        log_volumes[failed] = np.max(log_volumes[~failed], initial=0.0)
        by_ring = log_volumes.reshape(len(directions), _RINGS, _RADII_PER_RING)
        return np.asarray(by_ring.max(axis=2))
