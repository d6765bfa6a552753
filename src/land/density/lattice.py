"""Quadrature over points: a lattice that covers the mass of a model, log maps to it.

The constant is an integral of exp(-q(x)) over points x, q half the squared Mahalanobis
length of Log(x). For a smooth function that decays, the sum over a lattice converges
faster than any power of its spacing. Every point counts once, by its shortest geodesic;
conjugate points and cut loci need no care. In sharp metrics rays from the mean diverge,
and quadrature along them misses mass between them; here nothing can be missed.

In many dimensions no lattice is fine enough. Normal draws take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import gammaln
from scipy.stats import chi2, norm, qmc

from land.density.nodes import Law, Nodes, squared_lengths
from land.geodesics import LogMap
from land.metrics import Metric

Array = NDArray[np.float64]
Keys = NDArray[np.int64]
# Log maps from means to points, one list of points for each mean, in one batch; the
# last argument has results for nearby points, which they start from.
MapPoints = Callable[[Sequence[Array], Sequence[Array], Sequence[LogMap]], list[LogMap]]


@dataclass(frozen=True)
class _Settings:
    """How lattices are laid out.

    Attributes
    ----------
    most_dimensions : int
        Beyond, a lattice that covers a normal distribution has too many points.
    tail : float
        Mass of a normal distribution beyond the points that are covered.
    rounds : int
        In which a cover may grow from its first points.
    most : int
        A cover may have so many times the points that were asked for: the mass of a
        model that needs more is where there are no data.
    refinements, enough
        A lattice is refined, so many times at most, if fewer than this share of the
        points that were asked for lie within reach.
    few : int
        Points for each dimension by which the size of cells is found.
    halvings : int
        Of a range of e^20, in which that size is.
    sample : int
        Points by which the shape of cells goes.
    wider : float
        Variance of draws in many dimensions, relative to that of the data.
    """

    most_dimensions: int = 5
    tail: float = 1e-3
    rounds: int = 50
    most: int = 6
    refinements: int = 2
    enough: float = 0.8
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


@dataclass(frozen=True)
class Cover:
    """Points that cover the mass of a model, with log maps from its mean.

    Attributes
    ----------
    lattice : Lattice or None
        None in many dimensions, where the points are draws.
    keys : ndarray of shape (n, D)
        Of the points on the lattice.
    points : ndarray of shape (n, D)
    log_weights : ndarray of shape (n,)
    logs : LogMap
    n_asked : int
        Points that were asked for.
    n_effective : float
        Effective number of points for the model that they were placed for.
    """

    lattice: Lattice | None
    keys: Keys
    points: Array
    log_weights: Array
    logs: LogMap
    n_asked: int
    n_effective: float = 0.0

    @property
    def full(self) -> bool:
        """Whether no more points may be added."""
        return self.lattice is None or (
            len(self.points) > _SETTINGS.most * self.n_asked
        )

    def effective(self, precision: Array) -> float:
        """Effective number of points for a model."""
        squares = squared_lengths(self.logs.tangents, precision)
        shares = np.where(self.logs.converged, np.exp(-0.5 * squares), 0.0)
        return float(shares.sum() ** 2 / max(np.sum(shares**2), 1e-300))

    def nodes(self, metric: Metric, mean: Array, law: Law) -> Nodes:
        """The points as nodes of a quadrature rule for a law."""
        logs = self.logs
        good = logs.converged & np.all(np.isfinite(logs.tangents), axis=1)
        volumes = np.zeros(len(self.points))
        if law != "lebesgue":
            volumes = metric.log_volume(self.points)
        if law == "paper":
            # Eq. 7 measures tangents by their normal coordinates, without |det DExp|.
            volumes = volumes + metric.log_volume(mean) - logs.log_dets
            good &= np.isfinite(volumes)
        contrasts = None if self.lattice is None else self._contrasts
        return Nodes(
            tangents=np.where(good[:, None], logs.tangents, 0.0),
            points=self.points,
            log_weights=self.log_weights,
            log_volumes=np.where(good, volumes, -np.inf),
            contrasts=contrasts,
            n_maps=len(good),
            n_failed=int(np.sum(~good)),
        )

    @cached_property
    def _contrasts(self) -> NDArray[np.int8]:
        return Lattice.contrasts(self.keys)


def is_lattice_fit(dim: int) -> bool:
    """Whether a lattice can cover a model in so many dimensions."""
    return dim <= _SETTINGS.most_dimensions


def place_covers(
    metric: Metric,
    means: Sequence[Array],
    precisions: Sequence[Array],
    clouds: Sequence[Array],
    cloud_logs: Sequence[LogMap],
    n_points: int,
    map_points: MapPoints,
    rng: np.random.Generator,
    tail: float | None = None,
) -> list[Cover]:
    """Cover the mass of models, all in one batch.

    Parameters
    ----------
    metric
        The metric.
    means, precisions
        The models.
    clouds, cloud_logs
        Points that lie where each model has its mass, data or draws, and log maps to
        them from the mean: first points of a cover are near them.
    n_points
        Number of points that a cover should have, about.
    map_points
        Computes log maps.
    rng
        Randomness of the origins of lattices, or of draws.
    tail
        Mass of a normal distribution beyond the points that are covered.
    """
    tail = _SETTINGS.tail if tail is None else tail
    if not len(means):
        return []
    if not is_lattice_fit(metric.dim):
        drawn = [_draws(cloud, n_points, deepcopy(rng)) for cloud in clouds]
        logs = _map_near(
            map_points, means, [own[0] for own in drawn], clouds, cloud_logs
        )
        no_keys = np.empty((n_points, 0), dtype=np.int64)
        return [
            Cover(None, no_keys, *own, log, n_points)
            for own, log in zip(drawn, logs, strict=True)
        ]
    # The same randomness for each: what is alone must be as in company.
    laid_out = [_lay_out(cloud, n_points, deepcopy(rng)) for cloud in clouds]
    for _ in range(_SETTINGS.refinements + 1):
        points = [lattice.points(keys) for lattice, keys in laid_out]
        logs = _map_near(map_points, means, points, clouds, cloud_logs)
        covers = [
            Cover(*own, where, np.full(len(where), own[0].log_cell), log, n_points)
            for own, where, log in zip(laid_out, points, logs, strict=True)
        ]
        covers = extend_covers(means, precisions, covers, map_points, tail)
        covers = [
            _pruned(cover, precision, tail)
            for cover, precision in zip(covers, precisions, strict=True)
        ]
        if min(len(cover.keys) for cover in covers) > _SETTINGS.enough * n_points:
            break
        # The mass fills a part of the cloud only: a finer lattice in that part.
        laid_out = [_refined(cover) for cover in covers]
        clouds = [cover.points for cover in covers]
        cloud_logs = [cover.logs for cover in covers]
    return covers


def extend_covers(
    means: Sequence[Array],
    precisions: Sequence[Array],
    covers: Sequence[Cover],
    map_points: MapPoints,
    tail: float | None = None,
) -> list[Cover]:
    """Let covers grow until all points within reach have all their neighbours."""
    covers = list(covers)
    tail = _SETTINGS.tail if tail is None else tail
    for _ in range(_SETTINGS.rounds):
        found = {}
        for k, (cover, precision) in enumerate(zip(covers, precisions, strict=True)):
            new = _missing(cover, precision, tail)
            if len(new[0]):
                found[k] = new
        if not found:
            break
        chosen = list(found)
        points = [covers[k].lattice.points(found[k][0]) for k in chosen]  # type: ignore[union-attr]
        near = [covers[k].logs.take(found[k][1]) for k in chosen]
        logs = map_points([means[k] for k in chosen], points, near)
        for k, where, log in zip(chosen, points, logs, strict=True):
            covers[k] = _joined(covers[k], found[k][0], where, log)
    return covers


def _within_reach(cover: Cover, precision: Array, tail: float) -> NDArray[np.intp]:
    """Points within reach of the mean, the nearest ones first."""
    squares = squared_lengths(cover.logs.tangents, precision)
    squares = np.where(cover.logs.converged, squares, np.inf)
    reach = max(chi2.isf(tail, len(precision)), squares.min())
    inner = np.flatnonzero(squares <= reach)
    return np.asarray(inner[np.argsort(squares[inner], kind="stable")])


def _pruned(cover: Cover, precision: Array, tail: float) -> Cover:
    """The points within reach and their neighbours."""
    assert cover.lattice is not None
    inner = cover.keys[_within_reach(cover, precision, tail)]
    around = cover.lattice.neighbours(inner).reshape(-1, cover.keys.shape[1])
    wanted = np.concatenate([inner, around])
    _, label = np.unique(
        np.concatenate([cover.keys, wanted]), axis=0, return_inverse=True
    )
    label = label.reshape(-1)
    keep = np.flatnonzero(np.isin(label[: len(cover.keys)], label[len(cover.keys) :]))
    return Cover(
        cover.lattice,
        cover.keys[keep],
        cover.points[keep],
        cover.log_weights[keep],
        cover.logs.take(keep),
        cover.n_asked,
        cover.effective(precision),
    )


def _missing(
    cover: Cover, precision: Array, tail: float
) -> tuple[Keys, NDArray[np.intp]]:
    """Neighbours of points within reach that the cover lacks, and one point near each.

    The nearest to the mean is taken: its geodesic is a guess for the new one.
    """
    if cover.full:
        return cover.keys[:0], np.empty(0, dtype=np.intp)
    assert cover.lattice is not None
    inner = _within_reach(cover, precision, tail)
    around = cover.lattice.neighbours(cover.keys[inner])
    parents = np.repeat(inner, around.shape[1])
    around = around.reshape(-1, cover.keys.shape[1])
    known = len(cover.keys)
    _, first = np.unique(
        np.concatenate([cover.keys, around]), axis=0, return_index=True
    )
    new = np.sort(first[first >= known]) - known
    squares = squared_lengths(cover.logs.tangents[inner], precision)
    shares = np.exp(-0.5 * squares)
    at_edge = np.isin(inner, parents[new])
    if shares[at_edge].sum() < tail * shares.sum():
        return cover.keys[:0], np.empty(0, dtype=np.intp)
    return around[new], parents[new]


def _joined(cover: Cover, keys: Keys, points: Array, logs: LogMap) -> Cover:
    assert cover.lattice is not None
    return Cover(
        cover.lattice,
        np.concatenate([cover.keys, keys]),
        np.concatenate([cover.points, points]),
        np.full(len(cover.keys) + len(keys), cover.lattice.log_cell),
        LogMap.concatenate([cover.logs, logs]),
        cover.n_asked,
        cover.n_effective,
    )


def _map_near(
    map_points: MapPoints,
    means: Sequence[Array],
    points: Sequence[Array],
    clouds: Sequence[Array],
    cloud_logs: Sequence[LogMap],
) -> list[LogMap]:
    """Log maps that start from those to the nearest points of clouds."""
    near = [
        logs.take(KDTree(cloud).query(own)[1])
        for own, cloud, logs in zip(points, clouds, cloud_logs, strict=True)
    ]
    return map_points(means, points, near)


def _lay_out(
    cloud: Array, n_points: int, rng: np.random.Generator
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
    reach = np.sqrt(chi2.isf(_SETTINGS.tail, dim))
    log_ball = 0.5 * dim * np.log(np.pi) - gammaln(0.5 * dim + 1.0)
    log_cell = log_ball + dim * np.log(reach) - np.log(n_points)
    log_cell += np.linalg.slogdet(normal.factor)[1]
    widest = np.exp((log_cell - coarse.log_cell) / dim)
    frame = coarse.frame * min(1.0 / ratio, widest)
    fine = Lattice(cloud[0] + frame @ rng.uniform(size=dim), frame)
    if widest < 1.0 / ratio:
        return fine, _within(fine, normal, reach)
    return fine, _subdivided(coarse, keys, fine, ratio)


def _refined(cover: Cover) -> tuple[Lattice, Keys]:
    """A finer lattice with the points that were asked for, in the cells of a cover."""
    coarse, dim = cover.lattice, cover.keys.shape[1]
    assert coarse is not None
    ratio = max((cover.n_asked / len(cover.keys)) ** (1.0 / dim), 1.0)
    fine = Lattice(coarse.origin, coarse.frame / ratio)
    return fine, _subdivided(coarse, cover.keys, fine, ratio)


def _subdivided(coarse: Lattice, keys: Keys, fine: Lattice, ratio: float) -> Keys:
    """Keys of a lattice that is finer by a ratio, in cells of a coarse one."""
    dim = keys.shape[1]
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
    """Lower triangular root of the covariance of a cloud, kept from being singular."""
    n, dim = cloud.shape
    spread = np.cov(cloud.T).reshape(dim, dim) if n > 1 else np.zeros((dim, dim))
    size = max(float(np.trace(spread)) / dim, 1e-300)
    return np.asarray(np.linalg.cholesky(spread + 1e-6 * size * np.eye(dim)))


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


def _draws(
    cloud: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Evenly spread normal draws, and the logarithms of their weights."""
    normal = Normal.around(cloud)
    uniform = qmc.Sobol(cloud.shape[1], rng=rng).random(n_points)
    points = normal.points(norm.ppf(np.clip(uniform, 1e-15, 1.0 - 1e-15)))
    return points, -normal.log_density(points) - np.log(n_points)
