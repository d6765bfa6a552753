"""First guesses for geodesics: shortest paths through a graph of landmarks.

A learned metric has many locally shortest curves; the straight line often relaxes to a
bad one. A nearest-neighbour graph over the data, weighted by metric length, finds the
right valley globally, and costs little because it is built once per metric.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import KDTree

from land._precision import in_float64
from land.geodesics.collocation import gauss
from land.metrics import Metric
from land.metrics.tensors import norms

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _Settings:
    """The graph, and lengths of segments."""

    neighbours: int = 10
    # Neighbours are also looked for among every so many-th landmark, repeatedly.
    thinning: int = 4
    # Landmarks: this many data at random, or one in every cell as wide as the metric's
    # resolution where that makes more of them, up to a bound.
    some_landmarks: int = 2000
    most_landmarks: int = 20_000
    # Empty space has landmarks in up to so many dimensions: one in a cell as wide as
    # the resolution, or wider where there would be more.
    most_filled: int = 3
    most_cells: int = 4000
    # Landmarks to which a point is attached.
    attachments: int = 5
    # Nodes on a panel, and panels of a segment at most.
    quadrature: int = 4
    most_panels: int = 64
    # Points, or distances from bases to landmarks, that are in memory at once.
    at_once: int = 2**22


_SETTINGS = _Settings()

# csgraph takes a stored zero for a missing edge.
_SHORTEST_EDGE = np.finfo(float).tiny
_NODES, _WEIGHTS = gauss(_SETTINGS.quadrature)


@dataclass(frozen=True)
class Polylines:
    """Paths of different numbers of corners, padded by repeating the last one."""

    vertices: Array  # (n, k, D)
    times: Array  # (n, k) fraction of the metric length passed, from 0 to 1
    lengths: Array  # (n,) metric lengths

    def take(self, rows: Indices) -> Polylines:
        """Some of the paths."""
        return Polylines(self.vertices[rows], self.times[rows], self.lengths[rows])

    @staticmethod
    def concatenate(parts: Sequence[Polylines]) -> Polylines:
        """Paths of several batches, one after the other."""
        most = max(part.times.shape[1] for part in parts)
        room = [((0, 0), (0, most - part.times.shape[1])) for part in parts]
        each = list(zip(parts, room, strict=True))
        return Polylines(
            np.concatenate([np.pad(p.vertices, (*r, (0, 0)), "edge") for p, r in each]),
            np.concatenate([np.pad(p.times, r, "edge") for p, r in each]),
            np.concatenate([part.lengths for part in parts]),
        )


@dataclass(frozen=True)
class LandmarkGraph:
    """Landmarks, their search tree, and the metric lengths of edges between them."""

    points: Array
    tree: KDTree
    edges: csr_array  # both directions of each


_graphs: weakref.WeakKeyDictionary[Metric, LandmarkGraph] = weakref.WeakKeyDictionary()


def straight_lines(metric: Metric, bases: Array, targets: Array) -> Polylines:
    """The straight segments from bases to targets."""
    return Polylines(
        vertices=np.stack([bases, targets], axis=1),
        times=np.broadcast_to([0.0, 1.0], (len(bases), 2)),
        lengths=segment_lengths(metric, bases, targets),
    )


def shortest_paths(
    metric: Metric, bases: Array, targets: Array, lines: Polylines
) -> Polylines:
    """Shortest paths from bases (n, D) to targets (n, D) through the landmarks.

    Without landmarks, and wherever they are shorter, the straight `lines`.
    """
    if metric.landmarks is None or len(metric.landmarks) < 2:
        return lines
    graph = _landmark_graph(metric)
    distinct, which = distinct_rows(bases)
    most = max(1, _SETTINGS.at_once // len(graph.points))
    if len(distinct) > most:  # half of the bases at a time
        order = np.argsort(which, kind="stable")
        cut = np.searchsorted(which[order], len(distinct) // 2)
        halves = [
            shortest_paths(metric, bases[own], targets[own], lines.take(own))
            for own in (order[:cut], order[cut:])
        ]
        return Polylines.concatenate(halves).take(np.argsort(order))
    neighbours, edges = _attach(metric, graph, targets)
    limit = np.nan_to_num(lines.lengths.max(initial=0.0), nan=np.inf)
    distances, previous = _from_bases(metric, graph, bases[distinct], limit)
    through = distances[which[:, None], neighbours] + edges
    best = np.argmin(through, axis=1)[:, None]
    lengths = np.take_along_axis(through, best, axis=1)[:, 0]
    last = np.take_along_axis(neighbours, best, axis=1)[:, 0]
    direct = ~(lengths < lines.lengths)
    lengths = np.where(direct, lines.lengths, lengths)
    chains = _trace(previous, which, np.where(direct, -1, last), len(graph.points))
    # A missing landmark (-1) repeats the base, at no length.
    known = chains >= 0
    inner = np.where(known[:, :, None], graph.points[chains], bases[:, None])
    passed = np.where(known, distances[which[:, None], chains], 0.0)
    times = passed / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    return Polylines(
        vertices=np.concatenate([bases[:, None], inner, targets[:, None]], axis=1),
        times=np.pad(np.minimum(times, 1.0), ((0, 0), (1, 1)), constant_values=(0, 1)),
        lengths=lengths,
    )


@in_float64
def graph_distances(metric: Metric, points: Array) -> Array:
    """Lengths of shortest paths between points through the landmarks, (n, n).

    Longer than the distances by a few percent. Without landmarks, of straight lines.
    """
    metric, center = metric.centred()
    points = points - center
    n = len(points)
    if metric.landmarks is None or len(metric.landmarks) < 2:
        left, right = np.triu_indices(n, 1)
        distances = np.zeros((n, n))
        distances[left, right] = segment_lengths(metric, points, points, (left, right))
        return distances + distances.T
    graph = _landmark_graph(metric)
    nearest, edges = _attach(metric, graph, points)
    reached, _ = _from_bases(metric, graph, points, np.inf)
    distances = np.full((n, n), np.inf)
    for landmarks, lengths in zip(nearest.T, edges.T, strict=True):
        np.minimum(distances, reached[:, landmarks] + lengths, out=distances)
    np.fill_diagonal(distances, 0.0)
    return np.minimum(distances, distances.T)


def at_constant_speed(metric: Metric, vertices: Array) -> Polylines:
    """Finely sampled curves (n, k, D), passed at constant metric speed."""
    n, k, dim = vertices.shape
    tensors = metric.host_tensors(vertices.reshape(-1, dim))
    tensors = tensors.reshape(n, k, *tensors.shape[1:])
    steps = np.diff(vertices, axis=1)
    lengths = np.zeros((n, k - 1))
    for ends in (tensors[:, :-1], tensors[:, 1:]):
        lengths += 0.5 * norms(ends, steps)
    passed = np.pad(np.cumsum(lengths, axis=1), ((0, 0), (1, 0)))
    total = passed[:, -1]
    times = passed / np.where(total > 0.0, total, 1.0)[:, None]
    return Polylines(vertices, times, total)


@in_float64
def segment_lengths(
    metric: Metric,
    starts: Array,
    ends: Array,
    pairs: tuple[Indices, Indices] | None = None,
) -> Array:
    """Metric lengths of straight segments by composite Gauss quadrature.

    From each start to its end, or for `pairs` of indices of starts and ends. Panels are
    no longer than the metric's resolution allows.
    """
    if pairs is None:
        pairs = np.arange(len(starts)), np.arange(len(ends))
    lengths = [np.empty(0)]
    at_once = _SETTINGS.at_once // (_SETTINGS.quadrature * _SETTINGS.most_panels)
    for first in range(0, len(pairs[0]), at_once):
        left, right = (each[first : first + at_once] for each in pairs)
        steps = ends[right] - starts[left]
        counts = np.full(len(steps), 4)
        if metric.resolution is not None:
            distances = np.linalg.norm(steps, axis=1)
            counts = np.ceil(distances / (2.0 * metric.resolution)).astype(int)
            counts = np.clip(counts, 1, _SETTINGS.most_panels)
        begins = np.cumsum(counts) - counts
        segment = np.repeat(np.arange(len(steps)), counts)
        place = (np.arange(len(segment)) - begins[segment])[:, None, None] + _NODES[
            :, None
        ]
        along = (steps / counts[:, None])[segment][:, None]
        points = starts[left][segment][:, None] + place * along
        flat = metric.host_tensors(points.reshape(-1, points.shape[2]))
        tensors = flat.reshape(*points.shape[:2], *flat.shape[1:])
        panels = norms(tensors, np.broadcast_to(along, points.shape)) @ _WEIGHTS
        lengths.append(np.add.reduceat(panels, begins))
    return np.concatenate(lengths)


def distinct_rows(rows: Array) -> tuple[Indices, Indices]:
    """Where distinct rows come first, and which of them each row equals."""
    # As bytes: NumPy would compare column by column. Minus zero becomes zero.
    whole = np.ascontiguousarray(rows) + 0.0
    kind = np.dtype((np.void, whole.itemsize * whole.shape[1]))
    keys = whole.view(kind).reshape(-1)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _landmark_graph(metric: Metric) -> LandmarkGraph:
    if metric not in _graphs:
        points = _with_empty_space(metric, _choose_landmarks(metric))
        tree = KDTree(points)
        left, right = _neighbour_edges(points, tree)
        lengths = segment_lengths(metric, points, points, (left, right))
        lengths = np.maximum(lengths, _SHORTEST_EDGE)
        both = np.concatenate([left, right]), np.concatenate([right, left])
        shape = (len(points), len(points))
        edges = csr_array((np.concatenate([lengths, lengths]), both), shape)
        _graphs[metric] = LandmarkGraph(points, tree, edges)
    return _graphs[metric]


def _choose_landmarks(metric: Metric) -> Array:
    """All of the metric's landmarks, or enough of them to follow the data."""
    assert metric.landmarks is not None
    points = np.unique(metric.landmarks, axis=0)
    if len(points) <= _SETTINGS.some_landmarks:
        return points
    points = np.random.default_rng(0).permutation(points)
    if metric.resolution is not None:
        first, _ = distinct_rows(np.floor(points / metric.resolution))
        if len(first) > _SETTINGS.some_landmarks:
            return points[np.sort(first)[: _SETTINGS.most_landmarks]]
    return points[: _SETTINGS.some_landmarks]


