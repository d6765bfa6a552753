"""Sums over data in the plane, tabulated: polynomials on parts of square cells.

Sums of Gaussian kernels are smooth on the scale of sigma. On a square a quarter as wide
a polynomial of degree 8 has 45 coefficients, and costs the same whatever the number of
data. Relative to the largest sum within half a sigma, values are right to 1e-9, first
derivatives in units of sigma to 1e-7, and second ones to 1e-5.

The polynomials come from the sums at the nodes of cells, in time that hardly grows with
the data. The kernel is as smooth in a datum as in the point. So the data of a cell are
replaced by charges at its Chebyshev nodes: each datum is shared out among them by the
polynomials that interpolate. The kernel is a product over coordinates. So the charges
are carried along x to the nodes of all cells within reach, and what they add up to
there along y: a matrix product for each offset of two cells.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import factorial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy import ndimage

from land.metrics.tensors import along

Array = NDArray[np.float64]
Cells = NDArray[np.int32]
# The coordinates whose offsets are multiplied, for each sum.
Factors = tuple[tuple[int, ...], ...]

# Cells are as wide as sigma. Parts of a cell along each axis, terms of the polynomials
# there, and nodes of a cell along each axis. For a Gaussian the error is about
# 2 (w / 4)^n / sqrt(n!) on a part of width w with n terms.
_PARTS, _TERMS, _NODES = 4, 9, 16
# Exponents of x and y in the polynomials.
_POWERS = [(a, b) for a in range(_TERMS) for b in range(_TERMS - a)]
# The table may have so many cells that are not empty (1.2 GB), and lie in a rectangle
# of so many cells.
_MOST_CELLS, _MOST_PLACES = 100_000, 2**22
# Local variances of a cell may differ by this factor: errors are relative to the
# largest of them.
_MOST_CONTRAST = 1e3
# What is left out, relative to the local variance: what the solvers take for rounding.
TOLERANCE = 1e-13
# Few shapes, so that similar tables share a compilation.
_SHAPES = 256


class SumTable(NamedTuple):
    """Polynomials for sums over the data, in units of sigma.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    origin: Any  # (2,) lower corner of the first cell
    cells: Any  # (columns, rows) numbers of the cells; 0 where there are no data near
    # (cells * parts in x * parts in y, powers * sums); the variables go from -1 to 1 on
    # each part
    coefficients: Any


def cut_off(n: int, floor: float) -> float:
    """Distance beyond which data may be left out, everything in units of sigma.

    A datum at distance r > 1 adds at most g(r) = (r^2 + 3)^2 exp(-r^2 / 2) to a local
    covariance and to its first and second derivatives. So without the data farther than
    R each is wrong by at most n g(R), which relative to the `floor`, rho, is to be
    `TOLERANCE`.
    """
    excess = np.log(n) - np.log(floor) - np.log(TOLERANCE)
    square = 1.0
    for _ in range(100):  # a contraction wherever it exceeds one
        square = max(1.0, 2.0 * excess + 4.0 * np.log(square + 3.0))
    largest = -2.0 * np.log(np.finfo(float).smallest_subnormal)
    return float(np.sqrt(min(square, largest)))


def sum_table(scaled: Array, factors: Factors, floor: float) -> SumTable | None:
    """The table for data (n, 2), and `floor` or rho, in units of sigma.

    None where it would be too large, or not accurate enough.
    """
    if scaled.shape[1] != 2:
        return None
    margin = int(np.ceil(cut_off(len(scaled), floor)))
    origin = scaled.min(axis=0) - margin
    size = np.floor(scaled.max(axis=0) - origin) + 1 + margin
    if not np.prod(size) <= _MOST_PLACES:
        return None
    places = scaled - origin
    occupied = cells_with_data(places, tuple(size.astype(int)))
    cells = cells_within(occupied, (margin, margin))
    if cells.max() > _MOST_CELLS:
        return None
    powers = [(each.count(0), each.count(1)) for each in factors]
    values = sums_at_nodes(places, cells, margin, powers)
    least, most = _extremes(values)
    if np.any(most + floor > _MOST_CONTRAST * (least + floor)):
        return None
    room = [(0, -length % _SHAPES) for length in (len(values), *cells.shape)]
    coefficients = np.pad(_polynomials(values), [room[0], (0, 0), (0, 0)])
    coefficients = coefficients.reshape(-1, len(_POWERS) * len(factors))
    return SumTable(origin, np.pad(cells, room[1:]), coefficients)


