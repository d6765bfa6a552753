"""Algebra of metric tensors that are stored as a diagonal or as full matrices.

A batch of n tensors in D dimensions is an array of shape (n, D) when the metric is
diagonal and (n, D, D) when it is not; a batch of vectors has shape (n, D). The two
kinds are told apart by their number of axes, so the code above never branches on it.
"""

from __future__ import annotations

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
    return jnp.linalg.inv(tensors)


def squared_norm(tensors: Array, vectors: Array) -> Array:
    """Squared lengths v^T M v."""
    return jnp.sum(vectors * lower(tensors, vectors), axis=-1)


def squared_norm_gradient(tensors: Array, vectors: Array) -> Array:
    """Gradient of v^T M v in the stored entries of M."""
    if is_diagonal(tensors, vectors):
        return vectors * vectors
    return vectors[..., :, None] * vectors[..., None, :]
