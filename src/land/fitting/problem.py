"""What every way of fitting shares: data, metric, settings, and the record of a fit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import Law
from land.fitting.covariance import COVARIANCE_TYPES, CovarianceType
from land.fitting.estimate import Estimate, Snapshot, Step, Work
from land.fitting.fidelity import Fidelity
from land.geodesics import LogMap, log_map
from land.metrics import Metric

Array = NDArray[np.float64]

# Plain samples that a quadrature point in the plane replaces; from three dimensions on
# there are half as many points again.
_SAMPLES_PER_POINT = 8
# Constants are of use from so many points for each dimension on; final ones have twice
# as many at least. On the way to those there are fewer by the factor.
_FEWEST_PER_DIMENSION, _FEWER = 50, 3
# Share of the data's average variance that is added to every direction, so that data
# without extent in a direction have a covariance, and none can collapse.
_RIDGE = 1e-6
# A search that is farther behind the baseline than this is given up.
_CATCHES_UP = 0.05


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
        wanted = self.n_samples * min(dim, 3) // (2 * _SAMPLES_PER_POINT)
        return max(wanted, 2 * _FEWEST_PER_DIMENSION * dim)

    @property
    def points_on_the_way(self) -> int:
        """Points of the constants until then."""
        fewest = _FEWEST_PER_DIMENSION * self.metric.dim
        return max(fewest, -(-self.most_points // _FEWER))

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
        if gain < -_CATCHES_UP:
            raise NotWorthwhileError(gain)

    @property
    def ridge(self) -> float:
        """Variance that is added to every direction of the tangent space."""
        return _RIDGE * max(float(np.mean(np.var(self.data, axis=0))), 1e-300)

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

    def regularised(self, moment: Array) -> Array:
        """A second moment, kept from being singular, as covariances see it."""
        ridge = self.ridge * np.eye(len(moment))
        return self.covariance_type.restrict(moment + ridge)

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


def _split(logs: LogMap, counts: Sequence[int]) -> list[LogMap]:
    """Consecutive parts of so many items."""
    ends = np.cumsum(counts)
    return [
        logs.take(np.arange(end - count, end))
        for end, count in zip(ends, counts, strict=True)
    ]
