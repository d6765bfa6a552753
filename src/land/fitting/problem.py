"""What every way of fitting shares: the problem, and points of its landscape.

Everything here works on several means at once: the components of a mixture, rival
starting points of one distribution, or a single mean. Their geodesics are computed in
one batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from land.density.constant import (
    N_RADII,
    LogConstant,
    cholesky,
    invert,
    log_terms,
    rays_for,
    summarise,
)
from land.density.nodes import TangentNodes, Volume, ray_nodes
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
# Share of the data's average variance that is added to every direction, so that data
# without extent in a direction have a covariance, and none can collapse.
_RIDGE = 1e-6


@dataclass(frozen=True)
class Step:
    """One entry of a fit's history.

    Attributes
    ----------
    iteration : int
        Number of the step, from zero.
    objective : float
        Mean negative log likelihood of the fit so far.
    means : ndarray of shape (K, D)
        The mean, or the means of a mixture.
    n_log_maps, n_exp_maps : int
        Geodesics computed so far.
    seconds : float
        Time since the fit began.
    """

    iteration: int
    objective: float
    means: Array
    n_log_maps: int
    n_exp_maps: int
    seconds: float


@dataclass(frozen=True)
class Estimate:
    """A mean and covariance with everything that was computed for them."""

    mean: Array
    covariance: Array
    precision: Array
    objective: float
    log_constant: LogConstant
    logs: LogMap
    nodes: TangentNodes

    @property
    def n_failed(self) -> int:
        """Log maps of the data that did not converge."""
        return int(np.sum(~self.logs.converged))


@dataclass(frozen=True)
class Snapshot:
    """The components of a model and their shares of it."""

    estimates: list[Estimate]
    proportions: Array


@dataclass
class FitProblem:
    """Data, metric and settings; counts the work that is done.

    The objective is the paper's Eq. 10, the mean negative log likelihood

        phi(mu, Sigma) = 1/2 sum_n w_n Log_n^T Sigma^-1 Log_n + log C(mu, Sigma)

    for weights w of the data that sum to one. Directions of the quadrature are drawn
    from the same seed every time, so the objective is a deterministic function.
    """

    metric: Metric
    data: Array
    volume: Volume = "paper"
    n_samples: int = 3000
    seed: int = 0
    tol: float = 1e-5
    callback: Callable[[Step], None] | None = None
    n_log_maps: int = 0
    n_exp_maps: int = 0
    history: list[Step] = field(default_factory=list)
    latest: Snapshot | None = None
    started: float = field(default_factory=time.perf_counter)

    def subset(self, rows: NDArray[np.intp], n_samples: int) -> FitProblem:
        """The problem for some of the data, with another effort and no listener."""
        return replace(
            self,
            data=self.data[rows],
            n_samples=n_samples,
            callback=None,
            n_log_maps=0,
            n_exp_maps=0,
            history=[],
        )

    def count(self, other: FitProblem) -> None:
        """Add the work of a problem that was made from this one."""
        self.n_log_maps += other.n_log_maps
        self.n_exp_maps += other.n_exp_maps

    @contextmanager
    def rougher(self, factor: int) -> Iterator[None]:
        """Spend `factor` times fewer rays for a while."""
        n_samples, self.n_samples = self.n_samples, -(-self.n_samples // factor)
        try:
            yield
        finally:
            self.n_samples = n_samples

    @property
    def ridge(self) -> float:
        """Variance that is added to every direction of the tangent space."""
        return _RIDGE * max(float(np.mean(np.var(self.data, axis=0))), 1e-300)

    def encloses(self, mean: Array) -> bool:
        """Whether a mean lies in the data's covariance ellipsoid that holds them all.

        From far outside, the paper's volume element makes thin distributions cheap: the
        likelihood has optima there that nobody wants.
        """
        center = self.data.mean(axis=0)
        scatter = np.atleast_2d(np.cov(self.data.T, bias=True))
        factor = cholesky(scatter + self.ridge * np.eye(len(center)))
        offsets = np.concatenate([self.data, mean[None]]) - center
        radii = np.linalg.norm(np.linalg.solve(factor, offsets.T), axis=0)
        return bool(radii[-1] <= radii[:-1].max())

    def log_maps(
        self, means: Sequence[Array], near: Sequence[LogMap] | None = None
    ) -> list[LogMap]:
        """Tangents of the data at each mean, starting from curves of nearby means."""
        count = len(self.data)
        self.n_log_maps += len(means) * count
        logs = log_map(
            self.metric,
            np.repeat(np.asarray(means), count, axis=0),
            np.tile(self.data, (len(means), 1)),
            curves=None if near is None else LogMap.concatenate(near),
            tol=self.tol,
        )
        return [logs.take(np.arange(count) + k * count) for k in range(len(means))]

    def nodes(
        self,
        means: Sequence[Array],
        covariances: Sequence[Array],
        *,
        unseen: bool = False,
    ) -> list[TangentNodes]:
        """Quadrature nodes at each mean, placed for its covariance.

        `unseen` nodes lie in directions that no fit has adapted itself to.
        """
        n_rays = rays_for(self.n_samples, self.volume, self.metric.dim)
        rng = np.random.default_rng([self.seed, int(unseen)])
        factors = [cholesky(covariance) for covariance in covariances]
        placed = ray_nodes(
            self.metric,
            means,
            factors,
            n_rays,
            N_RADII,
            self.volume,
            rng,
            self.tol,
        )
        self.n_exp_maps += sum(nodes.n_maps for nodes in placed)
        return placed

    def second_moment(self, logs: LogMap, weights: Array) -> Array:
        """Weighted second moment of the data's tangents, kept from being singular."""
        tangents, weights = usable_tangents(logs, weights)
        moment = (weights[:, None] * tangents).T @ tangents
        return np.asarray(moment + self.ridge * np.eye(len(moment)))

    def verify(
        self, estimates: Sequence[Estimate], weights: Sequence[Array]
    ) -> list[Estimate]:
        """Fitted components with new log maps, and constants from unseen directions.

        Curves were carried along with the means, so others may be shorter now; and
        covariances in many dimensions flatter the directions they were fitted on.
        """
        means = [each.mean for each in estimates]
        covariances = [each.covariance for each in estimates]
        nodes = self.nodes(means, covariances, unseen=True)
        parts = zip(
            means, covariances, weights, self.log_maps(means), nodes, strict=True
        )
        return [self.assemble(*part) for part in parts]

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
        guesses: Sequence[Array] | None = None,
        near: Sequence[LogMap] | None = None,
    ) -> list[Estimate]:
        """The objective at each mean, minimised over the covariance.

        For a fixed mean the objective is convex in the precision, so this is unique.
        """
        logs = self.log_maps(means, near)
        return self.profile_covariances(means, weights, logs, guesses)

    def profile_covariances(
        self,
        means: Sequence[Array],
        weights: Sequence[Array],
        logs: Sequence[LogMap],
        guesses: Sequence[Array] | None = None,
        nodes: Sequence[TangentNodes] | None = None,
    ) -> list[Estimate]:
        """Like `profile`, for means whose log maps are known.

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
                precision = solve_precision(moments[k], own, invert(before))
                covariances[k], well_placed = _trusted(precision, before)
                if well_placed:
                    settled.add(k)
            waiting = [k for k in waiting if k not in settled]
            if not waiting:
                break
        return [
            self.assemble(means[k], covariances[k], weights[k], logs[k], used[k])
            for k in range(len(means))
        ]

    def assemble(
        self,
        mean: Array,
        covariance: Array,
        weights: Array,
        logs: LogMap,
        nodes: TangentNodes,
    ) -> Estimate:
        """An estimate from its parts; nothing is mapped."""
        precision = invert(covariance)
        moment = self.second_moment(logs, weights)
        constant = summarise(nodes, precision, self.tol)
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
        self.latest = Snapshot(list(estimates), shares)
        step = Step(
            iteration=len(self.history),
            objective=objective,
            means=np.stack([estimate.mean for estimate in estimates]),
            n_log_maps=self.n_log_maps,
            n_exp_maps=self.n_exp_maps,
            seconds=time.perf_counter() - self.started,
        )
        self.history.append(step)
        if self.callback is not None:
            self.callback(step)


def usable_tangents(logs: LogMap, weights: Array) -> tuple[Array, Array]:
    """Tangents with their weights; what could not be computed has no weight."""
    finite = np.all(np.isfinite(logs.tangents), axis=1)
    weights = np.where(finite, weights, 0.0)
    total = float(weights.sum())
    if total <= 0.0:
        raise RuntimeError(
            "no log map of the data succeeded; try a larger sigma or rho"
        )
    return np.where(finite[:, None], logs.tangents, 0.0), weights / total


def _trusted(precision: Array, placed: Array) -> tuple[Array, bool]:
    """The covariance, kept near the one that nodes were placed for; if they serve it.

    Bounds are on the eigenvalues in units of the placed covariance.
    """
    factor = cholesky(placed)
    whitened = factor.T @ precision @ factor
    values, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
    scales = 1.0 / np.maximum(values, 1e-300)
    serve = bool(scales.min() > _TOO_NARROW and scales.max() < _TOO_WIDE)
    root = factor @ vectors * np.sqrt(np.clip(scales, _NARROWEST, _WIDEST))
    return root @ root.T, serve
