"""First guesses for geodesics: shortest paths through a graph of landmarks.

A learned metric has many locally shortest curves; the straight line often relaxes to a
bad one. A nearest-neighbour graph over the data, weighted by metric length, finds the
right valley globally, and costs little because it is built once per metric.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import KDTree

from land._precision import in_float64
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
    # resolution where that makes more of them. Wider cells keep those bounded, too.
    some_landmarks: int = 2000
    most_landmarks: int = 20_000
    widen: float = 1.25
    # Empty space has landmarks in up to so many dimensions: one in a cell of this
    # width, in units of the metric's resolution, or wider where there would be more.
    most_filled: int = 3
    cell: float = 1.0
    most_cells: int = 4000
    # Landmarks to which a point is attached. Points farther from them than this many of
    # their spacings are attached to more.
    attachments: int = 5
    far: float = 10.0
    far_attachments: int = 64
    # Nodes on a panel, panels of a segment at most, and coordinates in memory at once.
    quadrature: int = 4
    most_panels: int = 64
    coordinates: int = 2**22
    # csgraph takes a stored zero for a missing edge.
    shortest_edge: float = 1e-150


_SETTINGS = _Settings()


@dataclass(frozen=True)
class Polylines:
    """Paths of different numbers of corners, padded by repeating the last one."""

    vertices: Array  # (n, k, D)
    times: Array  # (n, k) fraction of the metric length passed, from 0 to 1
    lengths: Array  # (n,) metric lengths

    def take(self, rows: Indices) -> Polylines:
        """Some of the paths."""
        return Polylines(self.vertices[rows], self.times[rows], self.lengths[rows])


@dataclass(frozen=True)
class LandmarkGraph:
    """Landmarks, their search tree, and the metric lengths of edges between them."""

    points: Array
    tree: KDTree
    edges: csr_array  # both directions of each
    spacing: float  # typical distance between neighbours


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
    unique = bases[distinct]
    neighbours, edges = _attach(metric, graph, targets)
    n_landmarks = len(graph.points)
    chains = np.full((len(targets), 1), -1)
    passed = np.zeros((len(targets), 1))
    lengths = lines.lengths.copy()
    # One row of distances per base: groups keep memory bounded for many bases.
    group = max(1, 2**24 // n_landmarks)
    for first in range(0, len(unique), group):
        mine = np.flatnonzero((which >= first) & (which < first + group))
        # Nothing longer than the straight lines is of use.
        limit = np.nan_to_num(lengths[mine].max(), nan=np.inf)
        distances, previous = _from_bases(
            metric, graph, unique[first : first + group], limit
        )
        rows = which[mine] - first
        through = distances[rows[:, None], neighbours[mine]] + edges[mine]
        best = np.argmin(through, axis=1)
        best_length = np.take_along_axis(through, best[:, None], axis=1)[:, 0]
        better = best_length < lengths[mine]
        mine, rows, best = mine[better], rows[better], best[better]
        lengths[mine] = best_length[better]
        found = _trace(previous, rows, neighbours[mine, best], n_landmarks)
        reached = np.where(found >= 0, distances[rows[:, None], found], 0.0)
        chains = _store_rows(chains, mine, found, -1)
        passed = _store_rows(passed, mine, reached, 0.0)
    # A missing landmark (-1) repeats the base, at no length.
    inner = np.where((chains >= 0)[:, :, None], graph.points[chains], bases[:, None])
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

    From each start to its end, or for `pairs` of indices of starts and ends.
    """
    if pairs is None:
        pairs = np.arange(len(starts)), np.arange(len(ends))
    at_once = max(
        1,
        _SETTINGS.coordinates
        // (_SETTINGS.quadrature * _SETTINGS.most_panels * starts.shape[1]),
    )
    lengths = [np.empty(0)]
    for first in range(0, len(pairs[0]), at_once):
        left, right = (each[first : first + at_once] for each in pairs)
        lengths.append(_lengths(metric, starts[left], ends[right]))
    return np.concatenate(lengths)


