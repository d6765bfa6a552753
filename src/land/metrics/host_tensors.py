"""NumPy twin of `land.metrics.tensors`, for what is computed on the host.

Tensors are diagonals, with as many axes as the vectors, or full matrices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def lower(tensors: Array, vectors: Array) -> Array:
    """Momenta M v of the velocities v; velocities of momenta if given inverses."""
    if tensors.ndim == vectors.ndim:
        return np.asarray(tensors * vectors)
    return np.einsum("...ij,...j->...i", tensors, vectors)


def inner(tensors: Array, left: Array, right: Array) -> Array:
    """Inner products u^T M v."""
    return np.einsum("...i,...i->...", left, lower(tensors, right))


def norms(tensors: Array, vectors: Array) -> Array:
    """Lengths of vectors."""
    return np.asarray(np.sqrt(inner(tensors, vectors, vectors)))


def invert(tensors: Array, vectors: Array) -> Array:
    """Inverse tensors M^-1, in the storage of `tensors`."""
    if tensors.ndim == vectors.ndim:
        return np.asarray(1.0 / tensors)
    return np.asarray(np.linalg.inv(tensors), dtype=np.float64)
