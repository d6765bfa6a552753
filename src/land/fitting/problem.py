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

from land.density.constant import (
    N_RADII,
    cholesky,
    invert,
    log_terms,
    model_shares,
    rays_for,
    summarise,
)
from land.density.cut_locus import within_cut_locus
from land.density.nodes import Law, TangentNodes, ray_nodes
from land.fitting.covariance_types import COVARIANCE_TYPES, CovarianceType
from land.fitting.estimate import Estimate, Snapshot, Step, Work, usable_tangents
from land.fitting.fidelity import Fidelity
from land.fitting.precision import solve_precision
from land.geodesics import LogMap, log_map
from land.metrics import Metric

Array = NDArray[np.float64]

# Nodes are placed anew when a covariance leaves these bounds, in units of the one they
# were placed for.
_TOO_NARROW, _TOO_WIDE = 0.5, 1.6
# What such nodes say about covariances far outside of them is worth nothing.
_NARROWEST, _WIDEST = 0.1, 4.0
_PLACEMENTS = 10
# Covariances are at most so many times the second moment of their data. The density is
# then nearly constant on them; beyond that, quadrature would be all there is to it.
_FLAT = 25.0
# Rays of final constants are doubled, so many times at most, until the standard error
# of log C is below this: densities then integrate to one within half a percent.
_ACCURATE, _DOUBLINGS = 0.002, 3
# A descent on constants with larger errors would follow these.
_POOR = 0.02
# Mass that was counted twice on the way matters if it is larger than this.
_MATTERS = 0.005
# Share of the data's average variance that is added to every direction, so that data
# without extent in a direction have a covariance, and none can collapse.
_RIDGE = 1e-6
# Data with less than this share of the largest weight need no new tangents.
_NEGLIGIBLE = 1e-6
# Fewer rays than the final constants have are enough on the way to them.
_FEWER_RAYS = 2


@dataclass(frozen=True)
class Rival:
    """A simpler model, which a fit must beat by a margin or is given up.

    Attributes
    ----------
    log_densities : ndarray of shape (N,)
        Of the data, with respect to the reference.
    margin : float
        In the mean log density.
    """

    log_densities: Array
    margin: float


class OutdoneError(Exception):
    """The search for a start has not beaten the rival; `lead` says by how much."""

    def __init__(self, lead: float) -> None:
        super().__init__(f"ahead of the simpler model by {lead:.3g} only")
        self.lead = lead


