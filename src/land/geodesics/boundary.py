"""Boundary value problems: from first guesses to geodesics on adapted meshes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from land._device import Indices, Mask, Solver, in_lockstep
from land.geodesics.collocation import (
    ORDER,
    PiecewiseCurves,
    fit_polylines,
    split_elements,
)
from land.geodesics.equation import forces, linearised
from land.geodesics.graph import Polylines, at_constant_speed
from land.geodesics.newton import Finished, finish_curves
from land.geodesics.relaxation import Boundary, Relaxed, relax_curves
from land.geodesics.solution import Connections
from land.metrics import Metric
from land.metrics.tensors import FEW_DIMENSIONS, invert, lower, norms

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Settings:
    """Meshes, and how they are adapted."""

    # Curves that are prepared together, and coordinates of those that are solved at
    # once: some fifty copies are made.
    most_curves: int = 2**17
    most_coordinates: int = 2**18
    # Distance of Gauss points on first meshes, in units of the metric's resolution.
    spacing: float = 0.75
    fewest_elements: int = 2
    most_elements: int = 256
    # Points in which a curve is sampled for another mesh.
    samples: int = 129
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
    # Errors of curves that are near enough for Newton's method.
    nearly: float = 0.05


_SETTINGS = _Settings()


@dataclass(frozen=True)
class _Batch:
    """Curves on meshes of one size."""

    which: Indices
    rates: Array  # (n, elements, ORDER, D)
    widths: Array  # (n, elements)

    @property
    def elements(self) -> int:
        """How many each mesh has."""
        return self.rates.shape[1]

    @staticmethod
    def arranged(batches: list[_Batch]) -> list[_Batch]:
        """The same curves, those on meshes of one size together.

        But not so many of them that they could not be solved at once.
        """
        groups: dict[int, list[_Batch]] = {}
        for batch in batches:
            groups.setdefault(batch.elements, []).append(batch)
        found = []
        for own in groups.values():
            which = np.concatenate([batch.which for batch in own])
            rates = np.concatenate([batch.rates for batch in own])
            widths = np.concatenate([batch.widths for batch in own])
            n_parts = -(-rates.size // _SETTINGS.most_coordinates)
            for rows in np.array_split(np.arange(len(which)), n_parts):
                found.append(_Batch(which[rows], rates[rows], widths[rows]))
        return found


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
    solver = _Solver(metric, bases, targets, tol, max_iter)
    newton = metric.dim <= FEW_DIMENSIONS
    if isinstance(guesses, Connections):
        batches, left = _moved_meshes(bases, targets, guesses)
        if newton:
            solver.finish(batches)
            batches, left = [], np.flatnonzero(~solver.solution.converged)
        batches += _extended_meshes(metric, bases, targets, guesses, left)
    else:
        batches = _first_meshes(metric, bases, targets, guesses)
    if newton:
        batches = solver.finish(solver.descend(batches, _SETTINGS.nearly))
    batches = solver.descend(batches, tol)
    if newton:
        # Where two families of curves meet the energy is almost flat: descent creeps.
        solver.finish(batches)
    return solver.solution


class _Solver:
    """Geodesics between given ends, and what is known of them so far."""

    def __init__(
        self, metric: Metric, bases: Array, targets: Array, tol: float, max_iter: int
    ) -> None:
        self.metric, self.bases, self.targets = metric, bases, targets
        self.tol, self.max_iter = tol, max_iter
        self.base_tensors = metric.host_tensors(bases)
        self.end_tensors = metric.host_tensors(targets)
        self.solution = Connections.at_rest(bases)
        self.solution.converged[:] = np.all(bases == targets, axis=1)

    @cached_property
    def inverse_base(self) -> Array:
        return np.asarray(invert(self.base_tensors, self.bases))

    @cached_property
    def inverse_end(self) -> Array:
        return np.asarray(invert(self.end_tensors, self.targets))

    def finish(self, batches: list[_Batch]) -> list[_Batch]:
        """Enter the geodesics that Newton's method finds near given curves.

        Returns the curves near which it finds none.
        """
        latest = np.full(len(self.bases), np.inf)
        smallest = _SETTINGS.last_step * np.sqrt(self.tol)
        queue = _Batch.arranged(batches)
        while queue:
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
            answers = in_lockstep(partial(linearised, self.metric), solvers)
            finer = []
            for batch, finished in zip(queue, answers, strict=True):
                coarse = self._enter(batch, finished, latest)
                if coarse.any() and batch.elements < _SETTINGS.most_elements:
                    split = split_elements(finished.rates[coarse], batch.widths[coarse])
                    finer.append(_Batch(batch.which[coarse], *split))
            queue = _Batch.arranged(finer)
        return self._unfinished(batches)

    def _unfinished(self, batches: list[_Batch]) -> list[_Batch]:
        """The curves that are not near enough to geodesics yet."""
        left = []
        for batch in batches:
            rows = ~self.solution.converged[batch.which]
            if rows.any():
                own = batch.which[rows], batch.rates[rows], batch.widths[rows]
                left.append(_Batch(*own))
        return left

    def _enter(self, batch: _Batch, finished: Finished, latest: Array) -> Mask:
        """Enter the curves that are accurate; which meshes are too coarse.

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
        return good & (mismatch > _SETTINGS.margin * self.tol)

    def descend(self, batches: list[_Batch], goal: float) -> list[_Batch]:
        """Relax curves until errors are below a goal, on meshes as fine as that needs.

        Enters them, and returns those that do not meet the tolerance as they are now.
        """
        queue, relaxed = _Batch.arranged(batches), []
        while queue:
            solvers = [self._relaxation(batch, goal) for batch in queue]
            answers = in_lockstep(partial(forces, self.metric), solvers)
            finer = []
            for batch, outcome in zip(queue, answers, strict=True):
                self._store(batch, outcome)
                refined = self._refine(batch, outcome, goal)
                finer += [_Batch(batch.which[rows], *own) for rows, *own in refined]
                left = np.ones(len(batch.which), dtype=bool)
                for rows, *_ in refined:
                    left[rows] = False
                own = batch.which[left], outcome.rates[left], batch.widths[left]
                relaxed.append(_Batch(*own))
            queue = _Batch.arranged(finer)
        return self._unfinished(relaxed)

    def _relaxation(self, batch: _Batch, goal: float) -> Solver:
        """Relaxation of all curves of a batch on their meshes."""
        which = batch.which
        boundary = Boundary(
            base=self.bases[which],
            inverse_base=self.inverse_base[which],
            inverse_end=self.inverse_end[which],
            widths=batch.widths,
            max_iter=self.max_iter - self.solution.n_iter[which],
        )
        return relax_curves(boundary, batch.rates, goal)

    def _store(self, batch: _Batch, outcome: Relaxed) -> None:
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

    def _refine(
        self, batch: _Batch, outcome: Relaxed, goal: float
    ) -> list[tuple[Mask, Array, Array]]:
        """Which curves are to be tried on finer meshes, and these."""
        if batch.elements >= _SETTINGS.most_elements:
            return []
        # What is adequate is stuck for a reason that no mesh can help.
        unresolved = (outcome.mismatch > goal) & np.isfinite(outcome.energy)
        unresolved &= self.solution.n_iter[batch.which] < self.max_iter
        split = unresolved & (outcome.mismatch <= _SETTINGS.nearly_right)
        anew = unresolved & ~split
        refined = []
        if split.any():
            halves = split_elements(outcome.rates[split], batch.widths[split])
            refined.append((split, *halves))
        if anew.any():
            own = outcome.rates[anew], batch.widths[anew]
            curves = PiecewiseCurves(self.bases[batch.which[anew]], *own)
            lines = at_constant_speed(self.metric, curves.corners(2 * ORDER))
            fitted = fit_polylines(lines.vertices, lines.times, 2 * batch.elements)
            refined.append((anew, *fitted))
        return refined