def _with_empty_space(metric: Metric, points: Array) -> Array:
    """Landmarks, and in few dimensions the centres of empty cells around them.

    A geodesic may leave the data, and should find landmarks where it does.
    """
    dim = points.shape[1]
    if dim > _SETTINGS.most_filled or metric.resolution is None:
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    width = metric.resolution
    while np.prod(np.ceil((high - low) / width) + 2.0) > _SETTINGS.most_cells:
        width *= 1.25
    counts = np.ceil((high - low) / width).astype(int) + 2
    corner = 0.5 * (low + high - counts * width)
    empty = np.ones(counts, dtype=bool)
    empty[tuple(np.floor((points - corner) / width).astype(int).T)] = False
    return np.concatenate([points, corner + (np.argwhere(empty) + 0.5) * width])


def _neighbour_edges(points: Array, tree: KDTree) -> tuple[Indices, Indices]:
    """Edges between nearest neighbours on several scales, all connected.

    Neighbours within ever sparser subsets of the landmarks see across gaps that
    neighbours in the full set do not: a geodesic may well leave the data for a while.
    """
    n = len(points)
    order = np.random.default_rng(0).permutation(n)
    pairs = [_nearest_pairs(points, np.arange(n), tree)]
    size = n // _SETTINGS.thinning
    while size >= 2:
        pairs.append(_nearest_pairs(points, order[:size]))
        size //= _SETTINGS.thinning
    left, right = np.concatenate(pairs, axis=1)
    while True:
        graph = coo_array((np.ones(len(left)), (left, right)), (n, n))
        count, label = connected_components(graph, directed=False)
        if count <= 1:
            break
        bridges = [_bridge(points, label == part) for part in range(count)]
        left = np.concatenate([left, [pair[0] for pair in bridges]])
        right = np.concatenate([right, [pair[1] for pair in bridges]])
    low, high = np.minimum(left, right), np.maximum(left, right)
    edges = np.unique(np.stack([low, high], axis=1)[low != high], axis=0)
    return edges[:, 0], edges[:, 1]


