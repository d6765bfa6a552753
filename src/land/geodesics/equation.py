"""The geodesic equation, for any metric and many points at once.

The device evaluates metrics and their derivatives, in blocks of a fixed number of
points; everything else is NumPy. So few programs are compiled, and they serve all
solvers, whatever the number of geodesics and the size of their meshes.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._device import device, in_blocks
from land._precision import in_float64
from land.metrics import Metric
from land.metrics.tensors import (
    along,
    invert,
    invert_positive,
    lower,
    squared_norm_gradient,
)

Array = NDArray[np.float64]


class Forces(NamedTuple):
    """What a metric does to velocities v at points.

    Attributes
    ----------
    tensors : ndarray of shape (n, D) or (n, D, D)
    force : ndarray of shape (n, D)
        1/2 grad_x (v^T M(x) v).
    drift : ndarray of shape (n, D)
        (dM/dt) v.
    """

    tensors: Array
    force: Array
    drift: Array


@in_float64
def forces(metric: Metric, points: Array, velocities: Array) -> Forces:
    """Terms of the geodesic equation at points (n, D)."""
    return Forces(*in_blocks(_forces, device().points, metric, points, velocities))


@jax.jit
def _forces(metric: Metric, points: jax.Array, velocities: jax.Array) -> Forces:
    tensors, change = jax.linearize(metric.tensor_batch, points)
    pull_back = jax.linear_transpose(change, points)
    (force,) = pull_back(0.5 * squared_norm_gradient(tensors, velocities))
    return Forces(tensors, force, lower(change(velocities), velocities))


def accelerations(metric: Metric, points: Array, velocities: Array) -> Array:
    """Accelerations of geodesics through points (n, D).

    The Euler-Lagrange equation of the energy,

        M a = 1/2 grad_x (v^T M(x) v) - (dM/dt) v,

    which is the paper's Eq. 3 with the term in dM/dt that is missing there.
    """
    tensors, force, drift = forces(metric, points, velocities)
    return np.asarray(lower(invert(tensors, force), force - drift))


class Linearised(NamedTuple):
    """The geodesic equation at points and velocities, and its derivatives.

    Attributes
    ----------
    acceleration : ndarray of shape (n, D)
    in_position, in_velocity : ndarray of shape (n, D, D)
        Derivatives of the acceleration: rows are its entries.
    tensors : ndarray of shape (n, D) or (n, D, D)
    """

    acceleration: Array
    in_position: Array
    in_velocity: Array
    tensors: Array


@in_float64
def linearised(metric: Metric, points: Array, velocities: Array) -> Linearised:
    """The geodesic equation and its derivatives at points (n, D)."""
    found = in_blocks(_linearised, device().points, metric, points, velocities)
    return Linearised(*found)


@jax.jit
def _linearised(metric: Metric, points: jax.Array, v: jax.Array) -> Linearised:
    tensors, slopes, bends = metric.jet_batch(points)
    full, dim = tensors.ndim == 3, points.shape[1]
    slopes_v = lower(slopes, v[:, None])  # (n, e, i): (d_e M) v
    bends_v = lower(bends, v[:, None, None])  # (n, f, e, i): (d_f d_e M) v
    inverse = invert_positive(tensors, 0.0, full)
    force = 0.5 * lower(slopes_v, v) - along(v, slopes_v)
    acceleration = lower(inverse, force)
    in_position = 0.5 * lower(bends_v, v[:, None]) - along(v, bends_v.swapaxes(1, 2))
    in_position -= lower(slopes, acceleration[:, None])
    change = along(v, slopes)
    if not full:
        change = change[:, :, None] * jnp.eye(dim)
    in_velocity = slopes_v.swapaxes(1, 2) - slopes_v - change
    inverse = inverse[:, None]
    return Linearised(
        acceleration,
        lower(inverse, in_position).swapaxes(1, 2),
        lower(inverse, in_velocity).swapaxes(1, 2),
        tensors,
    )


def christoffel_symbols(metric: Metric, points: Array) -> Array:
    """Christoffel symbols at points: (n, D) -> (n, D, D, D), upper index first."""
    n, dim = points.shape
    one, other = np.meshgrid(np.arange(dim), np.arange(dim), indexing="ij")
    ways = np.eye(dim)
    sums = (ways[one] + ways[other]).reshape(-1, dim)
    differences = (ways[one] - ways[other]).reshape(-1, dim)
    velocities = np.tile(np.concatenate([sums, differences]), (n, 1))
    found = accelerations(metric, np.repeat(points, 2 * dim**2, axis=0), velocities)
    # Accelerations are -Gamma(v, v), a quadratic form.
    ahead, behind = found.reshape(n, 2, dim, dim, dim).swapaxes(0, 1)
    return np.asarray(-0.25 * (ahead - behind).transpose(0, 3, 1, 2))
