"""Batched initial value problems: Dormand-Prince 8(5,3) with a step size per item.

The right-hand side is evaluated for a whole block of geodesics as matrix products;
every geodesic in the block has its own time and step size. Diffrax would give the
same method, but vectorised over single geodesics, which costs several times more per
evaluation of a learned metric (docs/numerics).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from land._device import select
from land.geodesics.dop853 import (
    ERROR_3,
    ERROR_5,
    INTERPOLANT,
    STAGES,
    STEP,
    TABLEAU,
)
from land.geodesics.equation import (
    acceleration_and_curvature,
    acceleration_and_tensor,
    jacobi_acceleration,
)
from land.metrics import Metric
from land.metrics.tensors import squared_norm

# Standard controller constants (Hairer, Norsett, Wanner, Solving ODEs I, II.4-5).
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 6.0
# A step this short (of a unit of time) means the solution cannot be continued.
_SMALLEST_STEP = 1e-12


class RayState(NamedTuple):
    """A block of geodesics on their way from t = 0 to t = 1.

    Row 0 of the second axis is the geodesic, further rows are Jacobi fields along it,
    in coordinates. In the plane one further row is two solutions (s, c) of the scalar
    Jacobi equation y'' + K l^2 y = 0, with K the Gauss curvature and l the length.
    Fields are NumPy arrays on the way in and JAX arrays inside.
    """

    time: Any  # (n,)
    step: Any  # (n,) proposed step
    position: Any  # (n, r, D)
    velocity: Any  # (n, r, D)
    acceleration: Any  # (n, r, D)
    unit: Any  # (n, r) squared length against which errors are measured at least
    samples: Any  # (n, n_times, r, D) all rows at the requested times
    attempts: Any  # (n,) steps tried
    running: Any  # (n,)
    failed: Any  # (n,)


def empty_state(n_slots: int, n_rows: int, n_times: int, dim: int) -> RayState:
    """A block of idle slots."""
    rows = np.zeros((n_slots, n_rows, dim))
    flat = np.zeros(n_slots)
    idle = np.zeros(n_slots, dtype=bool)
    return RayState(
        time=flat,
        step=flat,
        position=rows,
        velocity=rows,
        acceleration=rows,
        unit=np.zeros((n_slots, n_rows)),
        samples=np.zeros((n_slots, n_times, n_rows, dim)),
        attempts=np.zeros(n_slots, dtype=np.int64),
        running=idle,
        failed=idle,
    )


@partial(jax.jit, donate_argnames="state")
def advance_rays(
    metric: Metric,
    state: RayState,
    fresh: jax.Array,
    position: jax.Array,
    velocity: jax.Array,
    times: jax.Array,
    tol: jax.Array,
    max_steps: jax.Array,
    leave_at: jax.Array,
    until_conjugate: jax.Array,
) -> RayState:
    """Load `position` and `velocity` into `fresh` slots and integrate the block.

    Returns when at most `leave_at` slots are still running. In the plane, integrations
    may end at the first conjugate point; times past it are then left as they were.
    """
    loaded = _load(metric, state, fresh, position, velocity)

    def unfinished(state: RayState) -> jax.Array:
        return jnp.sum(state.running) > leave_at

    def attempt(state: RayState) -> RayState:
        return _attempt_step(metric, state, times, tol, max_steps, until_conjugate)

    return jax.lax.while_loop(unfinished, attempt, loaded)


def _equation(
    metric: Metric, position: jax.Array, velocity: jax.Array, wanted: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Accelerations of all rows, and the tensors at the points of the geodesics.

    Only in the `wanted` slots: the others are nowhere, which costs a metric that looks
    for neighbours nothing.
    """
    x, v = jnp.where(wanted[:, None], position[:, 0], jnp.nan), velocity[:, 0]
    if position.shape[1] == 1:
        acceleration, tensors = acceleration_and_tensor(metric, x, v)
        return acceleration[:, None], tensors
    if metric.dim == 2:
        acceleration, curvature, tensors = acceleration_and_curvature(metric, x, v)
        pull = (curvature * squared_norm(tensors, v))[:, None]
        return jnp.stack([acceleration, -pull * position[:, 1]], axis=1), tensors
    acceleration, fields, tensors = jacobi_acceleration(
        metric, x, v, position[:, 1:], velocity[:, 1:]
    )
    return jnp.concatenate([acceleration[:, None], fields], axis=1), tensors


