"""The one optimiser: quasi-Newton descent of means along geodesics.

Objectives hand over values, gradients and an approximate second derivative at a mean;
L-BFGS corrects the latter by what steps have shown. All of that is in coordinates, only
the steps are geodesics, which follow the data where straight steps would leave them.
Several independent searches advance in lockstep, so that their geodesics share batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from land.geodesics import LogMap, exp_map
from land.metrics import Metric

Array = NDArray[np.float64]
Pair = tuple[Array, Array]  # a step, and the change of the gradient along it


@dataclass(frozen=True)
class _Settings:
    """What the line search and L-BFGS go by.

    Attributes
    ----------
    longest_step : float
        In standard deviations: farther away the second derivative is another one.
    armijo : float
        Share of the predicted fall that a step must bring.
    trials : int
        Of a line search.
    memory : int
        Pairs that are remembered.
    curved : float
        Smallest cosine between a step and the change of the gradient to learn from.
    least, most : float
        Bounds of the second derivative, in units of the one of flat space.
    outrun : float
        A search is given up if the leader is ahead by this many times the fall that its
        next step promises.
    """

    longest_step: float = 1.0
    armijo: float = 1e-4
    trials: int = 6
    memory: int = 6
    curved: float = 1e-3
    least: float = 0.1
    most: float = 10.0
    outrun: float = 1.5


_SETTINGS = _Settings()


class Spot(Protocol):
    """An objective, evaluated at a mean."""

    @property
    def mean(self) -> Array:
        """Where."""

    @property
    def objective(self) -> float:
        """The value."""

    @property
    def logs(self) -> LogMap:
        """Log maps of the data there."""


@dataclass
class Search:
    """One descending mean, and what was learned on its way."""

    spot: Any
    weights: Array
    memory: list[Pair] = field(default_factory=list)
    gradient: Array | None = None
    curvature: Array | None = None  # second derivative, bounded
    departure: Pair | None = None  # mean and gradient before the last step
    converged: bool = False

    def receive(self, gradient: Array, curvature: Array, unit: Array) -> None:
        """Take the derivatives here, and learn from the change along the last step.

        `unit` is the covariance in which steps are measured; in flat space the second
        derivative is its inverse.
        """
        self.curvature = _bounded(curvature, unit)
        if self.departure is not None:
            step = self.spot.mean - self.departure[0]
            change = gradient - self.departure[1]
            size = np.sqrt(
                step @ np.linalg.solve(unit, step) * (change @ unit @ change)
            )
            if step @ change > _SETTINGS.curved * size:
                self.memory = [*self.memory, (step, change)][-_SETTINGS.memory :]
        self.gradient, self.departure = gradient, None

    def direction(self) -> Array:
        """The quasi-Newton direction."""
        assert self.gradient is not None
        assert self.curvature is not None
        vector, shares = self.gradient, []
        for step, change in reversed(self.memory):
            share = (step @ vector) / (step @ change)
            shares.append(share)
            vector = vector - share * change
        found = np.linalg.solve(self.curvature, vector)
        for (step, change), share in zip(self.memory, reversed(shares), strict=True):
            found = found + (share - change @ found / (step @ change)) * step
        if self.gradient @ found <= 0.0:
            self.memory = []
            found = np.linalg.solve(self.curvature, self.gradient)
        return np.asarray(-found)

    def accept(self, spot: Spot) -> None:
        """Move."""
        assert self.gradient is not None
        self.departure = (self.spot.mean, self.gradient)
        self.spot, self.gradient = spot, None

    def reject(self) -> None:
        """No step helped: forget what was learned, or end if that is nothing."""
        self.converged = not self.memory
        self.memory = []

    def renewed(self, spot: Spot, weights: Array) -> Search:
        """The search from a new evaluation of the same mean."""
        return replace(self, spot=spot, weights=weights, gradient=None, converged=False)


class Objective(Protocol):
    """What can be minimised."""

    metric: Metric

    def evaluate(
        self, means: Sequence[Array], searches: Sequence[Search]
    ) -> Sequence[Spot]:
        """Values at means near those of the searches."""

    def differentiate(
        self, searches: Sequence[Search]
    ) -> Sequence[tuple[Array, Array]]:
        """Gradients and approximate second derivatives, in coordinates."""

    def unit(self, spot: Any) -> Array:
        """Covariance in which steps are measured."""

    def negligible(self, spot: Any, tol: float) -> float:
        """A fall of the objective that a tolerance does not care for."""

    def reliable(self, spot: Any, before: Any) -> bool:
        """Whether the value is known well enough to go there."""


def descend(
    objective: Objective,
    searches: Sequence[Search],
    max_iter: int,
    tol: float,
    record: Callable[[Any], None],
) -> int:
    """Advance all searches until each has converged; the number of steps taken.

    A search has converged when its next step promises less than the tolerance, when two
    in a row have brought less, or when another one is far ahead.
    """
    small = [0] * len(searches)
    for iteration in range(max_iter):
        before = [search.spot.objective for search in searches]
        advance(objective, searches, tol)
        for k, search in enumerate(searches):
            fall = before[k] - search.spot.objective
            little = fall < objective.negligible(search.spot, tol)
            small[k] = small[k] + 1 if little else 0
            search.converged = search.converged or small[k] >= 2
        best = min(searches, key=lambda search: search.spot.objective)
        _give_up(searches, best)
        record(best.spot)
        if all(search.converged for search in searches):
            return iteration + 1
    return max_iter


def advance(objective: Objective, searches: Sequence[Search], tol: float) -> None:
    """One step of every search that has not converged; none goes uphill."""
    active = [search for search in searches if not search.converged]
    new = [search for search in active if search.gradient is None]
    if new:
        found = objective.differentiate(new)
        for search, derivatives in zip(new, found, strict=True):
            search.receive(*derivatives, objective.unit(search.spot))
    for search in active:
        assert search.gradient is not None
        promise = -0.5 * float(search.gradient @ search.direction())
        search.converged = promise < objective.negligible(search.spot, tol)
    _line_search(objective, [each for each in active if not each.converged], tol)


def _give_up(searches: Sequence[Search], best: Search) -> None:
    """Searches that another one has outrun will not catch up in the next steps."""
    for search in searches:
        if search is best or search.gradient is None:
            continue
        promise = abs(float(search.gradient @ search.direction()))
        gap = search.spot.objective - best.spot.objective
        search.converged |= gap > _SETTINGS.outrun * promise


def _line_search(objective: Objective, searches: Sequence[Search], tol: float) -> None:
    """Shorten the steps of all searches until each lowers its objective."""
    waiting = []
    for search in searches:
        direction = search.direction()
        size = np.sqrt(
            direction @ np.linalg.solve(objective.unit(search.spot), direction)
        )
        longest = float(_SETTINGS.longest_step / size)
        waiting.append((search, direction, min(1.0, longest)))
    for _ in range(_SETTINGS.trials):
        if not waiting:
            return
        spots = _try(objective, waiting)
        rejected = []
        for (search, direction, length), spot in zip(waiting, spots, strict=True):
            assert search.gradient is not None
            slope = float(search.gradient @ direction)
            rise = np.inf
            if spot is not None and objective.reliable(spot, search.spot):
                rise = spot.objective - search.spot.objective
            if rise < _SETTINGS.armijo * length * slope:
                assert spot is not None
                search.accept(spot)
                continue
            if not np.isfinite(rise):
                rejected.append((search, direction, 0.25 * length))
                continue
            # Minimum of the parabola through what is known.
            best = -0.5 * slope * length**2 / (rise - slope * length)
            if -0.5 * slope * best < objective.negligible(search.spot, tol):
                search.reject()
                continue
            shorter = float(np.clip(best, 0.1 * length, 0.5 * length))
            rejected.append((search, direction, shorter))
        waiting = rejected
    for search, _, _ in waiting:
        search.reject()


def _try(
    objective: Objective, waiting: Sequence[tuple[Search, Array, float]]
) -> list[Spot | None]:
    """Evaluations after steps along geodesics; none where those cannot be followed."""
    bases = np.stack([search.spot.mean for search, _, _ in waiting])
    steps = np.stack([length * direction for _, direction, length in waiting])
    arrivals = exp_map(objective.metric, bases, steps)
    found: list[Spot | None] = [None] * len(waiting)
    reached = np.flatnonzero(arrivals.converged)
    if len(reached):
        spots = objective.evaluate(
            [arrivals.points[k] for k in reached],
            [waiting[k][0] for k in reached.tolist()],
        )
        for k, spot in zip(reached.tolist(), spots, strict=True):
            found[k] = spot
    return found


def _bounded(curvature: Array, unit: Array) -> Array:
    """A second derivative with eigenvalues within bounds, in units of flat space."""
    factor = np.linalg.cholesky(unit)
    whitened = factor.T @ curvature @ factor
    if not np.all(np.isfinite(whitened)):
        whitened = np.eye(len(unit))
    values, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
    values = np.clip(values, _SETTINGS.least, _SETTINGS.most)
    root = np.linalg.solve(factor.T, vectors * np.sqrt(values))
    return np.asarray(root @ root.T)