def _extremes(values: Array) -> tuple[Array, Array]:
    """The least and the most of what varies in each cell: sums, or eigenvalues."""
    if values.shape[-1] == 3:  # a full covariance: xx, xy, yy
        xx, xy, yy = np.moveaxis(values, -1, 0)
        mean, radius = 0.5 * (xx + yy), np.hypot(0.5 * (xx - yy), xy)
        return (mean - radius).min(axis=(1, 2)), (mean + radius).max(axis=(1, 2))
    return values.min(axis=(1, 2)), values.max(axis=(1, 2))


def _polynomials(values: Array) -> Array:
    """Coefficients (cells, parts, columns) from values (cells, nodes, nodes, sums)."""
    # From the nodes of a cell to Chebyshev coefficients on its parts, along an axis.
    inside, to_series = chebyshev_nodes()
    centers = (2.0 * np.arange(_PARTS) + 1.0) / _PARTS - 1.0
    places = centers[:, None] + inside / _PARTS
    to_places = chebyshev.chebvander(places, _NODES - 1) @ to_series
    to_parts = (to_series[:_TERMS] @ to_places).reshape(-1, _NODES)
    # From the series without the highest terms to powers.
    powers = np.zeros((_TERMS, _TERMS))
    for k, unit in enumerate(np.eye(_TERMS)):
        powers[k, : k + 1] = chebyshev.cheb2poly(unit)[: k + 1]
    a, b = np.transpose(_POWERS)
    to_powers = powers[a][:, a] * powers[b][:, b]
    found = np.einsum("kp,spqd->sqdk", to_parts, values, optimize=True)
    found = np.einsum("lq,sqdk->sdkl", to_parts, found, optimize=True)
    shape = (len(values), values.shape[-1], _PARTS, _TERMS, _PARTS, _TERMS)
    series = found.reshape(shape).transpose(0, 2, 4, 3, 5, 1)[:, :, :, a, b]
    found = np.einsum("sxykd,kl->sxyld", series, to_powers, optimize=True)
    return found.reshape(len(values), _PARTS**2, -1)


def chebyshev_nodes() -> tuple[Array, Array]:
    """Nodes on [-1, 1], and the matrix from values there to coefficients."""
    nodes = chebyshev.chebpts1(_NODES)
    series = chebyshev.chebvander(nodes, _NODES - 1)
    return nodes, np.asarray(np.linalg.inv(series))


def cells_with_data(places: Array, shape: tuple[int, ...]) -> Cells:
    """Numbers from 1 for cells with data, else 0; see `sums_at_nodes` for `places`."""
    cells = np.zeros(shape, dtype=np.int32)
    cells[tuple(np.floor(places).astype(np.intp).T)] = 1
    return cells_within(cells, (0, 0))


def cells_within(cells: Cells, reach: tuple[int, int]) -> Cells:
    """Numbers from 1 for cells with a numbered one so near in x and in y, else 0."""
    sizes = [2 * each + 1 for each in reach]
    near = ndimage.maximum_filter(cells > 0, sizes, mode="constant")
    return np.where(near, np.cumsum(near).reshape(near.shape), 0).astype(np.int32)


def sums_at_nodes(
    places: Array, cells: Cells, margin: int, powers: list[tuple[int, int]]
) -> Array:
    """Sums at the nodes of all numbered cells, (cells, x, y, sums).

    The data (n, 2) are in units of sigma, the width of a cell, from the grid's corner.
    Cells (columns, rows) are numbered by `cells_within` reach of data, and `margin`
    says how many cells away data are noticed. For each sum, `powers` has those of the
    offsets in x and in y that the kernel is multiplied by.
    """
    nodes, _ = chebyshev_nodes()
    offsets = np.arange(-margin, margin + 1)[:, None, None]
    distances = offsets + 0.5 * (nodes[:, None] - nodes)
    kernel = np.exp(-0.5 * distances**2)
    starts = cells_with_data(places, cells.shape)
    halfway = cells_within(starts, (margin, 0))
    charges = _charges(places, starts)
    found = np.empty((int(cells.max()) + 1, _NODES, _NODES, len(powers)))
    for in_x in {x for x, _ in powers}:
        across = _carried(charges, starts, halfway, 0, distances**in_x * kernel)
        across = np.ascontiguousarray(across.swapaxes(1, 2))
        for k, (x, in_y) in enumerate(powers):
            if x == in_x:
                up = _carried(across, halfway, cells, 1, distances**in_y * kernel)
                found[..., k] = up
    return found


