"""Exact draws: a direction by rejection, a radius along its ray, each point once.

A direction is drawn in proportion to the mass of its ray, which one solve tells; the
radius from the density along the ray, by inverting its distribution function. Draws
past the cut locus are rejected: their points are reached on a shorter way, and have
their density there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.spatial import KDTree
from scipy.stats import chi2

from land.density.cut_locus import is_shortest
from land.density.nodes import (
    TAIL,
    Law,
    sphere_directions,
    volumes_along_rays,
)
from land.geodesics import exp_map
from land.metrics import Metric

Array = NDArray[np.float64]

# Rays that show where the mass is; directions are proposed in proportion to the largest
# on neighbouring rays, and at least to this share of the average.
_PILOTS, _FLOOR = 256, 0.1
# Nodes on a ray, and how much finer its distribution function is interpolated.
_RADII, _FINER = 48, 8
_SMALLEST_BATCH, _LARGEST_BATCH = 256, 4096
# Batches after which a model is given up whose mass cannot be found.
_MOST_BATCHES = 1000


@dataclass(frozen=True)
class Draws:
    """Samples of a model, with what they cost.

    Attributes
    ----------
    points : ndarray of shape (n, D)
    tangents : ndarray of shape (n, D)
        Log of the points at the mean.
    acceptance : float
        Share of the rays that were followed on which a draw lies.
    """

    points: Array
    tangents: Array
    acceptance: float


def draw(
    metric: Metric,
    mean: Array,
    factor: Array,
    n: int,
    law: Law,
    rng: np.random.Generator,
    tol: float = 1e-6,
) -> Draws:
    """Draw tangents with density proportional to m(v) N(v; 0, L L^T), and map them.

    The draws are independent. They are exact if the largest mass of a ray, relative to
    what its neighbours promised, was among the rays that were followed.
    """
    rays = _Rays(metric, mean, factor, law, tol)
    proposals = _Directions(rays, rng)
    tangents, ratios, levels = np.empty((0, len(mean))), np.empty(0), np.empty(0)
    shortest = np.empty(0, dtype=bool)
    points = np.empty((0, len(mean)))
    for _ in range(_MOST_BATCHES):
        # A ray's level is fixed when it is drawn: if the bound has to be raised later,
        # the rays drawn so far are judged again, and none is wasted.
        chosen = levels < ratios / max(ratios.max(initial=0.0), 1e-300)
        new = np.flatnonzero(chosen & np.isnan(points[:, 0]))
        if len(new):
            points[new] = exp_map(metric, mean, tangents[new], tol=tol).points
            if law != "paper":
                bases = np.broadcast_to(mean, points[new].shape)
                shortest[new] = is_shortest(
                    metric, bases, tangents[new], points[new], tol
                )
        rows = np.flatnonzero(chosen & shortest)
        if len(rows) >= n:
            rows = rows[:n]
            return Draws(points[rows], tangents[rows], len(rows) / (rows[-1] + 1))
        rate = max(len(rows) / max(len(ratios), 1), 0.05) if len(ratios) else 0.5
        missing = (n - len(rows)) / rate
        size = int(np.clip(missing, _SMALLEST_BATCH, _LARGEST_BATCH))
        directions, promises = proposals.draw(size, rng)
        masses, radii = rays.draw_radii(directions, rng)
        tangents = np.concatenate([tangents, (radii[:, None] * directions) @ factor.T])
        ratios = np.concatenate([ratios, masses / promises])
        levels = np.concatenate([levels, rng.uniform(size=size)])
        points = np.concatenate([points, np.full((size, len(mean)), np.nan)])
        shortest = np.concatenate([shortest, np.ones(size, dtype=bool)])
    raise RuntimeError(
        "sampling found hardly any mass where the model should have it; try a smaller "
        "covariance or a larger rho"
    )


class _Rays:
    """Rays from the mean, with the density along each."""

    def __init__(
        self, metric: Metric, mean: Array, factor: Array, law: Law, tol: float
    ) -> None:
        self.metric, self.mean, self.factor = metric, mean, factor
        self.law, self.tol = law, tol
        self.reach = float(np.sqrt(chi2.isf(TAIL, len(mean))))
        self.fractions = np.arange(1, _RADII + 1) / _RADII
        self.fine = np.linspace(0.0, 1.0, _RADII * _FINER + 1)

    def densities(self, directions: Array) -> Array:
        """Along rays in whitened directions, at the fine fractions: (n, fine)."""
        found = volumes_along_rays(
            self.metric,
            self.mean,
            self.reach * directions @ self.factor.T,
            self.fractions,
            self.law,
            self.tol,
        )
        volumes = np.exp(np.where(found.failed[:, None], -np.inf, found.log_volumes))
        start = np.exp(found.log_volume_at_base)
        values = np.concatenate([start, volumes], axis=1)
        knots = np.concatenate([[0.0], self.fractions])
        # Monotone between nodes, so that nothing is left past a conjugate point.
        smooth = PchipInterpolator(knots, values, axis=1)(self.fine)
        radii = self.reach * self.fine
        radial = radii ** (len(self.mean) - 1) * np.exp(-0.5 * radii**2)
        return np.asarray(smooth * radial)

    def masses(self, directions: Array) -> Array:
        """The integrals of the densities."""
        return np.asarray(self.densities(directions).sum(axis=1))

    def draw_radii(
        self, directions: Array, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Masses of rays, and a radius on each."""
        densities = self.densities(directions)
        steps = 0.5 * (densities[:, 1:] + densities[:, :-1])
        below = np.cumsum(steps, axis=1)
        masses = below[:, -1]
        goals = rng.uniform(size=len(masses)) * masses
        cell = np.minimum((below < goals[:, None]).sum(axis=1), steps.shape[1] - 1)
        rows = np.arange(len(masses))
        rest = goals - (below[rows, cell] - steps[rows, cell])
        left, right = densities[rows, cell], densities[rows, cell + 1]
        # Within a cell the density is linear: its distribution function a parabola.
        root = np.sqrt(np.maximum(left**2 + 2.0 * (right - left) * rest, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(left + root > 0.0, 2.0 * rest / (left + root), 0.0)
        width = self.reach * (self.fine[1] - self.fine[0])
        return masses, width * (cell + np.clip(share, 0.0, 1.0))


class _Directions:
    """Whitened directions, in proportion to what pilot rays promise."""

    def __init__(self, rays: _Rays, rng: np.random.Generator) -> None:
        self.dim = len(rays.mean)
        directions, _ = sphere_directions(self.dim, _PILOTS, rng)
        self.tree = KDTree(directions)
        masses = rays.masses(directions)
        _, near = self.tree.query(directions, min(2 * self.dim + 1, len(directions)))
        promises = masses[near.reshape(len(directions), -1)].max(axis=1)
        self.promises = np.maximum(promises, _FLOOR * masses.mean())

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Directions, and the promises in proportion to which they were drawn."""
        found, count = [], 0
        while count < size:
            normal = rng.standard_normal((2 * size, self.dim))
            normal /= np.linalg.norm(normal, axis=1)[:, None]
            _, cell = self.tree.query(normal)
            keep = (
                rng.uniform(size=len(cell)) * self.promises.max()
                < (self.promises[cell])
            )
            found.append((normal[keep], self.promises[cell[keep]]))
            count += int(keep.sum())
        directions, promises = (
            np.concatenate(part)[:size] for part in zip(*found, strict=True)
        )
        return directions, promises
