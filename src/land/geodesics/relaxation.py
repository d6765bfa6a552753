"""Relax discretised curves to geodesics: batched, preconditioned L-BFGS.

Minimises the collocation energy of many curves at once. The preconditioner is the
Hessian with the metric frozen, which in terms of rates is one small block per Gauss
point and one constraint (the curve must arrive), so applying its inverse needs no
linear solver beyond the D x D blocks themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from land._device import Mask, Request
from land.geodesics.collocation import WEIGHTS, gather_forces, gauss_positions
from land.geodesics.equation import Forces
from land.metrics.tensors import invert, lower, squared_norm

Array = NDArray[np.float64]


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
    # Iterations on a rough mesh before it is adapted to the curve and refined.
    patience: int = 15


_SETTINGS = _Settings()


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


@dataclass
class Relaxed:
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


@dataclass
class _Descent:
    """Curves that are being relaxed."""

    which: NDArray[np.intp]  # (n,) places in the answer
    boundary: Boundary
    curve: Curve
    direction: Array  # (n, e, q, D)
    step: Array  # (n,)
    iterations: NDArray[np.int64]  # (n,)
    plain: Mask  # (n,) direction is the preconditioned gradient
    # Past steps, changes of the gradient, and 1 / (step . change), the oldest first.
    pairs: deque[tuple[Array, Array, Array]]

    def take(self, rows: Mask) -> _Descent:
        """Some of the curves."""
        parts: dict[str, Any] = {
            each.name: getattr(self, each.name) for each in fields(self)
        }
        for name in ("which", "direction", "step", "iterations", "plain"):
            parts[name] = parts[name][rows]
        parts["boundary"] = Boundary(*(each[rows] for each in self.boundary))
        parts["curve"] = Curve(*(each[rows] for each in self.curve))
        pairs = (tuple(each[rows] for each in pair) for pair in self.pairs)
        parts["pairs"] = deque(pairs, _SETTINGS.memory)
        return _Descent(**parts)


def relax_curves(
    boundary: Boundary, rates: Array, tol: float
) -> Generator[Request, Any, Relaxed]:
    """Relax curves (n, elements, ORDER, D).

    A generator: it asks for the metric's `forces` at points, see `in_lockstep`.

    A curve is done when it meets the tolerance, when it is so close to the discrete
    minimum that only a finer mesh can help, when its patience with a mesh that does not
    seem to fit it is over, and when it is stuck.
    """
    n, dim = boundary.base.shape
    found = Relaxed(
        rates=rates.copy(),
        energy=np.zeros(n),
        drift=np.zeros((n, dim)),
        multiplier=np.zeros((n, dim)),
        distance=np.zeros(n),
        mismatch=np.zeros(n),
        iterations=np.zeros(n, dtype=np.int64),
    )
    descent = _Descent(
        which=np.arange(n),
        boundary=boundary,
        curve=(yield from _evaluate(boundary, rates.copy())),
        direction=np.zeros_like(rates),
        step=np.zeros(n),
        iterations=np.zeros(n, dtype=np.int64),
        plain=np.ones(n, dtype=bool),
        pairs=deque(maxlen=_SETTINGS.memory),
    )
    accepted = np.isfinite(descent.curve.energy)
    stuck = ~accepted
    while True:
        running = _judge(descent, accepted, stuck, tol, found)
        descent = descent.take(running) if not running.all() else descent
        if not len(descent.which):
            return found
        accepted, stuck = yield from _advance(descent)


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


def _judge(
    descent: _Descent, accepted: Mask, stuck: Mask, tol: float, found: Relaxed
) -> Mask:
    """Prepare the next step of curves; which of them go on. Others are entered."""
    curve, boundary = descent.curve, descent.boundary
    gradient_step, multiplier = _precondition(boundary, curve.inverses, curve.gradient)
    decrement = _dot(curve.gradient, gradient_step) / (2.0 * curve.energy)
    distance = np.sqrt(np.maximum(decrement, 0.0))
    mismatch = _mismatch(boundary, curve, multiplier)
    settled = accepted & _settled(distance, mismatch, descent.iterations, tol)
    # A direction that fails with memory is tried again without it.
    retried = stuck & ~descent.plain
    running = ~settled & ~(stuck & descent.plain)
    running &= descent.iterations < boundary.max_iter
    done = ~running
    if done.any():
        own = descent.which[done]
        for name in ("rates", "energy", "drift"):
            getattr(found, name)[own] = getattr(curve, name)[done]
        found.multiplier[own], found.distance[own] = multiplier[done], distance[done]
        found.mismatch[own] = mismatch[done]
        found.iterations[own] = descent.iterations[done]
    for _, _, curvatures in descent.pairs:
        curvatures[retried] = 0.0
    fresh = accepted | retried
    if fresh.any():
        direction = -_quasi_newton(descent, curve)
        ascending = ~(_dot(curve.gradient, direction) < 0.0)
        direction = _where(ascending | retried, -gradient_step, direction)
        descent.direction = _where(fresh, direction, descent.direction)
        squares = squared_norm(curve.tensors, descent.direction)
        # Their size in the energy norm keeps steps within reason.
        stretch = np.einsum("neq,neq->n", boundary.weights[..., 0], squares)
        longest = np.sqrt(2.0 * curve.energy / np.maximum(stretch, 1e-300))
        descent.step = np.where(fresh, np.minimum(1.0, longest), descent.step)
    descent.plain = np.where(accepted, False, descent.plain | retried)
    return running


def _where(mask: Mask, new: Array, old: Array | float) -> Array:
    return np.where(mask[:, None, None, None], new, old)


def _advance(descent: _Descent) -> Generator[Request, Any, tuple[Mask, Mask]]:
    """Try one step of every curve; where it is good, take it.

    Returns which steps were good, and which curves are stuck.
    """
    old, step = descent.curve, descent.step
    moved = step[:, None, None, None] * descent.direction
    new = yield from _evaluate(descent.boundary, old.rates + moved)
    slope = _dot(old.gradient, descent.direction)
    allowed = old.energy * (1.0 + _SETTINGS.rounding) + _SETTINGS.armijo * step * slope
    accepted = new.energy <= allowed
    change = new.gradient - old.gradient
    product = _dot(moved, change)
    # Below this the change of the gradient is rounding error, not curvature.
    good = accepted & (product > _SETTINGS.rounding * old.energy)
    descent.pairs.append(
        (
            _where(good, moved, 0.0),
            _where(good, change, 0.0),
            np.where(good, 1.0 / np.where(good, product, 1.0), 0.0),
        )
    )
    backed = np.clip(
        _parabola(old.energy, new.energy, slope, step), 0.1 * step, 0.5 * step
    )
    descent.step = np.where(accepted, step, backed)
    descent.iterations += 1
    if accepted.all():
        descent.curve = new
    else:
        for mine, its in zip(old, new, strict=True):
            mine[accepted] = its[accepted]
    return accepted, ~accepted & (backed < _SETTINGS.smallest_step)


def _settled(
    distance: Array, mismatch: Array, iterations: NDArray[np.int64], tol: float
) -> Mask:
    """Whether a curve is accurate, or wants another mesh."""
    accurate = (distance <= tol) & (mismatch <= tol)
    share = np.where(
        mismatch > _SETTINGS.rough, _SETTINGS.coarse_enough, _SETTINGS.fine_enough
    )
    limited = (mismatch > tol) & (distance <= share * mismatch)
    limited &= iterations >= _SETTINGS.fewest_iterations
    unfit = (mismatch > _SETTINGS.rough) & (iterations >= _SETTINGS.patience)
    return np.asarray(accurate | limited | unfit)


def _parabola(old: Array, new: Array, slope: Array, step: Array) -> Array:
    """Minimum of the parabola through both energies and the initial slope."""
    curvature = 2.0 * (new - old - slope * step)
    guess = -slope * step**2 / np.where(curvature > 0.0, curvature, 1.0)
    return np.where((curvature > 0.0) & np.isfinite(guess), guess, 0.1 * step)


def _mismatch(boundary: Boundary, curve: Curve, multiplier: Array) -> Array:
    """Discretisation error: a geodesic has the same speed at both ends as on average.

    The momenta at the ends (the derivatives of the energy in the end points) converge
    much faster than the curve; their lengths measure the error that is left.
    """
    speed = np.sqrt(2.0 * curve.energy)
    start = squared_norm(boundary.inverse_base, multiplier - curve.drift)
    end = squared_norm(boundary.inverse_end, multiplier)
    errors = np.abs(np.sqrt(np.stack([start, end])) / speed - 1.0)
    return np.asarray(errors.max(axis=0))


def _quasi_newton(descent: _Descent, curve: Curve) -> Array:
    """L-BFGS two-loop recursion around the preconditioner."""
    vector, shares = curve.gradient, []
    for step, change, curvature in reversed(descent.pairs):
        share = curvature * _dot(step, vector)
        vector = vector - share[:, None, None, None] * change
        shares.append(share)
    vector, _ = _precondition(descent.boundary, curve.inverses, vector)
    for step, change, curvature in descent.pairs:
        share = shares.pop() - curvature * _dot(change, vector)
        vector = vector + share[:, None, None, None] * step
    return vector
