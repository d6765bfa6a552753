"""A metric that is the same in all directions, from a kernel density of the data."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from land.metrics.local import LocalMetric
from land.metrics.table import Factors


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

    Notes
    -----
    In the plane, `tabulated` makes geodesics among many data faster.

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

    @staticmethod
    def _variance(weights: jax.Array, offsets: jax.Array) -> jax.Array:
        return jnp.broadcast_to(jnp.sum(weights), offsets.shape[1])
