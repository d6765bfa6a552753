"""Geodesics with SciPy: as a good user would write them, and tuned.

The right-hand sides are analytic and vectorised in NumPy. "Plain" is what the formulas
say, with NumPy as it comes. "Tuned" knows what we know: for a mesh of points
(`solve_bvp`) the kernel sums are matrix products, the same algebra as in land's metric,
and NumPy's linear algebra is held to one thread, because on matrices this small two
threads cost up to eight times as much.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_bvp, solve_ivp

Array = NDArray[np.float64]
Acceleration = Callable[[Array, Array], Array]

NODES = 20
MAX_NODES = 1000


def pointwise_acceleration(data: Array, sigma: float, rho: float) -> Acceleration:
    """Accelerations of one geodesic: (D,), (D,) -> (D,)."""

    def acceleration(point: Array, velocity: Array) -> Array:
        offsets = data - point
        squares = offsets * offsets
        weights = np.exp(squares.sum(axis=1) * (-0.5 / sigma**2))
        variances = weights @ squares + rho
        shift = weights @ offsets
        along = (weights * (offsets @ velocity)) @ squares / sigma**2
        along -= 2.0 * velocity * shift
        share = (velocity / variances) ** 2
        gradient = (weights * (squares @ share)) @ offsets / sigma**2
        gradient -= 2.0 * share * shift
        return velocity * along / variances - 0.5 * variances * gradient

    return acceleration


def meshwise_acceleration(data: Array, sigma: float, rho: float) -> Acceleration:
    """Accelerations at many nodes: (D, m), (D, m) -> (D, m)."""
    n, dim = data.shape
    center = data.mean(axis=0)
    scaled = (data - center) / sigma
    squares = scaled**2
    augmented = np.column_stack([scaled, -0.5 * squares.sum(axis=1), np.ones(n)]).T
    features = np.column_stack(
        [
            np.ones(n),
            scaled,
            squares,
            (scaled[:, :, None] * scaled[:, None, :]).reshape(n, -1),
            (scaled[:, :, None] * squares[:, None, :]).reshape(n, -1),
        ]
    )
    bounds = np.cumsum([1, dim, dim, dim**2])

    def acceleration(points: Array, velocities: Array) -> Array:
        x, v = (points.T - center) / sigma, velocities.T / sigma
        m = len(x)
        lengths = np.sum(x * x, axis=1)
        exponents = np.column_stack([x, np.ones(m), -0.5 * lengths]) @ augmented
        # Exponentials that underflow take NumPy ten times as long.
        moments = np.exp(np.clip(exponents, -700.0, 0.0)) @ features
        zeroth, first, second, cross, third = np.split(moments, bounds, axis=1)
        cross, third = cross.reshape(m, dim, dim), third.reshape(m, dim, dim)
        central = second - 2.0 * x * first + x * x * zeroth
        slopes = third - 2.0 * cross * x[:, None, :]
        slopes += first[:, :, None] * (x * x)[:, None, :]
        slopes -= x[:, :, None] * central[:, None, :]
        slopes -= 2.0 * np.eye(dim) * (first - x * zeroth)[:, :, None]
        variances = central + rho / sigma**2
        along = np.einsum("md,mdj->mj", v, slopes)
        gradient = np.einsum("mdj,mj->md", slopes, (v / variances) ** 2)
        return sigma * (v * along / variances - 0.5 * variances * gradient).T

    return acceleration


def broadcast_acceleration(data: Array, sigma: float, rho: float) -> Acceleration:
    """Accelerations at many nodes as the formulas read: (D, m), (D, m) -> (D, m)."""

    def acceleration(points: Array, velocities: Array) -> Array:
        offsets = data[:, :, None] - points
        squares = offsets**2
        weights = np.exp(-0.5 * squares.sum(axis=1) / sigma**2)
        variances = np.einsum("nm,ndm->dm", weights, squares) + rho
        shift = np.einsum("nm,ndm->dm", weights, offsets)
        approach = weights * np.einsum("ndm,dm->nm", offsets, velocities)
        along = np.einsum("nm,ndm->dm", approach, squares) / sigma**2
        along -= 2.0 * velocities * shift
        share = (velocities / variances) ** 2
        spread = weights * np.einsum("ndm,dm->nm", squares, share)
        gradient = np.einsum("nm,ndm->dm", spread, offsets) / sigma**2
        gradient -= 2.0 * share * shift
        return velocities * along / variances - 0.5 * variances * gradient

    return acceleration


def log_map(acceleration: Acceleration, base: Array, target: Array, tol: float):
    """One boundary value problem, from the straight line."""
    dim = len(base)
    times = np.linspace(0.0, 1.0, NODES)
    line = base[:, None] + np.outer(target - base, times)
    guess = np.concatenate([line, np.repeat((target - base)[:, None], NODES, axis=1)])

    def equation(_: Array, state: Array) -> Array:
        velocities = state[dim:]
        return np.concatenate([velocities, acceleration(state[:dim], velocities)])

    def ends(start: Array, end: Array) -> Array:
        return np.concatenate([start[:dim] - base, end[:dim] - target])

    return solve_bvp(equation, ends, times, guess, tol=tol, max_nodes=MAX_NODES)


def exp_map(
    acceleration: Acceleration, base: Array, tangent: Array, **options: object
) -> Array:
    """One initial value problem; where it arrives."""
    dim = len(base)

    def equation(_: float, state: Array) -> Array:
        velocity = state[dim:]
        return np.concatenate([velocity, acceleration(state[:dim], velocity)])

    start = np.concatenate([base, tangent])
    return solve_ivp(equation, (0.0, 1.0), start, **options).y[:dim, -1]


def stacked_exp_map(
    acceleration: Acceleration, base: Array, tangents: Array, **options: object
) -> Array:
    """All initial value problems as one system, with one step size for all."""
    n, dim = tangents.shape
    block = 100  # nodes for which the kernel weights stay in the cache

    def equation(_: float, state: Array) -> Array:
        points, velocities = state.reshape(2, dim, n)
        parts = [
            acceleration(points[:, i : i + block], velocities[:, i : i + block])
            for i in range(0, n, block)
        ]
        return np.concatenate([velocities, np.concatenate(parts, axis=1)]).ravel()

    start = np.concatenate([np.repeat(base[:, None], n, axis=1), tangents.T]).ravel()
    end = solve_ivp(equation, (0.0, 1.0), start, **options).y[:, -1]
    return end.reshape(2, dim, n)[0].T
