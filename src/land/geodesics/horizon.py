"""Geodesics to and from points far outside the data, where the metric is flat.

Outside a ball the tensor is a constant multiple of the identity, and geodesics are
straight. One that leaves the ball never comes back, as balls are convex. So far ends
are pulled in to a horizon, geodesics solved there and continued as straight lines.
Where each crosses the horizon is found by looking back along the line on which it
leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from land._device import Indices, Mask
from land.geodesics.boundary import connect
from land.geodesics.collocation import ORDER, PiecewiseCurves
from land.geodesics.graph import shortest_paths, straight_lines
from land.geodesics.solution import Connections
from land.metrics import Metric
from land.metrics.tensors import norms

Array = NDArray[np.float64]
Ends = tuple[Array, Array]


@dataclass(frozen=True)
class _Settings:
    """Distances are in units of the ball's radius."""

    # Points farther than this are far.
    far: float = 2.0
    # Horizons of the rounds, the last one again and again. The error of a crossing
    # falls by about this factor; the first are nearer, while it is large.
    horizons: tuple[float, ...] = (2.0, 6.0, 30.0)
    rounds: int = 9


_SETTINGS = _Settings()


@dataclass(frozen=True)
class _Outside:
    """The flat space outside a ball."""

    center: Array
    radius: float
    pace: float  # metric length of a unit of distance

    @classmethod
    def of(cls, metric: Metric) -> _Outside | None:
        if metric.flat_outside is None:
            return None
        center, radius = metric.flat_outside
        way = np.eye(1, metric.dim)
        tensor = metric.host_tensors(center + _SETTINGS.far * radius * way)
        return cls(center, radius, float(norms(tensor, way)[0]))

    def distances(self, points: Array) -> Array:
        """From the centre."""
        return np.asarray(np.linalg.norm(points - self.center, axis=1))

    def is_far(self, points: Array, bound: float) -> Mask:
        return self.distances(points) > bound * self.radius

    def misses_ball(self, starts: Array, ends: Array) -> Mask:
        """Whether no way that touches the ball can be as short as the straight one."""
        left, right = starts - self.center, ends - self.center
        line = np.linalg.norm(ends - starts, axis=1)
        away = self.distances(ends)
        # How much longer the line is than the way from the centre, without rounding.
        longer = np.sum((left - 2.0 * right) * left, axis=1) / (line + away)
        return self.distances(starts) - 2.0 * self.radius > longer

    def pulled_in(self, metric: Metric, ends: Ends) -> Ends:
        """The ends, but where they are far a point of the ball's surface on the way.

        The shortest path through the landmarks tells where the way leaves the ball.
        """
        starts, targets = (
            self.toward(each, self.center, _SETTINGS.far) for each in ends
        )
        lines = straight_lines(metric, starts, targets)
        corners = shortest_paths(metric, starts, targets, lines).vertices
        moved = np.any(corners != corners[:, :1], axis=2)
        first = corners[np.arange(len(corners)), np.argmax(moved, axis=1)]
        return (
            self.toward(ends[0], first, 1.0),
            self.toward(ends[1], corners[:, -2], 1.0),
        )

    def toward(self, points: Array, sources: Array, horizon: float) -> Array:
        """Where lines from `sources` in the ball to far points cross a larger ball."""
        ways = _unit(points - sources)
        offsets = sources - self.center
        along = np.sum(offsets * ways, axis=1)
        room = (horizon * self.radius) ** 2 - np.sum(offsets**2, axis=-1)
        steps = np.sqrt(np.maximum(along**2 + room, 0.0)) - along
        found = sources + steps[:, None] * ways
        far = self.is_far(points, max(horizon, _SETTINGS.far))
        return np.where(far[:, None], found, points)

    def crossings(
        self, points: Array, places: Array, ways: Array, horizon: float
    ) -> Array:
        """Where geodesics to far points cross the horizon, in a better guess.

        They start where the lines through `places` in the direction of `ways` are
        nearest to the centre. Points this side of the horizon are their own crossings.
        """
        along = np.sum((places - self.center) * ways, axis=1, keepdims=True)
        return self.toward(points, places - along * ways, horizon)


