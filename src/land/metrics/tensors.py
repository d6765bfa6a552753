"""Algebra of metric tensors that are stored as a diagonal or as full matrices.

A batch of tensors in D dimensions is an array of shape (..., D) if the metric is
diagonal, else (..., D, D); vectors have shape (..., D). The number of axes tells the
two kinds apart.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Up to this many dimensions matrices are small: they are eliminated all at once, sums
# over data have closed derivatives (columns for D + 1 times as many moments), and the
# systems of Newton's method have few unknowns. In more, other ways are faster.
FEW_DIMENSIONS = 6


def lower(tensors: Any, vectors: Any) -> Any:
    """Momenta M v of the velocities v; velocities of momenta if given inverses."""
    if tensors.ndim == vectors.ndim:
        return tensors * vectors
    if isinstance(tensors, np.ndarray):
        return np.einsum("...ij,...j->...i", tensors, vectors)
    columns = range(vectors.shape[-1])  # see `along`
    return sum(tensors[..., k] * vectors[..., k, None] for k in columns)


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


def invert_positive(tensors: Any, shift: Any, full: bool) -> Any:
    """Inverses (T + shift I)^-1 of positive JAX tensors."""
    if not full:
        return 1.0 / (tensors + shift)
    dim = tensors.shape[-1]
    matrices = tensors + shift * jnp.eye(dim)
    return jnp.linalg.inv(matrices) if dim > FEW_DIMENSIONS else _eliminate(matrices)


def along(ways: jax.Array, slopes: jax.Array) -> jax.Array:
    """Derivatives along ways (n, D) from those in each coordinate, (n, D, ...)."""
    # Neither products of tiny matrices nor sums over a short axis: both are slow.
    ways = ways.reshape(*ways.shape, *(slopes.ndim - 2) * [1])
    terms = [ways[:, axis] * slopes[:, axis] for axis in range(ways.shape[1])]
    return sum(terms[1:], terms[0])


@jax.custom_jvp
def _eliminate(matrices: Any) -> Any:
    """Inverses; positive definite matrices need no search for pivots."""
    for k, own in enumerate(np.eye(matrices.shape[-1], dtype=bool)):
        pivot, column = matrices[..., k, None, k, None], matrices[..., :, k, None]
        row = matrices[..., k, None, :] / pivot
        in_row = jnp.where(own, 1.0 / pivot, row)
        others = jnp.where(own, -column / pivot, matrices - column * row)
        matrices = jnp.where(own[:, None], in_row, others)
    return matrices


@_eliminate.defjvp
def _eliminate_jvp(primals: Any, tangents: Any) -> Any:
    inverses = _eliminate(primals[0])
    return inverses, -_product(_product(inverses, tangents[0]), inverses)


def _product(left: Any, right: Any) -> Any:
    """Products of tiny matrices, for which JAX is slow."""
    dim = left.shape[-1]
    return sum(left[..., :, k, None] * right[..., None, k, :] for k in range(dim))
