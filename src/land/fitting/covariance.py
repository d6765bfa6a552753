"""The covariance step: a convex problem in the precision, by Newton's method.

A covariance is any matrix, a diagonal one, or a multiple of the identity. Each type is
a linear space of symmetric matrices with coordinates, the `entries`. The inverse of a
positive definite member is a member too, so precisions have the type of covariances.
"""

from __future__ import annotations

import abc

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import Nodes, cholesky, log_terms

Array = NDArray[np.float64]

_MAX_ITER = 100
# Share of the way to the boundary of the positive definite matrices that a step may
# take, and the ratio of eigenvalues at which it is said to be reached.
_TO_BOUNDARY, _SINGULAR = 0.99, 1e-10
# Bounds of a covariance in one step, in units of the one before.
_NARROWEST, _WIDEST = 0.1, 4.0
# Covariances are at most so many times the second moment of their data. The density is
# then nearly constant on them.
_FLAT = 9.0


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


def solve_precision(
    moment: Array, nodes: Nodes, start: Array, kind: CovarianceType
) -> Array:
    """Precision whose model has the data's second tangent moment, as far as it can.

    Minimises 1/2 tr(precision moment) + log C(precision), where log C is a sum over
    nodes that do not depend on the precision: no exponential map is needed.

    Parameters
    ----------
    moment : ndarray of shape (D, D)
        Second moment of the data's tangents.
    nodes
        Quadrature nodes at the mean.
    start : ndarray of shape (D, D)
        Where to start, a member of `kind`; it does not matter for the answer.
    kind
        Which matrices a precision may be.
    """
    # Work where the start is the identity: the problem is then well scaled.
    factor = np.linalg.cholesky(start)
    dim = len(factor)
    features = kind.products(nodes.tangents @ factor)
    goal = kind.products(np.linalg.cholesky(moment).T @ factor).sum(axis=0)
    base = log_terms(nodes, np.zeros_like(moment))
    entries = kind.entries(np.eye(dim))
    value, gradient, hessian = _model(entries, features, goal, base)
    for _ in range(_MAX_ITER):
        damping = 1e-12 * (1.0 + np.trace(hessian)) * np.eye(len(goal))
        direction = -np.linalg.solve(hessian + damping, gradient)
        slope = float(gradient @ direction)
        if -slope < 1e-13 * max(1.0, abs(value)):
            break
        step = _longest_step(kind.matrix(entries, dim), kind.matrix(direction, dim))
        while step > 1e-12:
            trial = entries + step * direction
            new = _model(trial, features, goal, base)
            if new[0] < value:
                break
            step *= 0.5
        else:
            break
        entries = trial
        value, gradient, hessian = new
    return np.asarray(factor @ kind.matrix(entries, dim) @ factor.T)


def _model(
    entries: Array, features: Array, goal: Array, base: Array
) -> tuple[float, Array, Array]:
    """Objective, gradient and Hessian in the entries of the precision."""
    exponents = base - 0.5 * features @ entries
    shift = exponents.max()
    weights = np.exp(exponents - shift)
    total = weights.sum()
    weights /= total
    mean = weights @ features
    centred = features - mean
    hessian = 0.25 * (weights[:, None] * centred).T @ centred
    value = 0.5 * float(goal @ entries) + float(shift + np.log(total))
    return value, 0.5 * (goal - mean), hessian


def _longest_step(matrix: Array, direction: Array) -> float:
    """At most one, and short of where the matrix would not be positive; zero if nearly.

    There is no optimum where the nodes are too narrow for the data's moment: the
    precision then goes to the boundary, and what it is there is worth nothing.
    """
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] <= _SINGULAR * eigenvalues[-1]:
        return 0.0
    factor = np.linalg.cholesky(matrix)
    half = np.linalg.solve(factor, direction)
    lowest = float(np.linalg.eigvalsh(np.linalg.solve(factor, half.T))[0])
    return min(1.0, _TO_BOUNDARY / max(-lowest, 1e-300))


def bounded_covariance(
    precision: Array, before: Array, moment: Array
) -> tuple[Array, bool]:
    """The covariance, kept within bounds; and whether one step was enough to reach it.

    Bounds are on eigenvalues in units of the covariance before: quadrature points say
    little about others. And in units of the data's second moment.
    """
    factor = cholesky(before)
    values, vectors = np.linalg.eigh(factor.T @ precision @ factor)
    least, most = 1.0 / _WIDEST, 1.0 / _NARROWEST
    free = values[0] > least and values[-1] < most
    root = factor @ vectors / np.sqrt(np.clip(values, least, most))
    wanted = root @ root.T
    covariance, shares = _clipped(wanted, moment, 0.0, _FLAT)
    return covariance, bool(free or shares.max() > _FLAT)


def _clipped(
    covariance: Array, unit: Array, least: float, most: float
) -> tuple[Array, Array]:
    """A covariance with eigenvalues within bounds, in a unit; what they were there."""
    factor = cholesky(unit)
    half = np.linalg.solve(factor, covariance)
    whitened = np.linalg.solve(factor, half.T)
    scales, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
    root = factor @ vectors * np.sqrt(np.clip(scales, least, most))
    return root @ root.T, scales
