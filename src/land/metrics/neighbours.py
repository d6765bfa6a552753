"""Sums of Gaussian kernels over the data within reach, for many data.

Data and queries are both taken in blocks of neighbours with bounding boxes. A block of
data farther from a group of queries than the cut-off is left out; what remains is a
list of tiles, and those are dense matrix products. Blocks are the leaves of a balanced
k-d tree: outliers, clusters, duplicates and data on a line all make full blocks, which
the cells of a grid would not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._device import device

Array = NDArray[np.float64]

# What is left out, relative to the local variance: what the solvers take for rounding.
TOLERANCE = 1e-13
# The exponential of anything less is zero.
_UNDERFLOW = -745.2

# Data in a block, and blocks that a tile takes at once.
_BLOCK, _CHUNK = 64, 4
# Blocks with a common bounding box, their flags fit in one binary word; and how many of
# those are searched for each group of queries at once.
_CLUSTER, _SEARCHED = 32, 8
# Queries in a group, fewer if there are few queries: those are far apart. Large groups
# make efficient tiles, small ones do without more of the data.
_GROUP, _SMALL_GROUP, _MANY = 16, 4, 512
# Distance of a group's members from its middle, typically, in units of sigma.
_GROUP_RADIUS = 1.0
# Queries that are looked after at once: memory is bounded.
MOST_QUERIES = 8192
# Binary digits of coordinates along the Hilbert curve.
_DIGITS = 8
# A datum near a point costs as much as this many in the full sum: tiles are slower,
# groups are wider than points, and neighbours must be found. And how many points,
# typical of where the metric is asked for, the decision is based on.
_COST, _TRIALS = 3.0, 64


class Blocks(NamedTuple):
    """Data in units of sigma, in blocks of neighbours.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    data: Any  # (blocks, _BLOCK, D) from the block's centre; the last are padding
    centres: Any  # (blocks, D)
    low: Any  # (clusters, _CLUSTER, D) corners of the blocks' bounding boxes
    high: Any
    cluster_low: Any  # (clusters, D) corners of the clusters' bounding boxes
    cluster_high: Any
    count: Any  # () number of data
    reach: Any  # () distance beyond which data are left out

    def all_data(self) -> tuple[jax.Array, jax.Array]:
        """Data with padding (n, D), and whether they are data (n,)."""
        data = (self.data + self.centres[:, None]).reshape(-1, self.low.shape[-1])
        return data, jnp.arange(len(data)) < self.count


class Tiles(NamedTuple):
    """Queries and data within their reach, in coordinates about the data's centre."""

    weights: jax.Array  # (..., q, n) exp(-|x_n - x_q|^2 / 2)
    queries: jax.Array  # (..., q, D)
    data: jax.Array  # (..., n, D)


def cut_off(n: int, sigma: float, rho: float) -> float:
    """Distance, in units of sigma, beyond which data may be left out.

    A datum at distance r sigma adds at most sigma^2 g(r), with
    g(r) = (r^2 + 3)^2 exp(-r^2 / 2), to h_d, and to its first and second derivatives
    times sigma and sigma^2: their terms are exp(-r^2 / 2) times r^2, r^3 + 2 r and
    r^4 + 5 r^2 + 2 at most. Beyond r = 1, g decreases, so that without the data farther
    than R sigma each of the three is wrong by at most N sigma^2 g(R). As h is nowhere
    less than rho, the error relative to h is less than `TOLERANCE` where

        N sigma^2 g(R) = TOLERANCE rho.

    The extent of the data does not matter: N bounds how many can be in the tail.
    """
    excess = np.log(n) + 2.0 * np.log(sigma) - np.log(rho) - np.log(TOLERANCE)
    square = 1.0
    for _ in range(100):  # a contraction wherever it exceeds one
        square = max(1.0, 2.0 * excess + 4.0 * np.log(square + 3.0))
    return float(np.sqrt(min(square, -2.0 * _UNDERFLOW)))


