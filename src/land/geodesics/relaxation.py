"""Relax discretised curves to geodesics: batched, preconditioned L-BFGS.

Minimises the collocation energy of many curves at once. The preconditioner is the
Hessian with the metric frozen, which in terms of rates is one small block per Gauss
point and one constraint (the curve must arrive), so applying its inverse needs no
linear solver beyond the D x D blocks themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from land._device import select
from land.geodesics.collocation import ORDER, WEIGHTS, gauss_positions
from land.metrics import Metric
from land.metrics.tensors import invert, lower, squared_norm, squared_norm_gradient


@dataclass(frozen=True)
class _Settings:
    """Descent, and when it ends."""

    # Past steps that are remembered.
    memory: int = 20
    armijo: float = 1e-4
    # Energies cannot be compared beyond rounding.
    rounding: float = 1e-13
    smallest_step: float = 1e-9
    # Iterating is pointless once the distance to the discrete minimum is this fraction
    # of the discretisation error: refine instead. On a mesh that is nearly right the
    # estimate of that error must be told apart from what iterating would still remove.
    rough: float = 0.03
    coarse_enough: float = 0.2
    fine_enough: float = 0.05
    fewest_iterations: int = 3


_SETTINGS = _Settings()


# Nearly a geodesic: near enough for Newton's method.
NEARLY = 0.05


# Fields of the blocks below are NumPy arrays on the way in and JAX arrays inside.


class Boundary(NamedTuple):
    """The boundary value problems of a block."""

    base: Any  # (n, D)
    inverse_base: Any  # (n, D) or (n, D, D): M^-1 at the base
    inverse_end: Any  # the same at the target
    widths: Any  # (n, elements)


class Curve(NamedTuple):
    """Discrete curves and the derivatives of their energy."""

    rates: Any  # (n, e, q, D)
    energy: Any  # (n,)
    gradient: Any  # (n, e, q, D) of the energy in the rates
    drift: Any  # (n, D) of the energy when the whole curve is moved
    tensors: Any  # (n, e, q, D) or (n, e, q, D, D)


class RelaxationState(NamedTuple):
    """A block of curves on their way to geodesics."""

    boundary: Boundary
    curve: Curve
    direction: Any  # (n, e, q, D)
    step: Any  # (n,)
    multiplier: Any  # (n, D) momentum at the end
    decrement: Any  # (n,) squared distance to the discrete minimum, relative
    mismatch: Any  # (n,) discretisation error estimate, relative
    steps: Any  # (m, n, e, q, D) past steps
    changes: Any  # (m, n, e, q, D) past changes of the gradient
    curvatures: Any  # (m, n) 1 / (step . change); zero where there is none
    clock: Any  # () steps that were stored, of which the last m are remembered
    iterations: Any  # (n,)
    plain: Any  # (n,) direction is the preconditioned gradient
    running: Any  # (n,)


def empty_state(
    n_slots: int, elements: int, tensor_shape: tuple[int, ...]
) -> RelaxationState:
    """A block of idle slots for tensors of one point of this shape."""
    dim = tensor_shape[0]
    rates = np.zeros((n_slots, elements, ORDER, dim))
    flat, points = np.zeros(n_slots), np.zeros((n_slots, dim))
    idle = np.zeros(n_slots, dtype=bool)
    boundary = Boundary(
        base=points,
        inverse_base=np.zeros((n_slots, *tensor_shape)),
        inverse_end=np.zeros((n_slots, *tensor_shape)),
        widths=np.full((n_slots, elements), 1.0 / elements),
    )
    curve = Curve(
        rates, flat, rates, points, np.ones((n_slots, elements, ORDER, *tensor_shape))
    )
    return RelaxationState(
        boundary=boundary,
        curve=curve,
        direction=rates,
        step=flat,
        multiplier=points,
        decrement=flat,
        mismatch=flat,
        # Large, and made where they stay: copying zeros to an accelerator takes time.
        steps=jnp.zeros((_SETTINGS.memory, *rates.shape)),
        changes=jnp.zeros((_SETTINGS.memory, *rates.shape)),
        curvatures=np.zeros((_SETTINGS.memory, n_slots)),
        clock=np.zeros((), dtype=np.int64),
        iterations=np.zeros(n_slots, dtype=np.int64),
        plain=idle,
        running=idle,
    )


@partial(jax.jit, donate_argnames="state")
def relax_curves(
    metric: Metric,
    state: RelaxationState,
    fresh: jax.Array,
    boundary: Boundary,
    rates: jax.Array,
    tol: jax.Array,
    max_iter: jax.Array,
    patience: jax.Array,
    hand_over: jax.Array,
    leave_at: jax.Array,
) -> RelaxationState:
    """Load curves into `fresh` slots and relax the block.

    A slot stops when its curve meets the tolerance, when it is so close to the discrete
    minimum that only a finer mesh can help, after `patience` iterations on a mesh that
    does not seem to fit it, when it is stuck, and, if another method is to finish it
    (`hand_over`), when it is nearly a geodesic. Returns when at most `leave_at` slots
    are still running.
    """
    loaded = _load(state, fresh, boundary, rates)

    def unfinished(state: RelaxationState) -> jax.Array:
        return jnp.sum(state.running) > leave_at

    def iterate(state: RelaxationState) -> RelaxationState:
        return _iterate(metric, state, tol, max_iter, patience, hand_over)

    return jax.lax.while_loop(unfinished, iterate, loaded)


def _load(
    state: RelaxationState, fresh: jax.Array, boundary: Boundary, rates: jax.Array
) -> RelaxationState:
    """Put curves into fresh slots; infinite energy makes their evaluation accepted."""
    load = partial(select, fresh)
    curve = state.curve._replace(
        rates=load(rates, state.curve.rates),
        energy=jnp.where(fresh, jnp.inf, state.curve.energy),
        gradient=load(jnp.zeros_like(rates), state.curve.gradient),
    )
    return state._replace(
        boundary=jax.tree.map(load, boundary, state.boundary),
        curve=curve,
        direction=load(jnp.zeros_like(rates), state.direction),
        step=jnp.where(fresh, 1.0, state.step),
        decrement=jnp.where(fresh, jnp.inf, state.decrement),
        mismatch=jnp.where(fresh, jnp.inf, state.mismatch),
        curvatures=jnp.where(fresh, 0.0, state.curvatures),
        iterations=jnp.where(fresh, 0, state.iterations),
        plain=fresh | state.plain,
        running=fresh | state.running,
    )


def _dot(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.einsum("neqd,neqd->n", left, right)


def _point_weights(boundary: Boundary) -> jax.Array:
    """Weights of the Gauss points in the energy, (n, e, q)."""
    return WEIGHTS / boundary.widths[:, :, None]


def _evaluate(metric: Metric, boundary: Boundary, rates: jax.Array) -> Curve:
    """Energy 1/2 sum_q w_q r_q^T M(x_q) r_q and its first derivatives."""
    positions, spread = jax.vjp(partial(gauss_positions, boundary.base), rates)
    weights = _point_weights(boundary)
    flat = positions.reshape(-1, positions.shape[-1])
    flat_tensors, pull_back = jax.vjp(metric.tensor_batch, flat)
    tensors = flat_tensors.reshape(*positions.shape[:3], *flat_tensors.shape[1:])
    momenta = weights[..., None] * lower(tensors, rates)
    energy = 0.5 * _dot(rates, momenta)
    flat_rates = rates.reshape(flat.shape)
    slopes = squared_norm_gradient(flat_tensors, flat_rates)
    scale = 0.5 * weights.reshape(-1, *[1] * (slopes.ndim - 1))
    (flat_forces,) = pull_back(scale * slopes)
    forces = flat_forces.reshape(positions.shape)
    gradient = momenta + spread(forces)[0]
    return Curve(rates, energy, gradient, jnp.sum(forces, axis=(1, 2)), tensors)


def _precondition(
    boundary: Boundary, tensors: jax.Array, gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Inverse frozen-metric Hessian on the rates that keep the end in place.

    Returns the preconditioned gradient and the multiplier of the constraint.
    """
    inverse = invert(tensors, gradient)
    weights = _point_weights(boundary)[..., None]
    constraint = WEIGHTS[:, None]
    free = lower(inverse, gradient) / weights
    pulled = jnp.sum(constraint * free, axis=(1, 2))
    shares = constraint**2 / weights
    if inverse.ndim == gradient.ndim:
        multiplier = pulled / jnp.sum(shares * inverse, axis=(1, 2))
    else:
        stiffness = jnp.sum(shares[..., None] * inverse, axis=(1, 2))
        multiplier = lower(invert(stiffness, pulled), pulled)
    held = gradient - multiplier[:, None, None] * constraint
    return lower(inverse, held) / weights, multiplier


