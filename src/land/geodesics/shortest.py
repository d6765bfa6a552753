"""Shortest geodesics: several first guesses, and the triangle inequality.

Relaxation finds a locally shortest curve, which depends on the first guess. So
geodesics from one base are compared: no target can be farther than a neighbouring
target plus the way between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land._device import Indices, Mask
from land.geodesics.boundary import solve_boundary
from land.geodesics.collocation import Geodesics
from land.geodesics.graph import (
    distinct_rows,
    nearest_in,
    nearest_landmarks,
    shortest_paths,
)
from land.geodesics.horizon import with_horizon
from land.metrics import Metric
from land.metrics.tensors import inner, norms

Array = NDArray[np.float64]

# Nearest targets with which each is compared, and how often. Without a limit the fit of
# a mixture to two moons ended 0.009 higher.
_NEIGHBOURS, _ROUNDS = 5, 5
# From a base with so few targets at most, geodesics to as many of the landmarks nearest
# to each are found as well: alone, 29 of 1800 targets were farther by 0.1 % or more
# than in a batch of the data; with this company none was.
_COMPANY = 12
# Ways by neighbours are tried if they save this share of the length. Of 8820 targets in
# the plane and in space, 8 are farther by 1 % or more than the best known, and 19
# without `_try_other_ways`.
_WORTHWHILE = 2e-3
# Geodesics to neighbouring targets take different ways if they are farther apart
# half-way than the targets, by this factor. Without it 5 of 8820 are farther, and log
# maps take a third more iterations.
_APART = 1.5


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
    solve: Callable[[Array, Array, Geodesics], Geodesics]

    def improve(self, solution: Geodesics, which: Indices, guesses: Geodesics) -> None:
        """Start some geodesics from other guesses; keep what is shorter."""
        ends = self.bases[which], self.targets[which]
        solution.adopt(which, self.solve(*ends, guesses))


def shortest_geodesics(
    metric: Metric,
    bases: Array,
    targets: Array,
    tol: float,
    max_iter: int,
    earlier: Geodesics | None = None,
) -> Geodesics:
    """The shortest geodesics from bases (n, D) to targets (n, D) that can be found.

    They start from `earlier` ones between nearby ends, or from the graph.
    """

    def move(bases: Array, targets: Array, earlier: Geodesics | None) -> Geodesics:
        guesses = earlier or shortest_paths(metric, bases, targets)
        return solve_boundary(metric, bases, targets, guesses, tol, max_iter)

    def solve(bases: Array, targets: Array, earlier: Geodesics | None) -> Geodesics:
        n = len(bases)
        if metric.landmarks is not None and earlier is None:
            bases, targets = _with_company(metric, bases, targets)
        solution = move(bases, targets, earlier)
        if metric.landmarks is not None:
            task = _Task(metric, bases, targets, move)
            pairs = _nearby_targets(task)
            _shorten_by_neighbours(task, solution, pairs)
            if earlier is None and _try_other_ways(task, solution, pairs):
                _shorten_by_neighbours(task, solution, pairs)
        return solution if len(bases) == n else solution.take(np.arange(n))

    return with_horizon(metric, bases, targets, tol, solve, move, earlier)


def _with_company(metric: Metric, bases: Array, targets: Array) -> tuple[Array, Array]:
    """The same ends, followed by others that are company to lone targets."""
    _, which = distinct_rows(bases)
    lone = np.flatnonzero(np.bincount(which)[which] <= _COMPANY)
    company = nearest_landmarks(metric, targets[lone], _COMPANY)
    n_each = company.shape[1]
    others = np.repeat(bases[lone], n_each, axis=0), company.reshape(-1, metric.dim)
    return np.concatenate([bases, others[0]]), np.concatenate([targets, others[1]])


def _shorten_by_neighbours(task: _Task, solution: Geodesics, pairs: _Pairs) -> None:
    """Restart geodesics that are shorter by way of a neighbouring target."""
    left, right, gaps = pairs
    tried = np.full(len(left), np.inf)
    for _ in range(_ROUNDS):
        detours = solution.lengths[left] + gaps
        promising = detours < (1.0 - _WORTHWHILE) * solution.lengths[right]
        promising |= solution.converged[left] & ~solution.converged[right]
        chosen = _best_for_each(right, detours, promising & (detours < tried))
        if not len(chosen):
            return
        tried[chosen] = (1.0 - _WORTHWHILE) * detours[chosen]
        task.improve(solution, right[chosen], solution.take(left[chosen]))


def _try_other_ways(task: _Task, solution: Geodesics, pairs: _Pairs) -> bool:
    """Try, once, ways of neighbours that may be shorter.

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
    apart = between > _APART * np.linalg.norm(lines, axis=1)
    shorter = estimates < (1.0 - _WORTHWHILE) * solution.lengths[right]
    chosen = _best_for_each(right, estimates, apart & shorter)
    if len(chosen):
        task.improve(solution, right[chosen], solution.take(left[chosen]))
    return len(chosen) > 0


def _best_for_each(right: Indices, values: Array, allowed: Mask) -> Indices:
    """For each right target the allowed pair of the smallest value."""
    order = np.flatnonzero(allowed)
    order = order[np.argsort(values[order], kind="stable")]
    return order[np.unique(right[order], return_index=True)[1]]


def _nearby_targets(task: _Task) -> _Pairs:
    """Each target with the nearest others that have the same base."""
    targets, metric = task.targets, task.metric
    lefts, rights = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    _, which = distinct_rows(task.bases)
    order = np.argsort(which, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(which))[:-1]):
        k = min(_NEIGHBOURS + 1, len(members))
        if k > 1:
            nearest = nearest_in(KDTree(targets[members]), targets[members], k)
            lefts.append(members[nearest.reshape(-1)])
            rights.append(np.repeat(members, k))
    left, right = np.concatenate(lefts), np.concatenate(rights)
    left, right = left[left != right], right[left != right]
    lines, tensors = targets[right] - targets[left], metric.host_tensors(targets)
    middles = metric.host_tensors(targets[left] + 0.5 * lines)
    gaps = norms(tensors[left], lines) + norms(tensors[right], lines)
    return _Pairs(left, right, (gaps + 4.0 * norms(middles, lines)) / 6.0)  # Simpson
