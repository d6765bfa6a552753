"""Metrics that are learned from data: inverse local variances and densities.

Their tensor at x is the inverse of a local variance h(x): rho plus a linear function of
sums over the data of weights w_n times offsets x_n - x. A kind of metric says by its
`factors` which sums: (i, j) is that of w_n (x_ni - x_i) (x_nj - x_j), () that of w_n.
They come from moments about the origin: sums of w_n times monomials of x_n, which are
one matrix product. Sums are in units of sigma.
"""

from __future__ import annotations

import abc
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import device
from land._validation import check_points, check_positive
from land.metrics.base import Metric, derivatives_of, in_runs
from land.metrics.table import Factors, SumTable, cut_off, sum_table, sums_from_table
from land.metrics.tensors import FEW_DIMENSIONS, along, invert_positive

Array = NDArray[np.float64]

# Squared distances in units of sigma lose this share squared of their digits.
_SMALLEST = 1e-6
# Data are padded to a multiple of this, so that similar sizes share a compilation.
_PADDING = 64
# Data are far from the origin if it is this many times farther than their extent.
_FAR = 4.0


class LocalMetric(Metric):
    """The inverse of a local variance, made of sums that subclasses choose."""

    def __init__(self, data: ArrayLike, sigma: float, rho: float) -> None:
        self.data = check_points("data", data, ndim=2)
        self.sigma = check_positive("sigma", sigma)
        self.rho = check_positive("rho", rho)
        self.dim = self.data.shape[1]
        self.center = self.data.mean(axis=0)
        extent = float(np.abs(self.data - self.center).max())
        if self.sigma < _SMALLEST * extent:
            raise ValueError(
                f"sigma must be at least {_SMALLEST:g} of the extent of the data "
                f"({extent:g}), got {self.sigma:g}: rounding would hide the kernels"
            )
        self._table: SumTable | None = None
        # About the centre, where expanded squares lose the fewest digits.
        self._sums: Any = _all_data(self._scaled, self._factors(self.dim))

    @staticmethod
    @abc.abstractmethod
    def _factors(dim: int) -> Factors:
        """Which sums over the data it takes."""

    @staticmethod
    @abc.abstractmethod
    def _arranged(sums: jax.Array, dim: int) -> jax.Array:
        """Sums (..., F) as local variances, (..., D) or (..., D, D)."""

    @property
    def landmarks(self) -> Array:
        """The data: geodesics run along them."""
        return self.data

    @property
    def resolution(self) -> float:
        """The width of the kernel."""
        return self.sigma

    @cached_property
    def flat_outside(self) -> tuple[Array, float]:
        """The data and what is within reach of their kernels."""
        extent = np.linalg.norm(self.data - self.center, axis=1).max()
        reach = self.sigma * cut_off(len(self.data), self.rho / self.sigma**2)
        return self.center, float(extent + reach)

    def tabulated(self) -> Self:
        """The same metric, its sums over the data from a table of polynomials.

        Only in the plane, and if the table is neither too large nor inaccurate; else
        the metric itself. The cost does not depend on the number of data.
        """
        if self.is_tabulated:
            return self
        floor = self.rho / self.sigma**2
        table = sum_table(self._scaled, self._factors(self.dim), floor)
        if table is None:
            return self
        metric = type(self)(self.data, self.sigma, self.rho)
        metric._table = table
        return metric

    @property
    def is_tabulated(self) -> bool:
        """Whether sums come from a table."""
        return self._table is not None

    def centred(self) -> tuple[Self, Array]:
        """The metric of the data minus their mean, and that mean.

        Only for data far from the origin, where the subtraction is exact.
        """
        if not self._is_far:
            return self, np.zeros(self.dim)
        return self._about_center, self.center

    @cached_property
    def _is_far(self) -> bool:
        extent = np.abs(self.data - self.center).max()
        return bool(np.abs(self.center).max() > _FAR * extent)

    @cached_property
    def _about_center(self) -> Self:
        metric = type(self)(self.data - self.center, self.sigma, self.rho)
        metric.center = np.zeros(self.dim)
        metric._sums, metric._table = self._sums, self._table
        return metric

    @property
    def _scaled(self) -> Array:
        return np.asarray((self.data - self.center) / self.sigma)

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The tensor at one point: a batch of one."""
        return self.tensor_batch(point[None])[0]

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """Tensors at many points, by matrix products."""
        return in_runs(self._tensors, points, self._at_once)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The same with derivatives, each of which takes weights of its own."""
        jet = partial(derivatives_of, self._tensors)
        return in_runs(jet, points, self._at_once // (1 + self.dim + self.dim**2))

    def _tensors(self, points: jax.Array) -> jax.Array:
        scaled = (points - self.center) / self.sigma
        factors = self._factors(self.dim)
        if self._table is not None:
            sums = sums_from_table(scaled, self._table)
        else:
            sums = _sums_over_data(scaled, self._sums, factors)
        # Variances are never negative, but for rounding where there is next to nothing.
        variances = np.array([len(set(each)) < 2 for each in factors])
        missing = jnp.where(variances, jnp.maximum(-sums, 0.0), 0.0)
        sums += jax.lax.stop_gradient(missing)
        h = self.sigma**2 * self._arranged(sums, self.dim)
        return invert_positive(h, self.rho, h.ndim == 3)

    @property
    def _at_once(self) -> int:
        """Points whose weights fit the cache."""
        return device().pairs // (1 if self.is_tabulated else len(self._sums.rows))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(data of shape {self.data.shape}, "
            f"sigma={self.sigma:g}, rho={self.rho:g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and other processes get what was given; the rest follows from it.
        given = (self.data, self.sigma, self.rho)
        return _rebuild, (type(self), given, self.is_tabulated)

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Everything the evaluation needs, as arguments of compiled functions."""
        return self._leaves, self.dim

    @cached_property
    def _leaves(self) -> tuple[Any, ...]:
        """Arrays on the device: nobody wants to copy them there for every call."""
        sums = self._sums if self._table is None else None
        leaves = (self.center, self.sigma, self.rho, sums, self._table)
        with jax.enable_x64(True):
            return jax.device_put(jax.tree.map(np.asarray, leaves))

    @classmethod
    def tree_unflatten(cls, dim: int, leaves: Any) -> Self:
        """Inverse of `tree_flatten`, without the host-side data."""
        metric = object.__new__(cls)
        metric.dim = dim
        metric.center, metric.sigma, metric.rho, metric._sums, metric._table = leaves
        metric.__dict__["_leaves"] = leaves
        return metric


def _rebuild(kind: Any, given: tuple[Any, ...], is_tabulated: bool) -> LocalMetric:
    metric: LocalMetric = kind(*given)
    return metric.tabulated() if is_tabulated else metric


@jax.tree_util.register_pytree_node_class
class LocalDiagonalMetric(LocalMetric):
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

    Examples
    --------
    >>> import land
    >>> data = land.datasets.make_half_ellipse(random_state=0)
    >>> metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=1e-3)
    >>> metric.tensor([100.0, 0.0]).round(3).tolist()
    [[1000.0, 0.0], [0.0, 1000.0]]
    """

    @staticmethod
    def _factors(dim: int) -> Factors:
        return tuple((d, d) for d in range(dim))

    @staticmethod
    def _arranged(sums: jax.Array, dim: int) -> jax.Array:
        return sums


@jax.tree_util.register_pytree_node_class
class LocalFullMetric(LocalMetric):
    """Inverse local covariance of the data.

    The tensor at x is ::

        M(x) = (S(x) + rho I)^-1,    S(x) = sum_n w_n(x) (x_n - x) (x_n - x)^T,
        w_n(x) = exp(-|x_n - x|^2 / (2 sigma^2)).

    The diagonal of S is the paper's local variance, see `LocalDiagonalMetric`. With all
    its entries, turning the data turns the geodesics: moving along the data is as cheap
    on a slant as it is along an axis.

    Parameters
    ----------
    data, sigma, rho
        As for `LocalDiagonalMetric`.

    Examples
    --------
    >>> import land
    >>> data = [[x, x] for x in range(10)]
    >>> metric = land.metrics.LocalFullMetric(data, sigma=2.0, rho=1.0)
    >>> along, across = metric.inner([4.5, 4.5], [[1, 1], [1, -1]], [[1, 1], [1, -1]])
    >>> bool(along < 0.1 * across)
    True
    """

    @staticmethod
    def _factors(dim: int) -> Factors:
        return tuple((i, j) for i in range(dim) for j in range(i, dim))

    @staticmethod
    def _arranged(sums: jax.Array, dim: int) -> jax.Array:
        places = np.empty((dim, dim), dtype=np.intp)
        i, j = np.triu_indices(dim)
        places[i, j] = places[j, i] = np.arange(len(i))
        return sums[..., places]


@jax.tree_util.register_pytree_node_class
class DensityMetric(LocalMetric):
    """Inverse kernel density of the data: moving is cheap where data are many.

    The tensor at x is the identity divided by ::

        h(x) = sigma^2 sum_n w_n(x) + rho,    w_n(x) = exp(-|x_n - x|^2 / (2 sigma^2)).

    Where the density hardly changes within sigma, sigma^2 sum_n w_n is the local
    variance of the other two in every direction, so rho means the same in all three.
    Angles under this metric are those of the coordinates.

    Parameters
    ----------
    data, sigma, rho
        As for `LocalDiagonalMetric`.

    Examples
    --------
    >>> import land
    >>> metric = land.metrics.DensityMetric([[0.0, 0.0]], sigma=1.0, rho=1.0)
    >>> metric.tensor([0.0, 0.0]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    @staticmethod
    def _factors(dim: int) -> Factors:
        return ((),)

    @staticmethod
    def _arranged(sums: jax.Array, dim: int) -> jax.Array:
        return jnp.broadcast_to(sums, (*sums.shape[:-1], dim))


class _AllData(NamedTuple):
    """All data, padded with rows that are none.

    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    rows: Any  # (n, D + 2): x, -|x|^2 / 2, 1
    # (n, K) monomials of x, and in few dimensions (n, D K) those times each coordinate;
    # zero for padding
    columns: Any


def _all_data(scaled: Array, factors: Factors) -> _AllData:
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
    return _AllData(np.pad(rows, room), np.pad(monomials, room))


def _sums_over_data(points: jax.Array, source: _AllData, factors: Factors) -> jax.Array:
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
    x_i, x_j = points[:, i], points[:, j]
    return second - x_i * first[:, j] - x_j * first[:, i] + x_i * x_j * zeroth


def _weights(points: jax.Array, source: _AllData) -> jax.Array:
    """Kernels between points and data, (n, N)."""
    squares = jnp.sum(points**2, axis=1, keepdims=True)
    augmented = [points, jnp.ones_like(squares), -0.5 * squares]
    return jnp.exp(jnp.concatenate(augmented, axis=1) @ source.rows.T)


def _raw(points: jax.Array, source: _AllData) -> jax.Array:
    return _weights(points, source) @ source.columns


# In few dimensions: one exponential for each pair of point and datum gives moments and
# slopes, and theirs once more. As d w_n / dx = w_n (x_n - x), slopes are moments of one
# order more, and come out of the same matrix product; automatic differentiation would
# take one for each coordinate. Metrics are differentiated in the points only.


@jax.custom_jvp
def _moments(points: jax.Array, source: _AllData) -> jax.Array:
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
def _all_moments(points: jax.Array, source: _AllData) -> jax.Array:
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
