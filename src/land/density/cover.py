"""Points that cover the mass of a model, with log maps to each: nodes of its constant.

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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.stats import chi2, norm, qmc

from land._device import Indices
from land.density.lattice import Keys, Lattice, Normal, lay_out, refined, subdivided
from land.density.nodes import Law, Nodes, cholesky, invert, squared_lengths
from land.geodesics import LogMap, exp_map, log_map
from land.geodesics.logarithm import MAX_ITER
from land.metrics import Metric

Array = NDArray[np.float64]
# Log maps from means to points, one list of points for each mean, in one batch; the
# last argument has results for nearby points, which they start from.
MapPoints = Callable[[Sequence[Array], Sequence[Array], Sequence[LogMap]], list[LogMap]]


# Tolerance of geodesics that only show where there is something.
ROUGH_TOL = 1e-3


@dataclass(frozen=True)
class _Settings:
    """How covers are made.

    Attributes
    ----------
    most_dimensions : int
        Beyond, a lattice that covers a normal distribution has too many points.
    extent : float
        Mass of a normal distribution beyond the first points of a cover.
    rounds : int
        In which a cover may grow from its first points.
    most : int
        A cover may have so many times the points that were asked for: the mass of a
        model that needs more is where there are no data.
    refinements, enough
        A lattice is refined, so many times at most, if fewer than this share of the
        points that were asked for lie within reach.
    cloud, wider
        Exp of so many normal draws shows where a model without data has its mass. They
        are wider than the model, by this factor: to grow a cover takes longer.
    max_iter : int
        Iterations for geodesics from a model without data: what takes more is out of
        reach, or out of the metric's domain.
    tried : int
        Points to which geodesics are tried under a metric that may not be smooth.
    """

    most_dimensions: int = 5
    extent: float = 1e-3
    rounds: int = 50
    most: int = 6
    refinements: int = 2
    enough: float = 0.8
    cloud: int = 400
    wider: float = 1.4
    max_iter: int = 60
    tried: int = 32


_SETTINGS = _Settings()


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
            log_weights=self.log_weights,
            log_volumes=np.where(good, volumes, -np.inf),
            contrasts=contrasts,
            n_maps=len(good),
            n_failed=int(np.sum(~good)),
        )

    @cached_property
    def _contrasts(self) -> NDArray[np.int8]:
        return Lattice.contrasts(self.keys)


class _Cloud(NamedTuple):
    """Points with log maps from a mean."""

    points: Array
    logs: LogMap


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
    tail: float,
    known: Sequence[Cover | None] | None = None,
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
    known
        Other covers with log maps from the same means: geodesics start from the nearest
        points of both.
    """
    if not len(means):
        return []
    near = [
        _Cloud(cloud, logs)
        if cover is None
        else _Cloud(
            np.concatenate([cloud, cover.points]),
            LogMap.concatenate([logs, cover.logs]),
        )
        for cloud, logs, cover in zip(
            clouds, cloud_logs, known or len(means) * [None], strict=True
        )
    ]
    if not is_lattice_fit(metric.dim):
        drawn = [_draws(cloud, n_points, deepcopy(rng)) for cloud in clouds]
        logs = _map_near(map_points, means, [own[0] for own in drawn], near)
        no_keys = np.empty((n_points, 0), dtype=np.int64)
        return [
            Cover(None, no_keys, *own, log, n_points)
            for own, log in zip(drawn, logs, strict=True)
        ]
    # The same randomness for each: what is alone must be as in company.
    laid_out = [
        lay_out(cloud, n_points, _SETTINGS.extent, deepcopy(rng)) for cloud in clouds
    ]
    for k, cover in enumerate(known or []):
        if cover is not None and cover.lattice is not None:
            lattice, keys = laid_out[k]
            there = subdivided(cover.lattice, cover.keys, lattice)
            laid_out[k] = lattice, np.unique(np.concatenate([keys, there]), axis=0)
    for _ in range(_SETTINGS.refinements + 1):
        points = [lattice.points(keys) for lattice, keys in laid_out]
        logs = _map_near(map_points, means, points, near)
        covers = [
            Cover(*own, where, np.full(len(where), own[0].log_cell), log, n_points)
            for own, where, log in zip(laid_out, points, logs, strict=True)
        ]
        covers = [
            _pruned(cover, precision, tail)
            for cover, precision in zip(covers, precisions, strict=True)
        ]
        covers = extend_covers(means, precisions, covers, map_points, tail)
        if min(len(cover.keys) for cover in covers) > _SETTINGS.enough * n_points:
            break
        # The mass fills a part of the cloud only: a finer lattice in that part.
        laid_out = [
            refined(cover.lattice, cover.keys, n_points)
            for cover in covers
            if cover.lattice is not None
        ]
        near = [_Cloud(cover.points, cover.logs) for cover in covers]
    return covers


