"""Which matrices a covariance may be: any, diagonal ones, or multiples of the identity.

A type is a linear space of symmetric matrices with coordinates, the `entries`. The
inverse of a positive definite member is a member too, so covariances and precisions
have the same type.
"""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class CovarianceType(abc.ABC):
    """A linear space of symmetric matrices."""

    @abc.abstractmethod
    def entries(self, matrix: Array) -> Array:
        """Entries of the nearest member to a symmetric matrix, (D, D) -> (P,)."""

    @abc.abstractmethod
    def matrix(self, entries: Array, dim: int) -> Array:
        """The member with such entries, (P,) -> (D, D)."""

    @abc.abstractmethod
    def products(self, vectors: Array) -> Array:
        """What quadratic forms are made of, (n, D) -> (n, P).

        For every member, ``v @ matrix(entries) @ v == products(v) @ entries``.
        """

    def restrict(self, matrix: Array) -> Array:
        """The nearest member to a symmetric matrix.

        Under any member, a second moment and what it is restricted to look the same:
        the trace of their product is.
        """
        return self.matrix(self.entries(matrix), len(matrix))

    def n_entries(self, dim: int) -> int:
        """Number of entries."""
        return len(self.entries(np.eye(dim)))


class _Full(CovarianceType):
    def entries(self, matrix: Array) -> Array:
        return matrix[np.tril_indices(len(matrix))]

    def matrix(self, entries: Array, dim: int) -> Array:
        lower = np.zeros((dim, dim))
        lower[np.tril_indices(dim)] = entries
        return lower + np.tril(lower, -1).T

    def products(self, vectors: Array) -> Array:
        rows, columns = np.tril_indices(vectors.shape[1])
        twice = np.where(rows == columns, 1.0, 2.0)
        return np.asarray(twice * vectors[:, rows] * vectors[:, columns])


class _Diagonal(CovarianceType):
    def entries(self, matrix: Array) -> Array:
        return np.diagonal(matrix).copy()

    def matrix(self, entries: Array, dim: int) -> Array:
        return np.diag(entries)

    def products(self, vectors: Array) -> Array:
        return vectors**2


class _Spherical(CovarianceType):
    def entries(self, matrix: Array) -> Array:
        return np.mean(np.diagonal(matrix), keepdims=True)

    def matrix(self, entries: Array, dim: int) -> Array:
        return entries[0] * np.eye(dim)

    def products(self, vectors: Array) -> Array:
        return np.sum(vectors**2, axis=1, keepdims=True)


COVARIANCE_TYPES: dict[str, CovarianceType] = {
    "full": _Full(),
    "diag": _Diagonal(),
    "spherical": _Spherical(),
}
