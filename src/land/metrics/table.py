"""Local variances in the plane, tabulated: polynomials on quarters of square cells.

Sums of Gaussian kernels are smooth on the scale of sigma. On a square half as wide, the
polynomial through 10 x 10 Chebyshev nodes is as good as any geodesic needs, and costs
the same whatever the number of data.

Relative to the largest local variance on that square, values are right to 1e-9, first
derivatives in units of sigma to 1e-7, and second ones, which only Newton's method and
Jacobi fields need, to 1e-5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land.metrics.gauss_transform import chebyshev_nodes, variances_at_nodes

Array = NDArray[np.float64]

# Width of a cell in units of sigma; parts of it along each axis, each with a polynomial
# of so many nodes. For a Gaussian its error is about 2 (w / 4)^n / sqrt(n!) on a part
# of width w with n nodes.
_WIDTH, _PARTS, _NODES = 1.0, 2, 10
# The table may have so many cells that are not empty (640 MB), and lie in a rectangle
# of so many cells.
_MOST_CELLS, _MOST_PLACES = 100_000, 2**22
# Local variances of a cell may differ by this factor: rounding is relative to the
# largest of them.
_MOST_CONTRAST = 1e3
# Few shapes, so that similar tables share a compilation.
_SHAPES = 256


class VarianceTable(NamedTuple):
    """Polynomials for the local variances, in units of sigma.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    origin: Any  # (2,) lower corner of the first cell
    slots: Any  # (columns, rows) which polynomials a cell has; 0: none, no data
    # (slots, parts in x, in y, a, 2 * _NODES) of T_a(x) T_b(y), columns (b, d)
    coefficients: Any


def variance_table(scaled: Array, reach: float, rho: float) -> VarianceTable | None:
    """The table for data (n, 2), `rho` and `reach` in units of sigma.

    None where it would be too large, or not accurate enough. Data farther than `reach`
    from a cell may be left out of its polynomials.
    """
    if scaled.shape[1] != 2:
        return None
    margin = int(np.ceil(reach / _WIDTH))
    origin = scaled.min(axis=0) - margin * _WIDTH
    size = np.floor((scaled.max(axis=0) - origin) / _WIDTH) + 1 + margin
    if not np.prod(size) <= _MOST_PLACES:
        return None
    places = (scaled - origin) / _WIDTH
    noticed = _have_data_within(places, size.astype(int), margin)
    if np.sum(noticed) > _MOST_CELLS:
        return None
    slots = np.zeros(noticed.shape, dtype=np.int32)
    slots[noticed] = np.arange(1, np.sum(noticed) + 1)
    inside, transform = chebyshev_nodes(_NODES)
    centers = (2.0 * np.arange(_PARTS) + 1.0) / _PARTS - 1.0
    nodes = (centers[:, None] + inside / _PARTS).reshape(-1)
    values = variances_at_nodes(places, slots, margin, _WIDTH, nodes)
    least, most = values.min(axis=(1, 2)), values.max(axis=(1, 2))
    if np.any(most + rho > _MOST_CONTRAST * (least + rho)):
        return None
    values = values.reshape(-1, _PARTS, _NODES, _PARTS, _NODES, 2)
    found = np.einsum(
        "ap,sxpyqd,bq->sxyabd", transform, values, transform, optimize=True
    )
    coefficients = found.reshape(*found.shape[:-2], -1)
    room = [(0, -length % _SHAPES) for length in (len(found), *slots.shape)]
    coefficients = np.pad(coefficients, [room[0], *(4 * [(0, 0)])])
    return VarianceTable(origin, np.pad(slots, room[1:]), coefficients)


def _have_data_within(
    places: Array, size: NDArray[np.intp], margin: int
) -> NDArray[np.bool_]:
    """Which cells have data in one of the cells at most `margin` away."""
    cells = np.floor(places).astype(int)
    sums = np.zeros(size + 1, dtype=np.intp)
    np.add.at(sums, tuple(cells.T + 1), 1)
    sums = sums.cumsum(axis=0).cumsum(axis=1)
    low = [np.maximum(np.arange(side) - margin, 0) for side in size.tolist()]
    high = [np.minimum(np.arange(side) + margin + 1, side) for side in size.tolist()]
    corners = [sums[np.ix_(x, y)] for x in (high[0], low[0]) for y in (high[1], low[1])]
    return np.asarray(corners[0] - corners[1] - corners[2] + corners[3] > 0)


def variances_from_table(
    points: jax.Array, table: VarianceTable, order: int
) -> tuple[jax.Array, ...]:
    """Local variances at points in units of sigma, and derivatives up to an order.

    As `land.metrics.variances` has them: (n, 2), (n, 2, 2), (n, 2, 2, 2).
    """
    places = (points - table.origin) * (_PARTS / _WIDTH)
    corners = jnp.floor(jax.lax.stop_gradient(places))
    shape = _PARTS * jnp.asarray(table.slots.shape)
    inside = jnp.all((corners >= 0) & (corners < shape), axis=1)
    fine = jnp.where(inside[:, None], corners, 0.0).astype(jnp.int32)
    cells, parts = jnp.divmod(fine, _PARTS)
    slots = jnp.where(inside, table.slots[cells[:, 0], cells[:, 1]], 0)
    x = _polynomials(2.0 * (places - corners)[:, 0] - 1.0, order)
    y = _polynomials(2.0 * (places - corners)[:, 1] - 1.0, order)
    # Barriers: fused with what follows, the same rows would be fetched many times.
    barrier: Any = jax.lax.optimization_barrier
    rows = barrier(table.coefficients[slots, parts[:, 0], parts[:, 1]])
    inner = barrier([_combined(factors, rows) for factors in x])
    inner = [each.reshape(-1, _NODES, 2) for each in inner]

    def derivative(in_x: int, in_y: int) -> jax.Array:
        scale = (2.0 * _PARTS / _WIDTH) ** (in_x + in_y)
        return scale * _combined(y[in_y], inner[in_x])

    found = [derivative(0, 0)]
    if order >= 1:
        found.append(jnp.stack([derivative(1, 0), derivative(0, 1)], axis=1))
    if order >= 2:
        mixed = derivative(1, 1)
        entries = [derivative(2, 0), mixed, mixed, derivative(0, 2)]
        found.append(jnp.stack(entries, axis=1).reshape(-1, 2, 2, 2))
    return tuple(found)


def _polynomials(u: jax.Array, order: int) -> list[list[jax.Array]]:
    """Chebyshev polynomials at `u`, and their derivatives up to an order."""
    zero, one = jnp.zeros_like(u), jnp.ones_like(u)
    found = [[one, u], [zero, one], [zero, zero]][: order + 1]
    for _ in range(_NODES - 2):
        for k in reversed(range(order + 1)):
            # The k-th derivative of T_n+1 = 2 u T_n - T_n-1.
            latest = 2.0 * u * found[k][-1] - found[k][-2]
            if k > 0:
                latest = latest + 2.0 * k * found[k - 1][-1]
            found[k].append(latest)
    return found


def _combined(factors: list[jax.Array], rows: jax.Array) -> jax.Array:
    """Sums over the second axis of `rows`, with a factor for each of its entries."""
    terms = [factor[:, None] * rows[:, k] for k, factor in enumerate(factors)]
    return sum(terms[1:], terms[0])