@dataclass
class FitProblem:
    """Data, metric and settings; counts the work that is done.

    The objective is the paper's Eq. 10, the mean negative log likelihood

        phi(mu, Sigma) = 1/2 sum_n w_n Log_n^T Sigma^-1 Log_n + log C(mu, Sigma)

    for weights w of the data that sum to one. Directions of the quadrature are drawn
    from the same seed every time, so the objective is a deterministic function.

    A `keeper` is handed the progress of the fit, as plain data, from time to time; a
    fit goes on from what was `kept` of an earlier one (see `progress`).
    """

    metric: Metric
    data: Array
    law: Law = "riemannian"
    covariance_type: CovarianceType = COVARIANCE_TYPES["full"]
    n_samples: int = 3000
    n_rays: int | None = None
    seed: int = 0
    tol: float = 1e-5
    callback: Callable[[Step], None] | None = None
    keeper: Callable[[dict[str, Any]], None] | None = None
    kept: dict[str, Any] | None = None
    work: Work = field(default_factory=Work)
    history: list[Step] = field(default_factory=list)
    latest: Snapshot | None = None
    started: float = field(default_factory=time.perf_counter)
    whole: FitProblem | None = None
    stage: str = "fit"
    rival: Rival | None = None

    @property
    def most_rays(self) -> int:
        """Rays of the final constants."""
        return rays_for(self.n_samples, self.covariance_type.n_entries(self.metric.dim))

    @property
    def rays_on_the_way(self) -> int:
        """Rays of the constants until then."""
        return -(-self.most_rays // _FEWER_RAYS)

    def at(
        self, fidelity: Fidelity, weights: Array, rng: np.random.Generator
    ) -> tuple[FitProblem, Array, NDArray[np.intp]]:
        """The problem as a rung of the ladder sees it, its weights, the data's rows.

        What is found there is told to the whole problem.
        """
        part = replace(self, n_rays=fidelity.n_rays, stage=fidelity.stage, whole=self)
        if fidelity.stage == "fit":
            return part, weights, np.arange(len(weights))
        rows, own = _sample_rows(weights, fidelity.n_rows, rng)
        part.data, part.history = self.data[rows], []
        if self.rival is not None:
            densities = self.rival.log_densities[rows]
            part.rival = replace(self.rival, log_densities=densities)
        return part, own, rows

    def lead(self, objective: float, weights: Array) -> float:
        """By how much a fit is ahead of the rival; infinite if there is none."""
        if self.rival is None:
            return math.inf
        return -float(weights @ self.rival.log_densities) - objective

    def check_lead(self, objective: float, weights: Array) -> None:
        """Give up a fit that the rival is as good as."""
        lead = self.lead(objective, weights)
        if self.rival is not None and lead < self.rival.margin:
            raise OutdoneError(lead)

    @staticmethod
    def matter(weights: Array) -> NDArray[np.bool_]:
        """Which data have a say in what a component is."""
        return np.asarray(weights > _NEGLIGIBLE * weights.max())

    @property
    def ridge(self) -> float:
        """Variance that is added to every direction of the tangent space."""
        return _RIDGE * max(float(np.mean(np.var(self.data, axis=0))), 1e-300)

    def log_maps(
        self,
        means: Sequence[Array],
        near: Sequence[LogMap] | None = None,
        weights: Sequence[Array] | None = None,
    ) -> list[LogMap]:
        """Tangents of the data at each mean, starting from curves at nearby means.

        With `weights`, data whose weight is negligible keep their tangents there.
        """
        every = np.ones(len(self.data), dtype=bool)
        if near is None or weights is None:
            guesses = None if near is None else LogMap.concatenate(near)
            return self._map_rows(means, len(means) * [every], guesses)
        needed = [self.matter(own) for own in weights]
        if all(rows.all() for rows in needed):
            return self._map_rows(means, needed, LogMap.concatenate(near))
        pairs = list(zip(near, needed, strict=True))
        guesses = LogMap.concatenate(
            [logs.take(np.flatnonzero(rows)) for logs, rows in pairs]
        )
        merged = []
        for new, (old, rows) in zip(
            self._map_rows(means, needed, guesses), pairs, strict=True
        ):
            kept = old.take(np.flatnonzero(~rows))
            places = np.concatenate([np.flatnonzero(rows), np.flatnonzero(~rows)])
            merged.append(LogMap.concatenate([new, kept]).take(np.argsort(places)))
        return merged

    def _map_rows(
        self,
        means: Sequence[Array],
        rows: Sequence[NDArray[np.bool_]],
        guesses: LogMap | None,
    ) -> list[LogMap]:
        """Tangents of some of the data at each mean, in one batch."""
        counts = [int(own.sum()) for own in rows]
        self.work.log_maps += sum(counts)
        logs = log_map(
            self.metric,
            np.repeat(np.asarray(means), counts, axis=0),
            np.concatenate([self.data[own] for own in rows]),
            curves=guesses,
            tol=self.tol,
        )
        ends = np.cumsum(counts)
        return [
            logs.take(np.arange(end - count, end))
            for end, count in zip(ends, counts, strict=True)
        ]

    def nodes(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        *,
        seed: int = 0,
        n_rays: int | None = None,
    ) -> list[TangentNodes]:
        """Quadrature nodes at each mean, placed for its covariance.

        Another seed has directions that no fit has adapted itself to.
        """
        n_rays = n_rays or self.n_rays or self.rays_on_the_way
        rng = np.random.default_rng([self.seed, seed])
        factors = [cholesky(covariance) for covariance in covariances]
        placed = ray_nodes(
            self.metric,
            means,
            factors,
            n_rays,
            N_RADII,
            self.law,
            rng,
            self.tol,
        )
        self.work.exp_maps += sum(nodes.n_maps for nodes in placed)
        return placed

    def second_moment(self, logs: LogMap, weights: Array) -> Array:
        """Weighted second moment of the data's tangents, kept from being singular.

        It is what covariances of this type see of it.
        """
        tangents, weights = usable_tangents(logs, weights)
        moment = (weights[:, None] * tangents).T @ tangents
        moment += self.ridge * np.eye(len(moment))
        return self.covariance_type.restrict(moment)

    def verify(
        self, estimates: Sequence[Estimate], weights: Sequence[Array]
    ) -> list[Estimate]:
        """Fitted components with constants that count every point once.

        They come from directions that no fit has adapted itself to: covariances in many
        dimensions flatter those that they were fitted on. Where mass was counted twice
        on the way, covariances were held back by it, and are solved for again.
        """
        means = [each.mean for each in estimates]
        logs = [each.logs for each in estimates]
        covariances = [each.covariance for each in estimates]
        for _ in range(_PLACEMENTS):
            nodes = self._accurate_nodes(means, covariances)
            lost = [0.0] * len(nodes)
            if self.law == "paper":
                break
            precisions = [invert(covariance) for covariance in covariances]
            shares = [
                model_shares(own, precision)
                for own, precision in zip(nodes, precisions, strict=True)
            ]
            found = within_cut_locus(self.metric, means, nodes, shares, self.tol)
            nodes, lost = [each[0] for each in found], [each[1] for each in found]
            self.work.log_maps += sum(each.n_maps for each in nodes)
            well_placed = True
            for k, own in enumerate(nodes):
                if lost[k] < _MATTERS:
                    continue
                moment = self.second_moment(logs[k], weights[k])
                precision = solve_precision(
                    moment, own, precisions[k], self.covariance_type
                )
                covariances[k], serve = _trusted(precision, covariances[k], moment)
                well_placed &= serve
            if well_placed:
                break
        parts = zip(means, covariances, weights, logs, nodes, lost, strict=True)
        return [self.assemble(*part) for part in parts]

    def _accurate_nodes(
        self, means: Sequence[Array], covariances: Sequence[Array]
    ) -> list[TangentNodes]:
        """Nodes in unseen directions, more of them until constants are known well."""
        found: dict[int, TangentNodes] = {}
        waiting, n_rays = list(range(len(means))), self.most_rays
        for doubling in range(_DOUBLINGS + 1):
            placed = self.nodes(
                [means[k] for k in waiting],
                [covariances[k] for k in waiting],
                seed=1,
                n_rays=n_rays << doubling,
            )
            found |= dict(zip(waiting, placed, strict=True))
            waiting = [
                k
                for k in waiting
                if summarise(found[k], invert(covariances[k]), self.tol).stderr
                > _ACCURATE
            ]
            if not waiting:
                break
        return [found[k] for k in range(len(means))]

    def evaluate(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
    ) -> list[Estimate]:
        """The objective at means and covariances."""
        nodes = self.nodes(means, covariances)
        parts = zip(means, covariances, weights, logs, nodes, strict=True)
        return [self.assemble(*part) for part in parts]

    def profile(
        self,
        means: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        guesses: Sequence[Array] | None = None,
        nodes: Sequence[TangentNodes] | None = None,
    ) -> list[Estimate]:
        """The objective at means with known log maps, minimised over the covariance.

        For a fixed mean the objective is convex in the precision, so this is unique.
        Nodes that were placed for the guesses are used as long as they serve.
        """
        moments = [
            self.second_moment(own, weight)
            for own, weight in zip(logs, weights, strict=True)
        ]
        covariances = list(moments if guesses is None else guesses)
        used: dict[int, TangentNodes] = {}
        waiting, settled = list(range(len(means))), set[int]()
        for turn in range(_PLACEMENTS):
            placed = [covariances[k] for k in waiting]
            if turn > 0 or nodes is None:
                nodes = self.nodes([means[k] for k in waiting], placed)
            for k, own, before in zip(waiting, nodes, placed, strict=True):
                used[k] = own
                precision = solve_precision(
                    moments[k], own, invert(before), self.covariance_type
                )
                covariances[k], well_placed = _trusted(precision, before, moments[k])
                if well_placed:
                    settled.add(k)
            waiting = [k for k in waiting if k not in settled]
            if not waiting:
                break
        return [
            self.assemble(means[k], covariances[k], weights[k], logs[k], used[k])
            for k in range(len(means))
        ]

    def take_more_rays(self, estimates: Sequence[Estimate]) -> bool:
        """Whether constants are so poorly known that rays were doubled.

        It is asked before a descent: during one, the objective must stay the same.
        """
        error = min(each.log_constant.stderr for each in estimates)
        now = self.n_rays or self.rays_on_the_way
        if error < _POOR or now >= self.most_rays:
            return False
        self.n_rays = min(2 * now, self.most_rays)
        return True

    def assemble(
        self,
        mean: Array,
        covariance: Array,
        weights: Array,
        logs: LogMap,
        nodes: TangentNodes,
        double_counted: float = 0.0,
    ) -> Estimate:
        """An estimate from its parts; nothing is mapped."""
        precision = invert(covariance)
        moment = self.second_moment(logs, weights)
        constant = summarise(nodes, precision, self.tol, double_counted)
        return Estimate(
            mean=np.asarray(mean, dtype=np.float64),
            covariance=covariance,
            precision=precision,
            objective=float(0.5 * np.sum(precision * moment) + constant.value),
            log_constant=constant,
            logs=logs,
            nodes=nodes,
        )

    def log_constants(
        self, means: Sequence[Array], covariances: Sequence[Array]
    ) -> Array:
        """Values log C at means and covariances."""
        nodes = self.nodes(means, covariances)
        return np.array(
            [
                np.logaddexp.reduce(log_terms(own, invert(covariance)))
                for own, covariance in zip(nodes, covariances, strict=True)
            ]
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
            n_exp_maps=self.work.exp_maps,
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


def _trusted(precision: Array, placed: Array, moment: Array) -> tuple[Array, bool]:
    """The covariance, kept within bounds; and if nodes placed for another serve it.

    Bounds are on eigenvalues in units of the covariance that nodes were placed for, and
    in units of the data's second moment.
    """
    wanted, scales = _clipped(invert(precision), placed, _NARROWEST, _WIDEST)
    serve = bool(scales.min() > _TOO_NARROW and scales.max() < _TOO_WIDE)
    covariance, shares = _clipped(wanted, moment, 0.0, _FLAT)
    return covariance, serve or bool(shares.max() > _FLAT)


def _clipped(
    covariance: Array, unit: Array, least: float, most: float
) -> tuple[Array, Array]:
    """A covariance with eigenvalues within bounds, in a unit; what they were there."""
    factor = cholesky(unit)
    half = np.linalg.solve(factor, covariance)
    whitened = np.linalg.solve(factor, half.T)
    scales, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
    root = factor @ vectors * np.sqrt(np.clip(scales, least, most))
    return root @ root.T, scales