def _first_meshes(
    metric: Metric, bases: Array, targets: Array, guesses: Polylines
) -> list[_Batch]:
    """First guesses on meshes fine enough to see the metric's features."""
    steps = np.linalg.norm(np.diff(guesses.vertices, axis=1), axis=2)
    elements = np.full(len(bases), _SETTINGS.fewest_elements)
    if metric.resolution is not None:
        cells = steps.sum(axis=1) / (_SETTINGS.spacing * metric.resolution * ORDER)
        levels = np.ceil(np.log2(np.maximum(cells / _SETTINGS.fewest_elements, 1.0)))
        elements = _SETTINGS.fewest_elements * 2 ** levels.astype(int)
    elements = np.minimum(elements, _SETTINGS.most_elements // 4)
    elements[np.all(bases == targets, axis=1)] = 0  # nothing to do
    batches = []
    for size in np.unique(elements[elements > 0]):
        which = np.flatnonzero(elements == size)
        rates, widths = fit_polylines(
            guesses.vertices[which], guesses.times[which], int(size)
        )
        batches.append(_Batch(which, rates, widths))
    return batches


def _moved_meshes(
    bases: Array, targets: Array, previous: Connections
) -> tuple[list[_Batch], Indices]:
    """Curves of a previous solution, moved to new ends, and which could not be."""
    batches, lost = [], np.any(bases != targets, axis=1)
    for which, curves in previous.final_meshes():
        usable = np.isfinite(curves.rates).all(axis=(1, 2, 3)) & lost[which]
        own, kept = which[usable], curves.take(usable)
        lost[own] = False
        if len(own):
            rates = kept.moved(bases[own], targets[own])
            batches.append(_Batch(own, rates, kept.widths))
    return batches, np.flatnonzero(lost)


def _extended_meshes(
    metric: Metric, bases: Array, targets: Array, previous: Connections, rows: Indices
) -> list[_Batch]:
    """Some curves of a previous solution, with straight lines to the new ends.

    For ends that moved so far that derivatives do not tell where the curve goes. These
    take the same way as the curve, where one that is bent to the new ends may not: of
    360 geodesics on a spiral, 22 would end up 1 % longer.
    """
    if not len(rows):
        return []
    curves = previous.take(rows).sample(np.linspace(0.0, 1.0, _SETTINGS.samples))
    bases, targets = bases[rows, None], targets[rows, None]
    curves = np.where(np.isfinite(curves), curves, bases)
    share = np.linspace(0.0, 1.0, _SETTINGS.samples // 4)[:, None]
    there = bases + share[:-1] * (curves[:, :1] - bases)
    onward = targets + share[-2::-1] * (curves[:, -1:] - targets)
    lines = at_constant_speed(metric, np.concatenate([there, curves, onward], axis=1))
    own = _first_meshes(metric, bases[:, 0], targets[:, 0], lines)
    return [replace(each, which=rows[each.which]) for each in own]
