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
from land.metrics.neighbours import MOST_QUERIES, Blocks, Tiles, sums_within_reach
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

    def all_data(self) -> tuple[Any, Any]:
        """Data with padding (n, D), and whether they are data (n,)."""
        return self.rows[:, :-2], self.columns[:, 0]


Source = AllData | Blocks | VarianceTable


def all_data(scaled: Array) -> AllData:
    """The data (n, D) as a source of local variances."""
    ones = np.ones((len(scaled), 1))
    squares = np.sum(scaled**2, axis=1, keepdims=True)
    rows = np.concatenate([scaled, -0.5 * squares, ones], axis=1)
    few = scaled.shape[1] <= MOMENT_DIMENSIONS
    columns = _monomials(np, scaled, 1 if few else 0)
    room = ((0, -len(scaled) % _PADDING), (0, 0))
    return AllData(np.pad(rows, room), np.pad(columns, room))


def local_variances(points: jax.Array, source: Source) -> jax.Array:
    """Sums over the data of w_n (x_nd - x_d)^2, (n, D) -> (n, D)."""
    if points.shape[1] <= MOMENT_DIMENSIONS:
        return _variances(points, source)
    assert isinstance(source, AllData)

    # Recomputing the weights in the reverse pass keeps memory at one run.
    @jax.checkpoint
    def variances(run: jax.Array) -> jax.Array:
        return jnp.maximum(_from_all_data(run, source, 0)[0], 0.0)

    found: jax.Array = _in_runs(variances, points, _longest_run(source, 0))
    return found


# The sources carry no tangents: metrics are differentiated in the points only.


@jax.custom_jvp
def _variances(points: jax.Array, source: Source) -> jax.Array:
    return variance_derivatives(points, source, 0)[0]


@_variances.defjvp
def _variances_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    variances, slopes = _variances_and_slopes(*primals)
    # Not a product of matrices: a batch of tiny ones is slow.
    return variances, jnp.sum(tangents[0][:, :, None] * slopes, axis=1)


@jax.custom_jvp
def _variances_and_slopes(points: jax.Array, source: Source) -> tuple[jax.Array, ...]:
    return variance_derivatives(points, source, 1)


@_variances_and_slopes.defjvp
def _variances_and_slopes_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    points, source = primals
    variances, slopes, curvatures = variance_derivatives(points, source, 2)
    changes = (
        jnp.einsum("bd,bdj->bj", tangents[0], slopes),
        jnp.einsum("be,bedj->bdj", tangents[0], curvatures),
    )
    return (variances, slopes), changes


def variance_derivatives(
    points: jax.Array, source: Source, order: int
) -> tuple[jax.Array, ...]:
    """Local variances and their derivatives up to an order of at most two.

    Variances (n, D); slopes (n, D, D), of which [:, d, j] is the derivative of variance
    j in coordinate d; curvatures (n, D, D, D), of which [:, e, d, j] is its second one.
    """

    def derivatives(run: jax.Array) -> tuple[jax.Array, ...]:
        if isinstance(source, VarianceTable):
            return variances_from_table(run, source, order)
        if isinstance(source, Blocks):
            return _from_blocks(run, source, order)
        return _from_all_data(run, source, order)

    # The runs are in here because differentiating a loop is expensive.
    found = _in_runs(derivatives, points, _longest_run(source, order))
    return jnp.maximum(found[0], 0.0), *found[1:]


