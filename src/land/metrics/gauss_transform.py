"""Sums over data at the nodes of a grid of cells, in time that hardly grows with data.

Seen from anywhere, the kernel is as smooth in a datum as it is in the point where the
sum is wanted. So the data of a cell are replaced by charges at its Chebyshev nodes that
have the same effect: each datum is shared out among them by the polynomials that
interpolate. What the charges of all cells within reach add up to at the nodes of
another cell is then a few matrix products for each row and column of the grid, because
the kernel is a product over coordinates and depends on the offset of two cells only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Nodes of the charges along each axis, for cells at most as wide as the kernel: more
# than of the polynomials in a table, so that theirs is the error that remains.
_SHARES = 20


def chebyshev_nodes(count: int) -> tuple[Array, Array]:
    """Nodes on [-1, 1], and the matrix from values there to coefficients."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    transform = 2.0 / count * np.cos(np.outer(np.arange(count), angles))
    transform[0] *= 0.5
    return np.cos(angles), transform


def sums_at_nodes(
    places: Array,
    slots: NDArray[np.int32],
    margin: int,
    width: float,
    nodes: Array,
    powers: list[tuple[int, int]],
) -> Array:
    """Sums at the nodes of all cells with a slot, (slots, x, y, sums).

    Parameters
    ----------
    places : ndarray of shape (n, 2)
        The data in units of the cells' width, the grid's corner at the origin.
    slots : ndarray of shape (columns, rows)
        Numbers of the cells that are wanted, or zero: all cells that have data in their
        own or in one of `margin` cells around, on a grid that contains all of them.
    margin : int
        How many cells away data are noticed.
    width : float
        The cells' width in units of the kernel's.
    nodes : ndarray of shape (n_nodes,)
        Where they are on each axis of a cell, which reaches from -1 to 1.
    powers : list of (int, int)
        For each sum, the powers of the offsets in x and in y that the kernel is
        multiplied by; at most 2.
    """
    kernels, n_nodes = _kernels(margin, width, nodes), len(nodes)
    charges = _charges(places)
    found = np.zeros((int(slots.max()) + 1, n_nodes, n_nodes, len(powers)))
    in_x = sorted({power for power, _ in powers})
    wanted = [(in_x.index(x), y) for x, y in powers]
    for column in np.flatnonzero(slots.any(axis=1)).tolist():
        near = [
            (offset, charges[column + offset])
            for offset in range(-margin, margin + 1)
            if column + offset in charges
        ]
        rows, sums = _across(near, kernels[in_x])
        own = np.flatnonzero(slots[column])
        values = _upwards(rows, sums, own, kernels, wanted)
        found[slots[column, own]] = values.transpose(2, 1, 3, 0)
    return found


class _Column(NamedTuple):
    """Charges of a column of cells."""

    rows: Indices  # cells with data
    charges: Array  # (_SHARES, rows, _SHARES) at the nodes in x, cells, nodes in y


def _kernels(margin: int, width: float, nodes: Array) -> Array:
    """Kernel times powers of the offset, from charges to nodes.

    Powers, offsets of cells, nodes, charges: (3, 2 * margin + 1, nodes, _SHARES).
    """
    sources, _ = chebyshev_nodes(_SHARES)
    offsets = np.arange(-margin, margin + 1)[:, None, None]
    distances = width * (offsets + 0.5 * (sources - nodes[:, None]))
    weights = np.exp(-0.5 * distances**2)
    return np.stack([weights, distances * weights, distances**2 * weights])


def _charges(places: Array) -> dict[int, _Column]:
    """What the data of each cell amount to, by columns."""
    cells = np.floor(places).astype(np.intp)
    order = np.lexsort((cells[:, 1], cells[:, 0]))
    cells, shares = cells[order], places[order]
    columns, starts = np.unique(cells[:, 0], return_index=True)
    found = {}
    for column, part in zip(
        columns.tolist(), np.split(np.arange(len(cells)), starts[1:]), strict=True
    ):
        inside = 2.0 * (shares[part] - cells[part]) - 1.0
        x, y = _interpolation(inside[:, 0]), _interpolation(inside[:, 1])
        rows, firsts = np.unique(cells[part, 1], return_index=True)
        ends = np.append(firsts[1:], len(part))
        charges = np.empty((_SHARES, len(rows), _SHARES))
        for k, (first, end) in enumerate(zip(firsts, ends, strict=True)):
            charges[:, k] = x[first:end].T @ y[first:end]
        found[column] = _Column(rows, charges)
    return found


def _interpolation(u: Array) -> Array:
    """Shares of data at `u` that belong to the nodes: (n, _SHARES)."""
    _, transform = chebyshev_nodes(_SHARES)
    return np.asarray(chebyshev.chebvander(u, _SHARES - 1) @ transform)


def _across(near: list[tuple[int, _Column]], kernels: Array) -> tuple[Indices, Array]:
    """What columns add up to at a column's nodes in x, for each row with data.

    Sums of the kernel times each power: (powers, nodes, rows, _SHARES).
    """
    rows = np.unique(np.concatenate([own.rows for _, own in near]))
    n_powers, n_offsets, n_nodes, _ = kernels.shape
    sums = np.zeros((n_powers * n_nodes, len(rows), _SHARES))
    for offset, own in near:
        factors = kernels[:, n_offsets // 2 + offset].reshape(-1, _SHARES)
        added = factors @ own.charges.reshape(_SHARES, -1)
        shape = (n_powers * n_nodes, len(own.rows), _SHARES)
        sums[:, np.searchsorted(rows, own.rows)] += added.reshape(shape)
    return rows, sums.reshape(n_powers, n_nodes, len(rows), _SHARES)


def _upwards(
    rows: Indices,
    sums: Array,
    own: Indices,
    kernels: Array,
    wanted: list[tuple[int, int]],
) -> Array:
    """What rows add up to at the nodes in y of a column's `own` cells.

    For each place in `sums` and power in y: (wanted, nodes in x, cells, nodes in y).
    """
    _, n_offsets, n_nodes, _ = kernels.shape
    values = np.zeros((len(wanted), n_nodes, len(own), n_nodes))
    for place in range(n_offsets):
        cells = np.searchsorted(own, rows - (place - n_offsets // 2))
        for found, (x, y) in zip(values, wanted, strict=True):
            found[:, cells] += sums[x] @ kernels[y, place].T
    return values
