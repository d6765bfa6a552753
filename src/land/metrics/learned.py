"""Metrics that are learned from data: inverse local variances and densities.

Their tensor at x is the inverse of a local variance h(x), which is linear in sums over
the data plus rho. A kind of metric says which sums, and how they make up h.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import device
from land._validation import check_points, check_positive
from land.metrics.base import Metric, derivatives_of
from land.metrics.sums import all_data, sums_over_data
from land.metrics.table import Factors, SumTable, cut_off, sum_table, sums_from_table
from land.metrics.tensors import columns, invert_positive

Array = NDArray[np.float64]

# Squared distances in units of sigma lose this share squared of their digits.
_SMALLEST = 1e-6
# Data are far from the origin if it is this many times farther than their extent.
_FAR = 4.0
# All attributes but those that are computed when they are asked for.
_STORED = ("data", "sigma", "rho", "dim", "center", "_sums", "_table")


class LocalMetric(Metric):
    """The inverse of a local variance of the data.

    Subclasses say which sums over the data it takes, and how they are arranged.
    """

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
        # Coordinates in units of sigma about the centre: expanded squares then lose as
        # few digits as they can.
        self._sums: Any = all_data(self._scaled, self._factors(self.dim))

    @staticmethod
    @abc.abstractmethod
    def _factors(dim: int) -> Factors:
        """Which sums over the data it takes, see `land.metrics.sums`."""

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
        the metric itself. The cost does not depend on the number of data; the sums are
        right to 1e-9 of the largest ones within half a sigma.
        """
        if self.is_tabulated:
            return self
        floor = self.rho / self.sigma**2
        table = sum_table(self._scaled, self._factors(self.dim), floor)
        return self if table is None else self._with(_table=table)

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
    def _about_center(self) -> Self:
        return self._with(data=self.data - self.center, center=np.zeros(self.dim))

    def _with(self, **changes: Any) -> Self:
        """A copy with other attributes, and without what follows from them."""
        metric = object.__new__(type(self))
        metric.__dict__ |= {name: vars(self)[name] for name in _STORED} | changes
        return metric

    @cached_property
    def _is_far(self) -> bool:
        extent = np.abs(self.data - self.center).max()
        return bool(np.abs(self.center).max() > _FAR * extent)

    @property
    def _scaled(self) -> Array:
        return np.asarray((self.data - self.center) / self.sigma)

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The tensor at one point: a batch of one."""
        return self.tensor_batch(point[None])[0]

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """All points at once, as matrix products over runs that fit the cache."""
        return self._in_runs(self._tensors, points, 1)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The same with derivatives, each of which takes weights of its own."""
        derivatives = 1 + self.dim + self.dim**2
        jet = partial(derivatives_of, self._tensors)
        return self._in_runs(jet, points, derivatives)

    def _tensors(self, points: jax.Array) -> jax.Array:
        scaled = (points - self.center) / self.sigma
        factors = self._factors(self.dim)
        if self._table is not None:
            sums = sums_from_table(scaled, self._table)
        else:
            sums = sums_over_data(scaled, self._sums, factors)
        # Variances are never negative, but for rounding where there is next to nothing.
        variances = np.array([len(set(each)) < 2 for each in factors])
        missing = jnp.where(variances, jnp.maximum(-sums, 0.0), 0.0)
        sums += jax.lax.stop_gradient(missing)
        h = self.sigma**2 * self._arranged(sums, self.dim)
        return invert_positive(h, self.rho, h.ndim == 3)

    def _in_runs(
        self, function: Callable[[jax.Array], Any], points: jax.Array, arrays: int
    ) -> Any:
        """Arrays that a function gives for points (n, D), so many at once.

        Memory is bounded, and on a processor the arrays of all pairs of points and data
        fit the cache.
        """
        n, dim = points.shape
        n_data = 1 if self._table is not None else len(self._sums.rows)
        most = max(1, device().pairs // (n_data * arrays))
        if n <= most:
            return function(points)
        n_runs = -(-n // most)
        length = -(-n // n_runs)
        padding = jnp.broadcast_to(points[:1], (n_runs * length - n, dim))
        runs = jnp.concatenate([points, padding]).reshape(n_runs, length, dim)
        found = jax.lax.map(function, runs)
        return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[:n], found)

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
        return columns(sums, places.ravel()).reshape(*sums.shape[:-1], dim, dim)


@jax.tree_util.register_pytree_node_class
class DensityMetric(LocalMetric):
    """Inverse kernel density of the data: moving is cheap where data are many.

    The tensor at x is the identity divided by ::

        h(x) = sigma^2 sum_n w_n(x) + rho,    w_n(x) = exp(-|x_n - x|^2 / (2 sigma^2)).

    Where the density hardly changes within sigma, sigma^2 sum_n w_n is the local
    variance of `LocalDiagonalMetric` and `LocalFullMetric` in every direction. So rho
    means the same in all three, and they differ where the data have a direction:
    angles under this metric are those of the coordinates.

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
