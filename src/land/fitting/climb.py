"""The way up the ladder, the same for one distribution and for mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from land.fitting.estimate import Estimate
from land.fitting.fidelity import Fidelity
from land.fitting.problem import FitProblem
from land.fitting.progress import keep, restore
from land.geodesics import LogMap

Array = NDArray[np.float64]
State = dict[str, Any]

# Steps after which everything is computed anew, and a fit can be taken up again.
STEPS_BETWEEN_CHECKPOINTS = 8
# A fit goes on, so many times at most, where the geodesics that have followed its means
# and those that are computed anew have objectives that differ by more than this.
_RENEWALS, _AGREE = 3, 1e-3


class Model(Protocol):
    """A model on a rung of the ladder, made of a problem, weights and a state."""

    converged: bool

    @property
    def estimates(self) -> Sequence[Estimate]:
        """Its components."""

    @property
    def shares(self) -> Sequence[Array]:
        """Weights of the data in each of them."""

    @property
    def objective(self) -> float:
        """Mean negative log likelihood."""

    def objective_with(self, logs: Sequence[LogMap]) -> float:
        """The same if these were the components' log maps of the data."""

    def descend(self, steps: int, tol: float) -> int:
        """Take at most so many steps, and say how many."""

    def state(self) -> State:
        """What it takes to go on: small arrays."""


M = TypeVar("M", bound=Model)


def climb(
    problem: FitProblem,
    weights: Array,
    rungs: Sequence[Fidelity],
    search: Callable[[], State],
    model_on: Callable[[FitProblem, Array, State], M],
    max_iter: int,
) -> M:
    """Descend on one rung after the other, or go on where a fit was interrupted.

    Geodesics follow the means, and stay what they are where others have become
    shorter. So a fit ends only where geodesics that are computed anew agree.

    Parameters
    ----------
    problem, weights
        The problem.
    rungs
        Fidelities, the last one that of all data.
    search
        Finds the state to start from.
    model_on
        Makes a model of a problem, weights and a state; everything is computed anew.
    max_iter
        Largest number of steps on each rung.
    """
    kept = restore(problem)
    if kept is None:
        kept = {"state": search(), "rung": 0, "left": max_iter, "renewals": 0}
    state, left, renewals = kept["state"], kept["left"], kept["renewals"]
    for position in range(kept["rung"], len(rungs)):
        rung = rungs[position]
        rng = np.random.default_rng([problem.seed, position])
        part, own, _ = problem.at(rung, weights, rng)
        while True:
            keep(problem, state=state, rung=position, left=left, renewals=renewals)
            model = model_on(part, own, state)
            left -= model.descend(min(left, STEPS_BETWEEN_CHECKPOINTS), rung.tol)
            state = model.state()
            if left <= 0 or (model.converged and _agree(part, model)):
                break
            renewals += model.converged
            if renewals > _RENEWALS:
                model = model_on(part, own, state)  # which has not converged
                break
        left, renewals = max_iter, 0
    return model


def _agree(problem: FitProblem, model: Model) -> bool:
    """Whether geodesics to the data, computed anew, say the same about a model."""
    if problem.is_flat:
        return True
    logs = problem.renewed_logs(model.estimates, model.shares)
    return abs(model.objective_with(logs) - model.objective) <= _AGREE
