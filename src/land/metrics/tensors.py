"""Algebra of metric tensors that are stored as a diagonal or as full matrices.

A batch of tensors in D dimensions is an array of shape (..., D) if the metric is
diagonal, else (..., D, D); vectors have shape (..., D). The number of axes tells the
two kinds apart. Arrays are NumPy's or JAX's, and the answers are of the same kind.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def lower(tensors: Any, vectors: Any) -> Any:
    """Momenta M v of the velocities v; velocities of momenta if given inverses."""
    if tensors.ndim == vectors.ndim:
        return tensors * vectors
    module = np if isinstance(tensors, np.ndarray) else jnp
    return module.einsum("...ij,...j->...i", tensors, vectors)


def inner(tensors: Any, left: Any, right: Any) -> Any:
    """Inner products u^T M v."""
    momenta = lower(tensors, right)
    if isinstance(momenta, np.ndarray):  # faster than a sum over a short axis
        return np.einsum("...i,...i->...", left, momenta)
    return jnp.sum(left * momenta, axis=-1)


def squared_norm(tensors: Any, vectors: Any) -> Any:
    """Squared lengths v^T M v."""
    return inner(tensors, vectors, vectors)


def norms(tensors: Any, vectors: Any) -> Any:
    """Lengths of vectors."""
    return squared_norm(tensors, vectors) ** 0.5


def squared_norm_gradient(tensors: Any, vectors: Any) -> Any:
    """Gradient of v^T M v in the stored entries of M."""
    if tensors.ndim == vectors.ndim:
        return vectors * vectors
    return vectors[..., :, None] * vectors[..., None, :]


def invert(tensors: Any, vectors: Any) -> Any:
    """Inverse tensors M^-1, in the storage of `tensors`."""
    if tensors.ndim == vectors.ndim:
        return 1.0 / tensors
    if isinstance(tensors, np.ndarray):
        return np.linalg.inv(tensors)
    return _sweep(tensors)


def _sweep(tensors: jax.Array) -> jax.Array:
    """Inverses of symmetric positive definite matrices by Gauss-Jordan sweeps.

    Not `jnp.linalg.inv`: batched LAPACK calls inside a compiled loop wait for helpers
    in XLA's own thread pool, and two at once can deadlock it on a small machine.
    """
    dim = tensors.shape[-1]

    def sweep(index: int, swept: jax.Array) -> jax.Array:
        column = swept[..., :, index] / swept[..., index, index, None]
        here = jnp.arange(dim) == index
        pivot = swept[..., index, index, None, None]
        inside = swept - pivot * column[..., :, None] * column[..., None, :]
        border = jnp.where(here, column[..., :, None], column[..., None, :])
        corner = here[:, None] & here
        edge = here[:, None] | here
        return jnp.where(corner, -1.0 / pivot, jnp.where(edge, border, inside))

    return -jax.lax.fori_loop(0, dim, sweep, tensors)