def _row_norms(tensors: jax.Array, rows: jax.Array) -> jax.Array:
    """Squared lengths of every row: (n, r, D) -> (n, r).

    In the metric; scalar Jacobi fields are pure numbers.
    """
    if rows.shape[1] > 1 and rows.shape[2] == 2:
        geodesics = squared_norm(tensors, rows[:, 0])
        return jnp.stack([geodesics, jnp.sum(rows[:, 1] ** 2, axis=1)], axis=1)
    expanded = tensors[:, None]
    return squared_norm(
        jnp.broadcast_to(expanded, (*rows.shape[:2], *tensors.shape[1:])), rows
    )


def _has_conjugate_point(position: jax.Array) -> jax.Array:
    """Where the scalar Jacobi field has vanished."""
    if position.shape[1:] == (2, 2):
        return position[:, 1, 0] <= 0.0
    return jnp.zeros(len(position), dtype=bool)


def _field_norms(tensors: jax.Array, rows: jax.Array) -> jax.Array:
    """Squared lengths of the Jacobi fields; none for the geodesics."""
    return _row_norms(tensors, rows).at[:, 0].set(0.0)


def _load(
    metric: Metric,
    state: RayState,
    fresh: jax.Array,
    position: jax.Array,
    velocity: jax.Array,
) -> RayState:
    acceleration, tensors = _equation(metric, position, velocity, fresh)
    speeds = _row_norms(tensors, velocity)
    unit = jnp.maximum(speeds, _field_norms(tensors, position))
    # Time in which the velocity would change by its own size.
    turn = jnp.sqrt(unit[:, 0] / _row_norms(tensors, acceleration)[:, 0])
    still = unit[:, 0] == 0.0
    lost = ~jnp.all(jnp.isfinite(acceleration), axis=(1, 2))
    n = len(fresh)
    loaded = RayState(
        time=jnp.where(still, 1.0, jnp.zeros(n)),
        step=jnp.clip(jnp.nan_to_num(0.3 * turn, nan=1.0, posinf=1.0), 1e-6, 1.0),
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        unit=jnp.where(unit > 0.0, unit, 1.0),
        samples=jnp.broadcast_to(position[:, None], state.samples.shape),
        attempts=jnp.zeros_like(state.attempts),
        running=~lost & (~still | (position.shape[1] > 1)),
        failed=lost,
    )
    loaded = loaded._replace(time=jnp.where(loaded.running, 0.0, 1.0))
    return jax.tree.map(partial(select, fresh), loaded, state)


def _attempt_step(
    metric: Metric,
    state: RayState,
    times: jax.Array,
    tol: jax.Array,
    max_steps: jax.Array,
    until_conjugate: jax.Array,
) -> RayState:
    """One trial step of every running slot, accepted where its error is small."""
    last = state.time + state.step >= 1.0 - 1e-13
    step = jnp.where(last, 1.0 - state.time, state.step)
    slopes, tensors = _stages(metric, state, step)
    position, velocity = _combine(state, slopes, STEP, step)
    acceleration = slopes.acceleration[STAGES]
    error = _error(state, slopes, tensors, step) / tol
    accepted = state.running & (error <= 1.0)
    # NaN compares false: an item that left the metric's domain shrinks its step.
    factor = _SAFETY * jnp.maximum(error, 1e-12) ** (-1.0 / 8.0)
    factor = jnp.clip(
        jnp.nan_to_num(factor, nan=_SHRINK, posinf=_SHRINK), _SHRINK, _GROW
    )
    attempts = state.attempts + state.running
    next_step = jnp.where(state.running, step * factor, state.step)
    at_end = last | (until_conjugate & _has_conjugate_point(position))
    finished = accepted & at_end
    lost = state.running & ~finished
    lost &= (next_step < _SMALLEST_STEP) | (attempts >= max_steps)
    moved = state._replace(
        time=jnp.where(last, 1.0, state.time + step),
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        samples=_sample(state, slopes, position, velocity, times, step, last),
    )
    kept = jax.tree.map(partial(select, accepted), moved, state)
    return kept._replace(
        step=next_step,
        attempts=attempts,
        running=state.running & ~finished & ~lost,
        failed=state.failed | lost,
    )


