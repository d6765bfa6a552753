"""The metric interface: maths for one point, batched for everyone else."""

from __future__ import annotations

import abc
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._device import device, in_blocks, in_float64
from land._validation import check_points


class Metric(abc.ABC):
    """A smooth field of inner products on R^D.

    A new metric supplies `dim` and `tensor_at`, the tensor at one point as a
    JAX-traceable function. Where many points can be evaluated faster, override
    `tensor_batch` and `jet_batch` as well.

    Metrics are JAX pytrees: two of the same shapes share their compilations.
    """

    dim: int

    @property
    def is_flat(self) -> bool:
        """Whether geodesics are straight lines at constant speed in coordinates."""
        return False

    @property
    def landmarks(self) -> NDArray[np.float64] | None:
        """Points through which geodesics may be routed, or None.

        The logarithm map starts from a shortest path through these, or straight.
        """
        return None

    @property
    def resolution(self) -> float | None:
        """Distance over which the tensor changes, or None if unknown.

        It decides how finely curves are sampled at first.
        """
        return None

    @property
    def flat_outside(self) -> tuple[NDArray[np.float64], float] | None:
        """Centre and radius of a ball outside of which the tensor is c I, or None.

        With one number c, up to rounding. Far geodesics are then found fast.
        """
        return None

    def tabulated(self) -> Metric:
        """The same metric in a form that is faster for many geodesics, or itself."""
        return self

    def centred(self) -> tuple[Metric, NDArray[np.float64]]:
        """The same metric in coordinates about its own centre, and that centre.

        Geodesics are computed there: far from the origin digits are lost.
        """
        return self, np.zeros(self.dim)

    @abc.abstractmethod
    def tensor_at(self, point: jax.Array) -> jax.Array:
        """Tensor at one point: (D,) -> (D,) for a diagonal metric, else (D, D)."""

    def tensor_batch(self, points: jax.Array) -> jax.Array:
        """Tensors at many points: (n, D) -> (n, D) or (n, D, D), on JAX arrays."""
        return jax.vmap(self.tensor_at)(points)

    def jet_batch(self, points: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Tensors at many points, first derivatives (n, D, ...), second (n, D, D, ...).

        The coordinates of the derivatives come before the axes of the tensors.
        """
        return derivatives_of(self.tensor_batch, points)

    # Public, NumPy-valued views with any leading batch axes.

    def tensor(self, x: ArrayLike) -> NDArray[np.float64]:
        """Metric tensors as full matrices.

        Parameters
        ----------
        x : array_like of shape (..., D)

        Returns
        -------
        ndarray of shape (..., D, D)
        """
        points = check_points("x", x, self.dim, allow_empty=True)
        tensors = self.host_tensors(points.reshape(-1, self.dim))
        if tensors.ndim == 2:
            tensors = tensors[:, :, None] * np.eye(self.dim)
        return tensors.reshape(*points.shape, self.dim)

    def log_volume(self, x: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of the volume element, log sqrt|M(x)|: (..., D) -> (...)."""
        points = check_points("x", x, self.dim, allow_empty=True)
        tensors = self.host_tensors(points.reshape(-1, self.dim))
        if tensors.ndim == 2:
            signs = np.sign(tensors.min(axis=-1, initial=np.inf))
            values = np.sum(np.log(np.where(signs[:, None] > 0, tensors, 1.0)), axis=-1)
        else:
            signs, values = np.linalg.slogdet(tensors)
        if not np.all(signs > 0):
            raise ValueError(
                f"x must lie where the metric is positive definite; at "
                f"{int(np.sum(~(signs > 0)))} of {len(signs)} points it is not"
            )
        return np.asarray(0.5 * values).reshape(points.shape[:-1])

    def inner(self, x: ArrayLike, u: ArrayLike, v: ArrayLike) -> NDArray[np.float64]:
        """Inner products u^T M(x) v; `x`, `u` and `v` broadcast over leading axes."""
        points = check_points("x", x, self.dim, allow_empty=True)
        left = check_points("u", u, self.dim, allow_empty=True)
        right = check_points("v", v, self.dim, allow_empty=True)
        try:
            np.broadcast_shapes(points.shape, left.shape, right.shape)
        except ValueError:
            raise ValueError(
                "x, u and v must have leading axes that broadcast together, got shapes "
                f"{points.shape}, {left.shape} and {right.shape}"
            ) from None
        flat = self.host_tensors(points.reshape(-1, self.dim))
        tensors = flat.reshape(*points.shape[:-1], *flat.shape[1:])
        if flat.ndim == 2:  # the diagonals: dense tensors would fill the memory
            return np.asarray(np.sum(left * tensors * right, axis=-1))
        return np.einsum("...i,...ij,...j->...", left, tensors, right)

    @in_float64
    def host_tensors(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """NumPy twin of `tensor_batch` that neither recompiles nor fills memory."""
        if not len(points):
            shape = jax.eval_shape(self.tensor_at, np.zeros(self.dim)).shape
            return np.empty((0, *shape))
        return in_blocks(_tensor_batch, device().points, self, points)[0]


def derivatives_of(
    function: Callable[[jax.Array], jax.Array], points: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values, slopes and bends of a function of many points, each on its own."""
    with_slopes: Any = partial(_with_slopes, function)
    (values, slopes), (_, bends) = _with_slopes(with_slopes, points)
    return values, slopes, bends


def in_runs(function: Callable[[jax.Array], Any], points: jax.Array, most: int) -> Any:
    """Arrays that a function gives for points (n, D), `most` of them at once."""
    n, dim = points.shape
    most = max(1, most)
    if n <= most:
        return function(points)
    n_runs = -(-n // most)
    length = -(-n // n_runs)
    padding = jnp.broadcast_to(points[:1], (n_runs * length - n, dim))
    runs = jnp.concatenate([points, padding]).reshape(n_runs, length, dim)
    found = jax.lax.map(function, runs)
    return jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:])[:n], found)


def _with_slopes(function: Callable[[jax.Array], Any], points: jax.Array) -> Any:
    """Values (n, ...) of a function, and derivatives (n, D, ...)."""

    def along(way: jax.Array) -> Any:
        return jax.jvp(function, (points,), (jnp.broadcast_to(way, points.shape),))

    ways = jnp.eye(points.shape[1], dtype=points.dtype)
    return jax.vmap(along, out_axes=(None, 1))(ways)


@jax.jit
def _tensor_batch(metric: Any, points: jax.Array) -> jax.Array:
    return metric.tensor_batch(points)
