"""The metric of the paper: inverse local diagonal covariances of the data."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._validation import check_points, check_positive
from land.metrics.base import Metric
from land.metrics.table import VarianceTable, cut_off, variance_table
from land.metrics.variances import MOMENT_DIMENSIONS, all_data, variance_derivatives

Array = NDArray[np.float64]

# Squared distances in units of sigma lose this share squared of their digits.
_SMALLEST = 1e-6
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
    In the plane, `tabulated` makes geodesics among many data faster.

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
        extent = float(np.abs(self.data - self.center).max())
        if self.sigma < _SMALLEST * extent:
            raise ValueError(
                f"sigma must be at least {_SMALLEST:g} of the extent of the data "
                f"({extent:g}), got {self.sigma:g}: rounding would hide the kernels"
            )
        self._table: VarianceTable | None = None
        # Coordinates in units of sigma about the centre: expanded squares then lose as
        # few digits as they can.
        self._sums: Any = all_data((self.data - self.center) / self.sigma)

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
        reach = self.sigma * cut_off(len(self.data), self.sigma, self.rho)
        return self.center, float(extent + reach)

    def tabulated(self) -> LocalDiagonalMetric:
        """The same metric, its sums over the data from a table of polynomials.

        Only in the plane, and if the table is neither too large nor inaccurate; else
        the metric itself. The cost does not depend on the number of data; h is right to
        1e-9 of the largest h within half a sigma.
        """
        if self.is_tabulated or self.dim != 2:
            return self
        metric = object.__new__(LocalDiagonalMetric)
        metric.__dict__ |= {k: v for k, v in vars(self).items() if k != "_leaves"}
        if self._is_far:
            metric._about_center = self._about_center.tabulated()
            return metric if metric.is_tabulated else self
        scaled = (self.data - self.center) / self.sigma
        reach = cut_off(len(scaled), self.sigma, self.rho)
        metric._table = variance_table(scaled, reach, self.rho / self.sigma**2)
        return metric if metric.is_tabulated else self

    @property
    def is_tabulated(self) -> bool:
        """Whether sums come from a table."""
        return self.centred()[0]._table is not None

    def centred(self) -> tuple[LocalDiagonalMetric, Array]:
        """The metric of the data minus their mean, and that mean.

        Only for data far from the origin, where the subtraction is exact.
        """
        if not self._is_far:
            return self, np.zeros(self.dim)
        return self._about_center, self.center

    @cached_property
    def _about_center(self) -> LocalDiagonalMetric:
        return LocalDiagonalMetric(self.data - self.center, self.sigma, self.rho)

    @cached_property
    def _is_far(self) -> bool:
        extent = np.abs(self.data - self.center).max()
        return bool(np.abs(self.center).max() > _FAR * extent)

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The paper's formula, as printed, for one point."""
        data, present = self._sums.rows[:, : self.dim], self._sums.columns[:, 0]
        offsets = (data - (point - self.center) / self.sigma) * self.sigma
        weights = present * jnp.exp(-0.5 * jnp.sum((offsets / self.sigma) ** 2, axis=1))
        return 1.0 / (weights @ offsets**2 + self.rho)

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """All points at once, as matrix products over blocks that fit the cache."""
        if self.dim > MOMENT_DIMENSIONS:
            return _jet(points, self._parts, 0)[0]
        return _tensors(points, self._parts)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Tensors and derivatives of 1 / h by those of h, which come from one sum."""
        if self.dim > MOMENT_DIMENSIONS:  # one at a time: D^2 numbers for each datum
            tensors, slopes, bends = jax.lax.map(self.jet_at, points)
        else:
            tensors, slopes, bends = _jet(points, self._parts, 2)
        return tensors, slopes, bends

    @property
    def _parts(self) -> tuple[Any, ...]:
        source = self._sums if self._table is None else self._table
        return self.center, self.sigma, self.rho, source

    def __repr__(self) -> str:
        return (
            f"LocalDiagonalMetric(data of shape {self.data.shape}, "
            f"sigma={self.sigma:g}, rho={self.rho:g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and other processes get what was given; the rest follows from it.
        return _rebuild, (self.data, self.sigma, self.rho, self.is_tabulated)

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
    def tree_unflatten(cls, dim: int, leaves: Any) -> LocalDiagonalMetric:
        """Inverse of `tree_flatten`, without the host-side data."""
        metric = object.__new__(cls)
        metric.dim = dim
        metric.center, metric.sigma, metric.rho, metric._sums, metric._table = leaves
        metric.__dict__["_leaves"] = leaves
        return metric


def _jet(points: jax.Array, parts: Any, order: int) -> tuple[jax.Array, ...]:
    """Tensors and their derivatives up to an order."""
    center, sigma, rho, source = parts
    found = variance_derivatives((points - center) / sigma, source, order)
    tensors = 1.0 / (sigma**2 * found[0] + rho)
    if order == 0:
        return (tensors,)
    # Derivatives of h are in units of sigma.
    slopes, squares = sigma * found[1], tensors[:, None] ** 2
    falls = -slopes * squares
    if order == 1:
        return tensors, falls
    steep = 2.0 * tensors[:, None, None] * falls[:, :, None] * slopes[:, None]
    return tensors, falls, -steep - found[2] * squares[:, None]


# Metrics are differentiated in the points only.


@jax.custom_jvp
def _tensors(points: jax.Array, parts: Any) -> jax.Array:
    return _jet(points, parts, 0)[0]


@_tensors.defjvp
def _tensors_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    points, parts = primals
    tensors, slopes = _jet(points, parts, 1)
    # Neither products of tiny matrices nor sums over a short axis: both are slow.
    ways = jnp.split(tangents[0], points.shape[1], axis=1)
    terms = [way * slopes[:, axis] for axis, way in enumerate(ways)]
    return tensors, sum(terms[1:], terms[0])


def _rebuild(
    data: Array, sigma: float, rho: float, is_tabulated: bool
) -> LocalDiagonalMetric:
    metric = LocalDiagonalMetric(data, sigma, rho)
    return metric.tabulated() if is_tabulated else metric
