"""What metrics that are learned from data have in common.

Their tensor at x is the inverse of a local variance h(x), which is linear in sums over
the data plus rho. A kind of metric says which sums, and how they make up h.
"""

from __future__ import annotations

import abc
from functools import cached_property
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._validation import check_points, check_positive
from land.metrics.base import Metric
from land.metrics.sums import MOMENT_DIMENSIONS, all_data, sum_derivatives
from land.metrics.table import Factors, SumTable, cut_off, sum_table
from land.metrics.tensors import invert_positive, product, transposed

Array = NDArray[np.float64]

# Squared distances in units of sigma lose this share squared of their digits.
_SMALLEST = 1e-6
# Data are far from the origin if it is this many times farther than their extent.
_FAR = 4.0


class LocalMetric(Metric):
    """The inverse of a local variance of the data.

    Subclasses have three methods: `_factors` and `_arranged` for many points at once,
    and `_variance` for a single one.
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

    @staticmethod
    @abc.abstractmethod
    def _variance(weights: jax.Array, offsets: jax.Array) -> jax.Array:
        """The local variance; weights (n,), offsets (n, D), all in units of sigma."""

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
        if self.is_tabulated or self.dim != 2:
            return self
        metric = object.__new__(type(self))
        metric.__dict__ |= {k: v for k, v in vars(self).items() if k != "_leaves"}
        if self._is_far:
            metric._about_center = self._about_center.tabulated()
        else:
            floor = self.rho / self.sigma**2
            metric._table = sum_table(self._scaled, self._factors(self.dim), floor)
        return metric if metric.is_tabulated else self

    @property
    def is_tabulated(self) -> bool:
        """Whether sums come from a table."""
        return self.centred()[0]._table is not None

    def centred(self) -> tuple[Self, Array]:
        """The metric of the data minus their mean, and that mean.

        Only for data far from the origin, where the subtraction is exact.
        """
        if not self._is_far:
            return self, np.zeros(self.dim)
        return self._about_center, self.center

    @cached_property
    def _about_center(self) -> Self:
        return type(self)(self.data - self.center, self.sigma, self.rho)

    @cached_property
    def _is_far(self) -> bool:
        extent = np.abs(self.data - self.center).max()
        return bool(np.abs(self.center).max() > _FAR * extent)

    @property
    def _scaled(self) -> Array:
        return np.asarray((self.data - self.center) / self.sigma)

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The formula, as printed, for one point."""
        data, present = self._sums.rows[:, : self.dim], self._sums.columns[:, 0]
        offsets = data - (point - self.center) / self.sigma
        weights = present * jnp.exp(-0.5 * jnp.sum(offsets**2, axis=1))
        variance = self.sigma**2 * self._variance(weights, offsets)
        return invert_positive(variance, self.rho, variance.ndim == 2)

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """All points at once, as matrix products over blocks that fit the cache."""
        if self.dim > MOMENT_DIMENSIONS:
            return _jet(points, self, 0)[0]
        return _tensors(points, self)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Tensors and derivatives of 1 / h by those of h, which come from one sum."""
        if self.dim > MOMENT_DIMENSIONS:  # one at a time: D^2 numbers for each datum
            tensors, slopes, bends = jax.lax.map(self.jet_at, points)
        else:
            tensors, slopes, bends = _jet(points, self, 2)
        return tensors, slopes, bends

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


def _jet(points: jax.Array, metric: Any, order: int) -> tuple[jax.Array, ...]:
    """Tensors and their derivatives up to an order."""
    sigma, dim = metric.sigma, metric.dim
    source = metric._sums if metric._table is None else metric._table
    found = sum_derivatives(
        (points - metric.center) / sigma, source, metric._factors(dim), order
    )
    # The local variance h and its derivatives, the latter in units of sigma.
    h, *others = (metric._arranged(part, dim) for part in found)
    full = h.ndim == 3
    tensors = invert_positive(sigma**2 * h, metric.rho, full)
    if order == 0:
        return (tensors,)
    # M' = -M h' M
    around = tensors[:, None]
    halves = product(sigma * others[0], around, full)
    falls = -product(around, halves, full)
    if order == 1:
        return tensors, falls
    # M'' = -M h'' M - M' h' M - (M' h' M)^T
    around = around[:, None]
    bends = product(product(around, others[1], full), around, full)
    steep = product(falls[:, :, None], halves[:, None], full)
    return tensors, falls, -bends - steep - transposed(steep, full)


# Metrics are differentiated in the points only.


@jax.custom_jvp
def _tensors(points: jax.Array, metric: Any) -> jax.Array:
    return _jet(points, metric, 0)[0]


@_tensors.defjvp
def _tensors_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    points, metric = primals
    tensors, slopes = _jet(points, metric, 1)
    # Neither products of tiny matrices nor sums over a short axis: both are slow.
    ways = tangents[0].reshape(*points.shape, *(slopes.ndim - 2) * [1])
    terms = [ways[:, axis] * slopes[:, axis] for axis in range(points.shape[1])]
    return tensors, sum(terms[1:], terms[0])


def _rebuild(kind: Any, given: tuple[Any, ...], is_tabulated: bool) -> LocalMetric:
    metric: LocalMetric = kind(*given)
    return metric.tabulated() if is_tabulated else metric