def _longest_run(source: Source, order: int) -> int:
    """Points that are looked after at once: memory is bounded, and fits the cache."""
    if not isinstance(source, AllData):
        return MOST_QUERIES
    # Second derivatives take a few arrays of all pairs at the same time.
    pairs = device().pairs // (_ARRAYS if order == 2 else 1)
    return max(1, pairs // len(source.rows))


def _in_runs(function: Callable[[jax.Array], Any], points: jax.Array, most: int) -> Any:
    """Arrays that a function gives for points (n, D), at most so many at once."""
    n, dim = points.shape
    if n <= most:
        return function(points)
    n_runs = -(-n // most)
    length = -(-n // n_runs)
    padding = jnp.broadcast_to(points[:1], (n_runs * length - n, dim))
    runs = jnp.concatenate([points, padding]).reshape(n_runs, length, dim)
    found = jax.lax.map(function, runs)
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[:n], found)


def _weights_of_all_data(points: jax.Array, source: AllData) -> jax.Array:
    """Weights exp(-|x_n - x|^2 / 2) of all data at points, (q, D) -> (q, n)."""
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    return jnp.exp(jnp.concatenate(augmented, axis=1) @ source.rows.T)


def _from_all_data(
    points: jax.Array, source: AllData, order: int
) -> tuple[jax.Array, ...]:
    weights = _weights_of_all_data(points, source)
    data, _ = source.all_data()
    columns = source.columns
    dim = points.shape[1]
    if order == 0 and dim <= MOMENT_DIMENSIONS:
        columns = _of_order_zero(columns, dim)
    return _sums(points, data, columns, weights, order)


def _from_blocks(
    points: jax.Array, source: Blocks, order: int
) -> tuple[jax.Array, ...]:
    n, dim = points.shape

    def terms(tiles: Tiles) -> jax.Array:
        columns = _monomials(jnp, tiles.data, min(order, 1))
        parts = _sums(tiles.queries, tiles.data, columns, tiles.weights, order)
        return jnp.concatenate([_flat(part, k) for k, part in enumerate(parts)], -1)

    sums = sums_within_reach(points, source, terms)
    ends = np.cumsum([dim**k for k in range(1, order + 1)])
    parts = jnp.split(sums, ends, axis=1)
    return tuple(part.reshape(n, *[dim] * (k + 1)) for k, part in enumerate(parts))


def _flat(values: Any, extra: int) -> Any:
    """The last `extra` + 1 axes as one."""
    return values.reshape(*values.shape[: values.ndim - 1 - extra], -1)


def _sums(
    points: jax.Array, data: Any, columns: Any, weights: jax.Array, order: int
) -> tuple[jax.Array, ...]:
    """Variances and derivatives for points (..., q, D), data (..., n, D)."""
    if order == 0:
        zeroth, first, second = _split(weights @ columns, data, (0, 1, 1))
        return (second - 2.0 * points * first + points**2 * zeroth,)
    variances, slopes, products, zeroth = _central(points, weights @ columns)
    if order == 1:
        return variances, slopes
    # The derivative of a weight is the weight times an offset. Offsets are differences
    # and not expanded: fourth moments about the origin would have lost their digits.
    eye = jnp.eye(data.shape[-1])
    curvatures = []
    for axis, own in enumerate(eye):
        offsets = data[..., None, :, axis] - points[..., :, None, axis]
        _, changes, _, _ = _central(points, (weights * offsets) @ columns)
        curvatures.append(
            changes
            - own[:, None] * variances[..., None, :]
            - 2.0 * own * products
            + 2.0 * own * eye * zeroth[..., None]
        )
    return variances, slopes, jnp.stack(curvatures, axis=-3)


def _monomials(xp: Any, data: Any, order: int) -> Any:
    """Columns whose weighted sums are the moments that variances and slopes take.

    Of NumPy's or JAX's kind: `xp` is the module.
    """
    columns = [xp.ones_like(data[..., :1]), data]
    if order == 0:
        return xp.concatenate([*columns, data**2], axis=-1)
    pairs = data[..., :, None] * data[..., None, :]
    third = data[..., :, None] * data[..., None, :] ** 2
    return xp.concatenate([*columns, _flat(pairs, 1), _flat(third, 1)], axis=-1)


def _of_order_zero(columns: Any, dim: int) -> Any:
    """Those of the monomials that variances alone take."""
    squares = 1 + dim + np.arange(dim) * (dim + 1)
    return columns[:, np.concatenate([np.arange(1 + dim), squares])]


def _split(moments: jax.Array, data: jax.Array, orders: tuple[int, ...]) -> Any:
    """Moments (..., q, F) as arrays with so many axes of length D."""
    dim = data.shape[-1]
    ends = np.cumsum([dim**order for order in orders])[:-1]
    parts = jnp.split(moments, ends, axis=-1)
    # Sums of weights keep an axis of length one.
    shapes = [[dim] * order or [1] for order in orders]
    leading = moments.shape[:-1]
    return [
        part.reshape(*leading, *shape)
        for part, shape in zip(parts, shapes, strict=True)
    ]


def _central(points: jax.Array, moments: jax.Array) -> tuple[jax.Array, ...]:
    """From moments about the origin to those about the points.

    Variances, their slopes, sums of w_n (x_nd - x_d) (x_nj - x_j), and of w_n.
    """
    zeroth, first, pairs, third = _split(moments, points, (0, 1, 2, 2))
    across, along = points[..., :, None], points[..., None, :]
    offsets = first - points * zeroth
    products = pairs - across * first[..., None, :] - offsets[..., :, None] * along
    second = jnp.diagonal(pairs, axis1=-2, axis2=-1)
    variances = second - 2.0 * points * first + points**2 * zeroth
    # Sums of w_n (x_nd - x_d) (x_nj - x_j)^2.
    skews = (
        third
        - 2.0 * pairs * along
        + first[..., :, None] * along**2
        - across * variances[..., None, :]
    )
    eye = jnp.eye(points.shape[-1])
    slopes = skews - 2.0 * eye * offsets[..., :, None]
    return variances, slopes, products, zeroth