def _lengths(metric: Metric, starts: Array, ends: Array) -> Array:
    """The same at once, in panels not longer than the metric's resolution allows."""
    steps = ends - starts
    counts = np.full(len(steps), 4)
    if metric.resolution is not None:
        distances = np.linalg.norm(steps, axis=1)
        counts = np.ceil(distances / (2.0 * metric.resolution)).astype(int)
        counts = np.clip(counts, 1, _SETTINGS.most_panels)
    first = np.cumsum(counts) - counts
    segment = np.repeat(np.arange(len(steps)), counts)
    position = np.arange(len(segment)) - first[segment]
    nodes, weights = leggauss(_SETTINGS.quadrature)
    along = (steps / counts[:, None])[segment][:, None]
    places = position[:, None, None] + (nodes[:, None] + 1.0) / 2.0
    points = starts[segment][:, None] + places * along
    flat = metric.host_tensors(points.reshape(-1, points.shape[2]))
    tensors = flat.reshape(*points.shape[:2], *flat.shape[1:])
    panels = norms(tensors, np.broadcast_to(along, points.shape)) @ weights / 2.0
    return np.add.reduceat(panels, first)


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
        lengths = np.maximum(lengths, _SETTINGS.shortest_edge)
        both = np.concatenate([left, right]), np.concatenate([right, left])
        shape = (len(points), len(points))
        edges = csr_array((np.concatenate([lengths, lengths]), both), shape)
        spacing = float(np.median(tree.query(points, 2)[0][:, 1]))
        _graphs[metric] = LandmarkGraph(points, tree, edges, spacing)
    return _graphs[metric]


def _choose_landmarks(metric: Metric) -> Array:
    """All of the metric's landmarks, or enough of them to follow the data."""
    assert metric.landmarks is not None
    points = np.unique(metric.landmarks, axis=0)
    if len(points) <= _SETTINGS.some_landmarks:
        return points
    chosen = np.random.default_rng(0).permutation(len(points))[
        : _SETTINGS.some_landmarks
    ]
    if metric.resolution is not None:
        spread = _one_per_cell(points, metric.resolution)
        if len(spread) > _SETTINGS.some_landmarks:
            chosen = spread
    return points[np.sort(chosen)]


def _with_empty_space(metric: Metric, points: Array) -> Array:
    """Landmarks, and in few dimensions the centres of empty cells around them.

    A geodesic may leave the data, and should find landmarks where it does.
    """
    dim = points.shape[1]
    if dim > _SETTINGS.most_filled or metric.resolution is None:
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    width = _SETTINGS.cell * metric.resolution
    while np.prod(np.ceil((high - low) / width) + 2.0) > _SETTINGS.most_cells:
        width *= _SETTINGS.widen
    counts = np.ceil((high - low) / width).astype(int) + 2
    corner = 0.5 * (low + high - counts * width)
    empty = np.ones(counts, dtype=bool)
    empty[tuple(np.floor((points - corner) / width).astype(int).T)] = False
    return np.concatenate([points, corner + (np.argwhere(empty) + 0.5) * width])


