"""Algebra of metric tensors that are stored as a diagonal or as full matrices.

A batch of tensors in D dimensions is an array of shape (..., D) if the metric is
diagonal, else (..., D, D); vectors have shape (..., D). The number of axes tells the
two kinds apart.
"""

from __future__ import annotations

from typing import Any

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
    return np.einsum("...i,...i->...", left, lower(tensors, right))


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
    try:
        return np.linalg.inv(tensors)
    except np.linalg.LinAlgError:  # out of the metric's domain
        singular = np.linalg.det(tensors) == 0.0
        return np.linalg.inv(np.where(singular[..., None, None], np.nan, tensors))
