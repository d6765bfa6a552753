"""What an interrupted fit needs to go on: small arrays, as plain data for a file.

Fits keep their progress where everything else is computed anew anyway: after the search
for a start, and whenever curves are renewed. One that goes on from there takes the same
steps, to the last digit, as one that was never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from land.fitting.descent import Standing
from land.fitting.problem import FitProblem, Step

Plain = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """How a descent stood when its curves were about to be renewed.

    Attributes
    ----------
    standings : list of Standing
        One for each component.
    proportions : list of float
        Their shares of the model.
    objective : float
        What had been reached.
    converged : bool
        Whether the stopping rule was met.
    remaining : int
        Steps that may still be taken.
    surprises : int
        How often renewed curves made a fit go on that had converged.
    n_steps : int
        Length of the history.
    fallback : Turn or None
        Where the descent began, on renewed curves.
    """

    standings: list[Standing]
    proportions: list[float]
    objective: float
    converged: bool
    remaining: int
    surprises: int
    n_steps: int
    fallback: Turn | None = None

    def was_in_vain(self, renewed: float, margin: float) -> bool:
        """Whether, with renewed curves, the descent has led uphill.

        Where two curves to a datum are equally short, the objective jumps. A descent
        that carries its curves along does not see that.
        """
        return self.fallback is not None and (
            renewed > self.fallback.objective + margin
        )

    def plain(self) -> Plain:
        """The turn as plain data."""
        return _plain(asdict(self))

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """The inverse of `plain`."""
        changed: Plain = {"standings": unpack_standings(plain["standings"])}
        if plain["fallback"] is not None:
            changed["fallback"] = cls.from_plain(plain["fallback"])
        return cls(**plain | changed)


def keep(problem: FitProblem, **state: Any) -> None:
    """Tell whoever keeps the progress of a fit how it stands."""
    if problem.keeper is None:
        return
    problem.keeper(
        _plain(
            {
                "history": [asdict(step) for step in problem.history],
                "work": asdict(problem.work),
                "economy": problem.economy,
                "seconds": time.perf_counter() - problem.started,
                **state,
            }
        )
    )


def restore(problem: FitProblem) -> Plain | None:
    """Put a problem back to where it was kept; return the state, if there is one."""
    kept = problem.kept
    if kept is None:
        return None
    problem.history[:] = [
        Step(**step | {"means": np.asarray(step["means"])}) for step in kept["history"]
    ]
    problem.work.log_maps, problem.work.exp_maps = (
        kept["work"]["log_maps"],
        kept["work"]["exp_maps"],
    )
    problem.economy = kept["economy"]
    problem.started = time.perf_counter() - kept["seconds"]
    return kept


def unpack_standings(plain: Sequence[Plain]) -> list[Standing]:
    """Standings from plain data."""
    return [Standing(**_with_arrays(each)) for each in plain]


def _with_arrays(plain: Plain) -> Plain:
    return {
        name: np.asarray(value) if isinstance(value, list) else value
        for name, value in plain.items()
    }


def _plain(value: Any) -> Any:
    """Lists and numbers; the digits of a float survive both this and JSON."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
