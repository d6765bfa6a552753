"""The way up the ladder, the same for one distribution and for mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from land.fitting.fidelity import Fidelity
from land.fitting.problem import FitProblem
from land.fitting.progress import keep, restore

Array = NDArray[np.float64]
State = dict[str, Any]

# Steps after which everything is computed anew, and a fit can be taken up again.
STEPS_BETWEEN_CHECKPOINTS = 8


class Model(Protocol):
    """A model on a rung of the ladder, made of a problem, weights and a state."""

    converged: bool

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
        state, first, left = search(), 0, max_iter
    else:
        state, first, left = kept["state"], kept["rung"], kept["left"]
    for position, rung in enumerate(rungs):
        if position < first:
            continue
        rng = np.random.default_rng([problem.seed, position])
        part, own, _ = problem.at(rung, weights, rng)
        while True:
            keep(problem, state=state, rung=position, left=left)
            model = model_on(part, own, state)
            steps = min(left, STEPS_BETWEEN_CHECKPOINTS)
            left -= model.descend(steps, rung.tol)
            state = model.state()
            if model.converged or left <= 0:
                break
        left = max_iter
    return model