def _iterate(
    metric: Metric,
    state: RelaxationState,
    tol: jax.Array,
    max_iter: jax.Array,
    patience: jax.Array,
    hand_over: jax.Array,
) -> RelaxationState:
    """Try one step in every running slot; where it is good, turn to the next."""
    boundary, old = state.boundary, state.curve
    step = jnp.where(state.running, state.step, 0.0)
    moved = step[:, None, None, None] * state.direction
    # Idle slots are nowhere: that costs a metric that looks for neighbours nothing.
    new = _evaluate(metric, boundary, select(state.running, old.rates + moved, jnp.nan))
    slope = _dot(old.gradient, state.direction)
    allowed = old.energy * (1.0 + _SETTINGS.rounding) + _SETTINGS.armijo * step * slope
    accepted = state.running & (new.energy <= allowed)
    state = _remember(state, accepted, moved, new.gradient - old.gradient)
    curve = jax.tree.map(partial(select, accepted), new, old)
    gradient_step, multiplier = _precondition(boundary, curve.tensors, curve.gradient)
    decrement = _dot(curve.gradient, gradient_step) / (2.0 * curve.energy)
    mismatch = _mismatch(boundary, curve, multiplier)
    iterations = state.iterations + state.running
    settled = _settled(decrement, mismatch, iterations, tol, patience, hand_over)
    # A direction that fails with memory is tried again without it.
    backed = jnp.clip(
        _parabola(old.energy, new.energy, slope, step), 0.1 * step, 0.5 * step
    )
    stuck = state.running & ~accepted & (backed < _SETTINGS.smallest_step)
    plain = stuck & ~state.plain
    direction = -_quasi_newton(state, curve, gradient_step)
    ascending = _dot(curve.gradient, direction) >= 0.0
    direction = select(ascending | plain, -gradient_step, direction)
    direction = select(accepted | plain, direction, state.direction)
    longest = jnp.sqrt(2.0 * curve.energy / _stretch(boundary, curve, direction))
    return state._replace(
        curve=curve,
        direction=direction,
        step=jnp.where(accepted | plain, jnp.minimum(1.0, longest), backed),
        multiplier=multiplier,
        decrement=decrement,
        mismatch=mismatch,
        curvatures=jnp.where(plain, 0.0, state.curvatures),
        iterations=iterations,
        plain=jnp.where(accepted, False, state.plain | plain),
        running=state.running
        & ~(accepted & settled)
        & ~(stuck & state.plain)
        & (iterations < max_iter),
    )


