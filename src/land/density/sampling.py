"""Exact draws: proposals from an interpolated density, accepted by the true one.

A lattice that covers the mass of the model has the density at each of its points. Its
piecewise linear interpolation is easily drawn from: a point of the lattice, in
proportion to the density there, plus a triangular displacement in each direction of the
lattice. The true density at the proposal, one log map, then decides. In many
dimensions, where no lattice is fine enough, proposals are normal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land.density.cover import ROUGH_TOL, Cover, cover_model
from land.density.lattice import Normal
from land.density.nodes import Law, invert, log_terms
from land.geodesics import LogMap, log_map
from land.metrics import Metric

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """How proposals are made.

    Attributes
    ----------
    points, tail
        Of the lattice, see `land.density.cover`. The tail is never drawn.
    smallest_batch, largest_batch : int
        Proposals at a time.
    most_batches : int
        After which a model is given up whose mass cannot be found.
    """

    points: int = 250
    tail: float = 1e-4
    smallest_batch: int = 64
    largest_batch: int = 4096
    most_batches: int = 1000


_SETTINGS = _Settings()


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
    """Draw points of a model with covariance L L^T.

    The draws are independent. They are exact if the largest density of a proposal,
    relative to the interpolated one, was among the proposals that were made.
    """
    if metric.is_flat:
        tangents = rng.standard_normal((n, len(mean))) @ factor.T
        return Draws(mean + tangents, tangents, 1.0)
    target = _Target(metric, mean, factor, law, tol)
    proposals = target.proposals(rng)
    points, tangents = np.empty((2, 0, len(mean)))
    ratios, levels = np.empty((2, 0))
    for _ in range(_SETTINGS.most_batches):
        # A level is fixed when its proposal is made: if the bound has to be raised
        # later, earlier proposals are judged again, and none is wasted.
        rows = np.flatnonzero(levels < ratios / max(ratios.max(initial=0.0), 1e-300))
        if len(rows) >= n:
            rows = rows[:n]
            return Draws(points[rows], tangents[rows], len(rows) / (rows[-1] + 1))
        rate = max(len(rows) / max(len(ratios), 1), 0.05) if len(ratios) else 0.6
        size = int(
            np.clip(
                (n - len(rows)) / rate,
                _SETTINGS.smallest_batch,
                _SETTINGS.largest_batch,
            )
        )
        new, log_proposed, near = proposals.draw(size, rng)
        logs, log_densities = target.at(new, near)
        points = np.concatenate([points, new])
        tangents = np.concatenate([tangents, logs.tangents])
        ratios = np.concatenate([ratios, np.exp(log_densities - log_proposed)])
        levels = np.concatenate([levels, rng.uniform(size=size)])
    raise RuntimeError(
        "sampling found hardly any mass where the model should have it; try a smaller "
        "covariance or a larger rho"
    )


@dataclass(frozen=True)
class _Target:
    """The model whose points are drawn."""

    metric: Metric
    mean: Array
    factor: Array
    law: Law
    tol: float

    def at(self, points: Array, near: LogMap) -> tuple[LogMap, Array]:
        """Log maps and log densities, up to a constant; none where a map fails."""
        logs = log_map(self.metric, self.mean, points, curves=near, tol=self.tol)
        no_keys = np.empty((0, 0), dtype=np.int64)
        cover = Cover(None, no_keys, points, np.zeros(len(points)), logs, 0)
        nodes = cover.nodes(self.metric, self.mean, self.law)
        return logs, log_terms(nodes, self._precision)

    def proposals(self, rng: np.random.Generator) -> _Interpolated | _Normal:
        """What points are proposed by, near where the model has its mass."""
        cover = cover_model(
            self.metric,
            self.mean,
            self.factor @ self.factor.T,
            _SETTINGS.points,
            rng,
            _SETTINGS.tail,
            ROUGH_TOL,  # proposals need not be accurate
        )
        if cover.lattice is None:
            return _Normal(Normal.around(cover.points), cover.points, cover.logs)
        nodes = cover.nodes(self.metric, self.mean, self.law)
        return _Interpolated(cover, log_terms(nodes, self._precision))

    @property
    def _precision(self) -> Array:
        return invert(self.factor @ self.factor.T)


class _Normal:
    """Normal proposals."""

    def __init__(self, normal: Normal, cloud: Array, logs: LogMap) -> None:
        self.normal, self.tree, self.logs = normal, KDTree(cloud), logs

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, LogMap]:
        """Points, their log densities as proposals, and log maps to points nearby."""
        points = self.normal.points(rng.standard_normal((size, self.tree.m)))
        near = self.logs.take(self.tree.query(points)[1])
        return points, self.normal.log_density(points), near


class _Interpolated:
    """The interpolated density: a sum of tents around the points of a lattice."""

    def __init__(self, cover: Cover, log_densities: Array) -> None:
        assert cover.lattice is not None
        self.cover, self.lattice = cover, cover.lattice
        self.scale = float(log_densities.max())
        self.values = np.exp(log_densities - self.scale)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, LogMap]:
        """Points, their log densities as proposals, and log maps to points nearby."""
        chances = self.values / self.values.sum()
        rows = rng.choice(len(chances), size, p=chances)
        near = self.cover.logs.take(rows)
        lattice = self.lattice
        shift = rng.uniform(size=(size, len(lattice.frame)))
        shift += rng.uniform(size=shift.shape) - 1.0
        points = self.cover.points[rows] + shift @ lattice.frame.T
        where = 0.5 * self.cover.keys[rows] + shift
        return points, self.scale + np.log(self._interpolate(where)), near

    def _interpolate(self, where: Array) -> Array:
        """Average of the interpolations on both cubic sublattices."""
        keys, values = self._sorted
        total = np.zeros(len(where))
        for parity in (0, 1):
            below = np.floor(where - 0.5 * parity).astype(np.int64)
            for corner in product((0, 1), repeat=where.shape[1]):
                corners = 2 * (below + np.array(corner)) + parity
                tents = np.prod(1.0 - np.abs(where - 0.5 * corners), axis=1)
                packed = self._pack(corners)
                found = np.minimum(np.searchsorted(keys, packed), len(keys) - 1)
                total += np.where(keys[found] == packed, values[found], 0.0) * tents
        return 0.5 * total

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], Array]:
        packed = self._pack(self.cover.keys)
        order = np.argsort(packed)
        return packed[order], self.values[order]

    @staticmethod
    def _pack(keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys as single numbers: up to five entries, each below 2048."""
        powers = 4096 ** np.arange(keys.shape[1])
        return (keys + 2048) @ powers
