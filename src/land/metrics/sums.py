"""Sums over the data with Gaussian weights, and their derivatives.

What a metric learns from data at a point x are sums of weights w_n times offsets
x_n - x in some coordinates. Its `factors` say which: (i, j) is the sum of
w_n (x_ni - x_i) (x_nj - x_j), an entry of the local covariance; () is that of w_n.

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
from land.metrics.table import Factors, SumTable, sums_from_table

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


Source = AllData | SumTable


def all_data(scaled: Array, factors: Factors) -> AllData:
    """The data (n, D) as a source of sums."""
    n, dim = scaled.shape
    ones = np.ones((n, 1))
    rows = [scaled, -0.5 * np.sum(scaled**2, axis=1, keepdims=True), ones]
    # Weighted sums of these are the moments that values take, and slopes.
    columns = [ones, scaled]
    if factors != ((),):
        i, j = np.transpose(factors)
        columns.append(scaled[:, i] * scaled[:, j])
    if dim <= MOMENT_DIMENSIONS:
        others = [scaled, *columns[2:]]
        columns += [
            (scaled[:, :, None] * each[:, None]).reshape(n, -1) for each in others
        ]
    room = ((0, -n % _PADDING), (0, 0))
    return AllData(*(np.pad(np.hstack(part), room) for part in (rows, columns)))


def sum_derivatives(
    points: jax.Array, source: Source, factors: Factors, order: int
) -> tuple[jax.Array, ...]:
    """Sums over the data at points (n, D), and derivatives up to an order.

    Values (n, F); slopes (n, D, F), of which [:, d] is the derivative in coordinate d;
    bends (n, D, D, F). The order is at most two, and zero in more than
    `MOMENT_DIMENSIONS` dimensions.
    """
    if isinstance(source, SumTable):
        most = device().pairs // source.coefficients.shape[1]
        found = _in_runs(lambda run: sums_from_table(run, source, order), points, most)
    else:
        # Second derivatives take a few arrays of all pairs at the same time.
        pairs = device().pairs // (_ARRAYS if order == 2 else 1)
        most = max(1, pairs // len(source.rows))
        sums: Any = lambda run: _sums(run, source, factors, order)  # noqa: E731
        # Recomputing the weights in the reverse pass keeps memory at one run.
        few = points.shape[1] <= MOMENT_DIMENSIONS
        found = _in_runs(sums if few else jax.checkpoint(sums), points, most)
    values, *others = found
    never_negative = np.array([len(set(each)) < 2 for each in factors])
    return jnp.where(never_negative, jnp.maximum(values, 0.0), values), *others


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


def _sums(
    points: jax.Array, source: AllData, factors: Factors, order: int
) -> tuple[jax.Array, ...]:
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    weights = jnp.exp(jnp.concatenate(augmented, axis=1) @ source.rows.T)
    if factors == ((),):
        return _of_weights(points, weights, source, order)
    return _of_products(points, weights, source, factors, order)


def _of_weights(
    points: jax.Array, weights: jax.Array, source: AllData, order: int
) -> tuple[jax.Array, ...]:
    """Sums of the weights alone, and derivatives."""
    n, dim = points.shape
    ends = np.cumsum([1, dim, dim**2])[: order + 1]
    moments = weights @ source.columns[:, : ends[-1]]
    zeroth, *others = jnp.split(moments, ends[:-1], axis=1)
    found = [zeroth]
    if order >= 1:
        offsets = others[0] - points * zeroth
        found.append(offsets[:, :, None])
    if order >= 2:
        products = _products(points, zeroth, others[0], others[1].reshape(n, dim, dim))
        found.append((products - jnp.eye(dim) * zeroth[:, :, None])[..., None])
    return tuple(found)


def _of_products(
    points: jax.Array,
    weights: jax.Array,
    source: AllData,
    factors: Factors,
    order: int,
) -> tuple[jax.Array, ...]:
    """Sums of weights times two offsets, and derivatives."""
    dim = points.shape[1]
    i, j = np.transpose(factors)
    if order == 0:
        moments = weights @ source.columns[:, : 1 + dim + len(factors)]
        zeroth, first, second = jnp.split(moments, [1, 1 + dim], axis=1)
        return (_second(points, zeroth, first, second, i, j),)
    values, slopes, products, zeroth = _central(
        points, weights @ source.columns, factors
    )
    if order == 1:
        return values, slopes
    # The derivative of a weight is the weight times an offset. Offsets are differences
    # and not expanded: fourth moments about the origin would have lost their digits.
    eye = np.eye(dim)
    bends = []
    for axis, own in enumerate(eye):
        offsets = source.rows[:, axis] - points[:, axis, None]
        changes = _central(points, (weights * offsets) @ source.columns, factors)[1]
        bends.append(
            changes
            - own[:, None] * values[:, None]
            - own[i] * columns(products, j)
            - own[j] * columns(products, i)
            + (own[i] * eye[:, j] + own[j] * eye[:, i]) * zeroth[..., None]
        )
    return values, slopes, jnp.stack(bends, axis=1)


def _central(
    points: jax.Array, moments: jax.Array, factors: Factors
) -> tuple[jax.Array, ...]:
    """From moments about the origin to those about the points.

    Values, their slopes, sums of w_n (x_nd - x_d) (x_ne - x_e), and of w_n.
    """
    n, dim = points.shape
    i, j = np.transpose(factors)
    ends = np.cumsum([1, dim, len(factors), dim**2])
    zeroth, first, second, pairs, third = jnp.split(moments, ends, axis=1)
    pairs, third = pairs.reshape(n, dim, dim), third.reshape(n, dim, len(factors))
    x_i, x_j = columns(points[:, None], i), columns(points[:, None], j)
    offsets = first - points * zeroth
    values = _second(points, zeroth, first, second, i, j)
    # Sums of w_n (x_nd - x_d) (x_ni - x_i) (x_nj - x_j).
    skews = (
        third
        - x_i * columns(pairs, j)
        - x_j * columns(pairs, i)
        + x_i * x_j * first[:, :, None]
        - points[:, :, None] * values[:, None]
    )
    eye = np.eye(dim)
    across = offsets[:, None]
    slopes = skews - eye[:, i] * columns(across, j) - eye[:, j] * columns(across, i)
    return values, slopes, _products(points, zeroth, first, pairs), zeroth


def _second(
    points: jax.Array,
    zeroth: jax.Array,
    first: jax.Array,
    second: jax.Array,
    i: NDArray[np.intp],
    j: NDArray[np.intp],
) -> jax.Array:
    """Second moments about the points from those about the origin."""
    x_i, x_j = columns(points, i), columns(points, j)
    return (
        second - x_i * columns(first, j) - x_j * columns(first, i) + x_i * x_j * zeroth
    )


def _products(
    points: jax.Array, zeroth: jax.Array, first: jax.Array, pairs: jax.Array
) -> jax.Array:
    """All second moments about the points, (n, D, D)."""
    offsets = first - points * zeroth
    across = points[:, :, None]
    return pairs - across * first[:, None] - offsets[:, :, None] * points[:, None]


def columns(array: jax.Array, places: NDArray[np.intp]) -> jax.Array:
    """`array[..., places]` as a product with zeros and ones: gathering is slow."""
    if places.tolist() == list(range(array.shape[-1])):
        return array
    return array @ np.eye(array.shape[-1])[:, places]
