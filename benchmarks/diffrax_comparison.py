"""Our exponential map against diffrax, used the natural way: vmap of one geodesic.

Diffrax is no dependency of land. In an environment that has both:

    python -m benchmarks.diffrax_comparison

It backs the choice of our own Runge-Kutta method (docs/numerics.md).
"""

import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import land
from benchmarks import scipy_baseline, workload
from benchmarks.common import (
    Column,
    Table,
    best_and_median,
    machine,
    render_run,
    seconds,
)
from benchmarks.exp import N_TANGENTS, REFERENCE, SIGMA
from benchmarks.workload import Array

TOLERANCE = 1e-6
ROUNDS = 7


def main() -> None:
    """Print the table, or say what is missing."""
    try:
        import diffrax
    except ImportError:
        sys.exit("diffrax is not installed here: nothing to compare with")
    data = workload.half_ellipse()
    metric = workload.half_ellipse_metric(data, SIGMA)
    base, tangents = workload.top_of_arc(data), workload.tangents(N_TANGENTS)
    solvers = {
        "land": lambda: land.exp_map(metric, base, tangents).points,
        f"land, tol {TOLERANCE:g}": lambda: (
            land.exp_map(metric, base, tangents, tol=TOLERANCE).points
        ),
    }
    for name in ("Tsit5", "Dopri8"):
        method = getattr(diffrax, name)()
        solve = _vectorised(diffrax, metric, base, method)
        solvers[f"diffrax {name}, vmap"] = lambda solve=solve: solve(tangents)
    few = tangents[:60]
    one = scipy_baseline.pointwise_acceleration(data, metric.sigma, metric.rho)
    truth = np.stack([scipy_baseline.exp_map(one, base, v, **REFERENCE) for v in few])
    arrivals = {name: solve() for name, solve in solvers.items()}
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for _ in range(ROUNDS):
        for name, solve in solvers.items():
            times[name].append(seconds(solve))
    table = _table()
    own = float(np.median(times["land"]))
    for name, found in arrivals.items():
        best, median = best_and_median(times[name])
        row = {
            "solver": name,
            "median_ms": 1e3 * median / N_TANGENTS,
            "best_ms": 1e3 * best / N_TANGENTS,
            "ratio": median / own,
            "error": float(np.abs(found[: len(few)] - truth).max()),
        }
        table.rows.append(row)
    run = {"machine": machine(), "quick": False, "tables": [table.as_data()]}
    run["seconds"] = sum(map(sum, times.values()))
    print(render_run("diffrax", run))


def _vectorised(diffrax, metric: land.metrics.Metric, base: Array, method) -> Callable:
    """All exponential maps as diffrax's documentation would have them."""

    def equation(_: jax.Array, state: tuple, metric: land.metrics.Metric) -> tuple:
        point, velocity = state

        def energy(point: jax.Array) -> jax.Array:
            return 0.5 * jnp.sum(metric.tensor_at(point) * velocity**2)

        tensor, drift = jax.jvp(metric.tensor_at, (point,), (velocity,))
        return velocity, (jax.grad(energy)(point) - drift * velocity) / tensor

    @jax.jit
    def solve(metric: land.metrics.Metric, tangents: jax.Array) -> jax.Array:
        def arrive(tangent: jax.Array) -> jax.Array:
            solution = diffrax.diffeqsolve(
                diffrax.ODETerm(equation),
                method,
                t0=0.0,
                t1=1.0,
                dt0=None,
                y0=(jnp.asarray(base), tangent),
                args=metric,
                stepsize_controller=diffrax.PIDController(TOLERANCE, TOLERANCE),
            )
            return solution.ys[0][-1]

        return jax.vmap(arrive)(tangents)

    def run(tangents: Array) -> Array:
        with jax.enable_x64(True):
            return np.asarray(solve(metric, jnp.asarray(tangents)))

    return run


def _table() -> Table:
    return Table(
        title=f"{N_TANGENTS} exponential maps, half-ellipse, sigma {SIGMA:g}",
        columns=[
            Column("solver", "solver"),
            Column("median_ms", "ms per map", ".3g"),
            Column("best_ms", "best", ".3g"),
            Column("ratio", "× land", ".1f"),
            Column("error", "error", ".0e"),
        ],
        notes=f"Warm; diffrax at rtol = atol = {TOLERANCE:g}.",
    )


if __name__ == "__main__":
    main()
