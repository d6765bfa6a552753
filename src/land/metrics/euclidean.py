"""The flat metric: straight lines, ordinary distances."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._validation import check_count
from land.metrics.base import Metric


@jax.tree_util.register_pytree_node_class
class EuclideanMetric(Metric):
    """The identity metric in `dim` dimensions.

    Under it the LAND is the ordinary normal distribution, which makes it the
    strongest check there is.
    """

    def __init__(self, dim: int) -> None:
        self.dim = check_count("dim", dim)

    @property
    def is_flat(self) -> bool:
        """It is."""
        return True

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The identity, as its diagonal."""
        return jnp.ones_like(point)

    def host_tensors(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ones."""
        return np.ones(points.shape)

    def __repr__(self) -> str:
        return f"EuclideanMetric(dim={self.dim})"

    def tree_flatten(self) -> tuple[tuple[()], int]:
        """No arrays; the dimension is static."""
        return (), self.dim

    @classmethod
    def tree_unflatten(cls, dim: int, leaves: Any) -> EuclideanMetric:
        """Inverse of `tree_flatten`."""
        return cls(dim)
