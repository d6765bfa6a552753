"""Lattices of points, laid out where a cloud of points is."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import gammaln
from scipy.stats import chi2

from land._axes import principal_axes

Array = NDArray[np.float64]
Keys = NDArray[np.int64]


@dataclass(frozen=True)
class _Settings:
    """How lattices are laid out.

    Attributes
    ----------
    few : int
        Points for each dimension by which the size of cells is found.
    halvings : int
        Of a range of e^20, in which that size is.
    sample : int
        Points by which the shape of cells goes.
    wider : float
        Variance of the normal distribution of a cloud, relative to that of the cloud.
    """

    few: int = 50
    halvings: int = 16
    sample: int = 400
    wider: float = 1.1


_SETTINGS = _Settings()


@dataclass(frozen=True)
class Lattice:
    """The body-centred cubic lattice, in affine coordinates.

    Its points are ``origin + frame @ k / 2`` for keys k, integer vectors whose entries
    are all even or all odd. Of all lattices with as many points it is among the best
    for smooth functions in two to five dimensions.
    """

    origin: Array
    frame: Array

    @property
    def log_cell(self) -> float:
        """Logarithm of the volume for each point."""
        return float(np.linalg.slogdet(self.frame)[1] - np.log(2.0))

    def points(self, keys: Keys) -> Array:
        """Where keys are, (n, D)."""
        return np.asarray(self.origin + 0.5 * keys @ self.frame.T)

    def nearest(self, points: Array) -> Keys:
        """Keys near points, each once."""
        where = np.linalg.solve(self.frame, (points - self.origin).T).T
        even = 2 * np.rint(where).astype(np.int64)
        odd = 2 * np.floor(where).astype(np.int64) + 1
        errors = [np.sum((2.0 * where - keys) ** 2, axis=1) for keys in (even, odd)]
        return np.unique(np.where((errors[0] <= errors[1])[:, None], even, odd), axis=0)

    def neighbours(self, keys: Keys) -> Keys:
        """All neighbours of keys, (n, 2^D + 2 D, D)."""
        dim = keys.shape[1]
        corners = np.array(list(product((-1, 1), repeat=dim)))
        along = 2 * np.concatenate([np.eye(dim), -np.eye(dim)]).astype(np.int64)
        return np.asarray(keys[:, None] + np.concatenate([corners, along]))

    @staticmethod
    def contrasts(keys: Keys) -> NDArray[np.int8]:
        """Signs of the cosets of every sublattice of index two, (n, 2^D - 1)."""
        dim = keys.shape[1]
        basis = np.concatenate(
            [(keys[:, :-1] - keys[:, -1:]) // 2, keys[:, -1:]], axis=1
        )
        ways = np.array(list(product((0, 1), repeat=dim)))[1:]
        return (1 - 2 * (basis @ ways.T % 2)).astype(np.int8)


def lay_out(
    cloud: Array, n_points: int, tail: float, rng: np.random.Generator
) -> tuple[Lattice, Keys]:
    """A lattice of about so many points within reach of a cloud, and those points.

    Its cells have the shape of the neighbourhoods of the cloud, on average. A coarse
    lattice is laid out first, so that few of its points are next to the cloud; the
    points of the fine one are those in its cells. Where that would be coarser than for
    a normal distribution of the cloud's extent, as in more than three dimensions, the
    latter decides.
    """
    shape = _local_shape(cloud, rng)
    dim = len(shape)
    # A single datum has so many neighbours, and must not be all that there is.
    few = max(min(_SETTINGS.few * dim, len(cloud)), 2 ** (dim + 1) + 4 * dim)
    few = min(few, n_points)

    def around(log_width: float) -> tuple[Lattice, Keys]:
        lattice = Lattice(cloud[0], np.exp(log_width) * shape)
        keys = lattice.neighbours(lattice.nearest(cloud)).reshape(-1, dim)
        return lattice, np.unique(keys, axis=0)

    low, high = -10.0, 10.0
    for _ in range(_SETTINGS.halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if len(around(middle)[1]) > few else (low, middle)
    coarse, keys = around(high)
    ratio = (n_points / few) ** (1.0 / dim)
    # A normal distribution of the cloud's extent has so many points within reach.
    normal = Normal.around(cloud)
    reach = np.sqrt(chi2.isf(tail, dim))
    log_ball = 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim + 1.0)
    log_cell = log_ball + dim * np.log(reach) - np.log(n_points)
    log_cell += np.linalg.slogdet(normal.factor)[1]
    widest = np.exp((log_cell - coarse.log_cell) / dim)
    frame = coarse.frame * min(1.0 / ratio, widest)
    fine = Lattice(cloud[0] + frame @ rng.uniform(size=dim), frame)
    if widest < 1.0 / ratio:
        return fine, _within(fine, normal, reach)
    return fine, subdivided(coarse, keys, fine)


def refined(coarse: Lattice, keys: Keys, n_points: int) -> tuple[Lattice, Keys]:
    """A finer lattice of so many points in the cells of a coarse one."""
    ratio = max((n_points / len(keys)) ** (1.0 / keys.shape[1]), 1.0)
    fine = Lattice(coarse.origin, coarse.frame / ratio)
    return fine, subdivided(coarse, keys, fine)


def subdivided(coarse: Lattice, keys: Keys, fine: Lattice) -> Keys:
    """Keys of a finer lattice, in cells of a coarse one."""
    dim = keys.shape[1]
    ratio = np.exp((coarse.log_cell - fine.log_cell) / dim)
    count = np.ceil(2.0 * ratio)
    steps = (np.arange(count) + 0.5) / count - 0.5
    inside = 0.8 * np.array(list(product(steps, repeat=dim))) @ coarse.frame.T
    places = coarse.points(keys)[:, None] + inside
    return fine.nearest(places.reshape(-1, dim))


def _within(lattice: Lattice, normal: Normal, reach: float) -> Keys:
    """Keys within so many standard deviations of a normal distribution."""
    first = lattice.nearest(normal.center[None])
    keys, count = first, 0
    while len(keys) > count:
        count = len(keys)
        around = lattice.neighbours(keys).reshape(-1, keys.shape[1])
        around = np.unique(np.concatenate([keys, around]), axis=0)
        whitened = np.linalg.solve(
            normal.factor, (lattice.points(around) - normal.center).T
        )
        keys = around[np.sum(whitened**2, axis=0) < reach**2]
    return keys if len(keys) else first


def _covariance_root(cloud: Array) -> Array:
    """Root of the covariance of a cloud, kept from being singular.

    In a frame at a fixed angle to the principal axes: where the cloud is turned,
    lattices turn with it, and so do fits. Along the axes, rows of a lattice would lie
    along the data, on a narrow ridge or beside it.
    """
    variances, axes = principal_axes(cloud)
    size = max(float(variances.mean()), 1e-300)
    dim = len(axes)
    slant, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    return np.asarray(axes * np.sqrt(variances + 1e-6 * size) @ slant)


def _local_shape(cloud: Array, rng: np.random.Generator) -> Array:
    """Root of the average covariance of neighbourhoods in a cloud, (D, D).

    Neighbours are nearest in units of the whole cloud's covariance. The width of the
    result is that of the cloud.
    """
    n, dim = cloud.shape
    whole = _covariance_root(cloud)
    white = np.linalg.solve(whole, cloud.T).T
    k = min(max(2 * dim, int(np.ceil(np.sqrt(n)))), n - 1)
    if k < dim + 1:
        return np.asarray(whole)
    some = rng.permutation(n)[: _SETTINGS.sample]
    _, near = KDTree(white).query(white[some], k + 1)
    groups = white[near]
    groups = groups - groups.mean(axis=1, keepdims=True)
    # Every neighbourhood has the same say, whatever its size.
    groups /= np.sqrt(np.mean(groups**2, axis=(1, 2), keepdims=True)) + 1e-300
    local = np.einsum("nki,nkj->ij", groups, groups) / groups[..., 0].size
    return np.asarray(whole @ np.linalg.cholesky(local + 1e-6 * np.eye(dim)))


@dataclass(frozen=True)
class Normal:
    """The normal distribution of a cloud, a little wider."""

    center: Array
    factor: Array

    @classmethod
    def around(cls, cloud: Array) -> Normal:
        """With the mean and covariance of a cloud, regularised."""
        return cls(
            cloud.mean(axis=0), np.sqrt(_SETTINGS.wider) * _covariance_root(cloud)
        )

    def points(self, normal: Array) -> Array:
        """Standard normal draws (n, D), moved and stretched."""
        return np.asarray(self.center + normal @ self.factor.T)

    def log_density(self, points: Array) -> Array:
        """Log densities, (n,)."""
        normal = np.linalg.solve(self.factor, (points - self.center).T)
        squares = np.sum(normal**2, axis=0) + len(self.center) * np.log(2.0 * np.pi)
        return np.asarray(-0.5 * squares - np.linalg.slogdet(self.factor)[1])