class _Slopes(NamedTuple):
    """Derivatives of position and velocity at the stages, (n_stages, n, r, D)."""

    velocity: jax.Array
    acceleration: jax.Array


def _combine(
    state: RayState, slopes: _Slopes, weights: Any, step: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """State plus step times the weighted sum of the first stages."""
    used = len(weights)
    scale = step[:, None, None]

    def total(stages: jax.Array) -> jax.Array:
        return scale * jnp.tensordot(jnp.asarray(weights), stages[:used], axes=1)

    return (
        state.position + total(slopes.velocity),
        state.velocity + total(slopes.acceleration),
    )


def _stages(
    metric: Metric, state: RayState, step: jax.Array
) -> tuple[_Slopes, jax.Array]:
    """All stages that are needed, and the tensors at the end of the step.

    A loop, so that the right-hand side compiles once.
    """
    count = len(TABLEAU) if state.samples.shape[1] else STAGES + 1
    tableau = jnp.asarray(TABLEAU[:count, :count])
    empty = jnp.zeros((count, *state.position.shape))
    slopes = _Slopes(
        empty.at[0].set(state.velocity), empty.at[0].set(state.acceleration)
    )

    def stage(
        index: int, carried: tuple[_Slopes, jax.Array]
    ) -> tuple[_Slopes, jax.Array]:
        slopes, tensors = carried
        position, velocity = _combine(state, slopes, tableau[index], step)
        acceleration, here = _equation(metric, position, velocity, state.running)
        slopes = _Slopes(
            slopes.velocity.at[index].set(velocity),
            slopes.acceleration.at[index].set(acceleration),
        )
        return slopes, jnp.where(index <= STAGES, here, tensors)

    points = state.position[:, 0]
    shape = jax.eval_shape(metric.tensor_batch, points).shape
    start = (slopes, jnp.zeros(shape))
    found: tuple[_Slopes, jax.Array] = jax.lax.fori_loop(1, count, stage, start)
    return found


def _error(
    state: RayState, slopes: _Slopes, tensors: jax.Array, step: jax.Array
) -> jax.Array:
    """Error of the step in the metric's norm, relative to the geodesic's length."""

    def squared(weights: Any) -> jax.Array:
        total = jnp.zeros_like(state.unit)
        for stages in slopes:
            used = stages[: len(weights)]
            errors = jnp.tensordot(jnp.asarray(weights), used, axes=1)
            total += _row_norms(tensors, step[:, None, None] * errors)
        return total / unit

    # Fields that grow are right relative to what they have become.
    unit = jnp.maximum(state.unit, _field_norms(tensors, state.position))
    fifth, third = squared(ERROR_5), squared(ERROR_3)
    scale = jnp.sqrt(fifth + 0.01 * third)
    errors = jnp.where(scale == 0.0, 0.0, fifth / scale)
    return jnp.max(errors, axis=1)


def _sample(
    state: RayState,
    slopes: _Slopes,
    position: jax.Array,
    velocity: jax.Array,
    times: jax.Array,
    step: jax.Array,
    last: jax.Array,
) -> jax.Array:
    """Fill in the requested times inside this step from the 7th-order interpolant."""
    if state.samples.shape[1] == 0:
        return state.samples
    scale = step[:, None, None]
    change = position - state.position
    first, final = scale * state.velocity, scale * velocity
    coefficients = [change, first - change, 2.0 * change - first - final]
    coefficients += [
        scale * jnp.tensordot(jnp.asarray(row), slopes.velocity, axes=1)
        for row in INTERPOLANT
    ]
    elapsed = times[None] - state.time[:, None]
    fraction = elapsed / jnp.where(step > 0, step, 1.0)[:, None]
    fraction = fraction[:, :, None, None]
    values = jnp.zeros_like(state.samples)
    for index, coefficient in reversed(list(enumerate(coefficients))):
        values = values + coefficient[:, None]
        values = values * (fraction if index % 2 == 0 else 1.0 - fraction)
    values = values + state.position[:, None]
    inside = (fraction > 0.0) & ((fraction <= 1.0) | last[:, None, None, None])
    return jnp.where(inside, values, state.samples)
