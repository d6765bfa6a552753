"""Local variances and their derivatives, from sums over the data or from a table.

In few dimensions one exponential for each pair of point and datum gives values, first
and second derivatives: every derivative of the Gaussian kernel only raises the order of
the moments by one, and all moments come out of one matrix product. Everything here is
in units of sigma.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._device import device
from land.metrics.table import VarianceTable, variances_from_table

Array = NDArray[np.float64]

# Up to this many dimensions the derivatives come from moments; above it, D^2 columns
# and more cost more than automatic differentiation.
MOMENT_DIMENSIONS = 6
# Data are padded to a multiple of this, so that similar sizes share a compilation.
_PADDING = 64
# Arrays of all pairs that second derivatives take.
_ARRAYS = 8


class AllData(NamedTuple):
    """All data, padded with rows that are none.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    rows: Any  # (n, D + 2): x, -|x|^2 / 2, 1
    columns: Any  # (n, F) monomials of x, the first of which is one; zero for padding


Source = AllData | VarianceTable


def all_data(scaled: Array) -> AllData:
    """The data (n, D) as a source of local variances."""
    n, dim = scaled.shape
    ones = np.ones((n, 1))
    squares = scaled**2
    rows = [scaled, -0.5 * squares.sum(axis=1, keepdims=True), ones]
    # Weighted sums of these are the moments that variances take, and slopes.
    columns = [ones, scaled, squares]
    if dim <= MOMENT_DIMENSIONS:
        pairs = scaled[:, :, None] * scaled[:, None]
        third = scaled[:, :, None] * squares[:, None]
        columns += [pairs.reshape(n, -1), third.reshape(n, -1)]
    room = ((0, -n % _PADDING), (0, 0))
    return AllData(*(np.pad(np.hstack(part), room) for part in (rows, columns)))


def variance_derivatives(
    points: jax.Array, source: Source, order: int
) -> tuple[jax.Array, ...]:
    """Sums over the data of w_n (x_nd - x_d)^2, and derivatives up to an order.

    Variances (n, D); slopes (n, D, D), of which [:, d, j] is the derivative of variance
    j in coordinate d; bends (n, D, D, D), of which [:, e, d, j] is its second one. The
    order is at most two, and zero in more than `MOMENT_DIMENSIONS` dimensions.
    """
    if isinstance(source, VarianceTable):
        most = device().pairs // source.coefficients.shape[1]
        found = _in_runs(
            lambda run: variances_from_table(run, source, order), points, most
        )
    else:
        # Second derivatives take a few arrays of all pairs at the same time.
        pairs = device().pairs // (_ARRAYS if order == 2 else 1)
        most = max(1, pairs // len(source.rows))
        sums: Any = lambda run: _sums(run, source, order)  # noqa: E731
        # Recomputing the weights in the reverse pass keeps memory at one run.
        few = points.shape[1] <= MOMENT_DIMENSIONS
        found = _in_runs(sums if few else jax.checkpoint(sums), points, most)
    return jnp.maximum(found[0], 0.0), *found[1:]


def _in_runs(function: Callable[[jax.Array], Any], points: jax.Array, most: int) -> Any:
    """Arrays that a function gives for points (n, D), at most so many at once.

    Memory is bounded, and on a processor the arrays fit the cache.
    """
    n, dim = points.shape
    if n <= most:
        return function(points)
    n_runs = -(-n // most)
    length = -(-n // n_runs)
    padding = jnp.broadcast_to(points[:1], (n_runs * length - n, dim))
    runs = jnp.concatenate([points, padding]).reshape(n_runs, length, dim)
    found = jax.lax.map(function, runs)
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[:n], found)


def _sums(points: jax.Array, source: AllData, order: int) -> tuple[jax.Array, ...]:
    dim = points.shape[1]
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    weights = jnp.exp(jnp.concatenate(augmented, axis=1) @ source.rows.T)
    if order == 0:
        moments = weights @ source.columns[:, : 2 * dim + 1]
        zeroth, first = moments[:, :1], moments[:, 1 : dim + 1]
        second = moments[:, dim + 1 :]
        return (second - 2.0 * points * first + points**2 * zeroth,)
    variances, slopes, products, zeroth = _central(points, weights @ source.columns)
    if order == 1:
        return variances, slopes
    # The derivative of a weight is the weight times an offset. Offsets are differences
    # and not expanded: fourth moments about the origin would have lost their digits.
    eye = jnp.eye(dim)
    bends = []
    for axis, own in enumerate(eye):
        offsets = source.rows[:, axis] - points[:, axis, None]
        changes = _central(points, (weights * offsets) @ source.columns)[1]
        bends.append(
            changes
            - own[:, None] * variances[:, None]
            - 2.0 * own * products
            + 2.0 * own * eye * zeroth[..., None]
        )
    return variances, slopes, jnp.stack(bends, axis=1)


def _central(points: jax.Array, moments: jax.Array) -> tuple[jax.Array, ...]:
    """From moments about the origin to those about the points.

    Variances, their slopes, sums of w_n (x_nd - x_d) (x_nj - x_j), and of w_n.
    """
    n, dim = points.shape
    ends = np.cumsum([1, dim, dim, dim**2])
    zeroth, first, second, pairs, third = jnp.split(moments, ends, axis=1)
    pairs, third = pairs.reshape(n, dim, dim), third.reshape(n, dim, dim)
    across, along = points[:, :, None], points[:, None]
    offsets = first - points * zeroth
    products = pairs - across * first[:, None] - offsets[:, :, None] * along
    variances = second - 2.0 * points * first + points**2 * zeroth
    # Sums of w_n (x_nd - x_d) (x_nj - x_j)^2.
    skews = (
        third
        - 2.0 * pairs * along
        + first[:, :, None] * along**2
        - across * variances[:, None]
    )
    slopes = skews - 2.0 * jnp.eye(dim) * offsets[:, :, None]
    return variances, slopes, products, zeroth
