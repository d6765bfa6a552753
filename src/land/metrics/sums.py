"""Sums over the data with Gaussian weights.

What a metric learns from data at a point x are sums of weights w_n times offsets
x_n - x in some coordinates. Its `factors` say which: (i, j) is the sum of
w_n (x_ni - x_i) (x_nj - x_j), an entry of the local covariance; () is that of w_n.
They come from moments about the origin: sums of w_n times monomials of x_n, which are
one matrix product. Everything here is in units of sigma.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land.metrics.table import Factors
from land.metrics.tensors import FEW_DIMENSIONS, along, columns

Array = NDArray[np.float64]

# Data are padded to a multiple of this, so that similar sizes share a compilation.
_PADDING = 64


class AllData(NamedTuple):
    """All data, padded with rows that are none.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    rows: Any  # (n, D + 2): x, -|x|^2 / 2, 1
    # (n, K) monomials of x, and in few dimensions (n, D K) those times each coordinate;
    # zero for padding
    columns: Any


def all_data(scaled: Array, factors: Factors) -> AllData:
    """The data (n, D) as a source of sums."""
    n, dim = scaled.shape
    ones = np.ones((n, 1))
    rows = np.hstack([scaled, -0.5 * np.sum(scaled**2, axis=1, keepdims=True), ones])
    monomials = ones
    if factors != ((),):
        i, j = np.transpose(factors)
        monomials = np.hstack([ones, scaled, scaled[:, i] * scaled[:, j]])
    if dim <= FEW_DIMENSIONS:
        raised = scaled[:, :, None] * monomials[:, None]
        monomials = np.hstack([monomials, raised.reshape(n, -1)])
    room = ((0, -n % _PADDING), (0, 0))
    return AllData(np.pad(rows, room), np.pad(monomials, room))


def sums_over_data(points: jax.Array, source: AllData, factors: Factors) -> jax.Array:
    """Sums at points: (n, D) -> (n, F)."""
    dim = points.shape[1]
    if dim <= FEW_DIMENSIONS:
        moments = _moments(points, source)
    else:  # computing the weights again in the reverse pass keeps them out of memory
        moments = jax.checkpoint(_raw)(points, source)
    if factors == ((),):
        return moments
    zeroth, first, second = jnp.split(moments, [1, 1 + dim], axis=1)
    i, j = np.transpose(factors)
    x_i, x_j = columns(points, i), columns(points, j)
    return (
        second - x_i * columns(first, j) - x_j * columns(first, i) + x_i * x_j * zeroth
    )


def _weights(points: jax.Array, source: AllData) -> jax.Array:
    """Kernels between points and data, (n, N)."""
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    return jnp.exp(jnp.concatenate(augmented, axis=1) @ source.rows.T)


def _raw(points: jax.Array, source: AllData) -> jax.Array:
    return _weights(points, source) @ source.columns


# In few dimensions: one exponential for each pair of point and datum gives moments and
# slopes, and theirs once more. As d w_n / dx = w_n (x_n - x), slopes are moments of one
# order more, and come out of the same matrix product; automatic differentiation would
# take one for each coordinate. Metrics are differentiated in the points only.


@jax.custom_jvp
def _moments(points: jax.Array, source: AllData) -> jax.Array:
    count = source.columns.shape[1] // (1 + points.shape[1])
    return _weights(points, source) @ source.columns[:, :count]


@_moments.defjvp
def _moments_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    points, source = primals
    n, dim = points.shape
    found = _all_moments(points, source).reshape(n, 1 + dim, -1)
    moments = found[:, 0]
    return moments, along(
        tangents[0], found[:, 1:] - points[:, :, None] * moments[:, None]
    )


@jax.custom_jvp
def _all_moments(points: jax.Array, source: AllData) -> jax.Array:
    return _raw(points, source)


@_all_moments.defjvp
def _all_moments_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    points, source = primals
    weights = _weights(points, source)
    # Differences, not expanded: fourth moments about the origin would have lost their
    # digits.
    slopes = [
        (weights * (source.rows[:, axis] - points[:, axis, None])) @ source.columns
        for axis in range(points.shape[1])
    ]
    return weights @ source.columns, along(tangents[0], jnp.stack(slopes, axis=1))
