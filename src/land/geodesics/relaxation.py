"""Relax discretised curves to geodesics: batched, preconditioned L-BFGS.

Minimises the collocation energy of many curves at once. The preconditioner is the
Hessian with the metric frozen: in terms of rates it is one small block per Gauss point
and one constraint, that the curve must arrive, and is inverted in closed form.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from land._device import Mask, Request, take_rows
from land.geodesics.collocation import WEIGHTS, gather_forces, gauss_positions
from land.geodesics.equation import Forces
from land.metrics.tensors import invert, lower, squared_norm

Array = NDArray[np.float64]

# Past steps that are remembered.
_MEMORY = 20
_ARMIJO = 1e-4
# Energies cannot be compared beyond rounding.
_ROUNDING = 1e-13
_SMALLEST_STEP = 1e-9
# Once the distance to the discrete minimum is this share of the discretisation error,
# only a finer mesh can help.
_CLOSE_ENOUGH = 0.1
# A mesh with a larger error than this is rough: after so many iterations the curve gets
# another one. With a smaller error a curve is near enough for Newton's method.
ROUGH, _PATIENCE = 0.03, 15


class Boundary(NamedTuple):
    """The boundary value problems of a batch."""

    base: Array  # (n, D)
    inverse_base: Array  # (n, D) or (n, D, D): M^-1 at the base
    inverse_end: Array  # the same at the target
    widths: Array  # (n, elements)
    max_iter: Any  # (n,) iterations after which a curve is given up

    @property
    def weights(self) -> Array:
        """Weights of the Gauss points in the energy, (n, e, q, 1)."""
        return (WEIGHTS / self.widths[:, :, None])[..., None]


class Curve(NamedTuple):
    """Discrete curves and the derivatives of their energy."""

    rates: Array  # (n, e, q, D)
    energy: Array  # (n,)
    gradient: Array  # (n, e, q, D) of the energy in the rates
    drift: Array  # (n, D) of the energy when the whole curve is moved
    tensors: Array  # (n, e, q, D) or (n, e, q, D, D)
    inverses: Array


class Relaxed(NamedTuple):
    """Curves as far as they were relaxed."""

    rates: Array  # (n, e, q, D)
    energy: Array  # (n,)
    drift: Array  # (n, D) derivative of the energy when the whole curve is moved
    multiplier: Array  # (n, D) momentum at the end
    distance: Array  # (n,) to the discrete minimum, relative
    mismatch: Array  # (n,) estimate of the discretisation error, relative
    iterations: NDArray[np.int64]  # (n,)

    def accurate(self, tol: float) -> Mask:
        """Which curves meet a tolerance."""
        return (self.distance <= tol) & (self.mismatch <= tol)


class _Descent(NamedTuple):
    """Curves that are being relaxed."""

    which: NDArray[np.intp]  # (n,) places in the answer
    boundary: Boundary
    curve: Curve
    direction: Array  # (n, e, q, D)
    step: Array  # (n,)
    iterations: NDArray[np.int64]  # (n,)
    accepted: Mask  # (n,) whether the last step was good
    # Past steps, changes of the gradient, and 1 / (step . change), the oldest first.
    pairs: list[tuple[Array, Array, Array]]


def relax_curves(
    boundary: Boundary, rates: Array, tol: float
) -> Generator[Request, Any, Relaxed]:
    """Relax curves (n, elements, ORDER, D).

    A generator: it asks for the metric's `forces` at points, see `in_lockstep`.

    A curve is done when it meets the tolerance, when only another mesh can help, and
    when it is stuck.
    """
    n = len(rates)
    curve = yield from _evaluate(boundary, rates)
    descent = _Descent(
        which=np.arange(n),
        boundary=boundary,
        curve=curve,
        direction=np.zeros_like(rates),
        step=np.ones(n),
        iterations=np.zeros(n, dtype=np.int64),
        accepted=np.isfinite(curve.energy),
        pairs=[],
    )
    stuck = ~descent.accepted
    places, parts = [], []
    while True:
        reached = _judged(descent)
        done = stuck | (descent.accepted & _settled(reached, tol))
        done |= descent.iterations >= descent.boundary.max_iter
        if done.any():
            places.append(descent.which[done])
            parts.append(take_rows(reached, done))
            descent = take_rows(descent, ~done)
        if not len(descent.which):
            break
        descent = yield from _advance(_aimed(descent))
        stuck = ~descent.accepted & (descent.step < _SMALLEST_STEP)
    order = np.argsort(np.concatenate(places))
    return Relaxed(*(np.concatenate(own)[order] for own in zip(*parts, strict=True)))


def _where(mask: Mask, new: Array, old: Array | float) -> Array:
    return np.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def _dot(left: Array, right: Array) -> Array:
    n = len(left)
    return np.einsum("ni,ni->n", left.reshape(n, -1), right.reshape(n, -1))


def _evaluate(boundary: Boundary, rates: Array) -> Generator[Request, Forces, Curve]:
    """Energy 1/2 sum_q w_q r_q^T M(x_q) r_q and its first derivatives."""
    dim = rates.shape[-1]
    positions = gauss_positions(boundary.base, rates).reshape(-1, dim)
    tensors, pull, _ = yield positions, rates.reshape(-1, dim)
    tensors = tensors.reshape(*rates.shape[:3], *tensors.shape[1:])
    weights = boundary.weights
    momenta = weights * lower(tensors, rates)
    pulls = weights * pull.reshape(rates.shape)
    return Curve(
        rates,
        0.5 * _dot(rates, momenta),
        momenta + gather_forces(pulls),
        pulls.sum(axis=(1, 2)),
        tensors,
        invert(tensors, rates),
    )


def _precondition(
    boundary: Boundary, inverses: Array, gradient: Array
) -> tuple[Array, Array]:
    """Inverse frozen-metric Hessian on the rates that keep the end in place.

    Returns the preconditioned gradient and the multiplier of the constraint.
    """
    weights, constraint = boundary.weights, WEIGHTS[:, None]
    free = lower(inverses, gradient) / weights
    pulled = np.sum(constraint * free, axis=(1, 2))
    shares = constraint**2 / weights
    shares = shares.reshape(*shares.shape, *[1] * (inverses.ndim - gradient.ndim))
    stiffness = np.sum(shares * inverses, axis=(1, 2))
    multiplier = lower(invert(stiffness, pulled), pulled)
    held = gradient - multiplier[:, None, None] * constraint
    return lower(inverses, held) / weights, multiplier


def _judged(descent: _Descent) -> Relaxed:
    """The curves as they are, and their errors.

    A geodesic has the same speed at both ends as on average. The momenta at the ends
    (the derivatives of the energy in the end points) converge much faster than the
    curve; their lengths measure the discretisation error.
    """
    curve, boundary = descent.curve, descent.boundary
    step, multiplier = _precondition(boundary, curve.inverses, curve.gradient)
    decrement = _dot(curve.gradient, step) / (2.0 * curve.energy)
    start = squared_norm(boundary.inverse_base, multiplier - curve.drift)
    end = squared_norm(boundary.inverse_end, multiplier)
    speeds = np.sqrt(np.stack([start, end]) / (2.0 * curve.energy))
    return Relaxed(
        rates=curve.rates,
        energy=curve.energy,
        drift=curve.drift,
        multiplier=multiplier,
        distance=np.sqrt(np.maximum(decrement, 0.0)),
        mismatch=np.abs(speeds - 1.0).max(axis=0),
        iterations=descent.iterations,
    )


def _settled(reached: Relaxed, tol: float) -> Mask:
    """Whether a curve is accurate, or wants another mesh."""
    distance, mismatch = reached.distance, reached.mismatch
    limited = (mismatch > tol) & (distance <= _CLOSE_ENOUGH * np.minimum(mismatch, 1.0))
    unfit = (mismatch > ROUGH) & (reached.iterations >= _PATIENCE)
    return reached.accurate(tol) | limited | unfit


def _aimed(descent: _Descent) -> _Descent:
    """New directions for curves whose last step was good."""
    curve, accepted = descent.curve, descent.accepted
    direction = _where(accepted, -_quasi_newton(descent), descent.direction)
    squares = squared_norm(curve.tensors, direction)
    # Their size in the energy norm keeps steps within reason.
    stretch = np.sum(descent.boundary.weights[..., 0] * squares, axis=(1, 2))
    longest = np.sqrt(2.0 * curve.energy / np.maximum(stretch, 1e-300))
    step = np.where(accepted, np.minimum(1.0, longest), descent.step)
    return descent._replace(direction=direction, step=step)


def _advance(descent: _Descent) -> Generator[Request, Any, _Descent]:
    """Try one step of every curve; where it is good, take it."""
    old, step = descent.curve, descent.step
    moved = step[:, None, None, None] * descent.direction
    new = yield from _evaluate(descent.boundary, old.rates + moved)
    slope = _dot(old.gradient, descent.direction)
    allowed = old.energy * (1.0 + _ROUNDING) + _ARMIJO * step * slope
    accepted = new.energy <= allowed
    change = new.gradient - old.gradient
    product = _dot(moved, change)
    # Below this the change of the gradient is rounding error, not curvature.
    good = accepted & (product > _ROUNDING * old.energy)
    pair = (
        _where(good, moved, 0.0),
        _where(good, change, 0.0),
        np.where(good, 1.0 / np.where(good, product, 1.0), 0.0),
    )
    parts = zip(new, old, strict=True)
    return descent._replace(
        curve=Curve(*(_where(accepted, its, mine) for its, mine in parts)),
        step=np.where(accepted, step, 0.1 * step),
        iterations=descent.iterations + 1,
        accepted=accepted,
        pairs=[*descent.pairs, pair][-_MEMORY:],
    )


def _quasi_newton(descent: _Descent) -> Array:
    """L-BFGS two-loop recursion around the preconditioner."""
    vector, shares = descent.curve.gradient, []
    for step, change, curvature in reversed(descent.pairs):
        share = curvature * _dot(step, vector)
        vector = vector - share[:, None, None, None] * change
        shares.append(share)
    vector, _ = _precondition(descent.boundary, descent.curve.inverses, vector)
    for step, change, curvature in descent.pairs:
        share = shares.pop() - curvature * _dot(change, vector)
        vector = vector + share[:, None, None, None] * step
    return vector
