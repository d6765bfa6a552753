"""Nodes of quadrature rules, and what can be computed from them without further maps.

The normalisation constant is an integral of exp(-v^T Gamma v / 2) over points or over
tangents v. A rule turns it into a sum over nodes that do not depend on the precision
Gamma, so that constants, moments and errors for any precision are sums over them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land._validation import check_word

Array = NDArray[np.float64]
Volume = Literal["exact", "paper"]
Reference = Literal["lebesgue", "riemannian"]
# What exp(-q) / C is a density of: dx, the metric's volume, or the paper's Eq. 7.
Law = Literal["lebesgue", "riemannian", "paper"]


@dataclass(frozen=True)
class Nodes:
    """Nodes of a quadrature rule.

    Integrals become ``sum(exp(log_weights + log_volumes) * f(tangents))``.

    Attributes
    ----------
    tangents : ndarray of shape (n, D)
    log_weights : ndarray of shape (n,)
        Logarithms of the weights of the rule.
    log_volumes : ndarray of shape (n,)
        Logarithms of the volume element of the model; minus infinity where a node does
        not count.
    contrasts : ndarray of shape (n, C) or None
        Signs +1 and -1 that divide the nodes into two rules each, in C ways: the
        differences between such halves tell the error of the whole. None for
        independent random nodes.
    n_maps, n_failed : int
        Geodesics that were computed for the nodes; how many failed and are left out.
    """

    tangents: Array
    log_weights: Array
    log_volumes: Array
    contrasts: NDArray[np.int8] | None
    n_maps: int
    n_failed: int


@dataclass(frozen=True)
class LogConstant:
    """Result of `land.log_constant`.

    Attributes
    ----------
    value : float
        log C.
    stderr : float
        Standard error of `value`.
    effective_samples : float
        Number of equally important nodes that would be as good; a small share of
        `n_nodes` means that the mass is concentrated on a few of them.
    n_nodes : int
        Number of nodes.
    n_maps : int
        Geodesics that were computed for them.
    n_failed : int
        How many of those failed and were left out.
    """

    value: float
    stderr: float
    effective_samples: float
    n_nodes: int
    n_maps: int
    n_failed: int


def law_of(volume: Volume, reference: Reference) -> Law:
    """What the density is one of; the paper's Eq. 7 leaves no choice."""
    for name, value, allowed in (
        ("volume", volume, get_args(Volume)),
        ("reference", reference, get_args(Reference)),
    ):
        check_word(name, value, allowed)
    return "paper" if volume == "paper" else reference


def summarise(nodes: Nodes, precision: Array, tol: float) -> LogConstant:
    """The constant for a precision, with its error."""
    terms = log_terms(nodes, precision)
    total = float(logsumexp(terms))
    shares = np.exp(terms - total)
    squares = float(np.sum(shares**2))
    return LogConstant(
        value=total,
        stderr=float(np.hypot(_spread(nodes, shares, squares), tol)),
        effective_samples=1.0 / max(squares, 1e-300),
        n_nodes=len(terms),
        n_maps=nodes.n_maps,
        n_failed=nodes.n_failed,
    )


def normal_constant(covariance: Array) -> LogConstant:
    """In flat space, exactly."""
    dim = len(covariance)
    value = 0.5 * dim * np.log(2.0 * np.pi)
    value += float(np.log(np.diag(cholesky(covariance))).sum())
    return LogConstant(value, 0.0, np.inf, 0, 0, 0)


def _spread(nodes: Nodes, shares: Array, squares: float) -> float:
    """Relative error of the sum that the nodes themselves show."""
    if nodes.contrasts is None:
        n = len(shares)
        return float(np.sqrt(max(squares - 1.0 / n, 0.0) * n / max(n - 1, 1)))
    if not nodes.contrasts.shape[1]:  # nothing was left to chance
        return np.inf if nodes.n_failed else 0.0
    return float(np.sqrt(np.mean((shares @ nodes.contrasts) ** 2)))


def log_terms(nodes: Nodes, precision: Array) -> Array:
    """Logarithms of the terms whose sum is C."""
    squares = squared_lengths(nodes.tangents, precision)
    return nodes.log_weights + nodes.log_volumes - 0.5 * squares


def squared_lengths(tangents: Array, precision: Array) -> Array:
    """v^T Gamma v for tangents v (n, D)."""
    # A matrix product: one call of einsum would take D^2 steps for every tangent.
    with np.errstate(invalid="ignore"):
        return np.einsum("ni,ni->n", tangents @ precision, tangents)


def model_shares(nodes: Nodes, precision: Array) -> Array:
    """The model's probabilities of the nodes, which sum to one."""
    terms = log_terms(nodes, precision)
    shares = np.exp(terms - terms.max())
    return np.asarray(shares / shares.sum())


def cholesky(covariance: Array) -> Array:
    """Lower triangular L with L L^T = covariance."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def invert(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, symmetric to the last digit."""
    inverse = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    return 0.5 * (inverse + inverse.T)
