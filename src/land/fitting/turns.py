"""Descents in turns: on the same curves for a few steps, then on renewed ones.

Curves that are carried along with a mean are cheap, but others may become shorter. So
all of them are computed anew from time to time; a descent that only led downhill on its
own curves is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from land.fitting.descent import Standing
from land.fitting.problem import FitProblem
from land.fitting.progress import Plain, keep, plain_data, unpack_standings

# Steps after which all curves are computed anew.
STEPS_BETWEEN_RENEWALS = 8
# So often a fit that had converged may go on from renewed curves: where two of them are
# equally short, they may go on changing for ever.
_MOST_SURPRISES = 4


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

    def is_where(self, other: Turn) -> bool:
        """Whether no step was taken since another turn, so that its curves are good."""
        pairs = zip(self.standings, other.standings, strict=True)
        same = all(np.array_equal(here.mean, there.mean) for here, there in pairs)
        return same and self.objective == other.objective

    def plain(self) -> Plain:
        """The turn as plain data."""
        plain: Plain = plain_data(asdict(self))
        return plain

    @classmethod
    def from_plain(cls, plain: Plain) -> Self:
        """The inverse of `plain`."""
        changed: Plain = {"standings": unpack_standings(plain["standings"])}
        if plain["fallback"] is not None:
            changed["fallback"] = cls.from_plain(plain["fallback"])
        return cls(**plain | changed)


class Contender(Protocol):
    """A model on its way down."""

    @property
    def standings(self) -> list[Standing]:
        """How the search for each mean stands."""

    @property
    def proportions(self) -> list[float]:
        """The components' shares of the model."""

    @property
    def objective(self) -> float:
        """What has been reached."""

    @property
    def stderr(self) -> float:
        """Standard error of the objective."""

    def descend(self, steps: int, tol: float) -> bool:
        """Take at most so many steps; whether the stopping rule was met."""


Model = TypeVar("Model", bound=Contender)


def standing_of(
    problem: FitProblem, contender: Contender, remaining: int, surprises: int = 0
) -> Turn:
    """How a contender stands, with so many steps still to take."""
    return Turn(
        standings=contender.standings,
        proportions=contender.proportions,
        objective=contender.objective,
        converged=False,
        remaining=remaining,
        surprises=surprises,
        n_steps=len(problem.history),
    )


def descend_in_turns(
    problem: FitProblem,
    contender: Model,
    turn: Turn,
    renew: Callable[[Turn], Model],
    tol: float,
    **known: Any,
) -> tuple[Model, bool]:
    """Descend to the optimum; the contender there, and whether the rule was met.

    Parameters
    ----------
    problem
        The problem.
    contender
        Where to start, with renewed curves.
    turn
        How it stands: at the start, or after the last turn of an interrupted fit.
    renew
        Makes a contender of what a turn has left, with all curves computed anew.
    tol
        Stop when renewed curves change the objective by less than this.
    **known
        What is kept beside every turn.
    """
    while True:
        if turn.was_in_vain(contender.objective, tol + contender.stderr):
            assert turn.fallback is not None
            del problem.history[turn.fallback.n_steps :]
            return renew(turn.fallback), True
        if turn.converged and abs(contender.objective - turn.objective) < tol:
            return contender, True
        surprises = turn.surprises + turn.converged
        if turn.remaining <= 0 or surprises >= _MOST_SURPRISES:
            return contender, turn.converged
        before = standing_of(problem, contender, turn.remaining, surprises)
        steps = min(turn.remaining, STEPS_BETWEEN_RENEWALS)
        converged = contender.descend(steps, tol)
        remaining = turn.remaining - (len(problem.history) - before.n_steps)
        after = standing_of(problem, contender, remaining, surprises)
        if converged and after.is_where(before):
            return contender, True
        turn = replace(after, converged=converged, fallback=before)
        keep(problem, **known, turn=turn.plain())
        contender = renew(turn)
