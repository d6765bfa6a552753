"""What every way of fitting shares: the problem, and one point of its landscape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from land.density.constant import (
    N_RADII,
    LogConstant,
    cholesky,
    invert,
    log_terms,
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
_PLACEMENTS = 6
# Share of the average variance that is added to every direction, so that data without
# extent in a direction have a covariance.
_RIDGE = 1e-6


@dataclass(frozen=True)
class Step:
    """One entry of a fit's history."""

    iteration: int
    objective: float
    mean: Array
    n_log_maps: int
    n_exp_maps: int


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


@dataclass
class FitProblem:
    """Data, metric and settings; counts the work that is done.

    The objective is the paper's Eq. 10, the mean negative log likelihood

        phi(mu, Sigma) = 1/2 mean_n Log_n^T Sigma^-1 Log_n + log C(mu, Sigma).

    Directions of the quadrature are drawn anew from the same seed every time, so the
    objective is a deterministic function.
    """

    metric: Metric
    data: Array
    weights: Array
    volume: Volume
    n_samples: int
    seed: int
    tol: float = 1e-5
    callback: Callable[[Step], None] | None = None
    n_log_maps: int = 0
    n_exp_maps: int = 0
    history: list[Step] = field(default_factory=list)

    def log_maps(self, mean: Array, near: LogMap | None = None) -> LogMap:
        """Tangents of the data at `mean`, starting from curves of a nearby mean."""
        self.n_log_maps += len(self.data)
        curves = None if near is None else near.curves
        return log_map(self.metric, mean, self.data, curves=curves, tol=self.tol)

    def nodes(self, mean: Array, covariance: Array) -> TangentNodes:
        """Quadrature nodes placed for a covariance."""
        n_rays = max(16, -(-self.n_samples // N_RADII))
        rng = np.random.default_rng(self.seed)
        factor = cholesky(covariance)
        nodes = ray_nodes(
            self.metric, mean, factor, n_rays, N_RADII, self.volume, rng, 0.1 * self.tol
        )
        self.n_exp_maps += nodes.n_maps
        return nodes

    def second_moment(self, logs: LogMap) -> Array:
        """Weighted second moment of the data's tangents, kept from being singular."""
        moment = np.einsum("n,ni,nj->ij", self.weights, logs.tangents, logs.tangents)
        ridge = _RIDGE * max(float(np.trace(moment)) / len(moment), 1e-300)
        return np.asarray(moment + ridge * np.eye(len(moment)))

    def evaluate(
        self, mean: Array, covariance: Array, logs: LogMap | None = None
    ) -> Estimate:
        """The objective at a mean and covariance."""
        logs = self.log_maps(mean) if logs is None else logs
        nodes = self.nodes(mean, covariance)
        return self._assemble(mean, covariance, logs, nodes)

    def profile(
        self,
        mean: Array,
        guess: Array | None = None,
        near: LogMap | None = None,
    ) -> Estimate:
        """The objective at a mean, minimised over the covariance.

        For a fixed mean the objective is convex in the precision, so this is unique.
        """
        logs = self.log_maps(mean, near)
        moment = self.second_moment(logs)
        covariance = moment if guess is None else guess
        for _ in range(_PLACEMENTS):
            nodes = self.nodes(mean, covariance)
            precision = solve_precision(moment, nodes, invert(covariance))
            placed, covariance = covariance, invert(precision)
            factor = cholesky(placed)
            whitened = np.linalg.solve(factor, np.linalg.solve(factor, covariance).T)
            scales = np.linalg.eigvalsh(0.5 * (whitened + whitened.T))
            if scales[0] > _TOO_NARROW and scales[-1] < _TOO_WIDE:
                break
        return self._assemble(mean, covariance, logs, nodes)

    def shifted_objective(self, at: Estimate, mean: Array) -> float:
        """The objective at another mean, with the covariance of `at`."""
        logs = self.log_maps(mean, at.logs)
        nodes = self.nodes(mean, at.covariance)
        return self._value(at.precision, self.second_moment(logs), nodes)

    def record(self, estimate: Estimate) -> None:
        """Append to the history and tell whoever listens."""
        step = Step(
            len(self.history),
            estimate.objective,
            estimate.mean,
            self.n_log_maps,
            self.n_exp_maps,
        )
        self.history.append(step)
        if self.callback is not None:
            self.callback(step)

    def _value(self, precision: Array, moment: Array, nodes: TangentNodes) -> float:
        constant = np.logaddexp.reduce(log_terms(nodes, precision))
        return float(0.5 * np.sum(precision * moment) + constant)

    def _assemble(
        self, mean: Array, covariance: Array, logs: LogMap, nodes: TangentNodes
    ) -> Estimate:
        precision = invert(covariance)
        return Estimate(
            mean=mean,
            covariance=covariance,
            precision=precision,
            objective=self._value(precision, self.second_moment(logs), nodes),
            log_constant=summarise(nodes, precision, 0.1 * self.tol),
            logs=logs,
            nodes=nodes,
        )
