"""The geodesic equation, for any metric and many points at once.

The device evaluates metrics and their derivatives, in blocks of a fixed number of
points, so that few programs are compiled; everything else is NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._device import device, in_blocks, in_float64
from land._validation import shown
from land.metrics import Metric
from land.metrics.tensors import (
    along,
    invert,
    invert_positive,
    lower,
    squared_norm_gradient,
)

Array = NDArray[np.float64]

# Asymmetry of a tensor, relative to its largest entry, that is more than rounding.
_ASYMMETRY = 1e-8


class Forces(NamedTuple):
    """What a metric does to velocities v at points."""

    tensors: Array  # (n, D) or (n, D, D)
    force: Array  # (n, D): 1/2 grad_x (v^T M(x) v)
    drift: Array  # (n, D): (dM/dt) v


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
    """The geodesic equation at points and velocities, and its derivatives."""

    acceleration: Array  # (n, D)
    in_position: Array  # (n, D, D) derivatives of the acceleration, whose entries are
    in_velocity: Array  # (n, D, D) rows
    tensors: Array  # (n, D) or (n, D, D)


@in_float64
def linearised(metric: Metric, points: Array, velocities: Array) -> Linearised:
    """The geodesic equation and its derivatives at points (n, D)."""
    found = in_blocks(_linearised, device().points, metric, points, velocities)
    return Linearised(*found)


@jax.jit
def _linearised(metric: Metric, points: jax.Array, v: jax.Array) -> Linearised:
    jets: tuple[Any, ...] = metric.jet_batch(points)
    tensors, slopes, bends = jets
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


def pair_up(
    left_name: str, left: Array, right_name: str, right: Array
) -> tuple[Array, Array, tuple[int, ...]]:
    """Pair base points, one or as many, with others: (n, D) arrays, their shape."""
    shape = right.shape[:-1]
    if left.ndim > 1 and left.shape != right.shape:
        raise ValueError(
            f"{left_name} must be one point or have the shape of {right_name} "
            f"{right.shape}, got {left.shape}"
        )
    dim = right.shape[-1]
    left = np.broadcast_to(left, right.shape)
    return left.reshape(-1, dim), right.reshape(-1, dim), shape


def dimension(metric: Metric) -> int:
    """Dimension of a metric; refuses what is none."""
    if not isinstance(metric, Metric):
        raise ValueError(
            f"metric must be an instance of land.metrics.Metric, got {shown(metric)}"
        )
    return metric.dim


def check_metric(metric: Metric, **places: Array) -> None:
    """Refuse a metric that is not symmetric positive definite at the given points.

    Points (..., D) come under the name of the argument that they were.
    """
    for name, points in places.items():
        flat = points.reshape(-1, metric.dim)
        fault = _first_fault(metric.host_tensors(flat))
        if fault is not None:
            index, what = fault
            raise ValueError(
                "metric must be finite, symmetric and positive definite, but at "
                f"{name}[{index}] = {flat[index]} {what}; check the metric's function "
                "and its domain"
            )


def _first_fault(tensors: Array) -> tuple[int, str] | None:
    """Index of the first tensor that is no metric, and what is wrong with it."""
    if not len(tensors):
        return None
    finite = np.isfinite(tensors).all(axis=tuple(range(1, tensors.ndim)))
    if not finite.all():
        return int(np.argmin(finite)), "it is not finite"
    if tensors.ndim == 2:
        smallest = tensors.min(axis=1)
    else:
        skew = np.abs(tensors - tensors.transpose(0, 2, 1)).max(axis=(1, 2))
        uneven = skew > _ASYMMETRY * np.abs(tensors).max(axis=(1, 2))
        if uneven.any():
            return int(np.argmax(uneven)), "it is not symmetric"
        smallest = np.linalg.eigvalsh(tensors).min(axis=1)
    if not np.all(smallest > 0.0):
        index = int(np.argmax(smallest <= 0.0))
        return index, f"its smallest eigenvalue is {smallest[index]:g}"
    return None