def neighbour_blocks(scaled: Array, reach: float) -> Blocks | None:
    """Blocks of the data (n, D), or None where the sum over all of them is cheaper."""
    n, dim = scaled.shape
    if n <= device().few_data:
        return None
    order = _in_leaves(scaled)
    rows = np.concatenate([order, np.full(-n % _BLOCK, order[-1])])
    data = scaled[rows].reshape(-1, _BLOCK, dim)
    low, high = data.min(axis=1), data.max(axis=1)
    if _COST * _expected_pairs(scaled, low, high, reach) > n:
        return None
    # Not the middle of the box: an outlier must not cost its neighbours their digits.
    centres = np.median(data, axis=1)
    # Few shapes, so that similar sizes share a compilation. Nothing reaches padding.
    size = _CLUSTER * _bucket(-(-len(data) // _CLUSTER))
    room = ((0, size - len(data)), (0, 0))
    low = np.pad(low, room, constant_values=np.inf).reshape(-1, _CLUSTER, dim)
    high = np.pad(high, room, constant_values=-np.inf).reshape(-1, _CLUSTER, dim)
    return Blocks(
        data=np.pad(data - centres[:, None], (*room, (0, 0))),
        centres=np.pad(centres, room),
        low=low,
        high=high,
        cluster_low=low.min(axis=1),
        cluster_high=high.max(axis=1),
        count=np.asarray(n),
        reach=np.asarray(reach),
    )


def _in_leaves(points: Array) -> NDArray[np.intp]:
    """Order of the points in which every run of `_BLOCK` is the leaf of a k-d tree."""
    order = np.arange(len(points))
    waiting = [(0, len(points))]
    while waiting:
        start, stop = waiting.pop()
        n_blocks = -(-(stop - start) // _BLOCK)
        if n_blocks < 2:
            continue
        own = order[start:stop]
        members = points[own]
        axis = int(np.argmax(np.ptp(members, axis=0)))
        unit = _CLUSTER if n_blocks > _CLUSTER else 1  # clusters are subtrees
        middle = _BLOCK * unit * -(-n_blocks // (2 * unit))
        order[start:stop] = own[np.argpartition(members[:, axis], middle)]
        waiting += [(start, start + middle), (start + middle, stop)]
    return order


def _expected_pairs(points: Array, low: Array, high: Array, reach: float) -> float:
    """Data that are summed over at a point near the data, on average."""
    rows = np.random.default_rng(0).integers(0, len(points), _TRIALS)
    trials = points[rows][:, None]
    gaps = np.maximum(np.maximum(low - trials, trials - high), 0.0)
    within = np.sum(gaps**2, axis=2) <= (reach + _GROUP_RADIUS) ** 2
    return float(_BLOCK * within.sum(axis=1).mean())


def _bucket(size: int) -> int:
    """The next integer of at most three binary digits followed by zeros."""
    step = 2 ** max(0, size.bit_length() - 3)
    return -(-size // step) * step


def sums_within_reach(
    points: jax.Array, blocks: Blocks, terms: Callable[[Tiles], jax.Array]
) -> jax.Array:
    """Sums over the data within reach of each point.

    Derivatives of the sums in the points exist in forward mode only.

    Parameters
    ----------
    points : array of shape (n, D)
        In units of sigma, like the data.
    blocks
        The data.
    terms
        Sums over the data of tiles, (..., q, F). Linear in the weights, and NaN where
        a query is.

    Returns
    -------
    array of shape (n, F)
        Sums for every point, without data that are out of reach.
    """
    n = len(points)
    groups, order = _grouped(points, _GROUP if n >= _MANY else _SMALL_GROUP)
    boxes = _bounding_boxes(jax.lax.stop_gradient(groups))
    clusters = _pack(_clusters_within_reach(boxes, blocks))
    counts = _counts(clusters)

    def add_round(index: Any, sums: jax.Array) -> jax.Array:
        ranks = index * _SEARCHED + jnp.arange(_SEARCHED)
        searched = _places(clusters, counts, ranks)
        real = ranks < counts[:, -1:]
        listed, present = _blocks_within_reach(boxes, searched, real, blocks)
        return _add_tiles(sums, groups, boxes, listed, present, blocks, terms)

    nothing = Tiles(jnp.zeros((*groups.shape[:2], 1)), groups, groups[:, :1])
    n_rounds = -(-jnp.max(counts[:, -1]) // _SEARCHED)
    # Not plain zeros: what is not finite stays so without any data.
    sums = jax.lax.fori_loop(0, n_rounds, add_round, terms(nothing))
    back = jnp.zeros(order.shape, dtype=order.dtype).at[order].set(jnp.arange(n))
    return sums.reshape(-1, sums.shape[-1])[back]


def _grouped(points: jax.Array, size: int) -> tuple[jax.Array, jax.Array]:
    """Groups of neighbouring points (groups, size, D), and the order they are in.

    The last group is filled up with its last point.
    """
    order = jnp.argsort(_along_hilbert_curve(jax.lax.stop_gradient(points)))
    rows = jnp.minimum(jnp.arange(-(-len(points) // size) * size), len(points) - 1)
    return points[order[rows]].reshape(-1, size, points.shape[1]), order


def _along_hilbert_curve(points: jax.Array) -> jax.Array:
    """Places of points (n, D) along a Hilbert curve through their bounding box.

    Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707 (2004).
    """
    known = jnp.isfinite(points)
    low = jnp.min(jnp.where(known, points, jnp.inf), axis=0)
    extent = jnp.max(jnp.where(known, points - low, 0.0))
    cells = (points - low) / jnp.where(extent > 0.0, extent, 1.0) * (2**_DIGITS - 1)
    cells = jnp.round(jnp.where(known, cells, 0.0)).astype(jnp.int64)
    axes = [cells[:, axis] for axis in range(points.shape[1])]
    for digit in reversed(range(1, _DIGITS)):
        bit = 2**digit
        for index, axis in enumerate(axes):
            swap = (axes[0] ^ axis) & (bit - 1)
            there = axis & bit != 0
            axes[index] = jnp.where(there, axis, axis ^ swap)
            axes[0] = axes[0] ^ jnp.where(there, bit - 1, swap)
    for index in range(1, len(axes)):
        axes[index] = axes[index] ^ axes[index - 1]
    turned = jnp.zeros_like(axes[0])
    for digit in reversed(range(1, _DIGITS)):
        turned ^= jnp.where(axes[-1] & 2**digit != 0, 2**digit - 1, 0)
    place = jnp.zeros_like(turned)
    for digit in reversed(range(_DIGITS)):
        for axis in axes:
            place = 2 * place + ((axis ^ turned) >> digit & 1)
    # What is nowhere comes last, in groups of its own that nothing is near to.
    return jnp.where(jnp.all(known, axis=1), place, 2 ** (_DIGITS * len(axes)))


def _bounding_boxes(groups: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Lower and upper corners (groups, D) of what is finite in the groups."""
    known = jnp.isfinite(groups)
    low = jnp.min(jnp.where(known, groups, jnp.inf), axis=1)
    high = jnp.max(jnp.where(known, groups, -jnp.inf), axis=1)
    return low, high


def _clusters_within_reach(
    boxes: tuple[jax.Array, jax.Array], blocks: Blocks
) -> jax.Array:
    """Whether clusters of blocks are within reach of groups, (groups, clusters)."""
    low, high = (corners[:, None] for corners in boxes)
    gaps = _squared_gaps(low, high, blocks.cluster_low, blocks.cluster_high)
    return gaps <= blocks.reach**2


def _blocks_within_reach(
    boxes: tuple[jax.Array, jax.Array],
    searched: jax.Array,
    real: jax.Array,
    blocks: Blocks,
) -> tuple[jax.Array, jax.Array]:
    """Blocks in the clusters `searched` (groups, k) that are within reach of groups.

    Returns their indices and whether there are so many, (groups, k * _CLUSTER).
    """
    low, high = (corners[:, None, None] for corners in boxes)
    gaps = _squared_gaps(low, high, blocks.low[searched], blocks.high[searched])
    words = _pack((gaps <= blocks.reach**2) & real[:, :, None])[..., 0]
    counts = _counts(words)
    ranks = jnp.arange(searched.shape[1] * _CLUSTER)
    places = _places(words, counts, ranks)
    clusters = jnp.take_along_axis(searched, places // _CLUSTER, axis=1)
    return clusters * _CLUSTER + places % _CLUSTER, ranks < counts[:, -1:]


def _squared_gaps(
    low: jax.Array, high: jax.Array, other_low: jax.Array, other_high: jax.Array
) -> jax.Array:
    """Squared distances between boxes, given by their corners (..., D)."""
    total: Any = 0.0
    for axis in range(low.shape[-1]):  # reducing over a short last axis is slow
        above = other_low[..., axis] - high[..., axis]
        below = low[..., axis] - other_high[..., axis]
        total += jnp.maximum(jnp.maximum(above, below), 0.0) ** 2
    return total


def _pack(flags: jax.Array) -> jax.Array:
    """Flags (..., n) as the digits of binary words (..., n / _CLUSTER)."""
    room = [(0, 0)] * (flags.ndim - 1) + [(0, -flags.shape[-1] % _CLUSTER)]
    digits = jnp.pad(flags, room).reshape(*flags.shape[:-1], -1, _CLUSTER)
    shifted = digits.astype(jnp.uint32) << jnp.arange(_CLUSTER, dtype=jnp.uint32)
    return jnp.sum(shifted, axis=-1, dtype=jnp.uint32)


def _set_flags(words: jax.Array) -> jax.Array:
    return jax.lax.population_count(words).astype(jnp.int32)


def _counts(words: jax.Array) -> jax.Array:
    """Flags set up to and including each word of a row."""
    return jnp.cumsum(_set_flags(words), axis=-1)


def _places(words: jax.Array, counts: jax.Array, ranks: jax.Array) -> jax.Array:
    """Where, in rows of packed flags, the set one of each rank is, (rows, ranks).

    Ranks count from zero. Where there are not so many, the answer means nothing.
    """
    find = partial(jnp.searchsorted, side="right", method="scan_unrolled")
    place = jax.vmap(find, in_axes=(0, None))(counts, ranks)
    place = jnp.minimum(place, words.shape[1] - 1)
    word = jnp.take_along_axis(words, place, axis=1)
    rank = ranks - jnp.take_along_axis(counts, place, axis=1) + _set_flags(word)
    place = _CLUSTER * place
    width = _CLUSTER
    while width > 1:
        width //= 2
        below = _set_flags(word & (2**width - 1))
        above = rank >= below
        rank = jnp.where(above, rank - below, rank)
        word = jnp.where(above, word >> width, word)
        place = jnp.where(above, place + width, place)
    return place


def _add_tiles(
    sums: jax.Array,
    groups: jax.Array,
    boxes: tuple[jax.Array, jax.Array],
    listed: jax.Array,
    present: jax.Array,
    blocks: Blocks,
    terms: Callable[[Tiles], jax.Array],
) -> jax.Array:
    """Add what the listed blocks give to the sums of their groups.

    Groups have different numbers of blocks. They are taken `_CHUNK` at a time, and the
    chunks are counted through all groups.
    """
    n_chunks = -(-jnp.sum(present, axis=1) // _CHUNK)
    ends = jnp.cumsum(n_chunks)
    batch = _chunks_at_once(len(sums))

    def add_batch(index: Any, sums: jax.Array) -> jax.Array:
        chunk = index * batch + jnp.arange(batch)
        group = jnp.searchsorted(ends, chunk, side="right")
        live = group < len(sums)
        group = jnp.minimum(group, len(sums) - 1)
        first = _CHUNK * (chunk - ends[group] + n_chunks[group])
        columns = first[:, None] + jnp.arange(_CHUNK)
        real = live[:, None] & present[group[:, None], columns]
        members = listed[group[:, None], columns]
        corners = boxes[0][group], boxes[1][group]
        tiles = _tiles(groups[group], corners, members, real, blocks)
        found = jnp.sum(terms(tiles), axis=1)
        return sums.at[group].add(found, indices_are_sorted=True)

    return jax.lax.fori_loop(0, -(-ends[-1] // batch), add_batch, sums)


def _tiles(
    queries: jax.Array,
    boxes: tuple[jax.Array, jax.Array],
    members: jax.Array,
    real: jax.Array,
    blocks: Blocks,
) -> Tiles:
    """Tiles (t, k) of queries (t, q, D), in boxes (t, D), with the blocks (t, k).

    Weights are zero where those are not `real`.
    """
    # Coordinates about the point of the group's box that is nearest to the block's
    # centre keep the digits that matter even if one of the two is wide.
    centres = blocks.centres[members]
    origins = jnp.clip(centres, boxes[0][:, None], boxes[1][:, None])
    shifts = jnp.where(real[:, :, None], origins - centres, 0.0)
    data = blocks.data[members] - shifts[:, :, None]
    offsets = queries[:, None] - origins[:, :, None]
    # Infinity times zero would not be zero.
    offsets = jnp.where(real[:, :, None, None], offsets, 0.0)
    rows = members[:, :, None] * _BLOCK + jnp.arange(_BLOCK)
    filled = real[:, :, None] & (rows < blocks.count)
    # Differences, no products: as fast for few dimensions, and they keep all digits.
    exponents = jnp.where(filled, 0.0, -jnp.inf)[:, :, None]
    for axis in range(data.shape[-1]):
        gaps = offsets[..., axis, None] - data[:, :, None, :, axis]
        exponents = exponents - 0.5 * gaps**2
    weights = jnp.exp(exponents)
    return Tiles(weights, offsets, data)


def _chunks_at_once(n_groups: int) -> int:
    """Enough to be efficient, few enough that the last batch wastes little."""
    return min(max(n_groups, 16), 64)