def cover_model(
    metric: Metric,
    mean: Array,
    covariance: Array,
    n_points: int,
    rng: np.random.Generator,
    tail: float,
    tol: float,
    max_iter: int = MAX_ITER,
) -> Cover:
    """Cover the mass of one model, whose data are not known."""
    cloud, logs = cloud_of(metric, mean, covariance, rng, max_iter)

    def map_points(
        means: Sequence[Array], points: Sequence[Array], near: Sequence[LogMap]
    ) -> list[LogMap]:
        (own,), (guesses,) = points, near
        limit = min(_SETTINGS.max_iter, max_iter)
        return [log_map(metric, mean, own, curves=guesses, tol=tol, max_iter=limit)]

    (cover,) = place_covers(
        metric,
        [mean],
        [invert(covariance)],
        [cloud],
        [logs],
        n_points,
        map_points,
        rng,
        tail,
    )
    return cover


def cloud_of(
    metric: Metric,
    mean: Array,
    covariance: Array,
    rng: np.random.Generator,
    max_iter: int = MAX_ITER,
) -> tuple[Array, LogMap]:
    """Points that show where a model has its mass, Exp of normal draws; their logs."""
    normal = rng.standard_normal((_SETTINGS.cloud, len(mean)))
    tangents = _SETTINGS.wider * normal @ cholesky(covariance).T
    arrivals = exp_map(metric, mean, tangents, tol=ROUGH_TOL)
    cloud = arrivals.points[arrivals.converged]
    if not len(cloud):
        raise ValueError(
            "covariance is too large for the metric: no geodesic to where the mass is "
            "could be followed; try a smaller one"
        )
    check_reach(metric, mean, cloud, max_iter)
    return cloud, log_map(metric, mean, cloud, tol=ROUGH_TOL, max_iter=max_iter)


def check_reach(metric: Metric, mean: Array, points: Array, max_iter: int) -> None:
    """Refuse a metric of a user's under which geodesics to points cannot be found.

    Exp has reached the points, so that there are some. What follows would take minutes
    to find out: every failure costs all its iterations. Learned metrics are smooth.
    """
    if metric.flat_outside is not None:
        return
    few, tol = points[: _SETTINGS.tried], ROUGH_TOL
    logs = log_map(metric, mean, few, tol=tol, max_iter=max_iter)
    lost = int(np.sum(~logs.converged))
    if 3 * lost > len(few):
        raise ValueError(
            "metric must be smooth at the scale of the covariance, and not vary by too "
            f"many orders of magnitude: geodesics to {lost} of {len(few)} points of "
            "the model were not found"
        )


def extend_covers(
    means: Sequence[Array],
    precisions: Sequence[Array],
    covers: Sequence[Cover],
    map_points: MapPoints,
    tail: float,
) -> list[Cover]:
    """Let covers grow until all points within reach have all their neighbours."""
    covers = list(covers)
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


def _within_reach(cover: Cover, precision: Array, tail: float) -> tuple[Indices, float]:
    """Points within reach of the mean, and the square of that reach."""
    squares = squared_lengths(cover.logs.tangents, precision)
    squares = np.where(cover.logs.converged, squares, np.inf)
    reach = max(float(chi2.isf(tail, len(precision))), float(squares.min()))
    return np.flatnonzero(squares <= reach), reach