def _one_per_cell(points: Array, width: float) -> Indices:
    """Indices of the first points in cells of this width, or wider ones if many."""
    order: Indices = np.random.default_rng(0).permutation(len(points))
    corner = points.min(axis=0)  # a wide enough cell holds all, wherever they are
    while True:
        cells = np.floor((points[order] - corner) / width)
        first, _ = distinct_rows(cells)
        if len(first) <= _SETTINGS.most_landmarks:
            return order[first]
        # The first of a wider cell is the first of one of its own cells.
        order, width = order[np.sort(first)], _SETTINGS.widen * width


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
    """Landmarks to which points are attached, and the lengths of the edges, (n, k).

    These are the nearest ones and, for points far from all landmarks, a sample of the
    others: what is nearest to such a point need not be on its way.
    """
    k = min(_SETTINGS.attachments, len(graph.points))
    distances, nearest = graph.tree.query(points, k)
    distances, nearest = distances.reshape(-1, k), nearest.reshape(-1, k)
    far = np.flatnonzero(distances[:, 0] > _SETTINGS.far * graph.spacing)
    sample = np.random.default_rng(0).permutation(len(graph.points))[
        : _SETTINGS.far_attachments
    ]
    # Points that are not far repeat their nearest landmark, at no cost.
    extra = np.repeat(nearest[:, :1], len(sample) if len(far) else 0, axis=1)
    lengths = np.full((len(points), k + extra.shape[1]), np.inf)
    lengths[:, :k] = _edge_lengths(metric, graph, points, nearest)
    if len(far):
        extra[far] = sample
        lengths[far, k:] = _edge_lengths(metric, graph, points[far], extra[far])
    return np.concatenate([nearest, extra], axis=1), lengths


def _edge_lengths(
    metric: Metric, graph: LandmarkGraph, points: Array, landmarks: Indices
) -> Array:
    """Lengths of the segments from points (n, D) to landmarks (n, k)."""
    pairs = np.repeat(np.arange(len(points)), landmarks.shape[1]), landmarks.reshape(-1)
    return segment_lengths(metric, points, graph.points, pairs).reshape(landmarks.shape)


def _from_bases(
    metric: Metric, graph: LandmarkGraph, bases: Array, limit: float
) -> tuple[Array, Indices]:
    """Distances from bases to all landmarks and the predecessors on the way.

    Bases are appended as nodes that can be left but not entered. Distances beyond the
    limit are infinite.
    """
    n, size = len(graph.points), len(graph.points) + len(bases)
    nearest, lengths = _attach(metric, graph, bases)
    own = np.repeat(np.arange(len(bases)), nearest.shape[1])
    columns, weights = nearest.reshape(-1), lengths.reshape(-1)
    # One edge for each pair, the shorter one: duplicates would be added up.
    order = np.argsort(weights, kind="stable")
    order = order[np.isfinite(weights[order])]
    _, first = np.unique(own[order] * n + columns[order], return_index=True)
    kept = order[first]
    # Rows of the bases below those of the landmarks: no need to sort all edges again.
    ends = np.cumsum(np.bincount(own[kept], minlength=len(bases)))
    edges = graph.edges
    rows = np.concatenate([edges.indptr, edges.indptr[-1] + ends])
    indices = np.concatenate([edges.indices, columns[kept]])
    data = np.concatenate(
        [edges.data, np.maximum(weights[kept], _SETTINGS.shortest_edge)]
    )
    matrix = csr_array((data, indices, rows), shape=(size, size))
    sources = np.arange(len(bases)) + n
    return dijkstra(matrix, indices=sources, return_predecessors=True, limit=limit)


def _trace(
    previous: Indices, rows: Indices, last: Indices, n_landmarks: int
) -> Indices:
    """Chains of landmarks from base to target, (n, hops), padded in front by -1."""
    columns = []
    current = last.copy()
    active = np.ones(len(current), dtype=bool)
    while active.any():
        columns.append(np.where(active, current, -1))
        current = np.where(active, previous[rows, current], current)
        active &= current < n_landmarks
    return np.stack(columns[::-1], axis=1) if columns else np.full((0, 1), -1)


def _store_rows(table: Any, rows: Indices, values: Any, empty: float) -> Any:
    """Write `values`, aligned to the right, into `table`, widened where needed."""
    width = max(table.shape[1], values.shape[1])
    wide = np.full((len(table), width), empty, dtype=table.dtype)
    wide[:, width - table.shape[1] :] = table
    wide[rows, :] = empty
    wide[rows, width - values.shape[1] :] = values
    return wide