def _nearest_pairs(
    points: Array, members: Indices, tree: KDTree | None = None
) -> Indices:
    """Each member paired with its nearest neighbours among the members, (2, pairs)."""
    k = min(_SETTINGS.neighbours + 1, len(members))
    tree = KDTree(points[members]) if tree is None else tree
    _, nearest = tree.query(points[members], k)
    return np.stack([np.repeat(members, k), members[nearest.reshape(-1)]])


def _bridge(points: Array, inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The closest pair between a component and the rest."""
    members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    distances, nearest = KDTree(points[others]).query(points[members])
    closest = int(np.argmin(distances))
    return int(members[closest]), int(others[nearest[closest]])


def _attach(
    metric: Metric, graph: LandmarkGraph, points: Array
) -> tuple[Indices, Array]:
    """The nearest landmarks of points, and the lengths of the edges there, (n, k)."""
    k = min(_SETTINGS.attachments, len(graph.points))
    _, nearest = graph.tree.query(points, k)
    pairs = np.repeat(np.arange(len(points)), k), nearest.reshape(-1)
    lengths = segment_lengths(metric, points, graph.points, pairs)
    return nearest.reshape(-1, k), lengths.reshape(-1, k)


def _from_bases(
    metric: Metric, graph: LandmarkGraph, bases: Array, limit: float
) -> tuple[Array, Indices]:
    """Distances from bases to all landmarks and the predecessors on the way.

    Bases are appended as nodes that can be left but not entered. Distances beyond the
    limit are infinite.
    """
    nearest, lengths = _attach(metric, graph, bases)
    n, (m, k) = len(graph.points), nearest.shape
    usable = np.where(np.isfinite(lengths), lengths, np.inf)
    ways = np.maximum(usable, _SHORTEST_EDGE).reshape(-1)
    leaving = (ways, nearest.reshape(-1), np.arange(0, m * k + 1, k))
    edges = [[graph.edges, None], [csr_array(leaving, (m, n)), csr_array((m, m))]]
    sources = np.arange(m) + n
    matrix = block_array(edges, format="csr")
    return dijkstra(matrix, indices=sources, return_predecessors=True, limit=limit)


def _trace(
    previous: Indices, rows: Indices, last: Indices, n_landmarks: int
) -> Indices:
    """Chains of landmarks that end at the `last`, (n, hops), padded in front by -1."""
    columns, current = [], last
    while np.any(current >= 0):
        columns.append(current)
        before = previous[rows, current]  # a base has a number above the landmarks'
        current = np.where((current >= 0) & (before < n_landmarks), before, -1)
    return np.stack(columns[::-1], axis=1) if columns else np.empty((len(last), 0), int)
