"""Shortest geodesics: several first guesses, and the triangle inequality.

Relaxation finds a locally shortest curve. Which one depends on the first guess, so a
few guesses compete, and geodesics from one base keep each other honest: no target can
be farther than a neighbouring target plus the way between the two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land.geodesics.connection import Connections, connect
from land.geodesics.graph import (
    Polylines,
    at_constant_speed,
    segment_lengths,
    shortest_paths,
    straight_lines,
)
from land.geodesics.polish import polish
from land.metrics import Metric

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The straight line is a rival of the graph's path if its length is within this range.
_SAME_ROUTE, _HOPELESS = 1.05, 3.0
_NEIGHBOURS = 5
_ROUNDS = 5
# So many failures, or a tenth of a batch, are stragglers to be polished one by one;
# more than that are a sign of something else.
_FEW = 4
# Detours through neighbours are pursued if they save this much.
_WORTHWHILE = 2e-3
_TIMES = np.linspace(0.0, 1.0, 129)
_ROUGH = 1e-2


def shortest_connections(
    metric: Metric, bases: Array, targets: Array, tol: float, max_iter: int
) -> Connections:
    """The shortest geodesics from bases (n, D) to targets (n, D) that can be found."""
    lines = straight_lines(metric, bases, targets)
    paths = shortest_paths(metric, bases, targets, lines)
    solution = connect(metric, bases, targets, paths, tol, max_iter)
    ratio = lines.lengths / np.where(paths.lengths > 0.0, paths.lengths, 1.0)
    rivals = np.flatnonzero((ratio > _SAME_ROUTE) & (ratio < _HOPELESS))
    _compete(
        metric, bases, targets, solution, rivals, lines.take(rivals), tol, max_iter
    )
    if metric.landmarks is not None:
        _shorten_by_neighbours(metric, bases, targets, solution, tol, max_iter)
    failed = np.flatnonzero(~solution.converged)
    if 0 < len(failed) <= max(_FEW, len(bases) // 10):
        stragglers = solution.take(failed)
        solution.adopt(
            failed, polish(metric, bases[failed], targets[failed], stragglers, tol)
        )
    return solution


def _compete(
    metric: Metric,
    bases: Array,
    targets: Array,
    solution: Connections,
    which: Indices,
    guesses: Polylines,
    tol: float,
    max_iter: int,
) -> None:
    """Try other first guesses for some of the geodesics; keep what is shorter.

    A rough solution tells which of them are worth solving to the tolerance.
    """
    if not len(which):
        return
    rough_tol = max(tol, _ROUGH)
    rough = connect(metric, bases[which], targets[which], guesses, rough_tol, max_iter)
    solution.n_iter[which] += rough.n_iter
    shorter = rough.lengths < (1.0 - 0.1 * _WORTHWHILE) * solution.lengths[which]
    shorter |= ~solution.converged[which]
    if not shorter.any():
        return
    curves = rough.take(np.flatnonzero(shorter)).sample(_TIMES)
    which = which[shorter]
    guesses = at_constant_speed(metric, curves)
    others = connect(metric, bases[which], targets[which], guesses, tol, max_iter)
    solution.adopt(which, others)


def _shorten_by_neighbours(
    metric: Metric,
    bases: Array,
    targets: Array,
    solution: Connections,
    tol: float,
    max_iter: int,
) -> None:
    """Restart geodesics that are longer than the detour through a neighbour."""
    left, right, gaps = _neighbouring_targets(metric, bases, targets)
    for _ in range(_ROUNDS):
        detours = solution.lengths[left] + gaps
        promising = detours < (1.0 - _WORTHWHILE) * solution.lengths[right]
        if not promising.any():
            return
        order = np.argsort(detours[promising], kind="stable")
        which, first = np.unique(right[promising][order], return_index=True)
        through = left[promising][order][first]
        # Straight to the neighbour's curve, then on: the corner relaxes away.
        used, place = np.unique(through, return_inverse=True)
        curves = solution.take(used).sample(_TIMES)[place]
        vertices = np.concatenate([curves, targets[which][:, None]], axis=1)
        guesses = at_constant_speed(metric, vertices)
        _compete(metric, bases, targets, solution, which, guesses, tol, max_iter)


def _neighbouring_targets(
    metric: Metric, bases: Array, targets: Array
) -> tuple[Indices, Indices, Array]:
    """Pairs of nearby targets with the same base, and the lengths between them."""
    lefts, rights = [], []
    _, group = np.unique(bases, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(group.reshape(-1)))[:-1]):
        if len(members) < 2:
            continue
        k = min(_NEIGHBOURS + 1, len(members))
        _, nearest = KDTree(targets[members]).query(targets[members], k)
        lefts.append(members[nearest.reshape(-1)])
        rights.append(np.repeat(members, k))
    if not lefts:
        return np.empty(0, dtype=int), np.empty(0, dtype=int), np.empty(0)
    left, right = np.concatenate(lefts), np.concatenate(rights)
    apart = left != right
    left, right = left[apart], right[apart]
    return left, right, segment_lengths(metric, targets[left], targets[right])
