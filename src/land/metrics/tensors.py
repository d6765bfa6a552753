"""Algebra of metric tensors that are stored as a diagonal or as full matrices.

A batch of n tensors in D dimensions is an array of shape (n, D) when the metric is
diagonal and (n, D, D) when it is not; a batch of vectors has shape (n, D). The two
kinds are told apart by their number of axes, so the code above never branches on it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def is_diagonal(tensors: Array, vectors: Array) -> bool:
    """Tell whether `tensors` holds diagonals for vectors of this shape."""
    return tensors.ndim == vectors.ndim


def lower(tensors: Array, vectors: Array) -> Array:
    """Momenta M v of the velocities v."""
    if is_diagonal(tensors, vectors):
        return tensors * vectors
    return jnp.einsum("...ij,...j->...i", tensors, vectors)


def invert(tensors: Array, vectors: Array) -> Array:
    """Inverse tensors M^-1, in the storage of `tensors`."""
    if is_diagonal(tensors, vectors):
        return 1.0 / tensors
    return _sweep(tensors)


def squared_norm(tensors: Array, vectors: Array) -> Array:
    """Squared lengths v^T M v."""
    return jnp.sum(vectors * lower(tensors, vectors), axis=-1)


def squared_norm_gradient(tensors: Array, vectors: Array) -> Array:
    """Gradient of v^T M v in the stored entries of M."""
    if is_diagonal(tensors, vectors):
        return vectors * vectors
    return vectors[..., :, None] * vectors[..., None, :]


def _sweep(tensors: Array) -> Array:
    """Inverses of symmetric positive definite matrices by Gauss-Jordan sweeps.

    Not `jnp.linalg.inv`: batched LAPACK calls inside a compiled loop wait for helpers
    in XLA's own thread pool, and two at once can deadlock it on a small machine.
    """
    dim = tensors.shape[-1]

    def sweep(index: int, swept: Array) -> Array:
        column = swept[..., :, index] / swept[..., index, index, None]
        here = jnp.arange(dim) == index
        pivot = swept[..., index, index, None, None]
        inner = swept - pivot * column[..., :, None] * column[..., None, :]
        border = jnp.where(here, column[..., :, None], column[..., None, :])
        corner = here[:, None] & here
        edge = here[:, None] | here
        return jnp.where(corner, -1.0 / pivot, jnp.where(edge, border, inner))

    return -jax.lax.fori_loop(0, dim, sweep, tensors)
