"""A last resort: Newton's method for geodesics that minimisation cannot settle.

Where two families of curves meet, the energy is almost flat along some direction and a
descent method creeps. Newton's method does not mind: from a curve that is nearly a
geodesic, SciPy's collocation solver finishes the job. One curve at a time, so it is for
stragglers only.
"""

from __future__ import annotations

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_bvp

from land.geodesics.collocation import PiecewiseCurves, fit_polylines
from land.geodesics.connection import Connections
from land.geodesics.equation import acceleration_and_tensor
from land.metrics import Metric

Array = NDArray[np.float64]

# The linear systems of the solver grow with the square of the dimension.
_MOST_DIMENSIONS = 10
_NODES = 513
_MOST_NODES = 8192
# The polished geodesic must be the one we had, up to this relative change of length.
_SAME_CURVE = 0.05


def polish(
    metric: Metric, bases: Array, targets: Array, solution: Connections, tol: float
) -> Connections:
    """Geodesics near the given curves; `converged` where Newton's method found one."""
    polished = Connections.at_rest(bases)
    polished.converged[:] = False
    polished.lengths[:] = np.inf
    if bases.shape[1] > _MOST_DIMENSIONS:
        return polished
    times = np.linspace(0.0, 1.0, _NODES)
    curves = solution.sample(times)
    for index, length in enumerate(solution.lengths):
        if not np.all(np.isfinite(curves[index])):
            continue
        found = _newton(metric, bases[index], targets[index], times, curves[index], tol)
        if found is None or abs(found.lengths[0] / length - 1.0) > _SAME_CURVE:
            continue
        row = np.array([index])
        polished.adopt(row, found)
    return polished


def _newton(
    metric: Metric, base: Array, target: Array, times: Array, curve: Array, tol: float
) -> Connections | None:
    """One geodesic by collocation and Newton's method, if it meets the tolerance."""
    dim = len(base)

    def equation(_: Array, state: Array) -> Array:
        acceleration = _accelerations(metric, state[:dim].T, state[dim:].T)
        return np.concatenate([state[dim:], acceleration.T])

    def ends(first: Array, last: Array) -> Array:
        return np.concatenate([first[:dim] - base, last[:dim] - target])

    start = np.concatenate([curve.T, np.gradient(curve.T, times, axis=1, edge_order=2)])
    with np.errstate(all="ignore"):  # trial steps may leave the metric's domain
        found = solve_bvp(
            equation, ends, times, start, tol=10.0 * tol, max_nodes=_MOST_NODES
        )
    if found.status != 0:
        return None
    velocities = np.stack([found.y[dim:, 0], found.y[dim:, -1]])
    speeds = np.sqrt(metric.inner(np.stack([base, target]), velocities, velocities))
    if not abs(speeds[0] / speeds[1] - 1.0) <= tol:
        return None
    samples = found.sol(times)[:dim].T[None]
    rates, widths = fit_polylines(samples, times[None], 64)
    geodesic = Connections.at_rest(base[None])
    geodesic.tangents[0], geodesic.end_velocities[0] = velocities
    geodesic.lengths[0] = speeds.mean()
    geodesic.meshes = [
        (np.zeros(1, dtype=int), PiecewiseCurves(base[None], rates, widths))
    ]
    return geodesic


def _accelerations(metric: Metric, points: Array, velocities: Array) -> Array:
    """Accelerations at any number of points, without compiling for each."""
    n = len(points)
    size = -(-n // _NODES) * _NODES
    rows = np.minimum(np.arange(size), n - 1)
    return np.asarray(_acceleration(metric, points[rows], velocities[rows]))[:n]


@jax.jit
def _acceleration(
    metric: Metric, points: jax.Array, velocities: jax.Array
) -> jax.Array:
    return acceleration_and_tensor(metric, points, velocities)[0]