def _settled(
    decrement: jax.Array,
    mismatch: jax.Array,
    iterations: jax.Array,
    tol: jax.Array,
    patience: jax.Array,
    hand_over: jax.Array,
) -> jax.Array:
    """Whether a curve is accurate, or wants another mesh or another method."""
    distance = jnp.sqrt(jnp.maximum(decrement, 0.0))
    accurate = (distance <= tol) & (mismatch <= tol)
    share = jnp.where(
        mismatch > _SETTINGS.rough, _SETTINGS.coarse_enough, _SETTINGS.fine_enough
    )
    limited = (mismatch > tol) & (distance <= share * mismatch)
    unfit = (mismatch > _SETTINGS.rough) & (iterations >= patience)
    ready = (jnp.maximum(distance, mismatch) <= NEARLY) & hand_over
    return (
        accurate
        | (limited & (iterations >= _SETTINGS.fewest_iterations))
        | unfit
        | ready
    )


def _parabola(
    old: jax.Array, new: jax.Array, slope: jax.Array, step: jax.Array
) -> jax.Array:
    """Minimum of the parabola through both energies and the initial slope."""
    curvature = 2.0 * (new - old - slope * step)
    guess = -slope * step**2 / jnp.where(curvature > 0.0, curvature, 1.0)
    return jnp.where((curvature > 0.0) & jnp.isfinite(guess), guess, 0.1 * step)


