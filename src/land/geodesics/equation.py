"""The geodesic equation, for any metric and many points at once."""

from __future__ import annotations

import jax

from land.metrics import Metric
from land.metrics.tensors import invert, lower, squared_norm_gradient


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
