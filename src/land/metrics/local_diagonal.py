"""The metric of the paper: inverse local diagonal covariances of the data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import device
from land._validation import check_points, check_positive
from land.metrics.base import Metric
from land.metrics.neighbours import (
    MOST_QUERIES,
    Blocks,
    Tiles,
    cut_off,
    neighbour_blocks,
    sums_within_reach,
)
from land.metrics.table import (
    VarianceTable,
    pays,
    variance_table,
    variances_from_table,
)

Array = NDArray[np.float64]

# Up to this many dimensions the derivative of h is read off third moments that ride
# along in the same matrix product; above it, D^2 columns cost more than reverse mode.
_MOMENT_DIMENSIONS = 6
# Data are padded to a multiple of this, so that similar sizes share a compilation.
_PADDING = 64
# Data are far from the origin if it is this many times farther than their extent.
_FAR = 4.0


@jax.tree_util.register_pytree_node_class
class LocalDiagonalMetric(Metric):
    """Inverse local diagonal covariance of the data (Sec. 3.1 of the paper).

    The tensor at x is diagonal, with entries ::

        M_dd(x) = 1 / h_d(x),    h_d(x) = sum_n w_n(x) (x_nd - x_d)^2 + rho,
        w_n(x) = exp(-|x_n - x|^2 / (2 sigma^2)),

    so moving is cheap along the data and costs 1/sqrt(rho) per unit far from them.

    Parameters
    ----------
    data : array_like of shape (n, D)
        The points the metric is learned from.
    sigma : float
        Width of the kernel.
    rho : float
        Regulariser: the local variance assumed where there are no data. It has the
        units of the squared coordinates.

    Notes
    -----
    With many data the sums leave out those farther than R sigma, where

        N sigma^2 (R^2 + 3)^2 exp(-R^2 / 2) = 1e-13 rho.

    The tensor, and the first and second derivatives of h in units of sigma, are then
    wrong by at most 1e-13 of h (`land.metrics.neighbours.cut_off` has the derivation);
    rounding comes on top, as in the sum over all data. R is about 10 in practice. Up to
    4096 data, in more than 6 dimensions, and wherever most data are within reach
    anyway, the sum is over all of them.

    In the plane, with more than 512 data, the sums come from a table once many
    geodesics are wanted (`land.metrics.table`): h and its first derivatives are then
    right to 1e-10 of h.

    Examples
    --------
    >>> import land
    >>> data = land.datasets.make_half_ellipse(random_state=0)
    >>> metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=1e-3)
    >>> metric.tensor([100.0, 0.0]).round(3).tolist()
    [[1000.0, 0.0], [0.0, 1000.0]]
    """

    def __init__(self, data: ArrayLike, sigma: float, rho: float) -> None:
        self.data = check_points("data", data, ndim=2)
        self.sigma = check_positive("sigma", sigma)
        self.rho = check_positive("rho", rho)
        self.dim = self.data.shape[1]
        self.center = self.data.mean(axis=0)
        self._centred: LocalDiagonalMetric | None = None
        self._blocks: Blocks | None
        self._scaled: Any
        self._features: Any
        self._table: VarianceTable | None = None
        self._may_tabulate = self.dim == 2
        # Coordinates in units of sigma about the centre: the expanded squares below
        # then lose as few digits as they can.
        scaled = (self.data - self.center) / self.sigma
        self._blocks = self._scaled = self._features = None
        if self.dim <= _MOMENT_DIMENSIONS:
            reach = cut_off(len(scaled), self.sigma, self.rho)
            self._blocks = neighbour_blocks(scaled, reach)
        if self._blocks is None:
            self._scaled, self._features = _padded(scaled)

    @property
    def landmarks(self) -> Array:
        """The data: geodesics run along them."""
        return self.data

    @property
    def resolution(self) -> float:
        """The width of the kernel."""
        return self.sigma

    def prepare(self, n_maps: int) -> None:
        """Tabulate the sums over the data, in the plane and if it pays."""
        if self._may_tabulate and pays(len(self.data), n_maps):
            self._may_tabulate = False
            scaled = (self.data - self.center) / self.sigma
            reach = cut_off(len(scaled), self.sigma, self.rho)
            rho = self.rho / self.sigma**2
            self._table = variance_table(scaled, reach, rho)

    def centred(self) -> tuple[LocalDiagonalMetric, Array]:
        """The metric of the data minus their mean, and that mean.

        Only for data far from the origin, where the subtraction is exact.
        """
        if not self._is_far:
            return self, np.zeros(self.dim)
        if self._centred is None:
            offsets = self.data - self.center
            self._centred = LocalDiagonalMetric(offsets, self.sigma, self.rho)
        return self._centred, self.center

    @cached_property
    def _is_far(self) -> bool:
        extent = np.abs(self.data - self.center).max()
        return bool(np.abs(self.center).max() > _FAR * extent)

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The paper's formula, as printed, for one point."""
        if self._blocks is None:
            data, present = self._scaled[:, : self.dim], self._features[:, 0]
        else:
            data, present = self._blocks.all_data()
        offsets = (data - (point - self.center) / self.sigma) * self.sigma
        weights = present * jnp.exp(-0.5 * jnp.sum((offsets / self.sigma) ** 2, axis=1))
        return 1.0 / (weights @ offsets**2 + self.rho)

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """All points at once, as matrix products over blocks that fit the cache."""
        if self._table is not None:
            rows = MOST_QUERIES
        elif self._blocks is None:
            rows = max(1, device().pairs // len(self._scaled))
        else:
            rows = MOST_QUERIES
        if len(points) <= rows:
            return self._tensor_block(points)
        n_blocks = -(-len(points) // rows)
        rows = -(-len(points) // n_blocks)
        padding = jnp.broadcast_to(
            points[:1], (n_blocks * rows - len(points), self.dim)
        )
        blocks = jnp.concatenate([points, padding]).reshape(n_blocks, rows, self.dim)
        block = self._tensor_block
        if self.dim > _MOMENT_DIMENSIONS:
            # Recomputing the weights in the reverse pass keeps memory at one block.
            block = jax.checkpoint(block)
        tensors = jax.lax.map(block, blocks)
        return tensors.reshape(-1, self.dim)[: len(points)]

    def _tensor_block(self, points: jax.Array) -> jax.Array:
        scaled = (points - self.center) / self.sigma
        if self._table is not None:
            variances = _tabulated_variances(scaled, self._table)
        elif self._blocks is not None:
            variances = _variances_nearby(scaled, self._blocks)
        elif self.dim <= _MOMENT_DIMENSIONS:
            variances = _variances_by_moments(scaled, self._scaled, self._features)
        else:
            variances = _variances(scaled, self._scaled, self._features)
        return 1.0 / (self.sigma**2 * variances + self.rho)

    def __repr__(self) -> str:
        return (
            f"LocalDiagonalMetric(data of shape {self.data.shape}, "
            f"sigma={self.sigma:g}, rho={self.rho:g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and other processes get what was given; the rest follows from it.
        return type(self), (self.data, self.sigma, self.rho)

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Everything the evaluation needs, as arguments of compiled functions."""
        leaves = (
            self.center,
            self.sigma,
            self.rho,
            self._scaled,
            self._features,
            self._blocks,
            self._table,
        )
        return leaves, self.dim

    @classmethod
    def tree_unflatten(cls, dim: int, leaves: Any) -> LocalDiagonalMetric:
        """Inverse of `tree_flatten`, without the host-side data."""
        metric = object.__new__(cls)
        metric.dim = dim
        (
            metric.center,
            metric.sigma,
            metric.rho,
            metric._scaled,
            metric._features,
            metric._blocks,
            metric._table,
        ) = leaves
        return metric


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _padded(data: Array) -> tuple[Array, Array]:
    """Augmented data and their features, with padding rows that weigh nothing."""
    rows = ((0, _round_up(len(data), _PADDING) - len(data)), (0, 0))
    return np.pad(_augment(data), rows), np.pad(_moment_features(data), rows)


def _moment_features(data: Array) -> Array:
    """Columns whose kernel-weighted sums give the variances (and their slopes)."""
    n, dim = data.shape
    columns = [np.ones((n, 1)), data, data**2]
    if dim <= _MOMENT_DIMENSIONS:
        columns.append(np.einsum("ni,nj->nij", data, data).reshape(n, -1))
        columns.append(np.einsum("ni,nj->nij", data, data**2).reshape(n, -1))
    return np.concatenate(columns, axis=1)


def _augment(data: Array) -> Array:
    """Rows (x, -|x|^2 / 2, 1): with (y, 1, -|y|^2 / 2) they give -|x - y|^2 / 2."""
    squares = np.sum(data**2, axis=1, keepdims=True)
    return np.concatenate([data, -0.5 * squares, np.ones_like(squares)], axis=1)


def _kernel_weights(points: jax.Array, data: jax.Array) -> jax.Array:
    """Weights exp(-|x_n - x|^2 / 2) in scaled coordinates, (n_points, n_data)."""
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    return jnp.exp(jnp.concatenate(augmented, axis=1) @ data.T)


def _variances(points: jax.Array, data: jax.Array, features: jax.Array) -> jax.Array:
    """Local variances sum_n w_n (x_nd - x_d)^2 in scaled coordinates."""
    dim = points.shape[1]
    moments = _kernel_weights(points, data) @ features[:, : 2 * dim + 1]
    zeroth, first, second = (
        moments[:, :1],
        moments[:, 1 : dim + 1],
        moments[:, dim + 1 :],
    )
    return _central_variances(points, zeroth, first, second)


@jax.custom_jvp
def _variances_by_moments(
    points: jax.Array, data: jax.Array, features: jax.Array
) -> jax.Array:
    return _variances_and_slopes(points, data, features)[0]


@_variances_by_moments.defjvp
def _variances_by_moments_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    # The data carry no tangents: metrics are differentiated in the point only.
    variances, slopes = _variances_and_slopes(*primals)
    return variances, jnp.einsum("bd,bdj->bj", tangents[0], slopes)


def _variances_and_slopes(
    points: jax.Array, data: jax.Array, features: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Local variances and their derivatives, slopes[b, d, j] = d variances_j / d x_d.

    One exponential per pair gives both: the derivative of the Gaussian kernel only
    raises the order of the moments by one.
    """
    n, dim = points.shape
    moments = _kernel_weights(points, data) @ features
    zeroth, first, second, cross, third = jnp.split(
        moments, np.cumsum([1, dim, dim, dim**2]), axis=1
    )
    cross, third = cross.reshape(n, dim, dim), third.reshape(n, dim, dim)
    return _central(points, zeroth, first, second, cross, third)


def _central(
    points: jax.Array,
    zeroth: jax.Array,
    first: jax.Array,
    second: jax.Array,
    cross: jax.Array,
    third: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Variances about the points, and their slopes, from moments about the origin."""
    variances = _central_variances(points, zeroth, first, second)
    offsets = first - points * zeroth
    # Central third moments sum_n w_n (x_nd - x_d) (x_nj - x_j)^2.
    skews = (
        third
        - 2.0 * cross * points[..., None, :]
        + first[..., :, None] * points[..., None, :] ** 2
        - points[..., :, None] * variances[..., None, :]
    )
    dim = points.shape[-1]
    return variances, skews - 2.0 * jnp.eye(dim) * offsets[..., :, None]


def _central_variances(
    points: jax.Array, zeroth: jax.Array, first: jax.Array, second: jax.Array
) -> jax.Array:
    return jnp.maximum(second - 2.0 * points * first + points**2 * zeroth, 0.0)


@jax.custom_jvp
def _variances_nearby(points: jax.Array, blocks: Blocks) -> jax.Array:
    """Local variances without the data out of reach."""

    def terms(tiles: Tiles) -> jax.Array:
        data, dim = tiles.data, tiles.data.shape[-1]
        columns = [jnp.ones_like(data[..., :1]), data, data**2]
        moments = tiles.weights @ jnp.concatenate(columns, axis=-1)
        split = jnp.split(moments, [1, dim + 1], axis=-1)
        return _central_variances(tiles.queries, *split)

    return sums_within_reach(points, blocks, terms)


@_variances_nearby.defjvp
def _variances_nearby_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    variances, slopes = _variances_and_slopes_nearby(*primals)
    return variances, jnp.einsum("bd,bdj->bj", tangents[0], slopes)


def _variances_and_slopes_nearby(
    points: jax.Array, blocks: Blocks
) -> tuple[jax.Array, jax.Array]:
    """The same as `_variances_and_slopes`, without the data out of reach."""
    n, dim = points.shape

    def terms(tiles: Tiles) -> jax.Array:
        data = tiles.data
        pairs = data[..., :, None] * data[..., None, :]
        matrices = [_flat(pairs), _flat(pairs * data[..., None, :])]
        columns = [jnp.ones_like(data[..., :1]), data, *matrices]
        moments = tiles.weights @ jnp.concatenate(columns, axis=-1)
        zeroth, first, cross, third = jnp.split(
            moments, np.cumsum([1, dim, dim**2]), axis=-1
        )
        square = (*moments.shape[:-1], dim, dim)
        cross, third = cross.reshape(square), third.reshape(square)
        second = jnp.diagonal(cross, axis1=-2, axis2=-1)
        variances, slopes = _central(tiles.queries, zeroth, first, second, cross, third)
        return jnp.concatenate([variances, _flat(slopes)], axis=-1)

    sums = sums_within_reach(points, blocks, terms)
    return sums[:, :dim], sums[:, dim:].reshape(n, dim, dim)


@jax.custom_jvp
def _tabulated_variances(points: jax.Array, table: VarianceTable) -> jax.Array:
    """Local variances from a table."""
    return variances_from_table(points, table)[0]


@_tabulated_variances.defjvp
def _tabulated_variances_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    variances, slopes = variances_from_table(*primals)
    return variances, jnp.einsum("bd,bdj->bj", tangents[0], slopes)


def _flat(matrices: jax.Array) -> jax.Array:
    """The last two axes as one."""
    return matrices.reshape(*matrices.shape[:-2], -1)
