"""Shortest geodesics: several first guesses, and the triangle inequality.

Relaxation finds a locally shortest curve. Which one depends on the first guess, so a
few guesses are compared, and so are geodesics from one base: no target can
be farther than a neighbouring target plus the way between the two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from land.geodesics.boundary import connect
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


@dataclass(frozen=True)
class _Settings:
    """How hard shorter curves are looked for."""

    # A straight line longer than the graph's path by less than the first factor takes
    # the same route; one longer by more than the second was never the shorter way.
    same_route: float = 1.05
    too_long: float = 3.0
    # A line is solved this roughly first, and sampled so often for the second time.
    rough: float = 1e-2
    samples: int = 129
    # Nearest targets with which each is compared, and how often.
    neighbours: int = 5
    rounds: int = 5
    # Lines this long, in units of the metric's resolution, are short: the metric is
    # almost the same at both ends.
    short: float = 0.1
    # Ways by neighbours are pursued if they save this share of the length.
    worthwhile: float = 2e-3
    # So many geodesics from one base are many; this share of them, at least and at most
    # so many, start from the graph, and the others from them.
    many: int = 256
    pilots: float = 0.125
    fewest_pilots: int = 64
    most_pilots: int = 8192
    # Geodesics to neighbouring targets take different ways if they are farther from
    # each other at one of these times than the targets, by this factor.
    on_the_way: tuple[float, ...] = (0.25, 0.5, 0.75)
    astray: float = 1.5


_SETTINGS = _Settings()
# Targets at the base have no length to divide by.
_SHORTEST = 1e-300


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
    if len(bases) < _SETTINGS.many or metric.landmarks is None or not _all_equal(bases):
        return everyone, everyone[:0]
    order = np.random.default_rng(0).permutation(len(bases))
    n_pilots = int(
        np.clip(
            _SETTINGS.pilots * len(bases),
            _SETTINGS.fewest_pilots,
            _SETTINGS.most_pilots,
        )
    )
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
    lines_too = np.flatnonzero(
        (ratio > _SETTINGS.same_route) & (ratio < _SETTINGS.too_long)
    )
    _try_lines(
        metric,
        bases,
        targets,
        solution,
        lines_too,
        lines.take(lines_too),
        tol,
        max_iter,
    )
    return solution


def _try_lines(
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
    rough_tol = max(tol, _SETTINGS.rough)
    rough = connect(metric, bases[which], targets[which], guesses, rough_tol, max_iter)
    solution.n_iter[which] += rough.n_iter
    shorter = (
        rough.lengths < (1.0 - 0.1 * _SETTINGS.worthwhile) * solution.lengths[which]
    )
    shorter |= ~solution.converged[which]
    if not shorter.any():
        return
    curves = rough.take(np.flatnonzero(shorter)).sample(
        np.linspace(0.0, 1.0, _SETTINGS.samples)
    )
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
    """Restart geodesics that could be shorter by way of a neighbouring target.

    `known` pairs of neighbours serve again if they have the same targets and groups.
    """
    pairs = _nearby_targets(metric, bases, targets, known)
    solution.nearby = pairs
    left, right = pairs.left, pairs.right
    for _ in range(_SETTINGS.rounds):
        estimates = _estimates(pairs, solution)
        lengths = np.maximum(solution.lengths[right], _SHORTEST)
        promises = estimates / lengths
        fresh = promises < pairs.tried - _SETTINGS.worthwhile
        promising = (
            solution.lengths[left] + pairs.gaps < (1.0 - _SETTINGS.worthwhile) * lengths
        )
        promising |= solution.converged[left] & ~solution.converged[right]
        hopeful = fresh & ~promising & (promises < 1.0 - _SETTINGS.worthwhile)
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
    arlines_too = solution.end_velocities[pairs.left]
    products = np.einsum("ni,ni->n", pairs.momenta, arlines_too)
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
        k = min(_SETTINGS.neighbours + 1, len(members))
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
    short = 0.0 if metric.resolution is None else _SETTINGS.short * metric.resolution
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
    samples = solution.sample(np.array(_SETTINGS.on_the_way))
    ways = np.linalg.norm(samples[left] - samples[right], axis=2).max(axis=1)
    ends = np.linalg.norm(targets[left] - targets[right], axis=1)
    return np.asarray(ways > _SETTINGS.astray * ends)


def _all_equal(rows: Array) -> bool:
    return bool(np.all(rows == rows[:1]))
