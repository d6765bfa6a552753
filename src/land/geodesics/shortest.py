"""Shortest geodesics: several first guesses, and the triangle inequality.

Relaxation finds a locally shortest curve. Which one depends on the first guess, so a
few guesses are compared, and so are geodesics from one base: no target can
be farther than a neighbouring target plus the way between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land.geodesics.boundary import connect
from land.geodesics.graph import (
    Polylines,
    distinct_rows,
    shortest_paths,
    straight_lines,
)
from land.geodesics.horizon import Ends, with_horizon
from land.geodesics.solution import Connections
from land.metrics import Metric
from land.metrics.tensors import inner, norms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _Settings:
    """How hard shorter curves are looked for."""

    # A geodesic that is longer than usual, relative to the graph's path, by this share
    # may take the wrong way. Another one is solved roughly first.
    suspicious: float = 0.01
    rough: float = 1e-2
    # Nearest targets with which each is compared, and how often.
    neighbours: int = 5
    rounds: int = 5
    # Ways by neighbours are pursued if they save this share of the length.
    worthwhile: float = 2e-3
    # So many geodesics from one base are many; this share of them starts from the
    # graph, and the others from them.
    many: int = 256
    pilots: float = 0.125
    # Geodesics to neighbouring targets take different ways if they are farther apart
    # half-way than the targets, by this factor.
    apart: float = 1.5


_SETTINGS = _Settings()


class _Pairs(NamedTuple):
    """Pairs of nearby targets with the same base."""

    left: Indices
    right: Indices
    gaps: Array  # metric lengths of the lines between them


@dataclass(frozen=True)
class _Task:
    """Geodesics that are wanted from bases (n, D) to targets (n, D)."""

    metric: Metric
    bases: Array
    targets: Array
    tol: float
    max_iter: int

    def take(self, rows: Indices) -> _Task:
        return replace(self, bases=self.bases[rows], targets=self.targets[rows])

    def solve(self, guesses: Polylines | Connections, tol: float = 0.0) -> Connections:
        tol = max(tol, self.tol)
        problem = (self.metric, self.bases, self.targets)
        return connect(*problem, guesses, tol, self.max_iter)


def shortest_connections(
    metric: Metric,
    bases: Array,
    targets: Array,
    tol: float,
    max_iter: int,
    earlier: Connections | None = None,
) -> Connections:
    """The shortest geodesics from bases (n, D) to targets (n, D) that can be found.

    They start from `earlier` ones between nearby ends. Without, of many from one base
    most start from the geodesic to a neighbouring target.
    """
    task = _Task(metric, bases, targets, tol, max_iter)

    def solve(ends: Ends) -> Connections:
        return _shortest(_Task(metric, *ends, tol, max_iter))

    def move(rows: Indices) -> Connections:
        assert earlier is not None
        own = task.take(rows)
        solution = own.solve(earlier.take(rows))
        if metric.landmarks is not None:
            _shorten_by_neighbours(own, solution, _nearby_targets(own))
        return solution

    known = None if earlier is None else move
    return with_horizon(metric, (bases, targets), (tol, max_iter), solve, known)


def _shortest(task: _Task) -> Connections:
    """The same between points that are not far from the data."""
    ends = (task.metric, task.bases, task.targets)
    paths = shortest_paths(*ends, straight_lines(*ends))
    pilots, others, nearest = _pilots(task)
    leading = task.take(pilots)
    solution = leading.solve(paths.take(pilots))
    if len(others):
        _shorten_by_neighbours(leading, solution, _nearby_targets(leading))
        found = task.take(others).solve(solution.take(nearest))
        solution = Connections.concatenate([solution, found])
    solution = solution.take(np.argsort(np.concatenate([pilots, others])))
    if task.metric.landmarks is not None:
        pairs = _nearby_targets(task)
        _shorten_by_neighbours(task, solution, pairs)
        promising = _follow_the_graph(task, solution, paths)
        if _try_other_ways(task, solution, pairs) or promising:
            _shorten_by_neighbours(task, solution, pairs)
    return solution


def _follow_the_graph(task: _Task, solution: Connections, paths: Polylines) -> bool:
    """Start again from the graph where its path promises a shorter geodesic.

    Paths are longer than geodesics, by much the same share everywhere.
    """
    moving = paths.lengths > 0.0
    ratios = solution.lengths / np.where(moving, paths.lengths, np.inf)
    usual = np.median(ratios[moving]) if moving.any() else 1.0
    which = np.flatnonzero(ratios > (1.0 + _SETTINGS.suspicious) * usual)
    return _try(task, solution, which, paths.take(which))


def _pilots(task: _Task) -> tuple[Indices, Indices, Indices]:
    """Geodesics that start from the graph, those that follow them, and which one.

    Where many have the same base, those to a sample of the targets are pilots.
    """
    pilots, others, nearest = [], [np.empty(0, dtype=np.intp)], [np.empty(0, int)]
    n_pilots = 0
    for members in _same_base(task.bases):
        n = len(members)
        if n < _SETTINGS.many or task.metric.landmarks is None:
            pilots.append(members)
        else:
            order = np.random.default_rng(0).permutation(n)
            own = int(_SETTINGS.pilots * max(n, 2 * _SETTINGS.many))
            first, rest = members[np.sort(order[:own])], members[np.sort(order[own:])]
            tree = KDTree(task.targets[first])
            pilots.append(first)
            others.append(rest)
            nearest.append(n_pilots + tree.query(task.targets[rest], workers=-1)[1])
        n_pilots += len(pilots[-1])
    return np.concatenate(pilots), np.concatenate(others), np.concatenate(nearest)


def _same_base(bases: Array) -> list[Indices]:
    """Rows that have the same base, one array for each."""
    _, which = distinct_rows(bases)
    order = np.argsort(which, kind="stable")
    return np.split(order, np.cumsum(np.bincount(which))[:-1])


def _try(
    task: _Task,
    solution: Connections,
    which: Indices,
    guesses: Polylines | Connections,
) -> bool:
    """Try other first guesses for some of the geodesics; keep what is shorter.

    A rough solution tells which of them are worth solving to the tolerance.
    """
    if not len(which):
        return False
    rough = task.take(which).solve(guesses, _SETTINGS.rough)
    solution.n_iter[which] += rough.n_iter
    saved = 0.1 * _SETTINGS.worthwhile  # a rough length is a little too long
    shorter = rough.lengths < (1.0 - saved) * solution.lengths[which]
    rows = np.flatnonzero(shorter | ~solution.converged[which])
    solution.adopt(which[rows], task.take(which[rows]).solve(rough.take(rows)))
    return len(rows) > 0


def _shorten_by_neighbours(task: _Task, solution: Connections, pairs: _Pairs) -> None:
    """Restart geodesics that are shorter by way of a neighbouring target."""
    left, right, gaps = pairs
    tried = np.full(len(left), np.inf)
    for _ in range(_SETTINGS.rounds):
        detours = solution.lengths[left] + gaps
        promising = detours < (1.0 - _SETTINGS.worthwhile) * solution.lengths[right]
        promising |= solution.converged[left] & ~solution.converged[right]
        chosen = _best_for_each(right, detours, promising & (detours < tried))
        if not len(chosen):
            return
        tried[chosen] = (1.0 - _SETTINGS.worthwhile) * detours[chosen]
        which, guesses = right[chosen], solution.take(left[chosen])
        solution.adopt(which, task.take(which).solve(guesses))


def _try_other_ways(task: _Task, solution: Connections, pairs: _Pairs) -> bool:
    """Try, once and roughly, ways of neighbours that may be shorter.

    How far a target is by a neighbour's way: by the law of cosines, with the angle
    between the geodesic that arrives at the neighbour and the line from there.
    """
    left, right, gaps = pairs
    lines = task.targets[right] - task.targets[left]
    tensors = task.metric.host_tensors(task.targets)[left]
    lengths = solution.lengths[left]
    products = inner(tensors, lines, solution.end_velocities[left])
    squares = lengths**2 + 2.0 * products + gaps**2
    estimates = np.sqrt(np.maximum(squares, (lengths - gaps) ** 2))
    middles = solution.sample(np.array([0.5]))[:, 0]
    between = np.linalg.norm(middles[left] - middles[right], axis=1)
    apart = between > _SETTINGS.apart * np.linalg.norm(lines, axis=1)
    shorter = estimates < (1.0 - _SETTINGS.worthwhile) * solution.lengths[right]
    chosen = _best_for_each(right, estimates, apart & shorter)
    return _try(task, solution, right[chosen], solution.take(left[chosen]))


def _best_for_each(
    right: Indices, values: Array, allowed: NDArray[np.bool_]
) -> Indices:
    """For each right target the allowed pair of the smallest value."""
    order = np.flatnonzero(allowed)
    order = order[np.argsort(values[order], kind="stable")]
    return order[np.unique(right[order], return_index=True)[1]]


def _nearby_targets(task: _Task) -> _Pairs:
    """Each target with the nearest others that have the same base."""
    targets, metric = task.targets, task.metric
    lefts, rights = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    for members in _same_base(task.bases):
        if len(members) < 2:
            continue
        k = min(_SETTINGS.neighbours + 1, len(members))
        _, nearest = KDTree(targets[members]).query(targets[members], k, workers=-1)
        lefts.append(members[nearest.reshape(-1)])
        rights.append(np.repeat(members, k))
    left, right = np.concatenate(lefts), np.concatenate(rights)
    apart = left != right
    left, right = left[apart], right[apart]
    lines, tensors = targets[right] - targets[left], metric.host_tensors(targets)
    middles = metric.host_tensors(targets[left] + 0.5 * lines)
    gaps = norms(tensors[left], lines) + norms(tensors[right], lines)
    return _Pairs(left, right, (gaps + 4.0 * norms(middles, lines)) / 6.0)  # Simpson
