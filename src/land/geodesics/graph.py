"""First guesses for geodesics: shortest paths through a graph of landmarks.

A learned metric has many locally shortest curves, and the straight line often relaxes
to a poor one. A nearest-neighbour graph of the data, weighted by metric length, finds
the right one globally. It is built once for each metric.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from land._axes import principal_axes
from land._device import AT_ONCE, Indices, in_float64
from land.geodesics.collocation import gauss
from land.metrics import Metric
from land.metrics.tensors import norms

Array = NDArray[np.float64]

_NEIGHBOURS = 10
# Landmarks to which any other point is attached.
_ATTACHMENTS = 5
# Among more landmarks than the first number, one is chosen in every cell as wide as the
# metric's resolution, up to the second.
_MANY_LANDMARKS, _MOST_LANDMARKS = 2000, 20_000
# Up to so many cells, in up to three dimensions, empty ones have landmarks too.
_MOST_CELLS = 4000
# Gauss points on a panel of a segment, and panels of a segment at most.
_QUADRATURE, _MOST_PANELS = 4, 64
# csgraph takes a stored zero for a missing edge.
_SHORTEST_EDGE = np.finfo(float).tiny


@dataclass(frozen=True)
class LandmarkGraph:
    """Landmarks, their search tree, and the metric lengths of edges between them."""

    points: Array
    tree: KDTree
    edges: csr_array  # both directions of each
    data: KDTree  # the landmarks without those in empty space


_graphs: weakref.WeakKeyDictionary[Metric, LandmarkGraph] = weakref.WeakKeyDictionary()


def shortest_paths(metric: Metric, bases: Array, targets: Array) -> Array:
    """Shortest paths from bases (n, D) to targets (n, D) through the landmarks.

    Returns their corners (n, k, D), of which the first ones may repeat. Without
    landmarks, and wherever they are shorter, paths are straight.
    """
    graph = _landmark_graph(metric)
    if graph is None:
        return np.stack([bases, targets], axis=1)
    n_landmarks = len(graph.points)
    nearest, edges = _attach(metric, graph, targets)
    direct = segment_lengths(metric, bases, targets)
    limit = np.nan_to_num(direct.max(initial=0.0), nan=np.inf)
    first, which = distinct_rows(bases)
    at_once = max(1, AT_ONCE // n_landmarks)
    rows, chains = [np.empty(0, dtype=np.intp)], [np.empty((0, 0), dtype=np.intp)]
    for start in range(0, len(first), at_once):
        some = first[start : start + at_once]
        own = np.flatnonzero((which >= start) & (which < start + at_once))
        distances, previous = _from_bases(metric, graph, bases[some], limit)
        source = which[own] - start
        through = distances[source[:, None], nearest[own]] + edges[own]
        best = np.argmin(through, axis=1)
        shorter = through[np.arange(len(own)), best] < direct[own]
        last = np.where(shorter, nearest[own, best], -1)
        rows.append(own)
        chains.append(_trace(previous, source, last, n_landmarks))
    most = max(chain.shape[1] for chain in chains)
    found = np.full((len(bases), most), -1)
    for own, chain in zip(rows, chains, strict=True):
        found[own, most - chain.shape[1] :] = chain
    # A missing landmark (-1) repeats the base.
    inner = np.where((found >= 0)[:, :, None], graph.points[found], bases[:, None])
    return np.concatenate([bases[:, None], inner, targets[:, None]], axis=1)


def nearest_landmarks(metric: Metric, points: Array, k: int) -> Array:
    """For each of the points (n, D) up to k landmarks nearest to it, (n, k, D)."""
    graph = _landmark_graph(metric)
    if graph is None:
        return np.empty((len(points), 0, metric.dim))
    nearest = graph.data.query(points, range(1, min(k, graph.data.n) + 1))[1]
    return np.asarray(graph.data.data[nearest])


def nearest_in(tree: KDTree, points: Array, k: int) -> Indices:
    """Numbers in a tree of the k nearest to each point, (n, k); fewer in a small tree.

    Of those that are equally near, as on a lattice, the first: rounding must not
    decide.
    """
    candidates = range(1, min(2 * k + 8, tree.n) + 1)
    distances, nearest = tree.query(points, candidates, workers=-1)
    scale = np.maximum(distances[:, -1:], np.finfo(float).tiny)
    order = np.lexsort((nearest, np.round(distances / scale, 9)), axis=1)
    found: Indices = np.take_along_axis(nearest, order[:, :k], axis=1)
    return found


@in_float64
def graph_distances(metric: Metric, points: Array) -> Array:
    """Lengths of shortest paths between points through the landmarks, (n, n).

    Longer than the distances by a few percent. Without landmarks, of straight lines.
    """
    metric, center = metric.centred()
    points = points - center
    n = len(points)
    graph = _landmark_graph(metric)
    if graph is None:
        left, right = np.triu_indices(n, 1)
        distances = np.zeros((n, n))
        distances[left, right] = segment_lengths(metric, points[left], points[right])
        return distances + distances.T
    nearest, edges = _attach(metric, graph, points)
    reached, _ = _from_bases(metric, graph, points, np.inf)
    distances = np.full((n, n), np.inf)
    for landmarks, lengths in zip(nearest.T, edges.T, strict=True):
        np.minimum(distances, reached[:, landmarks] + lengths, out=distances)
    np.fill_diagonal(distances, 0.0)
    return np.minimum(distances, distances.T)


@in_float64
def segment_lengths(metric: Metric, starts: Array, ends: Array) -> Array:
    """Metric lengths of straight segments (n, D) by composite Gauss quadrature.

    Panels are no longer than the metric's resolution allows.
    """
    nodes, weights = gauss(_QUADRATURE)
    lengths = [np.empty(0)]
    at_once = AT_ONCE // (_QUADRATURE * _MOST_PANELS)
    for first in range(0, len(starts), at_once):
        begin = starts[first : first + at_once]
        steps = ends[first : first + at_once] - begin
        counts = np.full(len(steps), 4)
        if metric.resolution is not None:
            panels = np.linalg.norm(steps, axis=1) / (2.0 * metric.resolution)
            panels = np.ceil(panels - 1e-9)  # edges of a grid may be just as long
            counts = np.clip(panels.astype(int), 1, _MOST_PANELS)
        firsts = np.cumsum(counts) - counts
        segment = np.repeat(np.arange(len(steps)), counts)
        place = (np.arange(len(segment)) - firsts[segment])[:, None] + nodes
        along = (steps / counts[:, None])[segment][:, None]
        points = begin[segment][:, None] + place[:, :, None] * along
        flat = metric.host_tensors(points.reshape(-1, points.shape[2]))
        tensors = flat.reshape(*points.shape[:2], *flat.shape[1:])
        panels = norms(tensors, np.broadcast_to(along, points.shape)) @ weights
        lengths.append(np.add.reduceat(panels, firsts))
    return np.concatenate(lengths)


def distinct_rows(rows: Array) -> tuple[Indices, Indices]:
    """Where distinct rows come first, and which of them each row equals."""
    # As bytes: NumPy would compare column by column. Minus zero becomes zero.
    whole = np.ascontiguousarray(rows) + 0.0
    kind = np.dtype((np.void, whole.itemsize * whole.shape[1]))
    keys = whole.view(kind).reshape(-1)
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return first, which.reshape(-1)


def _landmark_graph(metric: Metric) -> LandmarkGraph | None:
    if metric.landmarks is None or len(metric.landmarks) < 2:
        return None
    if metric not in _graphs:
        data = _choose_landmarks(metric)
        points = _with_empty_space(metric, data)
        tree = KDTree(points)
        left, right = _neighbour_edges(points, tree)
        lengths = segment_lengths(metric, points[left], points[right])
        lengths = np.maximum(lengths, _SHORTEST_EDGE)
        both = np.concatenate([left, right]), np.concatenate([right, left])
        shape = (len(points), len(points))
        edges = csr_array((np.concatenate([lengths, lengths]), both), shape)
        _graphs[metric] = LandmarkGraph(points, tree, edges, KDTree(data))
    return _graphs[metric]


def _choose_landmarks(metric: Metric) -> Array:
    """All of the metric's landmarks, or enough of them to follow the data.

    In an order that depends neither on that of the rows nor on how they are turned.
    """
    assert metric.landmarks is not None
    points = np.unique(metric.landmarks, axis=0)
    _, axes = principal_axes(points)
    points = points[np.lexsort((points @ axes).T)]
    if len(points) <= _MANY_LANDMARKS:
        return points
    points = np.random.default_rng(0).permutation(points)
    if metric.resolution is not None:
        first, _ = distinct_rows(np.floor(points @ axes / metric.resolution))
        if len(first) > _MANY_LANDMARKS:
            return points[np.sort(first)[:_MOST_LANDMARKS]]
    return points[:_MANY_LANDMARKS]


def _with_empty_space(metric: Metric, points: Array) -> Array:
    """Landmarks, and in few dimensions the centres of empty cells around them.

    A geodesic may leave the data, and should find landmarks where it does. Cells are as
    wide as the resolution, or wider where there would be too many, and lie along the
    principal axes.
    """
    dim = points.shape[1]
    if dim > 3 or metric.resolution is None:
        return points
    _, axes = principal_axes(points)
    places = points @ axes
    low, high = places.min(axis=0), places.max(axis=0)
    width = metric.resolution
    while np.prod(np.ceil((high - low) / width) + 2.0) > _MOST_CELLS:
        width *= 1.25
    counts = np.ceil((high - low) / width).astype(int) + 2
    corner = 0.5 * (low + high - counts * width)
    empty = np.ones(counts, dtype=bool)
    empty[tuple(np.floor((places - corner) / width).astype(int).T)] = False
    centers = corner + (np.argwhere(empty) + 0.5) * width
    return np.concatenate([points, centers @ axes.T])


def _neighbour_edges(points: Array, tree: KDTree) -> tuple[Indices, Indices]:
    """Edges between nearest neighbours on several scales, all connected.

    Neighbours within ever sparser subsets see across gaps that those in the full set do
    not. An edge to the nearest member of the next subset connects all.
    """
    members = np.random.default_rng(0).permutation(len(points))
    pairs: list[list[Indices]] = []
    while len(members):
        k = min(_NEIGHBOURS + 1, len(members))
        nearest = nearest_in(tree, points[members], k)
        own = np.arange(len(points)) if not pairs else members
        pairs.append([np.repeat(members, k), own[nearest.reshape(-1)]])
        coarser = members[: len(members) // 4 if len(members) > k else 0]
        if len(coarser):
            tree = KDTree(points[coarser])
            nearest = nearest_in(tree, points[members], 1)
            pairs.append([members, coarser[nearest[:, 0]]])
        members = coarser
    left, right = np.concatenate(pairs, axis=1)
    low, high = np.minimum(left, right), np.maximum(left, right)
    edges = np.unique(np.stack([low, high], axis=1)[low != high], axis=0)
    return edges[:, 0], edges[:, 1]


def _attach(
    metric: Metric, graph: LandmarkGraph, points: Array
) -> tuple[Indices, Array]:
    """The nearest landmarks of points, and the lengths of the edges there, (n, k)."""
    k = min(_ATTACHMENTS, len(graph.points))
    _, nearest = graph.tree.query(points, k)
    flat = nearest.reshape(-1)
    starts = np.repeat(points, k, axis=0)
    lengths = segment_lengths(metric, starts, graph.points[flat])
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
