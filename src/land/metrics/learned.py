"""Metrics that are learned from data: inverse local variances and densities."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from land.metrics.local import LocalMetric
from land.metrics.table import Factors
from land.metrics.tensors import columns


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
