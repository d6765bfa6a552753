"""What every way of fitting shares: the problem, evaluated at one mean or many.

Everything here works on several means at once: the components of a mixture, candidates
for one mean, or a single mean. Their geodesics are computed in one batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.density.cover import Cover, extend_covers, place_covers
from land.density.nodes import (
    Law,
    Nodes,
    invert,
    normal_constant,
    summarise,
)
from land.fitting.covariance_types import COVARIANCE_TYPES, CovarianceType
from land.fitting.estimate import Estimate, Snapshot, Step, Work, usable_tangents
from land.fitting.fidelity import Fidelity
from land.fitting.precision import bounded_covariance, solve_precision
from land.geodesics import LogMap, log_map
from land.metrics import Metric

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """Numerical settings of the objective.

    Attributes
    ----------
    samples_per_point : int
        Plain samples that a quadrature point in the plane replaces. From three
        dimensions on there are half as many points again.
    fewest_per_dimension : int
        Points for each dimension with which constants on the way begin to be of use;
        final ones have twice as many at least.
    points_per_entry : int
        Points for each entry of a covariance, at least.
    fewer : int
        On the way to the final constants points are fewer by this factor.
    accurate, doublings, final_tail
        Points of final constants are doubled, so many times at most, until the standard
        error of log C is below this: densities then integrate to one within half a
        percent. They leave out the tail of this mass.
    placements : int
        Times that a cover is extended or placed anew for a covariance.
    sparse : float
        A cover is placed anew if fewer points are effective than this share of those
        for the model that it was placed for.
    effective_per_dimension : int
        Effective points, for each dimension, without which no covariance is accepted.
    ridge : float
        Share of the data's average variance that is added to every direction, so that
        data without extent in a direction have a covariance, and none can collapse.
    negligible : float
        Data with less than this share of the largest weight need no new tangents.
    catches_up : float
        A search that is farther behind the baseline than this is given up.
    in_cloud : float
        Data with more than this share of the largest weight show where a component is.
    """

    samples_per_point: int = 8
    fewest_per_dimension: int = 50
    points_per_entry: int = 8
    fewer: int = 3
    accurate: float = 0.01
    doublings: int = 1
    final_tail: float = 1e-4
    placements: int = 10
    sparse: float = 0.3
    effective_per_dimension: int = 3
    ridge: float = 1e-6
    negligible: float = 1e-6
    catches_up: float = 0.05
    in_cloud: float = 0.01


_SETTINGS = _Settings()


class NotWorthwhileError(Exception):
    """The search for a start has not beaten the baseline; `gain` says by how much."""

    def __init__(self, gain: float) -> None:
        super().__init__(f"ahead of the simpler model by {gain:.3g} only")
        self.gain = gain


@dataclass
class FitProblem:
    """Data, metric and settings; counts the work that is done.

    The objective is the paper's Eq. 10, the mean negative log likelihood

        phi(mu, Sigma) = 1/2 sum_n w_n Log_n^T Sigma^-1 Log_n + log C(mu, Sigma)

    for weights w of the data that sum to one. Constants are sums over points that stay
    where they are when a mean moves, so the objective is a smooth function of it.

    `baseline` has the log densities of the data under a simpler model, which a fit must
    beat or is given up. `save_progress` is handed the progress of the fit, as plain
    data, from time to time; a fit goes on from the `progress` of an earlier one (see
    `progress`).
    """

    metric: Metric
    data: Array
    law: Law = "riemannian"
    covariance_type: CovarianceType = COVARIANCE_TYPES["full"]
    n_samples: int = 3000
    n_points: int | None = None
    seed: int = 0
    tol: float = 1e-5
    tail: float = 1e-3
    callback: Callable[[Step], None] | None = None
    save_progress: Callable[[dict[str, Any]], None] | None = None
    progress: dict[str, Any] | None = None
    work: Work = field(default_factory=Work)
    history: list[Step] = field(default_factory=list)
    latest: Snapshot | None = None
    started: float = field(default_factory=time.perf_counter)
    whole: FitProblem | None = None
    stage: str = "fit"
    baseline: Array | None = None

    @property
    def is_flat(self) -> bool:
        """Whether the constant is that of a normal distribution."""
        return self.metric.is_flat

    @property
    def most_points(self) -> int:
        """Points of the final constants."""
        dim = self.metric.dim
        wanted = self.n_samples * min(dim, 3) // (2 * _SETTINGS.samples_per_point)
        entries = self.covariance_type.n_entries(dim)
        fewest = _SETTINGS.fewest_per_dimension * dim
        return max(wanted, 2 * fewest, _SETTINGS.points_per_entry * entries)

    @property
    def _fewest_effective(self) -> int:
        """Points that must be effective for a covariance to be believed."""
        return _SETTINGS.effective_per_dimension * self.metric.dim

    @property
    def points_on_the_way(self) -> int:
        """Points of the constants until then."""
        fewest = _SETTINGS.fewest_per_dimension * self.metric.dim
        return max(fewest, -(-self.most_points // _SETTINGS.fewer))

    def at(
        self, fidelity: Fidelity, weights: Array, rng: np.random.Generator
    ) -> tuple[FitProblem, Array, NDArray[np.intp]]:
        """The problem at a lower fidelity, its weights, and which rows it has.

        What is found there is told to the whole problem.
        """
        part = replace(
            self,
            n_points=fidelity.n_points,
            tol=fidelity.map_tol,
            tail=fidelity.tail,
            stage=fidelity.stage,
            whole=self,
        )
        if fidelity.stage == "fit":
            return part, weights, np.arange(len(weights))
        rows, own = _sample_rows(weights, fidelity.n_rows, rng)
        part.data, part.history = self.data[rows], []
        if self.baseline is not None:
            part.baseline = self.baseline[rows]
        return part, own, rows

    def gain(self, objective: float, weights: Array) -> float:
        """By how much a fit is ahead of the baseline; infinite if there is none."""
        if self.baseline is None:
            return math.inf
        return -float(weights @ self.baseline) - objective

    def check_gain(self, objective: float, weights: Array) -> None:
        """Give up a fit that the baseline is as good as, by what a search can tell."""
        gain = self.gain(objective, weights)
        if gain < -_SETTINGS.catches_up:
            raise NotWorthwhileError(gain)

    @staticmethod
    def matter(weights: Array) -> NDArray[np.bool_]:
        """Which data have a weight that is not negligible."""
        return np.asarray(weights > _SETTINGS.negligible * weights.max())

    @property
    def ridge(self) -> float:
        """Variance that is added to every direction of the tangent space."""
        return _SETTINGS.ridge * max(float(np.mean(np.var(self.data, axis=0))), 1e-300)

    def map_points(
        self,
        means: Sequence[Array],
        points: Sequence[Array],
        near: Sequence[LogMap] | None = None,
    ) -> list[LogMap]:
        """Log maps from each mean to its own points, in one batch.

        They start from geodesics `near` them: of a nearby mean, or to nearby points.
        """
        counts = [len(own) for own in points]
        bases = np.repeat(np.asarray(means), counts, axis=0)
        guesses = None if near is None else LogMap.concatenate(near)
        return _split(self.map_pairs(bases, np.concatenate(points), guesses), counts)

    def map_pairs(self, bases: Array, points: Array, near: LogMap | None) -> LogMap:
        """Log maps from bases (n, D) to points (n, D)."""
        self.work.log_maps += len(points)
        return log_map(self.metric, bases, points, curves=near, tol=self.tol)

    def log_maps(self, means: Sequence[Array]) -> list[LogMap]:
        """Tangents of the data at each mean."""
        return self.map_points(means, len(means) * [self.data])

    def renewed_logs(
        self, estimates: Sequence[Estimate], weights: Sequence[Array]
    ) -> list[LogMap]:
        """Tangents of the data, computed anew where their weight is not negligible."""
        rows = [self.matter(own) for own in weights]
        means = [each.mean for each in estimates]
        found = self.map_points(means, [self.data[own] for own in rows])
        return [
            _merged(old.logs, own, new)
            for old, own, new in zip(estimates, rows, found, strict=True)
        ]

    def move(
        self,
        means: Sequence[Array],
        estimates: Sequence[Estimate],
        weights: Sequence[Array],
    ) -> tuple[list[LogMap], list[Cover] | None]:
        """Log maps of data and quadrature points at means near those of estimates.

        Data whose weight is negligible keep their tangents.
        """
        rows = [self.matter(own) for own in weights]
        targets, near = [], []
        for own, old in zip(rows, estimates, strict=True):
            parts, guesses = [self.data[own]], [old.logs.take(np.flatnonzero(own))]
            if old.cover is not None:
                parts.append(old.cover.points)
                guesses.append(old.cover.logs)
            targets.append(np.concatenate(parts))
            near.append(LogMap.concatenate(guesses))
        logs, covers = [], []
        for found, own, old in zip(
            self.map_points(means, targets, near), rows, estimates, strict=True
        ):
            n = int(own.sum())
            logs.append(_merged(old.logs, own, found.take(np.arange(n))))
            if old.cover is not None:
                rest = found.take(np.arange(n, len(found.lengths)))
                covers.append(replace(old.cover, logs=rest))
        return logs, covers or None

    def covers(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        *,
        known: Sequence[Cover | None] | None = None,
        n_points: int | None = None,
        final: bool = False,
    ) -> list[Cover]:
        """Quadrature points for models, where their data are.

        Geodesics start from those to nearby data, or to nearby points of `known`
        covers. Points of `final` constants are such that no fit has adapted itself to.
        """
        members = [
            np.flatnonzero((own > _SETTINGS.in_cloud * own.max()) & log.converged)
            for own, log in zip(weights, logs, strict=True)
        ]
        return place_covers(
            self.metric,
            means,
            [invert(covariance) for covariance in covariances],
            [self.data[own] for own in members],
            [log.take(own) for own, log in zip(members, logs, strict=True)],
            n_points or self.n_points or self.points_on_the_way,
            self.map_points,
            np.random.default_rng([self.seed, int(final)]),
            _SETTINGS.final_tail if final else self.tail,
            known,
        )

    def second_moment(self, logs: LogMap, weights: Array) -> Array:
        """Weighted second moment of the data's tangents, regularised."""
        tangents, weights = usable_tangents(logs, weights)
        return self.regularised((weights[:, None] * tangents).T @ tangents)

    def regularised(self, moment: Array) -> Array:
        """A second moment, kept from being singular, as covariances see it."""
        ridge = self.ridge * np.eye(len(moment))
        return self.covariance_type.restrict(moment + ridge)

    def verify(
        self, estimates: Sequence[Estimate], weights: Sequence[Array]
    ) -> list[Estimate]:
        """Fitted components with accurate constants.

        They come from points that no fit has adapted itself to, more of them until the
        constants are known well.
        """
        found = list(estimates)
        waiting = [] if self.is_flat else list(range(len(found)))
        for doubling in range(_SETTINGS.doublings + 1):
            if not waiting:
                break
            old = [estimates[k] for k in waiting]
            own = [weights[k] for k in waiting]
            means = [each.mean for each in old]
            covariances = [each.covariance for each in old]
            logs = [each.logs for each in old]
            n_points = self.most_points << doubling
            covers = self.covers(
                means,
                covariances,
                own,
                logs,
                known=[found[k].cover for k in waiting],
                n_points=n_points,
                final=True,
            )
            parts = zip(waiting, means, covariances, own, logs, covers, strict=True)
            for k, *part in parts:
                found[k] = self.assemble(*part)
            waiting = [
                k for k in waiting if found[k].log_constant.stderr > _SETTINGS.accurate
            ]
        return found

    def evaluate(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
    ) -> list[Estimate]:
        """The objective at means and covariances."""
        covers: Sequence[Cover | None] = len(means) * [None]
        if not self.is_flat:
            covers = self.covers(means, covariances, weights, logs)
        return self._assemble_all(means, covariances, weights, logs, covers)

    def profile(
        self,
        means: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        guesses: Sequence[Array] | None = None,
        covers: Sequence[Cover] | None = None,
    ) -> list[Estimate]:
        """The objective at means with known log maps, minimised over the covariance.

        For a fixed mean the objective is convex in the precision, so this is unique.
        Covers are extended where a covariance turns out to reach beyond them.
        """
        moments = [
            self.second_moment(own, weight)
            for own, weight in zip(logs, weights, strict=True)
        ]
        if self.is_flat:
            none = len(means) * [None]
            return self._assemble_all(means, moments, weights, logs, none)
        covariances = list(moments if guesses is None else guesses)
        placed = list(covers or self.covers(means, covariances, weights, logs))
        waiting = list(range(len(means)))
        if covers is not None:
            self._refine(means, covariances, weights, logs, placed)
        for _ in range(_SETTINGS.placements):
            unsettled = self._step(waiting, means, moments, covariances, placed)
            waiting = unsettled or self._refine(
                means, covariances, weights, logs, placed
            )
            if not waiting:
                break
        return self._assemble_all(means, covariances, weights, logs, placed)

    def _step(
        self,
        waiting: Sequence[int],
        means: Sequence[Array],
        moments: Sequence[Array],
        covariances: list[Array],
        covers: list[Cover],
    ) -> list[int]:
        """The best covariances that covers can tell, and covers as wide as those need.

        Returns which of the `waiting` need another step.
        """
        unsettled = set()
        for k in waiting:
            nodes = covers[k].nodes(self.metric, means[k], self.law)
            precision = solve_precision(
                moments[k], nodes, invert(covariances[k]), self.covariance_type
            )
            wanted, free = bounded_covariance(precision, covariances[k], moments[k])
            # Between too few points a covariance could shrink unseen.
            if covers[k].effective(invert(wanted)) < self._fewest_effective:
                continue
            covariances[k] = wanted
            if not free:
                unsettled.add(k)
        grown = extend_covers(
            [means[k] for k in waiting],
            [invert(covariances[k]) for k in waiting],
            [covers[k] for k in waiting],
            self.map_points,
            self.tail,
        )
        for k, cover in zip(waiting, grown, strict=True):
            if len(cover.points) > len(covers[k].points):
                unsettled.add(k)
            covers[k] = cover
        return sorted(unsettled)

    def _refine(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        covers: list[Cover],
    ) -> list[int]:
        """Place covers anew whose models have become narrower; which they are."""
        narrower = [
            k
            for k, cover in enumerate(covers)
            if cover.effective(invert(covariances[k]))
            < _SETTINGS.sparse * cover.n_effective
        ]
        anew = self.covers(
            [means[k] for k in narrower],
            [covariances[k] for k in narrower],
            [weights[k] for k in narrower],
            [logs[k] for k in narrower],
            known=[covers[k] for k in narrower],
        )
        for k, cover in zip(narrower, anew, strict=True):
            covers[k] = cover
        return narrower

    def _assemble_all(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        covers: Sequence[Cover | None],
    ) -> list[Estimate]:
        parts = zip(means, covariances, weights, logs, covers, strict=True)
        return [self.assemble(*part) for part in parts]

    def assemble(
        self,
        mean: Array,
        covariance: Array,
        weights: Array,
        logs: LogMap,
        cover: Cover | None = None,
        nodes: Nodes | None = None,
    ) -> Estimate:
        """An estimate from its parts; nothing is mapped."""
        precision = invert(covariance)
        moment = self.second_moment(logs, weights)
        if cover is not None:
            nodes = cover.nodes(self.metric, mean, self.law)
        if nodes is None:
            constant = normal_constant(covariance)
        else:
            constant = summarise(nodes, precision, self.tol)
        return Estimate(
            mean=np.asarray(mean, dtype=np.float64),
            covariance=covariance,
            precision=precision,
            objective=float(0.5 * np.sum(precision * moment) + constant.value),
            log_constant=constant,
            logs=logs,
            cover=cover,
            nodes=nodes,
        )

    def record(
        self,
        objective: float,
        estimates: Sequence[Estimate],
        proportions: Array | None = None,
    ) -> None:
        """Append to the history, keep the model, and tell whoever listens."""
        shares = np.ones(1) if proportions is None else proportions
        whole = self if self.whole is None else self.whole
        whole.latest = Snapshot(list(estimates), shares, objective)
        step = Step(
            iteration=len(self.history),
            objective=objective,
            means=np.stack([estimate.mean for estimate in estimates]),
            n_log_maps=self.work.log_maps,
            seconds=time.perf_counter() - self.started,
            stage=self.stage,
        )
        self.history.append(step)
        if self.callback is not None:
            self.callback(step)


def _sample_rows(
    weights: Array, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], Array]:
    """At most so many rows, drawn with the chances of their weights; new weights."""
    rows = np.flatnonzero(weights > 0.0)
    own = weights[rows] / weights[rows].sum()
    if len(rows) <= most:
        return rows, own
    chosen = np.sort(rng.choice(rows, most, replace=False, p=own))
    return chosen, np.full(most, 1.0 / most)


def _merged(old: LogMap, rows: NDArray[np.bool_], new: LogMap) -> LogMap:
    """Old log maps, with new ones in some rows."""
    if rows.all():
        return new
    places = np.concatenate([np.flatnonzero(rows), np.flatnonzero(~rows)])
    kept = old.take(np.flatnonzero(~rows))
    return LogMap.concatenate([new, kept]).take(np.argsort(places))


def _split(logs: LogMap, counts: Sequence[int]) -> list[LogMap]:
    """Consecutive parts of so many items."""
    ends = np.cumsum(counts)
    return [
        logs.take(np.arange(end - count, end))
        for end, count in zip(ends, counts, strict=True)
    ]