def _stretch(boundary: Boundary, curve: Curve, direction: jax.Array) -> jax.Array:
    """Squared size of a direction in the energy norm; keeps steps within reason."""
    norms = squared_norm(curve.tensors, direction)
    return jnp.maximum(jnp.sum(_point_weights(boundary) * norms, axis=(1, 2)), 1e-300)


def _mismatch(boundary: Boundary, curve: Curve, multiplier: jax.Array) -> jax.Array:
    """Discretisation error: a geodesic has the same speed at both ends as on average.

    The momenta at the ends (the derivatives of the energy in the end points) converge
    much faster than the curve; their lengths measure the error that is left.
    """
    speed = jnp.sqrt(2.0 * curve.energy)
    start = squared_norm(boundary.inverse_base, multiplier - curve.drift)
    end = squared_norm(boundary.inverse_end, multiplier)
    errors = jnp.abs(jnp.sqrt(jnp.stack([start, end])) / speed - 1.0)
    return jnp.max(errors, axis=0)


def _remember(
    state: RelaxationState, accepted: jax.Array, moved: jax.Array, change: jax.Array
) -> RelaxationState:
    """Store the pair in the ring buffer; a slot without a good one stores nothing."""
    product = _dot(moved, change)
    # Below this the change of the gradient is rounding error, not curvature.
    good = accepted & (product > _SETTINGS.rounding * state.curve.energy)
    place = state.clock % _SETTINGS.memory
    zero = jnp.zeros_like(moved)
    return state._replace(
        steps=state.steps.at[place].set(select(good, moved, zero)),
        changes=state.changes.at[place].set(select(good, change, zero)),
        curvatures=state.curvatures.at[place].set(
            jnp.where(good, 1.0 / jnp.where(good, product, 1.0), 0.0)
        ),
        clock=state.clock + 1,
    )


def _quasi_newton(
    state: RelaxationState, curve: Curve, gradient_step: jax.Array
) -> jax.Array:
    """L-BFGS two-loop recursion around the preconditioner."""

    def newest_first(
        age: int, carry: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        vector, shares = carry
        index = (state.clock - 1 - age) % _SETTINGS.memory
        share = state.curvatures[index] * _dot(state.steps[index], vector)
        vector = vector - share[:, None, None, None] * state.changes[index]
        return vector, shares.at[index].set(share)

    def oldest_first(age: int, vector: jax.Array) -> jax.Array:
        index = (state.clock - filled + age) % _SETTINGS.memory
        share = state.curvatures[index] * _dot(state.changes[index], vector)
        correction = (shares[index] - share)[:, None, None, None]
        return vector + correction * state.steps[index]

    filled = jnp.minimum(state.clock, _SETTINGS.memory)
    shares = jnp.zeros_like(state.curvatures)
    vector, shares = jax.lax.fori_loop(
        0, filled, newest_first, (curve.gradient, shares)
    )
    vector, _ = _precondition(state.boundary, curve.tensors, vector)
    return jax.lax.fori_loop(0, filled, oldest_first, vector)
