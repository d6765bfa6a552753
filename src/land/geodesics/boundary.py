"""Boundary value problems: from first guesses to geodesics on adapted meshes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from land._device import Indices, Mask, block_size, device, run_in_batches
from land.geodesics.collocation import (
    ORDER,
    PiecewiseCurves,
    fit_polylines,
    split_elements,
)
from land.geodesics.graph import Polylines, at_constant_speed, straight_lines
from land.geodesics.newton import MOST_DIMENSIONS, finish_curves
from land.geodesics.relaxation import NEARLY, Boundary, empty_state, relax_curves
from land.geodesics.solution import Connections
from land.metrics import Metric
from land.metrics.tensors import invert, lower, norms

Array = NDArray[np.float64]

# Curves are advanced together, at least so many; so many are prepared at a time, for
# which several copies are made.
_FEWEST_CURVES, _MOST_CURVES = 4, 2**17
_FEWEST_ELEMENTS, _MOST_ELEMENTS = 2, 256
# First mesh: Gauss points at most this far apart, in units of the metric's resolution.
_SPACING = 0.75
# Points in which a curve is sampled for another mesh.
_SAMPLES = 129
# A mesh with a smaller discretisation error than this is split and not made anew.
_NEARLY_RIGHT = 0.01
# The speed is conserved better than the direction: tangents are less accurate than the
# mismatch says, by about this factor. A finer mesh makes it this much smaller at least.
_MARGIN, _BETTER = 0.2, 0.3
# Newton's method leaves an error of the size of its last step squared, times a factor
# of at most 6 on the built-in data and iris: the step is this small in units of the
# tolerance's root, so that a factor of 100 would do no harm.
_LAST_STEP = 0.1
# Iterations on a rough mesh before it is adapted to the curve, and how often that is
# tried (with twice the patience each time) before the mesh is refined.
_PATIENCE, _ROUNDS = 15, 3


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
        Iterations allowed on each mesh.
    """
    if metric.is_flat:
        return Connections.straight(bases, targets)
    if len(bases) > _MOST_CURVES:
        parts = np.array_split(np.arange(len(bases)), -(-len(bases) // _MOST_CURVES))
        return Connections.concatenate(
            [
                connect(
                    metric, bases[own], targets[own], guesses.take(own), tol, max_iter
                )
                for own in parts
            ]
        )
    solution = Connections.at_rest(bases)
    ends = _Ends.of(metric, bases, targets)
    small = metric.dim <= MOST_DIMENSIONS
    finishing = small and device().newton and metric.has_cheap_curvature
    finishing = finishing and tol < NEARLY
    if isinstance(guesses, Connections):
        batches = _moved_meshes(metric, bases, targets, guesses)
        if finishing:
            batches = _finish(metric, ends, solution, batches, tol, max_iter)
            batches = _extended_meshes(metric, ends, guesses, batches)
    else:
        batches = _first_meshes(metric, bases, targets, guesses)
    if finishing:
        batches = _descend(metric, ends, solution, batches, tol, max_iter, True)
        batches = _finish(metric, ends, solution, batches, tol, max_iter)
    batches = _descend(metric, ends, solution, batches, tol, max_iter)
    if small:
        # Where two families of curves meet the energy is almost flat: descent creeps.
        _finish(metric, ends, solution, batches, tol, max_iter)
    return solution


@dataclass(frozen=True)
class _Ends:
    """Ends of the geodesics, and the tensors there."""

    bases: Array
    targets: Array
    base_tensors: Array
    end_tensors: Array

    @classmethod
    def of(cls, metric: Metric, bases: Array, targets: Array) -> _Ends:
        tensors = metric.host_tensors(bases), metric.host_tensors(targets)
        return cls(bases, targets, *tensors)

    @cached_property
    def inverse_base(self) -> Array:
        return invert(self.base_tensors, self.bases)

    @cached_property
    def inverse_end(self) -> Array:
        return invert(self.end_tensors, self.targets)


def _descend(
    metric: Metric,
    ends: _Ends,
    solution: Connections,
    batches: list[_Batch],
    tol: float,
    max_iter: int,
    hand_over: bool = False,
) -> list[_Batch]:
    """Relax curves until they meet a tolerance, on meshes as fine as that needs.

    Or, to `hand_over` to another method, until they are nearly geodesics. Enters them
    in the solution, and returns those that do not meet the tolerance as they are now.
    """
    queue: defaultdict[tuple[int, int], list[_Batch]] = defaultdict(list)
    for batch in batches:
        queue[batch.elements, batch.round].append(batch)
    relaxed = []
    while queue:
        batch = _Batch.merge(queue.pop(min(queue)))
        outcome = _relax(metric, ends, batch, tol, max_iter, hand_over)
        goal = NEARLY if hand_over else tol
        followers = _follow_up(metric, ends, batch, outcome, goal)
        for follower in followers:
            queue[follower.elements, follower.round].append(follower)
        _store(solution, ends, batch, outcome, tol)
        followed = [each.which for each in followers]
        left = ~solution.converged[batch.which]
        left &= ~np.isin(batch.which, np.concatenate([batch.which[:0], *followed]))
        relaxed.append(
            _Batch(batch.which[left], outcome.rates[left], batch.widths[left])
        )
    return [batch for batch in relaxed if len(batch.which)]


def _finish(
    metric: Metric,
    ends: _Ends,
    solution: Connections,
    batches: list[_Batch],
    tol: float,
    max_iter: int,
) -> list[_Batch]:
    """Enter the geodesics that Newton's method finds near curves in the solution.

    Returns the curves near which it finds none.
    """
    queue: defaultdict[int, list[_Batch]] = defaultdict(list)
    for batch in batches:
        queue[batch.elements].append(batch)
    found = np.zeros(len(ends.bases), dtype=bool)
    latest = np.full(len(ends.bases), np.inf)
    while queue:
        batch = _Batch.merge(queue.pop(min(queue)))
        which, curves = batch.which, (batch.rates, batch.widths)
        finished = finish_curves(
            metric,
            ends.bases[which],
            ends.targets[which],
            *curves,
            _LAST_STEP * np.sqrt(tol),
            max_iter,
        )
        lengths = norms(ends.base_tensors[which], finished.tangents)
        speeds = np.stack(
            [lengths, norms(ends.end_tensors[which], finished.end_velocities)]
        )
        with np.errstate(invalid="ignore"):
            mismatch = np.max(np.abs(speeds / finished.speeds - 1.0), axis=0)
        # On long ways rounding is what limits: then a finer mesh is no better.
        good = finished.found & finished.minimal & (mismatch <= _BETTER * latest[which])
        latest[which] = mismatch
        accurate = good & (mismatch <= tol)
        rates, own = finished.rates[accurate], which[accurate]
        solution.n_iter[which] += finished.n_steps
        solution.lengths[own] = lengths[accurate]
        solution.tangents[own] = finished.tangents[accurate]
        solution.end_velocities[own] = finished.end_velocities[accurate]
        solution.responses[own] = finished.responses[accurate]
        solution.converged[own] = True
        solution.meshes.append(
            (
                own,
                PiecewiseCurves(
                    ends.bases[own],
                    rates,
                    batch.widths[accurate],
                    finished.fields[accurate],
                ),
            )
        )
        found[own] = True
        coarse = good & (mismatch > _MARGIN * tol)
        if coarse.any() and batch.elements < _MOST_ELEMENTS:
            split = split_elements(finished.rates[coarse], batch.widths[coarse])
            queue[2 * batch.elements].append(_Batch(which[coarse], *split))
    unfinished = [batch.without(found) for batch in batches]
    return [batch for batch in unfinished if len(batch.which)]


@dataclass(frozen=True)
class _Batch:
    """Curves on meshes of one size."""

    which: Indices
    rates: Array  # (n, elements, ORDER, D)
    widths: Array  # (n, elements)
    round: int = 0  # how often meshes of this size were adapted before

    @property
    def elements(self) -> int:
        return self.rates.shape[1]

    def without(self, done: Mask) -> _Batch:
        """The curves that are not `done`."""
        left = ~done[self.which]
        return _Batch(self.which[left], self.rates[left], self.widths[left])

    @staticmethod
    def merge(batches: list[_Batch]) -> _Batch:
        return _Batch(
            np.concatenate([batch.which for batch in batches]),
            np.concatenate([batch.rates for batch in batches]),
            np.concatenate([batch.widths for batch in batches]),
            batches[0].round,
        )


@dataclass(frozen=True)
class _Outcome:
    """What relaxation made of a batch."""

    rates: Array
    energy: Array
    drift: Array
    multiplier: Array
    distance: Array  # to the discrete minimum, relative
    mismatch: Array  # discretisation error estimate, relative
    iterations: NDArray[np.int64]

    def accurate(self, tol: float) -> Mask:
        return (self.distance <= tol) & (self.mismatch <= tol)


def _first_meshes(
    metric: Metric, bases: Array, targets: Array, guesses: Polylines
) -> list[_Batch]:
    """First guesses on meshes fine enough to see the metric's features."""
    steps = np.linalg.norm(np.diff(guesses.vertices, axis=1), axis=2)
    elements = np.full(len(bases), _FEWEST_ELEMENTS)
    if metric.resolution is not None:
        cells = steps.sum(axis=1) / (_SPACING * metric.resolution * ORDER)
        levels = np.ceil(np.log2(np.maximum(cells / _FEWEST_ELEMENTS, 1.0)))
        elements = _FEWEST_ELEMENTS * 2 ** levels.astype(int)
    elements = np.minimum(elements, _MOST_ELEMENTS // 4)
    elements[np.all(bases == targets, axis=1)] = 0  # nothing to do
    batches = []
    for size in np.unique(elements[elements > 0]):
        which = np.flatnonzero(elements == size)
        # Long problems first: stragglers then share the block with others.
        which = which[np.argsort(-guesses.lengths[which], kind="stable")]
        rates, widths = fit_polylines(
            guesses.vertices[which], guesses.times[which], int(size)
        )
        batches.append(_Batch(which, rates, widths))
    return batches


def _moved_meshes(
    metric: Metric, bases: Array, targets: Array, previous: Connections
) -> list[_Batch]:
    """Curves of a previous solution, stretched to new ends, on their own meshes."""
    batches = []
    lost = ~np.all(bases == targets, axis=1)
    for which, curves in previous.final_meshes():
        usable = np.isfinite(curves.rates).all(axis=(1, 2, 3))
        usable &= np.any(bases[which] != targets[which], axis=1)
        rows = np.flatnonzero(usable)
        # Like first meshes: long problems first.
        rows = rows[np.argsort(-previous.lengths[which[rows]], kind="stable")]
        own, kept = which[rows], curves.take(rows)
        lost[own] = False
        rates = kept.moved(bases[own], targets[own])
        if len(own):
            batches.append(_Batch(own, rates, kept.widths))
    rows = np.flatnonzero(lost)
    if len(rows):  # they were at rest, or never solved
        lines = straight_lines(metric, bases[rows], targets[rows])
        for batch in _first_meshes(metric, bases[rows], targets[rows], lines):
            batches.append(_Batch(rows[batch.which], batch.rates, batch.widths))
    return batches


def _extended_meshes(
    metric: Metric, ends: _Ends, previous: Connections, batches: list[_Batch]
) -> list[_Batch]:
    """Instead of these curves, previous ones with straight lines to the new ends.

    For ends that moved so far that derivatives do not tell where the curve goes.
    """
    if not batches:
        return []
    rows = np.concatenate([batch.which for batch in batches])
    curves = previous.take(rows).sample(np.linspace(0.0, 1.0, _SAMPLES))
    bases, targets = ends.bases[rows, None], ends.targets[rows, None]
    curves = np.where(np.isfinite(curves), curves, bases)
    share = np.linspace(0.0, 1.0, _SAMPLES // 4)[:, None]
    there = bases + share[:-1] * (curves[:, :1] - bases)
    onward = targets + share[-2::-1] * (curves[:, -1:] - targets)
    lines = at_constant_speed(metric, np.concatenate([there, curves, onward], axis=1))
    own = _first_meshes(metric, bases[:, 0], targets[:, 0], lines)
    return [_Batch(rows[each.which], each.rates, each.widths) for each in own]


def _relax(
    metric: Metric,
    ends: _Ends,
    batch: _Batch,
    tol: float,
    max_iter: int,
    hand_over: bool,
) -> _Outcome:
    """Relax all curves of a batch on their meshes."""
    n, dim = len(batch.which), ends.bases.shape[1]
    points = ORDER * batch.elements
    block = block_size(device().curve_points, n * points, dim)
    n_slots = max(_FEWEST_CURVES, block // points)
    state = empty_state(n_slots, batch.elements, ends.inverse_base.shape[1:])
    patience = _PATIENCE * 2**batch.round
    outcome = _Outcome(
        rates=np.empty_like(batch.rates),
        energy=np.empty(n),
        drift=np.empty((n, dim)),
        multiplier=np.empty((n, dim)),
        distance=np.empty(n),
        mismatch=np.empty(n),
        iterations=np.empty(n, dtype=np.int64),
    )

    def advance(problems: Indices, fresh: Mask, leave_at: int) -> Mask:
        nonlocal state
        which = batch.which[problems]
        boundary = Boundary(
            base=ends.bases[which],
            inverse_base=ends.inverse_base[which],
            inverse_end=ends.inverse_end[which],
            widths=batch.widths[problems],
        )
        rates = batch.rates[problems]
        limits = (max_iter, patience, hand_over, leave_at)
        state = relax_curves(metric, state, fresh, boundary, rates, tol, *limits)
        return ~np.asarray(state.running)

    def collect(slots: Indices, problems: Indices) -> None:
        decrement = np.maximum(np.asarray(state.decrement)[slots], 0.0)
        outcome.distance[problems] = np.sqrt(decrement)
        for name in ("multiplier", "mismatch", "iterations"):
            getattr(outcome, name)[problems] = np.asarray(getattr(state, name))[slots]
        for name in ("rates", "energy", "drift"):
            values = np.asarray(getattr(state.curve, name))
            getattr(outcome, name)[problems] = values[slots]

    run_in_batches(n, n_slots, advance, collect)
    return outcome


def _store(
    solution: Connections, ends: _Ends, batch: _Batch, outcome: _Outcome, tol: float
) -> None:
    """Enter what is known now; a later, finer result replaces it."""
    which = batch.which
    start = outcome.multiplier - outcome.drift
    solution.lengths[which] = np.sqrt(2.0 * outcome.energy)
    solution.tangents[which] = lower(ends.inverse_base[which], start)
    solution.end_velocities[which] = lower(ends.inverse_end[which], outcome.multiplier)
    solution.converged[which] = outcome.accurate(tol)
    solution.responses[which] = np.nan
    solution.n_iter[which] += outcome.iterations
    curves = PiecewiseCurves(ends.bases[which], outcome.rates, batch.widths)
    solution.meshes.append((which, curves))


def _follow_up(
    metric: Metric, ends: _Ends, batch: _Batch, outcome: _Outcome, tol: float
) -> list[_Batch]:
    """Meshes on which the unresolved curves are to be tried next."""
    adequate = outcome.mismatch <= tol  # stuck for another reason: a mesh cannot help
    unresolved = ~outcome.accurate(tol) & ~adequate & np.isfinite(outcome.energy)
    limited = outcome.distance <= 0.2 * outcome.mismatch
    last_round = batch.round + 1 >= _ROUNDS
    finer = unresolved & (limited | last_round)
    if batch.elements == _MOST_ELEMENTS:
        finer[:] = False
    split = finer & (outcome.mismatch <= _NEARLY_RIGHT)
    again = unresolved & ~finer & (not last_round)
    followers = []
    if split.any():
        rates, widths = split_elements(outcome.rates[split], batch.widths[split])
        followers.append(_Batch(batch.which[split], rates, widths))
    anew = finer & ~split
    for rows, elements, turn in (
        (anew, 2 * batch.elements, 0),
        (again, batch.elements, batch.round + 1),
    ):
        if rows.any():
            which = batch.which[rows]
            curves = PiecewiseCurves(
                ends.bases[which], outcome.rates[rows], batch.widths[rows]
            )
            lines = at_constant_speed(metric, curves.corners(2 * ORDER))
            rates, widths = fit_polylines(lines.vertices, lines.times, elements)
            followers.append(_Batch(which, rates, widths, turn))
    return followers
