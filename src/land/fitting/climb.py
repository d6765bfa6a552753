"""The way up the ladder, the same for one distribution and for mixtures.

Fits keep their progress where everything else is computed anew anyway: on a new rung of
the ladder, and every few steps. One that goes on from there takes the same steps, to
the last digit, as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from land.fitting.estimate import Component, Estimate, Step
from land.fitting.fidelity import Fidelity
from land.fitting.problem import FitProblem
from land.fitting.profile import renewed

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
    def objective(self) -> float:
        """Mean negative log likelihood."""

    def objective_of(self, components: Sequence[Component]) -> float:
        """The same with these for its components."""

    def record(self) -> None:
        """Add a step to the problem's history."""

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
    kept = _restore(problem)
    if kept is None:
        kept = {"state": search(), "rung": 0, "left": max_iter, "renewals": 0}
    state, left, renewals = kept["state"], kept["left"], kept["renewals"]
    for position in range(kept["rung"], len(rungs)):
        rung = rungs[position]
        rng = np.random.default_rng([problem.seed, position])
        part, own, _ = problem.at(rung, weights, rng)
        while True:
            _keep(problem, state=state, rung=position, left=left, renewals=renewals)
            model = model_on(part, own, state)
            if left == max_iter:
                model.record()
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
    anew = model.objective_of(renewed(problem, model.estimates))
    return abs(anew - model.objective) <= _AGREE


def _keep(problem: FitProblem, **state: Any) -> None:
    """Tell whoever keeps the progress of a fit how it stands."""
    if problem.save_progress is None:
        return
    problem.save_progress(
        _plain(
            {
                "history": [asdict(step) for step in problem.history],
                "work": asdict(problem.work),
                "seconds": time.perf_counter() - problem.started,
                **state,
            }
        )
    )


def _restore(problem: FitProblem) -> State | None:
    """Put a problem back to where it was kept; return the state, if there is one."""
    kept = problem.progress
    if kept is None:
        return None
    problem.history[:] = [
        Step(**step | {"means": np.asarray(step["means"])}) for step in kept["history"]
    ]
    problem.work.log_maps = kept["work"]["log_maps"]
    problem.started = time.perf_counter() - kept["seconds"]
    return kept


def _plain(value: Any) -> Any:
    """Lists and numbers; the digits of a float survive both this and JSON."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
