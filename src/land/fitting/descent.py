"""Quasi-Newton descent of the mean, the covariance profiled out.

For every mean the best covariance is found exactly (`FitProblem.profile`), so only D
parameters remain, and their gradient needs the covariance held fixed. Steps are taken
along geodesics, which follow the data where straight steps would leave them; the
curvature that is learned lives in the tangent space of the current mean. Several
independent searches advance in lockstep, so that their geodesics share batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky
from land.fitting.estimate import Estimate
from land.fitting.gradient import mean_gradients
from land.fitting.problem import FitProblem
from land.geodesics import exp_map

Array = NDArray[np.float64]

_LONGEST_STEP = 1.0
_ARMIJO = 1e-4
_DIFFERENCE = 1e-3
_CAUTION = 0.1
# A line search is given up when so many trials have left too little to hope for: what
# the first one says about short steps may be wrong.
_DISAPPOINTMENTS = 2
# A rival that is ahead by this many times the fall along a full step has won.
_HOPELESS = 1.5


@dataclass(frozen=True)
class Standing:
    """Where a search stands and what it has learned: all it needs to go on."""

    mean: Array
    covariance: Array
    objective: float
    inverse_hessian: Array
    frame: Array
    transport: Array
    gradient: Array | None
    step: Array | None
    fresh: bool

    def on(self, estimate: Estimate, weights: Array) -> MeanSearch:
        """The search from a new evaluation of the same mean."""
        following = MeanSearch(estimate, weights)
        following.frame, following.fresh = self.frame, self.fresh
        following.inverse_hessian = self.inverse_hessian
        following.transport = self.transport
        following.gradient, following.step = self.gradient, self.step
        return following


@dataclass
class MeanSearch:
    """One descending mean, and the curvature learned on its way."""

    estimate: Estimate
    weights: Array
    inverse_hessian: Array = field(init=False)
    frame: Array = field(init=False)
    gradient: Array | None = None
    knows_gradient: bool = False  # of the present estimate
    step: Array | None = None  # the last one, in the frame it was taken in
    transport: Array = field(init=False)  # derivative of Exp at the last step
    converged: bool = False
    fresh: bool = True  # no curvature has been learned yet

    def __post_init__(self) -> None:
        self.frame = cholesky(self.estimate.covariance)
        self.inverse_hessian = self.transport = np.eye(len(self.frame))

    def receive_gradient(self, gradient: Array, frame: Array) -> None:
        """Take a new gradient, and learn from its change along the last step."""
        # From displacements in the old frame to displacements in the new one.
        turn = np.linalg.solve(frame, self.transport @ self.frame)
        if self.step is not None and self.gradient is not None:
            # Both are gradients of the objective as a function on the old tangents.
            now = turn.T @ gradient
            updated = _bfgs(self.inverse_hessian, self.step, now - self.gradient)
            self.fresh = self.fresh and updated is self.inverse_hessian
            self.inverse_hessian = updated
        self.inverse_hessian = turn @ self.inverse_hessian @ turn.T
        self.gradient, self.frame, self.step = gradient, frame, None
        self.knows_gradient = True
        self.transport = np.eye(len(frame))

    def direction(self) -> tuple[Array, float]:
        """Descent direction in the frame, and the slope along it."""
        assert self.gradient is not None
        direction = -self.inverse_hessian @ self.gradient
        return direction, float(self.gradient @ direction)

    def promise(self) -> float:
        """How far the objective may fall in the next step.

        What was learned of the curvature may be wrong; in units of the covariance it is
        hardly ever a lot larger than one.
        """
        assert self.gradient is not None
        learned = -0.5 * self.direction()[1]
        return max(learned, _CAUTION * float(self.gradient @ self.gradient))

    def standing(self) -> Standing:
        """What the search needs to go on."""
        return Standing(
            mean=self.estimate.mean,
            covariance=self.estimate.covariance,
            objective=self.estimate.objective,
            inverse_hessian=self.inverse_hessian,
            frame=self.frame,
            transport=self.transport,
            gradient=self.gradient,
            step=self.step,
            fresh=self.fresh,
        )

    def resumed(self, estimate: Estimate, weights: Array | None = None) -> MeanSearch:
        """The search from a new evaluation of the same mean, with what was learned."""
        return self.standing().on(
            estimate, self.weights if weights is None else weights
        )

    def outrun(self, rival: MeanSearch) -> bool:
        """Whether a rival is so far ahead that the next steps will not catch up."""
        if self is rival or self.gradient is None:
            return False
        gap = self.estimate.objective - rival.estimate.objective
        return gap > _HOPELESS * abs(self.direction()[1])

    def accept(self, estimate: Estimate, step: Array, transport: Array) -> None:
        """Move."""
        self.estimate, self.step, self.transport = estimate, step, transport
        self.knows_gradient = False

    def reject(self) -> None:
        """No step helped: forget the curvature; without any, this is the end."""
        self.converged = self.fresh
        self.inverse_hessian = np.eye(len(self.frame))
        self.fresh = True


def descend(
    problem: FitProblem, searches: Sequence[MeanSearch], max_iter: int, tol: float
) -> bool:
    """Advance all searches until each has converged; whether they have.

    A search has converged when its next step is predicted to lower the objective by
    less than `tol` or the constant's standard error, or when steps have lowered it by
    less than `tol` twice in a row.
    """
    small_steps = [0] * len(searches)
    for _ in range(max_iter):
        before = [search.estimate.objective for search in searches]
        advance(problem, searches, tol)
        for k, search in enumerate(searches):
            small = before[k] - search.estimate.objective < tol
            small_steps[k] = small_steps[k] + 1 if small else 0
            search.converged = search.converged or small_steps[k] >= 2
        best = min(searches, key=lambda search: search.estimate.objective)
        for search in searches:
            search.converged = search.converged or search.outrun(best)
        problem.record(best.estimate.objective, [best.estimate])
        if all(search.converged for search in searches):
            return True
    return False


def advance(problem: FitProblem, searches: Sequence[MeanSearch], tol: float) -> None:
    """One step of every search that has not converged; none goes uphill."""
    active = [search for search in searches if not search.converged]
    if not active:
        return
    moved = [search for search in active if not search.knows_gradient]
    if moved:
        gradients, frames = mean_gradients(
            problem,
            [search.estimate for search in moved],
            [search.weights for search in moved],
        )
        for search, gradient, frame in zip(moved, gradients, frames, strict=True):
            search.receive_gradient(gradient, frame)
    for search in active:
        noise = search.estimate.log_constant.stderr - problem.tol
        search.converged = search.promise() < max(tol, noise)
    _line_search(problem, [search for search in active if not search.converged], tol)


def _line_search(
    problem: FitProblem, searches: Sequence[MeanSearch], tol: float
) -> None:
    """Shorten the steps of all searches until each lowers its objective.

    Or until there seems to be less than `tol` to be had.
    """
    waiting = list(searches)
    disappointments = {id(search): 0 for search in searches}
    lengths = {
        id(search): min(1.0, _LONGEST_STEP / float(np.linalg.norm(direction)))
        for search in searches
        for direction in [search.direction()[0]]
    }
    for _ in range(problem.trials):
        if not waiting:
            return
        steps = [lengths[id(search)] * search.direction()[0] for search in waiting]
        outcomes = _try_steps(problem, waiting, steps)
        rejected = []
        for search, step, (trial, transport) in zip(
            waiting, steps, outcomes, strict=True
        ):
            length = lengths[id(search)]
            slope = search.direction()[1]
            rise = np.inf
            if trial is not None:
                rise = trial.objective - search.estimate.objective
                if rise < _ARMIJO * length * slope:
                    search.accept(trial, step, transport)
                    continue
            if not np.isfinite(rise):
                lengths[id(search)] = 0.25 * length
                rejected.append(search)
                continue
            # Minimum of the parabola through what is known.
            best = -0.5 * slope * length**2 / (rise - slope * length)
            lengths[id(search)] = float(np.clip(best, 0.1 * length, 0.5 * length))
            disappointments[id(search)] += -0.5 * slope * best < tol
            if disappointments[id(search)] < _DISAPPOINTMENTS:
                rejected.append(search)
            else:
                search.reject()
        waiting = rejected
    for search in waiting:
        search.reject()


def _try_steps(
    problem: FitProblem, searches: Sequence[MeanSearch], steps: Sequence[Array]
) -> list[tuple[Estimate | None, Array]]:
    """Estimates after steps, none where they lead too far; derivatives of Exp."""
    tangents = [
        search.frame @ step for search, step in zip(searches, steps, strict=True)
    ]
    means, transports = _follow_geodesics(problem, searches, tangents)
    inside = [
        k
        for k, mean in enumerate(means)
        if np.all(np.isfinite(mean)) and _may_move(problem, searches[k], mean)
    ]
    trials: list[Estimate | None] = [None] * len(means)
    if inside:
        own = [searches[k] for k in inside]
        moved = [means[k] for k in inside]
        weights = [search.weights for search in own]
        longest = max(float(np.linalg.norm(steps[k])) for k in inside)
        logs = problem.update_log_maps(
            moved,
            [search.estimate.logs for search in own],
            weights,
            near=longest < problem.nearby,
        )
        guesses = [search.estimate.covariance for search in own]
        found = problem.profile_covariances(moved, weights, logs, guesses)
        for k, trial in zip(inside, found, strict=True):
            trials[k] = trial
    return list(zip(trials, transports, strict=True))


def _may_move(problem: FitProblem, search: MeanSearch, mean: Array) -> bool:
    """Whether a mean may go there: who is among the data stays among them."""
    holds = problem.enclosure.holds
    return holds(mean) or not holds(search.estimate.mean)


def _follow_geodesics(
    problem: FitProblem, searches: Sequence[MeanSearch], tangents: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """New means Exp(v), and derivatives of Exp at v by differences."""
    dim = problem.metric.dim
    offsets, bases = [], []
    for search, tangent in zip(searches, tangents, strict=True):
        sides = _DIFFERENCE * np.concatenate([search.frame.T, -search.frame.T])
        offsets.append(tangent + np.concatenate([np.zeros((1, dim)), sides]))
        bases.append(np.broadcast_to(search.estimate.mean, offsets[-1].shape))
    problem.work.exp_maps += len(offsets) * (2 * dim + 1)
    arrivals = exp_map(problem.metric, np.stack(bases), np.stack(offsets), tol=1e-9)
    means, transports = [], []
    for search, points in zip(searches, arrivals.points, strict=True):
        change = (points[1 : dim + 1] - points[dim + 1 :]).T / (2.0 * _DIFFERENCE)
        means.append(points[0])
        transports.append(np.linalg.solve(search.frame.T, change.T).T)
    return means, transports


def _bfgs(inverse: Array, step: Array, change: Array) -> Array:
    """BFGS update of the inverse Hessian; unchanged where curvature is not positive."""
    product = float(step @ change)
    if product <= 1e-3 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    left = np.eye(len(step)) - np.outer(step, change) / product
    return np.asarray(left @ inverse @ left.T + np.outer(step, step) / product)
