"""Weighted means of given tensors, each of which counts near its centre."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import device
from land._validation import check_covariance, check_points, check_positive
from land.metrics.base import Metric, derivatives_of, in_runs

Array = NDArray[np.float64]


@jax.tree_util.register_pytree_node_class
class MixtureMetric(Metric):
    """A weighted mean of local metrics, such as one for each cluster or class.

    The tensor at x is ::

        M(x) = sum_k w_k(x) M_k,    w_k(x) proportional to exp(-|x - c_k|^2 / (2 s^2)),

    with weights that sum to one and s for sigma. Far from all centres it is the tensor
    of the nearest one.

    Parameters
    ----------
    centers : array_like of shape (K, D)
        Where the tensors are known; geodesics may be routed through these points.
    tensors : array_like of shape (K, D) or (K, D, D)
        The tensor of each centre, as its diagonal or as a symmetric matrix; positive
        definite.
    sigma : float
        Width of the weights. Where centres are farther apart than a few sigma, the
        tensor changes quickly from one to the other half-way between them.

    References
    ----------
    Hauberg, Freifeld and Black (2012), A Geometric take on Metric Learning.

    Examples
    --------
    Half the cost to the right of the origin:

    >>> import land
    >>> centers, tensors = [[-1.0, 0.0], [1.0, 0.0]], [[4.0, 4.0], [1.0, 1.0]]
    >>> metric = land.metrics.MixtureMetric(centers, tensors, sigma=0.5)
    >>> metric.tensor([0.0, 3.0]).tolist()
    [[2.5, 0.0], [0.0, 2.5]]
    >>> left = land.geodesic(metric, [-9.0, 0.0], [-8.0, 0.0]).length
    >>> right = land.geodesic(metric, [8.0, 0.0], [9.0, 0.0]).length
    >>> round(left, 6), round(right, 6)
    (2.0, 1.0)
    """

    def __init__(self, centers: ArrayLike, tensors: ArrayLike, sigma: float) -> None:
        self.centers = check_points("centers", centers, ndim=2)
        count, self.dim = self.centers.shape
        given = check_points("tensors", tensors, self.dim)
        if given.shape not in ((count, self.dim), (count, self.dim, self.dim)):
            raise ValueError(
                f"tensors must have shape ({count}, {self.dim}) for diagonal ones or "
                f"({count}, {self.dim}, {self.dim}), one for each of the centers, got "
                f"{given.shape}"
            )
        if given.ndim == 3:
            each = [
                check_covariance(f"tensors[{k}]", one, self.dim)
                for k, one in enumerate(given)
            ]
            given = 0.5 * (np.array(each) + np.swapaxes(each, 1, 2))
        elif given.min() <= 0.0:
            raise ValueError(f"tensors must be positive, got {given.min():g}")
        self.tensors = given
        self.sigma = check_positive("sigma", sigma)

    @property
    def landmarks(self) -> Array | None:
        """The centres, if there are several."""
        return self.centers if len(self.centers) > 1 else None

    @property
    def resolution(self) -> float:
        """The width of the weights."""
        return self.sigma

    def centred(self) -> tuple[MixtureMetric, Array]:
        """The metric of the centres minus their mean, and that mean."""
        return self._about_mean

    @cached_property
    def _about_mean(self) -> tuple[MixtureMetric, Array]:
        mean = self.centers.mean(axis=0)
        return type(self)(self.centers - mean, self.tensors, self.sigma), mean

    def tensor_at(self, point: jax.Array) -> jax.Array:
        """The tensor at one point: a batch of one."""
        return self.tensor_batch(point[None])[0]

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """Tensors at many points."""
        return in_runs(self._means, points, self._at_once)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The same with derivatives, each of which takes weights of its own."""
        jet = partial(derivatives_of, self._means)
        return in_runs(jet, points, self._at_once // (1 + self.dim + self.dim**2))

    @property
    def _at_once(self) -> int:
        """Points whose offsets from the centres fit the cache."""
        return device().pairs // self.centers.size

    def _means(self, points: jax.Array) -> jax.Array:
        offsets = (points[:, None] - self.centers) / self.sigma
        weights = jax.nn.softmax(-0.5 * jnp.sum(offsets**2, axis=-1))
        means = weights @ self.tensors.reshape(len(self.tensors), -1)
        return means.reshape(-1, *self.tensors.shape[1:])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self.centers)} centers, dim={self.dim}, "
            f"sigma={self.sigma:g})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.centers, self.tensors, self.sigma)

    def tree_flatten(self) -> tuple[tuple[Any, ...], int]:
        """Everything the evaluation needs, as arguments of compiled functions."""
        return (self.centers, self.tensors, self.sigma), self.dim

    @classmethod
    def tree_unflatten(cls, dim: int, leaves: Any) -> MixtureMetric:
        """Inverse of `tree_flatten`."""
        metric = object.__new__(cls)
        metric.dim = dim
        metric.centers, metric.tensors, metric.sigma = leaves
        return metric
