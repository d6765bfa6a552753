"""The geodesic equation, for any metric and many points at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from land._device import in_blocks
from land._precision import in_float64
from land.metrics import Metric
from land.metrics.tensors import invert, lower, squared_norm_gradient

# Points whose Christoffel symbols are computed together.
_AT_ONCE = (8,)


def acceleration_and_tensor(
    metric: Metric, points: jax.Array, velocities: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Accelerations of geodesics through `points`, and the metric tensors there.

    The Euler-Lagrange equation of the energy,

        M a = 1/2 grad_x (v^T M(x) v) - (dM/dt) v,

    which is the paper's Eq. 3 with the term in dM/dt that is missing there.
    """
    # One linearisation serves both terms; XLA would see that, but takes its time.
    tensors, change = jax.linearize(metric.tensor_batch, points)
    pull_back = jax.linear_transpose(change, points)
    (force,) = pull_back(0.5 * squared_norm_gradient(tensors, velocities))
    momentum_drift = lower(change(velocities), velocities)
    inverse = invert(tensors, velocities)
    return lower(inverse, force - momentum_drift), tensors


def acceleration_and_curvature(
    metric: Metric, points: jax.Array, velocities: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Accelerations in the plane, Gauss curvatures (n,), and the metric tensors."""
    tensors, slopes, across = metric.plane_jet(points)
    v, w = velocities[:, 0, None], velocities[:, 1, None]
    if tensors.ndim == 2:
        squares = velocities[:, None] ** 2
        force = 0.5 * jnp.sum(slopes * squares, axis=2)
        drift = (slopes[:, 0] * v + slopes[:, 1] * w) * velocities
        curvatures = _gauss_curvature(
            *_entries(tensors), *_entries(slopes[:, 0]), *_entries(slopes[:, 1]), across
        )
        return (force - drift) / tensors, curvatures, tensors
    force = 0.5 * jnp.einsum("ndij,ni,nj->nd", slopes, velocities, velocities)
    change = slopes[:, 0] * v[..., None] + slopes[:, 1] * w[..., None]
    momenta = force - lower(change, velocities)
    curvatures = _gauss_curvature(
        *_entries(tensors), *_entries(slopes[:, 0]), *_entries(slopes[:, 1]), across
    )
    return lower(invert(tensors, momenta), momenta), curvatures, tensors


def _entries(tensors: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """E, F and G of the first fundamental form."""
    if tensors.ndim == 2:
        return tensors[:, 0], jnp.zeros(len(tensors)), tensors[:, 1]
    return tensors[:, 0, 0], tensors[:, 0, 1], tensors[:, 1, 1]


def _gauss_curvature(
    e: jax.Array,
    f: jax.Array,
    g: jax.Array,
    e_x: jax.Array,
    f_x: jax.Array,
    g_x: jax.Array,
    e_y: jax.Array,
    f_y: jax.Array,
    g_y: jax.Array,
    across: jax.Array,
) -> jax.Array:
    """Brioschi's formula; `across` is E_yy - 2 F_xy + G_xx."""
    determinant = e * g - f**2
    left, right = f_x - 0.5 * e_y, f_y - 0.5 * g_x
    first = (
        -0.5 * across * determinant
        - 0.5 * e_x * (right * g - 0.5 * f * g_y)
        + left * (right * f - 0.5 * e * g_y)
    )
    second = 0.25 * (e_y * (f * g_x - e_y * g) + g_x * (e_y * f - e * g_x))
    return (first - second) / determinant**2


def jacobi_acceleration(
    metric: Metric,
    points: jax.Array,
    velocities: jax.Array,
    fields: jax.Array,
    field_velocities: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Accelerations of geodesics and of Jacobi fields along them.

    Parameters
    ----------
    metric
        The metric.
    points, velocities : arrays of shape (n, D)
        State of the geodesics.
    fields, field_velocities : arrays of shape (n, r, D)
        r variations of each geodesic and their derivatives in time.

    Returns
    -------
    accelerations (n, D), field accelerations (n, r, D), tensors (n, D) or (n, D, D)
    """

    def equation(
        points: jax.Array, velocities: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        return acceleration_and_tensor(metric, points, velocities)

    acceleration, push, tensors = jax.linearize(
        equation, points, velocities, has_aux=True
    )
    field_accelerations = jax.vmap(push, in_axes=1, out_axes=1)(
        fields, field_velocities
    )
    return acceleration, field_accelerations, tensors


@in_float64
def christoffel_symbols(
    metric: Metric, points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Christoffel symbols at points: (n, D) -> (n, D, D, D), upper index first."""
    return in_blocks(_christoffel_symbols, _AT_ONCE, metric, points)[0]


@jax.jit
def _christoffel_symbols(metric: Metric, points: jax.Array) -> jax.Array:
    # Accelerations are -Gamma(v, v), a quadratic form whose Hessian is -2 Gamma.
    ways = jnp.broadcast_to(jnp.eye(metric.dim)[:, None], (metric.dim, *points.shape))

    def acceleration(way: jax.Array) -> jax.Array:
        return acceleration_and_tensor(metric, points, way)[0]

    def mixed(one: jax.Array, other: jax.Array) -> jax.Array:
        return 0.25 * (acceleration(one + other) - acceleration(one - other))

    found = jax.vmap(lambda one: jax.vmap(lambda other: mixed(one, other))(ways))(ways)
    return -jnp.moveaxis(found, (0, 1), (2, 3))