def with_horizon(
    metric: Metric,
    ends: Ends,
    limits: tuple[float, int],
    solve: Callable[[Ends], Connections],
    earlier: Callable[[Indices], Connections] | None = None,
) -> Connections:
    """Geodesics between ends (n, D), of which some may be far away.

    Parameters
    ----------
    metric, ends
        The metric; bases and targets.
    limits
        Relative error allowed, and iterations.
    solve
        Finds geodesics between ends that are not far.
    earlier
        Finds those of some rows from geodesics that are known, unless they go beyond
        the horizon.
    """
    bases, targets = ends
    outside = _Outside.of(metric)
    far = np.zeros(len(bases), dtype=bool)
    if outside is not None:
        bound = _SETTINGS.far if earlier is None else _SETTINGS.horizons[-1]
        far = outside.is_far(bases, bound) | outside.is_far(targets, bound)
    near = np.flatnonzero(~far)
    found = earlier(near) if earlier else solve((bases[near], targets[near]))
    if outside is None or not far.any():
        return found
    free = far & outside.misses_ball(bases, targets)
    lone, rest = np.flatnonzero(free), np.flatnonzero(far & ~free)
    lines = Connections.straight(bases[lone], targets[lone])
    lines.lengths *= outside.pace
    outer = bases[rest], targets[rest]
    inner = outside.pulled_in(metric, outer)
    through = _continued(metric, outside, outer, inner, solve(inner), limits)
    parts = Connections.concatenate([found, lines, through])
    return parts.take(np.argsort(np.concatenate([near, lone, rest])))


@np.errstate(all="ignore")  # of curves that were not found; verdicts tell
def _continued(
    metric: Metric,
    outside: _Outside,
    ends: Ends,
    inner: Ends,
    solution: Connections,
    limits: tuple[float, int],
) -> Connections:
    """Geodesics between `ends`, of which those between the `inner` ones are known."""
    n_iter, tol = solution.n_iter, limits[0]
    for turn in range(_SETTINGS.rounds):
        ways = -_unit(solution.tangents), _unit(solution.end_velocities)
        last = turn >= len(_SETTINGS.horizons)
        horizon = _SETTINGS.horizons[-1 if last else turn]
        crossings = (
            outside.crossings(ends[0], inner[0], ways[0], horizon),
            outside.crossings(ends[1], inner[1], ways[1], horizon),
        )
        guesses = solution if last else _extended(solution, crossings, inner, outside)
        inner = crossings
        solution = connect(metric, *inner, guesses, *limits)
        n_iter = n_iter + solution.n_iter
        missed = np.maximum(
            _turns(ends[0] - inner[0], -solution.tangents),
            _turns(ends[1] - inner[1], solution.end_velocities),
        )
        if np.all((missed <= tol) | ~solution.converged):
            break
    done = solution.converged & (missed <= tol)
    return replace(
        _extended(solution, ends, inner, outside), converged=done, n_iter=n_iter
    )


def _extended(
    solution: Connections,
    ends: Ends,
    inner: Ends,
    outside: _Outside,
) -> Connections:
    """Geodesics between `inner` ends, continued as straight lines."""
    lines = np.stack([inner[0] - ends[0], ends[1] - inner[1]], axis=1)
    added = outside.pace * np.linalg.norm(lines, axis=2)
    lengths = solution.lengths + added.sum(axis=1)
    straight = lengths[:, None, None] / outside.pace * _unit(lines)
    bent = np.stack([solution.tangents, solution.end_velocities], axis=1)
    bent = bent * (lengths / solution.lengths)[:, None, None]
    velocities = np.where(added[:, :, None] > 0.0, straight, bent)
    meshes = []
    for which, curves in solution.final_meshes():
        for sides in product((False, True), repeat=2):
            rows = np.flatnonzero(np.all((added[which] > 0.0) == sides, axis=1))
            if not len(rows):
                continue
            own, kept = which[rows], curves.take(rows)
            rates, widths = [kept.rates], [kept.widths * solution.lengths[own, None]]
            for side, place in ((0, 0), (1, 2)):
                if sides[side]:  # a straight element, before or after
                    line = np.repeat(lines[own, side, None, None], ORDER, axis=2)
                    rates.insert(place, line)
                    widths.insert(place, added[own, side, None])
            extended = PiecewiseCurves(
                ends[0][own],
                np.concatenate(rates, axis=1),
                np.concatenate(widths, axis=1) / lengths[own, None],
            )
            meshes.append((own, extended))
    return replace(
        solution,
        bases=ends[0],
        lengths=lengths,
        tangents=velocities[:, 0],
        end_velocities=velocities[:, 1],
        responses=np.full_like(solution.responses, np.nan),
        meshes=meshes,
    )


def _unit(vectors: Array) -> Array:
    """Vectors of length one in their directions; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))


def _turns(ways: Array, velocities: Array) -> Array:
    """Angles between the two; none where there is no way to go."""
    angles = np.linalg.norm(_unit(ways) - _unit(velocities), axis=1)
    return np.where(np.any(ways != 0.0, axis=1), angles, 0.0)
