"""Boundary value problems: from first guesses to geodesics on adapted meshes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from land._device import Mask, Solver, in_lockstep
from land.geodesics.collocation import (
    ORDER,
    PiecewiseCurves,
    fit_polylines,
    split_elements,
)
from land.geodesics.equation import Forces, Linearised, forces, linearised
from land.geodesics.graph import Polylines, at_constant_speed
from land.geodesics.meshes import (
    MOST_ELEMENTS,
    Batch,
    extended_meshes,
    first_meshes,
    moved_meshes,
)
from land.geodesics.newton import Finished, finish_curves
from land.geodesics.relaxation import (
    NEARLY,
    Boundary,
    Limits,
    Relaxed,
    relax_curves,
)
from land.geodesics.solution import Connections
from land.metrics import Metric
from land.metrics.tensors import FEW_DIMENSIONS, invert, lower, norms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """Meshes, and how they are adapted."""

    # Curves that are prepared together.
    most_curves: int = 2**17
    # A mesh with a smaller discretisation error than this is split and not made anew.
    nearly_right: float = 0.01
    # The speed is conserved better than the direction: tangents are less accurate than
    # the mismatch says, by about this factor. A finer mesh makes it this much smaller
    # at least.
    margin: float = 0.2
    better: float = 0.3
    # Newton's method leaves an error of the size of its last step squared, times a
    # factor of at most 6 on the built-in data and iris: the step is this small in units
    # of the tolerance's root, so that a factor of 100 would do no harm.
    last_step: float = 0.1
    # Iterations on a rough mesh before it is adapted to the curve, and how often that
    # is tried (with twice the patience each time) before the mesh is refined.
    patience: int = 15
    rounds: int = 3


_SETTINGS = _Settings()


@np.errstate(all="ignore")  # curves may leave the metric's domain; verdicts tell
def connect(
    metric: Metric,
    bases: Array,
    targets: Array,
    guesses: Polylines | Connections,
    tol: float,
    max_iter: int,
) -> Connections:
    """Relax first guesses to geodesics, adapting and refining meshes as needed.

    Parameters
    ----------
    metric
        The metric.
    bases, targets : ndarray of shape (n, D)
        Ends of the geodesics.
    guesses
        First guesses: polylines with the same ends, or geodesics between nearby ends.
    tol
        Relative error allowed in lengths and tangents.
    max_iter
        Iterations after which a geodesic is given up.
    """
    if metric.is_flat:
        return Connections.straight(bases, targets)
    if len(bases) > _SETTINGS.most_curves:
        n_parts = -(-len(bases) // _SETTINGS.most_curves)
        parts = np.array_split(np.arange(len(bases)), n_parts)
        return Connections.concatenate(
            [
                connect(
                    metric, bases[own], targets[own], guesses.take(own), tol, max_iter
                )
                for own in parts
            ]
        )
    solver = _Solver.of(metric, bases, targets, tol, max_iter)
    small = metric.dim <= FEW_DIMENSIONS
    finishing = small and tol < NEARLY
    if isinstance(guesses, Connections):
        batches = moved_meshes(metric, bases, targets, guesses)
        if finishing:
            left = solver.finish(batches)
            rows = np.concatenate([np.empty(0, int), *(each.which for each in left)])
            batches = extended_meshes(metric, bases, targets, guesses, rows)
    else:
        batches = first_meshes(metric, bases, targets, guesses)
    if finishing:
        batches = solver.finish(solver.descend(batches, hand_over=True))
    batches = solver.descend(batches)
    if small:
        # Where two families of curves meet the energy is almost flat: descent creeps.
        solver.finish(batches)
    return solver.solution


@dataclass(frozen=True)
class _Solver:
    """Geodesics between given ends, and what is known of them so far."""

    metric: Metric
    bases: Array
    targets: Array
    tol: float
    max_iter: int
    base_tensors: Array
    end_tensors: Array
    solution: Connections

    @classmethod
    def of(
        cls, metric: Metric, bases: Array, targets: Array, tol: float, max_iter: int
    ) -> _Solver:
        tensors = metric.host_tensors(bases), metric.host_tensors(targets)
        solution = Connections.at_rest(bases)
        return cls(metric, bases, targets, tol, max_iter, *tensors, solution)

    @cached_property
    def inverse_base(self) -> Array:
        return np.asarray(invert(self.base_tensors, self.bases))

    @cached_property
    def inverse_end(self) -> Array:
        return np.asarray(invert(self.end_tensors, self.targets))

    def finish(self, batches: list[Batch]) -> list[Batch]:
        """Enter the geodesics that Newton's method finds near given curves.

        Returns the curves near which it finds none.
        """
        found = np.zeros(len(self.bases), dtype=bool)
        latest = np.full(len(self.bases), np.inf)
        queue = Batch.merged(batches)
        while queue:
            queue = [part for batch in queue for part in batch.parts()]
            smallest = _SETTINGS.last_step * np.sqrt(self.tol)
            solvers = [
                finish_curves(
                    self.bases[batch.which],
                    self.targets[batch.which],
                    batch.rates,
                    batch.widths,
                    smallest,
                    self.max_iter,
                )
                for batch in queue
            ]
            finer = []
            for batch, finished in zip(
                queue, in_lockstep(self._linearised, solvers), strict=True
            ):
                accurate, coarse = self._enter(batch, finished, latest)
                found[batch.which[accurate]] = True
                if coarse.any() and batch.elements < MOST_ELEMENTS:
                    split = split_elements(finished.rates[coarse], batch.widths[coarse])
                    finer.append(Batch(batch.which[coarse], *split))
            queue = Batch.merged(finer)
        unfinished = [batch.without(found) for batch in batches]
        return [batch for batch in unfinished if len(batch.which)]

    def _linearised(self, points: Array, velocities: Array) -> Linearised:
        return linearised(self.metric, points, velocities)

    def _forces(self, points: Array, velocities: Array) -> Forces:
        return forces(self.metric, points, velocities)

    def _enter(
        self, batch: Batch, finished: Finished, latest: Array
    ) -> tuple[Mask, Mask]:
        """Enter the curves that are accurate; which those are, and which meshes coarse.

        `latest` has the discretisation errors of all curves on coarser meshes.
        """
        which = batch.which
        self.solution.n_iter[which] += finished.n_steps
        lengths = norms(self.base_tensors[which], finished.tangents)
        end = norms(self.end_tensors[which], finished.end_velocities)
        with np.errstate(invalid="ignore"):
            errors = np.abs(np.stack([lengths, end]) / finished.speeds - 1.0)
        mismatch = errors.max(axis=0)
        # On long ways rounding is what limits: then a finer mesh is no better.
        good = finished.found & finished.minimal
        good &= mismatch <= _SETTINGS.better * latest[which]
        latest[which] = mismatch
        rows = good & (mismatch <= self.tol)
        solution, own = self.solution, which[rows]
        solution.lengths[own] = lengths[rows]
        solution.tangents[own] = finished.tangents[rows]
        solution.end_velocities[own] = finished.end_velocities[rows]
        solution.responses[own] = finished.responses[rows]
        solution.converged[own] = True
        curves = (finished.rates[rows], batch.widths[rows], finished.fields[rows])
        solution.meshes.append((own, PiecewiseCurves(self.bases[own], *curves)))
        return rows, good & (mismatch > _SETTINGS.margin * self.tol)

    def descend(self, batches: list[Batch], hand_over: bool = False) -> list[Batch]:
        """Relax curves until they meet the tolerance, on meshes as fine as that needs.

        Or, to `hand_over` to another method, until they are nearly geodesics. Enters
        them, and returns those that do not meet the tolerance as they are now.
        """
        goal = NEARLY if hand_over else self.tol
        queue, relaxed = Batch.merged(batches), []
        while queue:
            queue = [part for batch in queue for part in batch.parts()]
            solvers = [self._relaxation(batch, hand_over) for batch in queue]
            following = []
            for batch, outcome in zip(
                queue, in_lockstep(self._forces, solvers), strict=True
            ):
                self._store(batch, outcome)
                followers = self._follow_up(batch, outcome, goal)
                following += followers
                done = self.solution.converged.copy()
                for follower in followers:
                    done[follower.which] = True
                now = replace(batch, rates=outcome.rates, round=0)
                relaxed.append(now.without(done))
            queue = Batch.merged(following)
        return [batch for batch in relaxed if len(batch.which)]

    def _relaxation(self, batch: Batch, hand_over: bool) -> Solver:
        """Relaxation of all curves of a batch on their meshes."""
        which = batch.which
        boundary = Boundary(
            base=self.bases[which],
            inverse_base=self.inverse_base[which],
            inverse_end=self.inverse_end[which],
            widths=batch.widths,
            max_iter=self.max_iter - self.solution.n_iter[which],
        )
        patience = _SETTINGS.patience * 2**batch.round
        limits = Limits(self.tol, patience, hand_over)
        return relax_curves(boundary, batch.rates, limits)

    def _store(self, batch: Batch, outcome: Relaxed) -> None:
        """Enter what is known now; a later, finer result replaces it."""
        solution, which = self.solution, batch.which
        start = outcome.multiplier - outcome.drift
        solution.lengths[which] = np.sqrt(2.0 * outcome.energy)
        solution.tangents[which] = lower(self.inverse_base[which], start)
        arrival = lower(self.inverse_end[which], outcome.multiplier)
        solution.end_velocities[which] = arrival
        solution.converged[which] = outcome.accurate(self.tol)
        solution.responses[which] = np.nan
        solution.n_iter[which] += outcome.iterations
        curves = PiecewiseCurves(self.bases[which], outcome.rates, batch.widths)
        solution.meshes.append((which, curves))

    def _follow_up(self, batch: Batch, outcome: Relaxed, tol: float) -> list[Batch]:
        """Meshes on which the unresolved curves are to be tried next."""
        adequate = outcome.mismatch <= tol  # stuck for a reason that no mesh can help
        unresolved = ~outcome.accurate(tol) & ~adequate & np.isfinite(outcome.energy)
        unresolved &= self.solution.n_iter[batch.which] < self.max_iter
        limited = outcome.distance <= 0.2 * outcome.mismatch
        last_round = batch.round + 1 >= _SETTINGS.rounds
        finer = unresolved & (limited | last_round)
        finer &= batch.elements < MOST_ELEMENTS
        split = finer & (outcome.mismatch <= _SETTINGS.nearly_right)
        again = unresolved & ~finer & (not last_round)
        followers = []
        if split.any():
            curves = split_elements(outcome.rates[split], batch.widths[split])
            followers.append(Batch(batch.which[split], *curves))
        for rows, elements, turn in (
            (finer & ~split, 2 * batch.elements, 0),
            (again, batch.elements, batch.round + 1),
        ):
            if rows.any():
                own = batch.which[rows], outcome.rates[rows], batch.widths[rows]
                curve = PiecewiseCurves(self.bases[own[0]], *own[1:])
                lines = at_constant_speed(self.metric, curve.corners(2 * ORDER))
                fitted = fit_polylines(lines.vertices, lines.times, elements)
                followers.append(Batch(own[0], *fitted, turn))
        return followers