def _charges(places: Array, starts: Cells) -> Array:
    """What the data of each cell amount to: (cells + 1, nodes in y, nodes in x)."""
    corners = np.floor(places)
    cells = starts[tuple(corners.astype(np.intp).T)]
    order = np.argsort(cells, kind="stable")
    inside = 2.0 * (places - corners)[order] - 1.0
    _, transform = chebyshev_nodes()
    shares = chebyshev.chebvander(inside, _NODES - 1) @ transform
    firsts = np.searchsorted(cells[order], np.arange(1, starts.max() + 1))
    charges = np.zeros((len(firsts) + 1, _NODES, _NODES))
    for charge, own in zip(charges[1:], np.split(shares, firsts[1:]), strict=True):
        charge[:] = own[:, 1].T @ own[:, 0]
    return charges


def _carried(
    values: Array, starts: Cells, ends: Cells, axis: int, kernels: Array
) -> Array:
    """What values (cells, m, shares) add up to along an axis: (cells, m, nodes)."""
    cells = np.argwhere(starts)
    found = np.zeros((int(ends.max()) + 1, values.shape[1], kernels.shape[2]))
    for offset, kernel in enumerate(kernels, -(len(kernels) // 2)):
        to = cells.copy()
        to[:, axis] -= offset
        found[ends[tuple(to.T)]] += values[1:] @ kernel
    return found


def sums_from_table(points: jax.Array, table: SumTable) -> jax.Array:
    """Sums at points in units of sigma: (n, 2) -> (n, F)."""
    return _jet(0, points, table)[0]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _jet(order: int, points: jax.Array, table: SumTable) -> tuple[jax.Array, ...]:
    """Sums and their derivatives up to an order, (n, 2, ..., 2, F)."""
    places = (points - table.origin) * _PARTS
    corners = jnp.floor(places)
    shape = _PARTS * jnp.asarray(table.cells.shape)
    inside = jnp.all((corners >= 0) & (corners < shape), axis=1)
    fine = jnp.where(inside[:, None], corners, 0.0).astype(jnp.int32)
    (column, row), parts = (fine // _PARTS).T, fine % _PARTS
    cells = jnp.where(inside, _taken(table.cells, column, row), 0)
    index = (cells * _PARTS + parts[:, 0]) * _PARTS + parts[:, 1]
    rows = _taken(table.coefficients, index)
    rows = rows.reshape(len(points), len(_POWERS), -1)
    away = 2.0 * (places - corners) - 1.0
    x, y = away[:, :1], away[:, 1:]
    in_y = []
    for a in range(_TERMS):
        first = _POWERS.index((a, 0))
        own = [rows[:, first + b] for b in range(_TERMS - a)]
        in_y.append(_horner(own, y, order))
    # By how often it is differentiated in y, then in x.
    jet = [_horner([each[k] for each in in_y], x, order - k) for k in range(order + 1)]
    found = []
    for k in range(order + 1):
        in_x_in_y = [(k - sum(axes), sum(axes)) for axes in product((0, 1), repeat=k)]
        entries = [factorial(p) * factorial(q) * jet[q][p] for p, q in in_x_in_y]
        there = (2.0 * _PARTS) ** k * jnp.stack(entries, axis=1)
        found.append(there.reshape(len(points), *k * (2,), rows.shape[2]))
    return tuple(found)


@_jet.defjvp
def _jet_jvp(order: int, primals: Any, tangents: Any) -> tuple[Any, Any]:
    # Automatic differentiation would keep all that Horner's method goes through.
    *found, last = _jet(order + 1, *primals)
    slopes = *found[1:], last
    return tuple(found), tuple(along(tangents[0], each) for each in slopes)


def _taken(array: jax.Array, *indices: jax.Array) -> jax.Array:
    """`array[indices]`, which nothing needs to check."""
    place = array.at[indices]
    return place.get(mode="promise_in_bounds", wrap_negative_indices=False)


def _horner(coefficients: list[jax.Array], u: jax.Array, order: int) -> list[jax.Array]:
    """A polynomial in `u`; its derivatives up to an order k, divided by k!."""
    found = [coefficients[-1]] + order * [jnp.zeros_like(coefficients[-1])]
    for coefficient in reversed(coefficients[:-1]):
        for k in reversed(range(1, order + 1)):
            found[k] = found[k] * u + found[k - 1]
        found[0] = found[0] * u + coefficient
    return found
