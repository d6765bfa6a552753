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

Array = NDArray[np.float64]
State = dict[str, Any]

# Steps after which everything is computed anew, and a fit can be taken up again.
STEPS_BETWEEN_CHECKPOINTS = 8


class Model(Protocol):
    """A model on a rung of the ladder, made of a problem, weights and a state."""

    converged: bool

    @property
    def estimates(self) -> Sequence[Estimate]:
        """Its components."""

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
    shorter. If that has happened, the steps are taken again, with geodesics that are
    computed anew after each.

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
        kept = {"state": search(), "rung": 0, "left": max_iter, "anew": False}
    state, left, anew = kept["state"], kept["left"], kept["anew"]
    for position in range(kept["rung"], len(rungs)):
        rung = rungs[position]
        rng = np.random.default_rng([problem.seed, position])
        part, own, _ = problem.at(rung, weights, rng)
        while True:
            keep(problem, state=state, rung=position, left=left, anew=anew)
            part.anew, so_far = anew, len(part.history)
            model = model_on(part, own, state)
            left -= model.descend(min(left, STEPS_BETWEEN_CHECKPOINTS), rung.tol)
            if not (anew or part.are_shortest(model.estimates)):
                anew = True  # once more from where all geodesics were the shortest
                del part.history[so_far:]
                continue
            state = model.state()
            if model.converged or left <= 0:
                break
        left, anew = max_iter, False
    return model
