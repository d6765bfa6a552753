"""Shortest geodesics: several first guesses, and the triangle inequality.

Relaxation finds a locally shortest curve. Which one depends on the first guess, so a
few guesses compete, and geodesics from one base keep each other honest: no target can
be farther than a neighbouring target plus the way between the two.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land.geodesics.connection import connect
from land.geodesics.graph import (
    Polylines,
    at_constant_speed,
    distinct_rows,
    segment_lengths,
    shortest_paths,
    straight_lines,
)
from land.geodesics.solution import Connections, NearbyTargets
from land.metrics import Metric
from land.metrics.host_tensors import lower, norms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The straight line is a rival of the graph's path if its length is within this range.
_SAME_ROUTE, _HOPELESS = 1.05, 3.0
_NEIGHBOURS = 5
_ROUNDS = 5
# Lines this long, in units of the metric's resolution, are short: the metric is almost
# the same at both ends.
_SHORT = 0.1
# Detours through neighbours are pursued if they save this much.
_WORTHWHILE = 2e-3
_SHORTEST = 1e-300
# So many geodesics from one base are many; this share of them, at least and at most so
# many, start from the graph.
_MANY, _PILOTS, _FEWEST_PILOTS, _MOST_PILOTS = 256, 0.125, 64, 8192
# Geodesics to neighbouring targets take different ways if they are farther from each
# other at one of these times than the targets, by this factor.
_ON_THE_WAY, _ASTRAY = np.array([0.25, 0.5, 0.75]), 1.5
_TIMES = np.linspace(0.0, 1.0, 129)
_ROUGH = 1e-2


def shortest_connections(
    metric: Metric, bases: Array, targets: Array, tol: float, max_iter: int
) -> Connections:
    """The shortest geodesics from bases (n, D) to targets (n, D) that can be found.

    Of many from one base most start from the geodesic to a neighbouring target.
    """
    pilots, others = _pilots(metric, bases, targets)
    problem = (metric, bases[pilots], targets[pilots], tol, max_iter)
    solution = _from_the_graph(*problem, alone=not len(others))
    if len(others):
        _shorten_by_neighbours(*problem, solution)
        _, nearest = KDTree(targets[pilots]).query(targets[others], workers=-1)
        guesses = solution.take(nearest)
        found = connect(metric, bases[others], targets[others], guesses, tol, max_iter)
        places = np.concatenate([pilots, others])
        solution = Connections.concatenate([solution, found]).put(places)
    if metric.landmarks is not None:
        _shorten_by_neighbours(metric, bases, targets, tol, max_iter, solution)
    return solution


def moved_connections(
    metric: Metric,
    bases: Array,
    targets: Array,
    earlier: Connections,
    tol: float,
    max_iter: int,
) -> Connections:
    """The same from geodesics between nearby bases and targets."""
    solution = connect(metric, bases, targets, earlier, tol, max_iter)
    if metric.landmarks is not None:
        _shorten_by_neighbours(
            metric, bases, targets, tol, max_iter, solution, earlier.nearby
        )
    return solution


def _pilots(metric: Metric, bases: Array, targets: Array) -> tuple[Indices, Indices]:
    """Geodesics that start from the graph, and those that follow them."""
    everyone = np.arange(len(bases))
    if len(bases) < _MANY or metric.landmarks is None or not _all_equal(bases):
        return everyone, everyone[:0]
    order = np.random.default_rng(0).permutation(len(bases))
    n_pilots = int(np.clip(_PILOTS * len(bases), _FEWEST_PILOTS, _MOST_PILOTS))
    return np.sort(order[:n_pilots]), np.sort(order[n_pilots:])


def _from_the_graph(
    metric: Metric,
    bases: Array,
    targets: Array,
    tol: float,
    max_iter: int,
    *,
    alone: bool,
) -> Connections:
    """Geodesics that start from shortest paths through the landmarks, or as lines.

    The straight line is tried as well where geodesics are `alone`: among many, the
    neighbours know what it would find.
    """
    lines = straight_lines(metric, bases, targets)
    paths = shortest_paths(metric, bases, targets, lines)
    solution = connect(metric, bases, targets, paths, tol, max_iter)
    if not alone:
        return solution
    ratio = lines.lengths / np.where(paths.lengths > 0.0, paths.lengths, 1.0)
    rivals = np.flatnonzero((ratio > _SAME_ROUTE) & (ratio < _HOPELESS))
    _compete(
        metric, bases, targets, solution, rivals, lines.take(rivals), tol, max_iter
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
    tol: float,
    max_iter: int,
    solution: Connections,
    known: NearbyTargets | None = None,
) -> None:
    """Restart geodesics that neighbours think could be shorter.

    `known` pairs of neighbours serve again if they have the same targets and groups.
    """
    pairs = _nearby_targets(metric, bases, targets, known)
    solution.nearby = pairs
    left, right = pairs.left, pairs.right
    for _ in range(_ROUNDS):
        estimates = _estimates(pairs, solution)
        lengths = np.maximum(solution.lengths[right], _SHORTEST)
        promises = estimates / lengths
        fresh = promises < pairs.tried - _WORTHWHILE
        promising = solution.lengths[left] + pairs.gaps < (1.0 - _WORTHWHILE) * lengths
        promising |= solution.converged[left] & ~solution.converged[right]
        hopeful = fresh & ~promising & (promises < 1.0 - _WORTHWHILE)
        rows = np.flatnonzero(hopeful)
        promising[rows] = _apart(solution, targets, left[rows], right[rows])
        order = np.flatnonzero(promising & fresh)
        if not len(order):
            return
        order = order[np.argsort(estimates[order], kind="stable")]
        which, first = np.unique(right[order], return_index=True)
        pairs.tried[order[first]] = promises[order[first]]
        guesses = solution.take(left[order][first])
        solution.adopt(
            which,
            connect(metric, bases[which], targets[which], guesses, tol, max_iter),
        )


def _estimates(pairs: NearbyTargets, solution: Connections) -> Array:
    """How far the right targets are if the space beyond the left ones is flat.

    By the law of cosines, with the angle between the geodesic that arrives at the left
    target and the line that goes on to the right one. At most the detour.
    """
    lengths, gaps = solution.lengths[pairs.left], pairs.gaps
    arrivals = solution.end_velocities[pairs.left]
    products = np.einsum("ni,ni->n", pairs.momenta, arrivals)
    forward = products / np.where(lengths > 0.0, lengths, 1.0)
    forward = np.clip(forward, -gaps, gaps)
    return np.sqrt(np.maximum(lengths**2 + 2.0 * lengths * forward + gaps**2, 0.0))


def _nearby_targets(
    metric: Metric, bases: Array, targets: Array, known: NearbyTargets | None
) -> NearbyTargets:
    """Each target with the nearest others that have the same base."""
    distinct, which = distinct_rows(bases)
    groups = distinct[which]
    if (
        known is not None
        and np.array_equal(known.targets, targets)
        and np.array_equal(known.groups, groups)
    ):
        return replace(known, tried=known.tried.copy())
    lefts, rights = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
    order = np.argsort(which, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(which))[:-1]):
        if len(members) < 2:
            continue
        k = min(_NEIGHBOURS + 1, len(members))
        _, nearest = KDTree(targets[members]).query(targets[members], k, workers=-1)
        lefts.append(members[nearest.reshape(-1)])
        rights.append(np.repeat(members, k))
    left, right = np.concatenate(lefts), np.concatenate(rights)
    apart = left != right
    left, right = left[apart], right[apart]
    lines, tensors = targets[right] - targets[left], metric.host_tensors(targets)
    momenta = lower(tensors[left], lines)
    # The metric hardly varies on short lines: there it is known well at the ends.
    gaps = 0.5 * np.sqrt(np.einsum("ni,ni->n", momenta, lines))
    gaps += 0.5 * norms(tensors[right], lines)
    short = 0.0 if metric.resolution is None else _SHORT * metric.resolution
    long = np.flatnonzero(np.einsum("ni,ni->n", lines, lines) > short**2)
    gaps[long] = segment_lengths(metric, targets, targets, (left[long], right[long]))
    tried = np.full(len(left), np.inf)
    return NearbyTargets(targets, groups, left, right, momenta, gaps, tried)


def _apart(
    solution: Connections, targets: Array, left: Indices, right: Indices
) -> NDArray[np.bool_]:
    """Whether geodesics to neighbouring targets take different ways."""
    if not len(left):
        return np.zeros(0, dtype=bool)
    samples = solution.sample(_ON_THE_WAY)
    ways = np.linalg.norm(samples[left] - samples[right], axis=2).max(axis=1)
    ends = np.linalg.norm(targets[left] - targets[right], axis=1)
    return np.asarray(ways > _ASTRAY * ends)


def _all_equal(rows: Array) -> bool:
    return bool(np.all(rows == rows[:1]))
