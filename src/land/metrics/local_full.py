"""Inverse local covariances of the data, with all their entries."""

from __future__ import annotations

import jax
import numpy as np

from land.metrics.local import LocalMetric
from land.metrics.sums import columns
from land.metrics.table import Factors


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

    Notes
    -----
    In the plane, `tabulated` makes geodesics among many data faster.

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

    @staticmethod
    def _variance(weights: jax.Array, offsets: jax.Array) -> jax.Array:
        return (weights * offsets.T) @ offsets
