"""The one optimiser: a trust-region descent of means along geodesics.

Objectives hand over a model of themselves near a mean, a function of the step that
takes no geodesics. Within a radius in which it has been right it is minimised, and the
step is taken along a geodesic, which follows the data where a straight one would leave
them. Several independent searches advance in lockstep: their geodesics share batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from land.geodesics import LogMap, exp_map
from land.metrics import Metric

Array = NDArray[np.float64]
# From a step, in coordinates, to the change of the objective and its gradient.
LocalModel = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True)
class _Settings:
    """What the trust region goes by.

    Attributes
    ----------
    first_radius : float
        In standard deviations of the distribution.
    shrink, grow : float
        Factors of the radius where the model promises too much, and where it is right.
    poor, good : float
        Shares of the promised fall that tell which of the two it is.
    trials : int
        Steps that are tried from one mean.
    inner_gain : float
        Minimisation of the model ends when a step gains less than this.
    outrun : float
        A search is given up if the leader is ahead by this many times the fall that
        its next step promises.
    """

    first_radius: float = 0.3
    shrink: float = 0.3
    grow: float = 2.0
    poor: float = 0.25
    good: float = 0.7
    trials: int = 5
    inner_gain: float = 1e-7
    outrun: float = 3.0


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
    """One descending mean."""

    spot: Any
    radius: float
    model: LocalModel | None = None  # at the spot
    missing: Array | None = None  # second derivative that models lack, as it seems
    step: Array | None = None  # what the model wants
    size: float = 0.0  # of that step, in units of the radius
    promise: float = np.inf  # fall of the objective that it promises
    converged: bool = False

    def renewed(self, spot: Spot) -> Search:
        """The search from a new evaluation of the same mean."""
        return Search(spot, self.radius, missing=self.missing)


class Objective(Protocol):
    """What can be minimised."""

    metric: Metric

    def evaluate(
        self, means: Sequence[Array], searches: Sequence[Search]
    ) -> Sequence[Spot]:
        """Values at means near those of the searches."""

    def local_model(self, search: Search) -> LocalModel:
        """The objective near the mean of a search."""

    def unit(self, spot: Any) -> Array:
        """Covariance in which steps are measured."""

    def negligible(self, spot: Any, tol: float) -> float:
        """A fall of the objective that a tolerance does not care for."""

    def reliable(self, spot: Any, before: Any) -> bool:
        """Whether the value is known well enough to go there."""


def first_radius(metric: Metric) -> float:
    """Radius of a trust region, in standard deviations; in flat space there is none."""
    return np.inf if metric.is_flat else _SETTINGS.first_radius


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
        for search in searches:
            behind = search.spot.objective - best.spot.objective
            search.converged |= behind > _SETTINGS.outrun * search.promise
        record(best.spot)
        if all(search.converged for search in searches):
            return iteration + 1
    return max_iter


def advance(objective: Objective, searches: Sequence[Search], tol: float) -> None:
    """One step of every search that has not converged; none goes uphill."""
    waiting = [search for search in searches if not search.converged]
    for _ in range(_SETTINGS.trials):
        for search in waiting:
            _propose(objective, search)
            search.converged = search.promise < objective.negligible(search.spot, tol)
        waiting = [search for search in waiting if not search.converged]
        if not waiting:
            return
        pairs = zip(waiting, _try(objective, waiting), strict=True)
        waiting = [each for each, spot in pairs if not _accept(objective, each, spot)]
    for search in waiting:
        search.converged = True


def _propose(objective: Objective, search: Search) -> None:
    """Find the step that the model of a search wants."""
    if search.model is None:
        search.model = objective.local_model(search)
    # Along principal axes: the region is a box, and turns with the data.
    variances, axes = np.linalg.eigh(objective.unit(search.spot))
    factor = axes * np.sqrt(np.maximum(variances, 0.0))
    model, missing = search.model, search.missing

    def whitened(step: Array) -> tuple[float, Array]:
        step = factor @ step
        value, gradient = model(step)
        if missing is not None:
            pull = missing @ step
            value, gradient = value + 0.5 * float(step @ pull), gradient + pull
        return value, factor.T @ gradient

    step, search.promise = _minimise(whitened, len(factor), search.radius)
    search.step, search.size = factor @ step, float(np.linalg.norm(step))


def _accept(objective: Objective, search: Search, spot: Spot | None) -> bool:
    """Take the step if the objective falls; learn how far the model is right."""
    share = -np.inf
    if spot is not None and objective.reliable(spot, search.spot):
        share = (search.spot.objective - spot.objective) / search.promise
        if not objective.metric.is_flat:  # there the model is exact
            _learn(objective, search, spot)
    if share < _SETTINGS.poor:
        search.radius = _SETTINGS.shrink * search.size
    elif share > _SETTINGS.good:
        search.radius = max(search.radius, _SETTINGS.grow * search.size)
    if share <= 0.0:
        return False
    search.spot, search.model = spot, None
    return True


def _learn(objective: Objective, search: Search, spot: Spot) -> None:
    """Let the model of a search be right about the step that was tried.

    What it leaves out is of second order, and is taken to be a multiple of the square
    of the step: the direction in which the search is going.
    """
    assert search.model is not None
    assert search.step is not None
    change = spot.objective - search.spot.objective
    excess = 2.0 * (change - search.model(search.step)[0])
    along = np.linalg.solve(objective.unit(search.spot), search.step)
    search.missing = (excess / (along @ search.step) ** 2) * np.outer(along, along)


def _minimise(model: LocalModel, dim: int, radius: float) -> tuple[Array, float]:
    """Minimum of a model within a box around the origin, and how far it lies below.

    Where the model cannot be evaluated its value is not a number.
    """
    origin = np.zeros(dim)
    start, slope = model(origin)
    # The first step is one standard deviation at most.
    scale = max(1.0, float(np.linalg.norm(slope)))

    def objective(place: Array) -> tuple[float, Array]:
        value, gradient = model(place)
        if not np.isfinite(value):
            return np.inf, np.zeros(dim)
        return (value - start) / scale, gradient / scale

    found = minimize(
        objective,
        origin,
        jac=True,
        method="L-BFGS-B",
        bounds=dim * [(-radius, radius)],
        options={"ftol": _SETTINGS.inner_gain},
    )
    return found.x, -scale * min(float(found.fun), 0.0)


def _try(objective: Objective, searches: Sequence[Search]) -> list[Spot | None]:
    """Evaluations after steps along geodesics; none where those cannot be followed."""
    bases = np.stack([search.spot.mean for search in searches])
    steps = np.stack([search.step for search in searches if search.step is not None])
    arrivals = exp_map(objective.metric, bases, steps)
    found: list[Spot | None] = [None] * len(searches)
    reached = np.flatnonzero(arrivals.converged).tolist()
    if reached:
        spots = objective.evaluate(
            [arrivals.points[k] for k in reached], [searches[k] for k in reached]
        )
        for k, spot in zip(reached, spots, strict=True):
            found[k] = spot
    return found