def _pruned(cover: Cover, precision: Array, tail: float) -> Cover:
    """The points within reach and their neighbours."""
    assert cover.lattice is not None
    inner, _ = _within_reach(cover, precision, tail)
    wanted = cover.keys[inner]
    around = cover.lattice.neighbours(wanted).reshape(-1, wanted.shape[1])
    own, others = _numbered(cover.keys, np.concatenate([wanted, around]))
    keep = np.flatnonzero(np.isin(own, others))
    return replace(
        cover,
        keys=cover.keys[keep],
        points=cover.points[keep],
        log_weights=cover.log_weights[keep],
        logs=cover.logs.take(keep),
        n_effective=cover.effective(precision),
    )


def _numbered(*keys: Keys) -> list[Indices]:
    """Numbers for the rows of arrays, the same for equal rows."""
    _, numbers = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
    return np.split(numbers.reshape(-1), np.cumsum([len(own) for own in keys])[:-1])


def _missing(cover: Cover, precision: Array, tail: float) -> tuple[Keys, Indices]:
    """Points within reach that the cover lacks, and one of its points near each.

    They are neighbours of points within reach, and what is known there says to first
    order how far they are. Of several neighbours the one that says the least is
    believed: its geodesic is a guess for the new one.
    """
    nothing = cover.keys[:0], np.empty(0, dtype=np.intp)
    if cover.full:
        return nothing
    assert cover.lattice is not None
    inner, reach = _within_reach(cover, precision, tail)
    around = cover.lattice.neighbours(cover.keys[inner])
    parents = np.repeat(inner, around.shape[1])
    around = around.reshape(-1, cover.keys.shape[1])
    own, others = _numbered(cover.keys, around)
    new = np.flatnonzero(~np.isin(others, own))
    predicted = cover.logs.predicted(parents[new], cover.lattice.points(around[new]))
    squares = squared_lengths(predicted, precision)
    squares = np.where(np.isfinite(squares), squares, 0.0)  # not known
    order = np.flatnonzero(squares <= reach)
    order = order[np.argsort(squares[order], kind="stable")]
    order = order[np.unique(others[new[order]], return_index=True)[1]]
    mass = np.exp(-0.5 * squared_lengths(cover.logs.tangents[inner], precision)).sum()
    if np.exp(-0.5 * squares[order]).sum() < tail * mass:
        return nothing
    new = new[order]
    return around[new], parents[new]


def _joined(cover: Cover, keys: Keys, points: Array, logs: LogMap) -> Cover:
    assert cover.lattice is not None
    return replace(
        cover,
        keys=np.concatenate([cover.keys, keys]),
        points=np.concatenate([cover.points, points]),
        log_weights=np.full(len(cover.keys) + len(keys), cover.lattice.log_cell),
        logs=LogMap.concatenate([cover.logs, logs]),
    )


def _map_near(
    map_points: MapPoints,
    means: Sequence[Array],
    points: Sequence[Array],
    clouds: Sequence[_Cloud],
) -> list[LogMap]:
    """Log maps that start from those to the nearest points of clouds."""
    near = [
        cloud.logs.take(KDTree(cloud.points).query(own)[1])
        for own, cloud in zip(points, clouds, strict=True)
    ]
    return map_points(means, points, near)


def _draws(
    cloud: Array, n_points: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Evenly spread normal draws, and the logarithms of their weights."""
    normal = Normal.around(cloud)
    # SciPy warns of numbers of points that are no power of two.
    enough = (n_points - 1).bit_length()
    uniform = qmc.Sobol(cloud.shape[1], rng=rng).random_base2(enough)[:n_points]
    points = normal.points(norm.ppf(np.clip(uniform, 1e-15, 1.0 - 1e-15)))
    return points, -normal.log_density(points) - np.log(n_points)
