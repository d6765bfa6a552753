"""Jacobi fields along rays: how the exponential map stretches, and conjugate points.

A ray t -> Exp(t v) with a frame that is parallel along it, its first vector tangent to
the ray, has two families of Jacobi fields across: S with S(0) = 0, S'(0) = I and C with
C(0) = I, C'(0) = 0. In normal coordinates the derivative of the exponential map at t v
is one along the ray and S(t) / t across it; at a conjugate point S^-1 C jumps.

In the plane S solves one scalar equation. In more dimensions both families are followed
in coordinates; only directions across the ray are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land.geodesics.equation import christoffel_symbols
from land.geodesics.exponential import MAX_STEPS, Arrivals, integrate
from land.metrics import Metric

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Rays:
    """Points on rays Exp(t v), and the Jacobi fields there.

    Attributes
    ----------
    points : ndarray of shape (n, k, D)
    log_dets : ndarray of shape (n, k)
        log|det DExp(t v)| in normal coordinates: of the volume of the manifold with
        respect to that of the tangent space.
    conjugate : ndarray of shape (n, k)
        Whether a conjugate point lies on the way, past which no ray is shortest.
    failed : ndarray of shape (n,)
    """

    points: Array
    log_dets: Array
    conjugate: Mask
    failed: Mask


def follow_rays(
    metric: Metric, bases: Array, rays: Array, times: Array, tol: float
) -> Rays:
    """Follow rays (n, D) from bases (n, D), both about the metric's own centre.

    `times` in (0, 1] ascend; conjugate points are seen between neighbouring ones. In
    the plane nothing but `conjugate` is known past them.
    """
    n, dim = rays.shape
    distinct, which = np.unique(bases, axis=0, return_inverse=True)
    which = which.reshape(-1)
    tensors = dense(metric.host_tensors(distinct), dim)[which]
    across = transverse_frames(tensors, rays)
    if dim == 1:
        position, velocity = bases[:, None], rays[:, None]
    elif dim == 2:
        position, velocity = np.zeros((2, n, 2, 2))
        position[:, 0], velocity[:, 0] = bases, rays
        position[:, 1, 1] = velocity[:, 1, 0] = 1.0
    else:
        symbols = christoffel_symbols(metric, distinct)[which]
        # The covariant derivative of C vanishes, and so its coordinates' does not.
        drift = -np.einsum("nkij,ni,njr->nrk", symbols, rays, across)
        fields = across.transpose(0, 2, 1)
        still = np.zeros_like(fields)
        position = np.concatenate([bases[:, None], still, fields], axis=1)
        velocity = np.concatenate([rays[:, None], fields, drift], axis=1)
    arrivals = integrate(
        metric, position, velocity, times, tol, MAX_STEPS, until_conjugate=True
    )
    points = arrivals.samples[:, :, 0]
    if dim == 2:
        found = _in_the_plane(arrivals, times)
    else:
        found = _in_coordinates(metric, points, arrivals.samples[:, :, 1:], times)
    return Rays(points, *found, arrivals.failed)


def transverse_frames(tensors: Array, rays: Array) -> Array:
    """Orthonormal vectors across rays, (n, D, D), (n, D) -> (n, D, D - 1)."""
    n, dim = rays.shape
    if dim == 1:
        return np.empty((n, 1, 0))
    momenta = np.einsum("nij,nj->ni", tensors, rays)
    lengths = np.sqrt(np.einsum("ni,ni->n", momenta, rays))
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    if dim == 2:
        # A quarter turn to the left: it stays one along the whole ray.
        turned = np.stack([-momenta[:, 1], momenta[:, 0]], axis=1)
        area = np.sqrt(np.linalg.det(tensors)) * lengths
        return np.asarray(turned / area[:, None])[:, :, None]
    factors = np.linalg.cholesky(tensors)
    normal = np.einsum("nji,nj->ni", factors, rays) / lengths[:, None]
    # The reflection that takes the ray to an axis takes the other axes across it.
    signs = np.where(normal[:, 0] < 0.0, -1.0, 1.0)
    normal[:, 0] += signs
    squares = np.einsum("ni,ni->n", normal, normal)
    outer = normal[:, :, None] * normal[:, None, 1:] * (2.0 / squares)[:, None, None]
    return np.linalg.solve(factors.transpose(0, 2, 1), np.eye(dim)[:, 1:] - outer)


def _in_the_plane(arrivals: Arrivals, times: Array) -> tuple[Array, Mask]:
    s = arrivals.samples[:, :, 1, 0]
    with np.errstate(divide="ignore"):
        log_dets = np.log(np.abs(s) / times)
    return log_dets, np.logical_or.accumulate(s <= 0.0, axis=1)


def _in_coordinates(
    metric: Metric, points: Array, fields: Array, times: Array
) -> tuple[Array, Mask]:
    """From fields (n, k, 2 D - 2, D) in coordinates."""
    n, k, _, dim = fields.shape
    flat = points.reshape(-1, dim)
    usable = np.asarray(np.isfinite(flat).all(axis=1))
    tensors = dense(metric.host_tensors(np.where(usable[:, None], flat, 0.0)), dim)
    factors = np.linalg.cholesky(tensors).reshape(n, k, dim, dim)
    normal = fields @ factors
    growing, steady = np.split(normal.swapaxes(2, 3), 2, axis=3)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        known = np.isfinite(growing).all(axis=(2, 3)) & np.isfinite(steady).all((2, 3))
        growing = np.where(known[..., None, None], growing, 0.0)
        basis, triangles = np.linalg.qr(growing)
        sizes = np.abs(np.diagonal(triangles, axis1=2, axis2=3))
        log_dets = np.sum(np.log(sizes / times[:, None]), axis=2)
        singular = ~(sizes.min(axis=2, initial=np.inf) > 0.0)
        triangles = np.where(singular[..., None, None], np.eye(dim - 1), triangles)
        ratios = np.linalg.solve(triangles, basis.swapaxes(2, 3) @ steady)
        ratios = np.where(singular[..., None, None], np.inf, ratios)
    conjugate = np.logical_or.accumulate(_jumps(ratios, times) | singular, axis=1)
    return log_dets, conjugate


def _jumps(ratios: Array, times: Array) -> Mask:
    """Where S^-1 C has jumped up since the time before: at a conjugate point.

    Its derivative is -(S^T S)^-1, so that it falls everywhere else. A jump across a
    conjugate point between two times is at least four over the time between.
    """
    jumped = np.zeros(ratios.shape[:2], dtype=bool)
    if ratios.shape[1] < 2 or ratios.shape[2] == 0:
        return jumped
    rises = np.diff(ratios, axis=1)
    known = np.asarray(np.isfinite(rises).all(axis=(2, 3)))
    rises = np.where(known[..., None, None], rises, 0.0)
    highest = np.linalg.eigvalsh(0.5 * (rises + rises.swapaxes(2, 3)))[..., -1]
    jumped[:, 1:] = highest > 1.0 / np.diff(times)
    return jumped


def dense(tensors: Array, dim: int) -> Array:
    """Tensors as matrices."""
    return tensors[:, :, None] * np.eye(dim) if tensors.ndim == 2 else tensors
