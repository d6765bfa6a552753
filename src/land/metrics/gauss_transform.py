"""Sums over data at the nodes of a grid of cells, in time that hardly grows with data.

Seen from anywhere, the kernel is as smooth in a datum as it is in the point where the
sum is wanted. So the data of a cell are replaced by charges at its Chebyshev nodes that
have the same effect: each datum is shared out among them by the polynomials that
interpolate. The kernel is a product over coordinates and depends on the offset of two
cells only. So the charges are carried along x, to the nodes of all cells within reach,
and what they add up to there along y: a matrix product for each offset.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import ndimage

Array = NDArray[np.float64]
Slots = NDArray[np.int32]

# Nodes of the charges along each axis: more than of the polynomials in a table, so that
# theirs is the error that remains.
_SHARES = 20


def chebyshev_nodes(count: int) -> tuple[Array, Array]:
    """Nodes on [-1, 1], and the matrix from values there to coefficients."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    transform = 2.0 / count * np.cos(np.outer(np.arange(count), angles))
    transform[0] *= 0.5
    return np.cos(angles), transform


def cells_with_data(places: Array, shape: tuple[int, ...]) -> Slots:
    """Numbers from 1 for cells with data, else 0; see `sums_at_nodes` for `places`."""
    slots = np.zeros(shape, dtype=np.int32)
    slots[tuple(np.floor(places).astype(np.intp).T)] = 1
    return cells_within(slots, (0, 0))


def cells_within(slots: Slots, reach: tuple[int, int]) -> Slots:
    """Numbers from 1 for cells with a numbered one so near in x and in y, else 0."""
    sizes = [2 * each + 1 for each in reach]
    near = ndimage.maximum_filter(slots > 0, sizes, mode="constant")
    return np.where(near, np.cumsum(near).reshape(near.shape), 0).astype(np.int32)


def sums_at_nodes(
    places: Array,
    slots: Slots,
    margin: int,
    nodes: Array,
    powers: list[tuple[int, int]],
) -> Array:
    """Sums at the nodes of all cells with a slot, (slots, x, y, sums).

    Parameters
    ----------
    places : ndarray of shape (n, 2)
        The data in units of the kernel's width, which is that of the cells too; the
        grid's corner is at the origin.
    slots : ndarray of shape (columns, rows)
        `cells_within` reach of data, on a grid that contains all of them.
    margin : int
        How many cells away data are noticed.
    nodes : ndarray of shape (n_nodes,)
        Where they are on each axis of a cell, which reaches from -1 to 1.
    powers : list of (int, int)
        For each sum, the powers of the offsets in x and in y that the kernel is
        multiplied by.
    """
    sources, _ = chebyshev_nodes(_SHARES)
    offsets = np.arange(-margin, margin + 1)[:, None, None]
    distances = offsets + 0.5 * (sources[:, None] - nodes)
    kernel = np.exp(-0.5 * distances**2)
    starts = cells_with_data(places, slots.shape)
    halfway = cells_within(starts, (margin, 0))
    charges = _charges(places, starts)
    found = np.empty((int(slots.max()) + 1, len(nodes), len(nodes), len(powers)))
    for in_x in {x for x, _ in powers}:
        across = _carried(charges, starts, halfway, 0, distances**in_x * kernel)
        across = np.ascontiguousarray(across.swapaxes(1, 2))
        for k, (x, in_y) in enumerate(powers):
            if x == in_x:
                up = _carried(across, halfway, slots, 1, distances**in_y * kernel)
                found[..., k] = up
    return found


def _charges(places: Array, starts: Slots) -> Array:
    """What the data of each cell amount to: (cells + 1, nodes in y, nodes in x)."""
    corners = np.floor(places)
    cells = starts[tuple(corners.astype(np.intp).T)]
    order = np.argsort(cells, kind="stable")
    inside = 2.0 * (places - corners)[order] - 1.0
    _, transform = chebyshev_nodes(_SHARES)
    shares = chebyshev.chebvander(inside, _SHARES - 1) @ transform
    firsts = np.searchsorted(cells[order], np.arange(1, starts.max() + 1))
    charges = np.zeros((len(firsts) + 1, _SHARES, _SHARES))
    for charge, own in zip(charges[1:], np.split(shares, firsts[1:]), strict=True):
        charge[:] = own[:, 1].T @ own[:, 0]
    return charges


def _carried(
    values: Array, starts: Slots, ends: Slots, axis: int, kernels: Array
) -> Array:
    """What values (cells, m, shares) add up to along an axis: (cells, m, nodes)."""
    cells = np.argwhere(starts)
    found = np.zeros((int(ends.max()) + 1, values.shape[1], kernels.shape[2]))
    for offset, kernel in enumerate(kernels, -(len(kernels) // 2)):
        to = cells.copy()
        to[:, axis] -= offset
        found[ends[tuple(to.T)]] += values[1:] @ kernel
    return found
