"""Boundary value problems: from first guesses to geodesics on adapted meshes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from land._device import Indices, Solver, in_lockstep, take_rows
from land.geodesics.collocation import (
    ORDER,
    Geodesics,
    PiecewiseCurves,
    fit_polylines,
    split_elements,
)
from land.geodesics.equation import forces, linearised
from land.geodesics.graph import distinct_rows
from land.geodesics.newton import Finished, finish_curves
from land.geodesics.relaxation import ROUGH, Boundary, Relaxed, relax_curves
from land.metrics import Metric
from land.metrics.tensors import FEW_DIMENSIONS, invert, lower, norms

Array = NDArray[np.float64]

# Coordinates of ends that are solved at once: some fifty copies of the curves are made.
_AT_ONCE = 2**13
_MOST_ELEMENTS = 256
# Distance of Gauss points on first meshes, in units of the metric's resolution.
_SPACING = 0.75
# Points in which a curve is sampled for another mesh.
_SAMPLES = 129
# Tangents are less accurate than speeds at the ends, by about this factor.
_MARGIN = 0.2
# Newton's method leaves an error of the size of its last step squared, times a factor
# of at most 6 on the built-in data and iris: the step is this small in units of the
# tolerance's root, so that a factor of 100 would do no harm.
_LAST_STEP = 0.1


class _Batch(NamedTuple):
    """Curves on meshes of one size."""

    which: Indices
    rates: Array  # (n, elements, ORDER, D)
    widths: Array  # (n, elements)


def _arranged(batches: list[_Batch]) -> list[_Batch]:
    """The same curves, those on meshes of one size together."""
    groups: dict[int, list[_Batch]] = {}
    for batch in batches:
        groups.setdefault(batch.widths.shape[1], []).append(batch)
    return [
        _Batch(*(np.concatenate(parts) for parts in zip(*group, strict=True)))
        for group in groups.values()
    ]


@np.errstate(all="ignore")  # curves may leave the metric's domain; verdicts tell
def solve_boundary(
    metric: Metric,
    bases: Array,
    targets: Array,
    guesses: Array | Geodesics,
    tol: float,
    max_iter: int,
) -> Geodesics:
    """Relax first guesses to geodesics, adapting and refining meshes as needed.

    From bases to targets (n, D). Guesses are polylines (n, k, D) with the same ends, or
    geodesics between nearby ends. `tol` is the relative error allowed in lengths and
    tangents; after `max_iter` iterations a geodesic is given up.
    """
    if metric.is_flat:
        return Geodesics.straight(bases, targets)
    n, dim = bases.shape

    def guess(rows: Indices) -> Array | Geodesics:
        return guesses.take(rows) if isinstance(guesses, Geodesics) else guesses[rows]

    if n * dim > _AT_ONCE and n > 1:
        parts = []
        for own in np.array_split(np.arange(n), -(-n * dim // _AT_ONCE)):
            problem = metric, bases[own], targets[own], guess(own)
            parts.append(solve_boundary(*problem, tol, max_iter))
        return Geodesics.concatenate(parts)
    solver = _Solver(metric, bases, targets, tol, max_iter)
    few = dim <= FEW_DIMENSIONS
    if few and isinstance(guesses, Geodesics):
        solver.finish(_moved_meshes(bases, targets, guesses))
    rows = np.flatnonzero(~solver.solution.converged)
    some = guess(rows)
    if isinstance(some, Geodesics):
        some = _extended(bases[rows], targets[rows], some)
    batches = _first_meshes(metric, rows, some)
    # Where two families of curves meet the energy is almost flat: descent creeps, and
    # Newton's method has the last word as well.
    for goal in (ROUGH, tol) if few else (tol,):
        batches = solver.descend(batches, goal)
        batches = solver.finish(batches) if few else batches
    return solver.solution


class _Solver:
    """Geodesics between given ends, and what is known of them so far."""

    def __init__(
        self, metric: Metric, bases: Array, targets: Array, tol: float, max_iter: int
    ) -> None:
        self.metric, self.bases, self.targets = metric, bases, targets
        self.tol, self.max_iter = tol, max_iter
        first, which = distinct_rows(bases)  # most often there is one
        self.base_tensors = metric.host_tensors(bases[first])[which]
        self.end_tensors = metric.host_tensors(targets)
        self.inverse_base = np.asarray(invert(self.base_tensors, bases))
        self.inverse_end = np.asarray(invert(self.end_tensors, targets))
        self.solution = Geodesics.at_rest(bases)
        self.solution.converged[:] = np.all(bases == targets, axis=1)

    def finish(self, batches: list[_Batch]) -> list[_Batch]:
        """Enter the geodesics that Newton's method finds near given curves.

        Returns the curves near which it finds none.
        """
        latest = np.full(len(self.bases), np.inf)
        equation = partial(linearised, self.metric)
        enter = partial(self._enter_finished, latest)
        self._refine(batches, equation, self._newton, enter)
        return self._unfinished(batches)

    def descend(self, batches: list[_Batch], goal: float) -> list[_Batch]:
        """Relax curves until errors are below a goal, on meshes as fine as that needs.

        Returns those that do not meet the tolerance as they are now.
        """
        left: list[_Batch] = []
        equation = partial(forces, self.metric)
        start = partial(self._relaxation, goal)
        self._refine(batches, equation, start, partial(self._enter_relaxed, goal, left))
        return self._unfinished(left)

    def _refine(
        self,
        batches: list[_Batch],
        equation: Callable[[Array, Array], Any],
        start: Callable[[_Batch], Solver],
        enter: Callable[[_Batch, Any], list[_Batch]],
    ) -> None:
        """Solve for batches, all side by side, and enter what comes back.

        `enter` returns the curves that are to be tried on finer meshes.
        """
        while batches:
            batches = _arranged(batches)
            answers = in_lockstep(equation, [start(batch) for batch in batches])
            pairs = zip(batches, answers, strict=True)
            batches = [finer for pair in pairs for finer in enter(*pair)]

    def _unfinished(self, batches: list[_Batch]) -> list[_Batch]:
        """The curves that are not near enough to geodesics yet."""
        converged = self.solution.converged
        left = [take_rows(batch, ~converged[batch.which]) for batch in batches]
        return [batch for batch in left if len(batch.which)]

    def _newton(self, batch: _Batch) -> Solver:
        which, rates, widths = batch
        smallest = _LAST_STEP * np.sqrt(self.tol)
        ends = self.bases[which], self.targets[which]
        return finish_curves(*ends, rates, widths, smallest, self.max_iter)

    def _enter_finished(
        self, latest: Array, batch: _Batch, finished: Finished
    ) -> list[_Batch]:
        """Enter the curves that are accurate; split meshes that are too coarse.

        `latest` has the discretisation errors of all curves on coarser meshes.
        """
        which, solution = batch.which, self.solution
        solution.n_iter[which] += finished.n_steps
        lengths = norms(self.base_tensors[which], finished.tangents)
        end = norms(self.end_tensors[which], finished.end_velocities)
        errors = np.abs(np.stack([lengths, end]) / finished.speeds - 1.0)
        mismatch = errors.max(axis=0)
        good = finished.found & finished.minimal
        # On long ways rounding is what limits: then a finer mesh is no better.
        good &= mismatch < latest[which]
        latest[which] = mismatch
        rows = good & (mismatch <= self.tol)
        own = which[rows]
        solution.lengths[own] = lengths[rows]
        solution.tangents[own] = finished.tangents[rows]
        solution.end_velocities[own] = finished.end_velocities[rows]
        solution.slopes[own] = finished.slopes[rows]
        solution.converged[own] = True
        curves = (finished.rates[rows], batch.widths[rows], finished.fields[rows])
        solution.meshes.append((own, PiecewiseCurves(self.bases[own], *curves)))
        coarse = good & (mismatch > _MARGIN * self.tol)
        if not coarse.any() or batch.widths.shape[1] >= _MOST_ELEMENTS:
            return []
        halves = split_elements(finished.rates[coarse], batch.widths[coarse])
        return [_Batch(which[coarse], *halves)]

    def _relaxation(self, goal: float, batch: _Batch) -> Solver:
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

    def _enter_relaxed(
        self, goal: float, left: list[_Batch], batch: _Batch, outcome: Relaxed
    ) -> list[_Batch]:
        """Enter what is known now; a later, finer result replaces it.

        Returns the curves that a finer mesh may help, others are added to `left`.
        """
        solution, which = self.solution, batch.which
        start = outcome.multiplier - outcome.drift
        solution.lengths[which] = np.sqrt(2.0 * outcome.energy)
        solution.tangents[which] = lower(self.inverse_base[which], start)
        arrival = lower(self.inverse_end[which], outcome.multiplier)
        solution.end_velocities[which] = arrival
        solution.converged[which] = outcome.accurate(self.tol)
        solution.slopes[which] = np.nan
        solution.n_iter[which] += outcome.iterations
        curves = PiecewiseCurves(self.bases[which], outcome.rates, batch.widths)
        solution.meshes.append((which, curves))
        # What is adequate is stuck for a reason that no mesh can help.
        coarse = (outcome.mismatch > goal) & np.isfinite(outcome.energy)
        coarse &= solution.n_iter[which] < self.max_iter
        elements = batch.widths.shape[1]
        coarse &= elements < _MOST_ELEMENTS
        left.append(take_rows(batch._replace(rates=outcome.rates), ~coarse))
        if not coarse.any():
            return []
        vertices = curves.take(coarse).corners(2 * ORDER)
        times = _constant_speed(self.metric, vertices)
        return [_Batch(which[coarse], *fit_polylines(vertices, times, 2 * elements))]


def _first_meshes(metric: Metric, rows: Indices, guesses: Array) -> list[_Batch]:
    """First guesses on meshes fine enough to see the metric's features."""
    steps = np.linalg.norm(np.diff(guesses, axis=1), axis=2)
    elements = np.full(len(guesses), 2)
    if metric.resolution is not None:
        cells = steps.sum(axis=1) / (_SPACING * metric.resolution * ORDER)
        elements = 2 ** np.ceil(np.log2(np.maximum(cells, 2.0))).astype(int)
    elements = np.minimum(elements, _MOST_ELEMENTS // 4)
    times = _constant_speed(metric, guesses)
    batches = []
    for size in np.unique(elements):
        own = elements == size
        meshes = fit_polylines(guesses[own], times[own], int(size))
        batches.append(_Batch(rows[own], *meshes))
    return batches


def _constant_speed(metric: Metric, vertices: Array) -> Array:
    """Times (n, k) at which polylines pass their corners, at constant metric speed."""
    n, k, dim = vertices.shape
    tensors = metric.host_tensors(vertices.reshape(-1, dim))
    tensors = tensors.reshape(n, k, *tensors.shape[1:])
    steps = np.diff(vertices, axis=1)
    lengths = norms(tensors[:, :-1], steps) + norms(tensors[:, 1:], steps)
    passed = np.pad(np.cumsum(lengths, axis=1), ((0, 0), (1, 0)))
    return passed / passed[:, -1:]


def _moved_meshes(bases: Array, targets: Array, previous: Geodesics) -> list[_Batch]:
    """Curves of a previous solution between new ends, where derivatives are known."""
    batches, moving = [], np.any(bases != targets, axis=1)
    for which, curves in previous.final_meshes():
        if curves.fields is not None and moving[which].any():
            own, kept = which[moving[which]], curves.take(moving[which])
            rates = kept.moved(bases[own], targets[own])
            batches.append(_Batch(own, rates, kept.widths))
    return batches


def _extended(bases: Array, targets: Array, previous: Geodesics) -> Array:
    """Curves of a previous solution, with straight lines to the new ends.

    For ends that moved so far that derivatives do not tell where the curve goes.
    """
    curves = previous.sample(np.linspace(0.0, 1.0, _SAMPLES))
    curves = np.where(np.isfinite(curves), curves, bases[:, None])
    return np.concatenate([bases[:, None], curves, targets[:, None]], axis=1)
