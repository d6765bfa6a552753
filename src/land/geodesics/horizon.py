"""Geodesics to and from points far outside the data, where the metric is flat.

Outside a ball the tensor is a constant multiple of the identity, and geodesics are
straight. One that leaves the ball never comes back, as balls are convex. So far ends
are pulled in to a horizon, geodesics solved there and continued as straight lines.
Where each crosses the horizon is found by looking back along the line on which it
leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from land._device import Mask
from land.geodesics.collocation import ORDER, Geodesics, PiecewiseCurves
from land.geodesics.graph import shortest_paths
from land.metrics import Metric
from land.metrics.tensors import norms

Array = NDArray[np.float64]
Solve = Callable[[Array, Array, Geodesics | None], Geodesics]

# Radius of the horizon, in units of the ball's: points beyond are far. The error of a
# crossing falls by about this factor in each round.
_HORIZON, _ROUNDS = 3.0, 15


def with_horizon(
    metric: Metric,
    bases: Array,
    targets: Array,
    tol: float,
    solve: Solve,
    move: Solve,
    earlier: Geodesics | None = None,
) -> Geodesics:
    """Geodesics between ends (n, D), of which some may be far away.

    `solve` finds shortest geodesics between ends that are not far, from earlier ones if
    there are any; `move` finds geodesics that take the same way as earlier ones.
    """
    if metric.flat_outside is None:
        return solve(bases, targets, earlier)
    center, radius = metric.flat_outside
    ends = np.stack([bases, targets]) - center
    # Not what is just beyond: the line from the horizon would have no direction.
    far = _lengths(ends) > 1.001 * _HORIZON * radius
    outside = np.asarray(far.any(axis=0))
    near = np.flatnonzero(~outside)
    known = None if earlier is None else earlier.take(near)
    found = solve(bases[near], targets[near], known)
    if len(near) == len(bases):
        return found
    way = np.eye(1, metric.dim)
    tensor = metric.host_tensors(center + _HORIZON * radius * way)
    pace = float(norms(tensor, way)[0])  # metric length of a unit of distance
    past = outside & _misses_ball(ends[0], ends[1], radius)
    lone, rest = np.flatnonzero(past), np.flatnonzero(outside & ~past)
    lines = Geodesics.straight(bases[lone], targets[lone])
    lines.lengths *= pace
    outer = ends[:, rest]
    ball = far[:, rest], center, radius
    inner, solution = _at_horizon(metric, outer, *ball, tol, solve, move)
    through = _extended(solution, outer + center, inner + center, pace)
    parts = Geodesics.concatenate([found, lines, through])
    return parts.take(np.argsort(np.concatenate([near, lone, rest])))


@np.errstate(all="ignore")  # of curves that were not found; verdicts tell
def _at_horizon(
    metric: Metric,
    ends: Array,
    far: Mask,
    center: Array,
    radius: float,
    tol: float,
    solve: Solve,
    move: Solve,
) -> tuple[Array, Geodesics]:
    """Where geodesics between ends (2, n, D) cross the horizon, and what is within.

    Coordinates of ends and crossings are relative to the centre.
    """
    inner = _crossings(ends, np.zeros_like(ends), far, radius)
    # The shortest path through the landmarks tells where the way leaves the ball.
    corners = shortest_paths(metric, inner[0] + center, inner[1] + center)
    corners -= center
    moved = np.any(corners != corners[:, :1], axis=2)
    first = corners[np.arange(len(corners)), np.argmax(moved, axis=1)]
    inner = _crossings(ends, np.stack([first, corners[:, -2]]), far, radius)
    solution = solve(inner[0] + center, inner[1] + center, None)
    n_iter = solution.n_iter
    for _ in range(_ROUNDS):
        ways = _unit(np.stack([-solution.tangents, solution.end_velocities]))
        missed = np.where(far, _lengths(_unit(ends - inner) - ways), 0.0).max(axis=0)
        if np.all((missed <= tol) | ~solution.converged):
            break
        # The line on which it leaves, where that is nearest to the centre.
        along = np.sum(inner * ways, axis=2, keepdims=True)
        inner = _crossings(ends, inner - along * ways, far, radius)
        solution = move(inner[0] + center, inner[1] + center, solution)
        n_iter = n_iter + solution.n_iter
    solution.converged &= missed <= tol
    return inner, replace(solution, n_iter=n_iter)


def _crossings(ends: Array, sources: Array, far: Mask, radius: float) -> Array:
    """Where lines from `sources` to far ends cross the horizon; other ends."""
    ways = _unit(ends - sources)
    along = np.sum(sources * ways, axis=2)
    room = (_HORIZON * radius) ** 2 - np.sum(sources**2, axis=2)
    steps = np.sqrt(np.maximum(along**2 + room, 0.0)) - along
    return np.where(far[..., None], sources + steps[..., None] * ways, ends)


def _misses_ball(starts: Array, ends: Array, radius: float) -> Mask:
    """Whether no way that touches the ball can be as short as the straight one."""
    line, away = _lengths(ends - starts), _lengths(ends)
    # How much longer the line is than the way from the centre, without rounding.
    longer = np.sum((starts - 2.0 * ends) * starts, axis=1) / (line + away)
    return _lengths(starts) - 2.0 * radius > longer


def _extended(solution: Geodesics, ends: Array, inner: Array, pace: float) -> Geodesics:
    """Geodesics between `inner` ends (2, n, D), continued as straight lines."""
    lines = np.stack([inner[0] - ends[0], ends[1] - inner[1]])
    added = pace * _lengths(lines)
    lengths = solution.lengths + added.sum(axis=0)
    straight = lengths[:, None] / pace * _unit(lines)
    bent = np.stack([solution.tangents, solution.end_velocities])
    bent *= (lengths / solution.lengths)[:, None]
    tangents, end_velocities = np.where(added[..., None] > 0.0, straight, bent)
    meshes = []
    for which, curves in solution.final_meshes():
        for before, after in product((False, True), repeat=2):
            sides = (added[:, which].T > 0.0) == (before, after)
            rows = np.flatnonzero(sides.all(axis=1))
            own, kept = which[rows], curves.take(rows)
            rates, widths = [kept.rates], [kept.widths * solution.lengths[own, None]]
            if before:  # a straight element
                rates.insert(0, np.repeat(lines[0, own, None, None], ORDER, axis=2))
                widths.insert(0, added[0, own, None])
            if after:
                rates.append(np.repeat(lines[1, own, None, None], ORDER, axis=2))
                widths.append(added[1, own, None])
            whole = np.concatenate(widths, axis=1) / lengths[own, None]
            extended = np.concatenate(rates, axis=1), whole
            meshes.append((own, PiecewiseCurves(ends[0][own], *extended)))
    return replace(
        solution,
        bases=ends[0],
        lengths=lengths,
        tangents=tangents,
        end_velocities=end_velocities,
        slopes=np.full_like(solution.slopes, np.nan),
        meshes=meshes,
    )


def _lengths(vectors: Array) -> Array:
    return np.asarray(np.linalg.norm(vectors, axis=-1))


def _unit(vectors: Array) -> Array:
    """Vectors of length one in their directions; zero stays zero."""
    lengths = _lengths(vectors)[..., None]
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))
