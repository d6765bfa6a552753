"""Exponential maps beside SciPy's initial value solvers, and diffrax if installed."""

from collections.abc import Callable
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

import land
from benchmarks import scipy_baseline, workload
from benchmarks.common import Column, Table, by_turns
from benchmarks.workload import Array

SIGMA = 0.3
N_TANGENTS = 3000
SCIPY_METHODS = ("RK45", "DOP853", "LSODA")
DIFFRAX_METHODS = ("Tsit5", "Dopri8")
TOLERANCES = {"rtol": 1e-6, "atol": 1e-6}
REFERENCE = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-12}


def run(quick: bool) -> list[Table]:
    """Time per map and accuracy at the arrival points."""
    data = workload.half_ellipse()
    metric = workload.half_ellipse_metric(data, SIGMA)
    base = workload.top_of_arc(data)
    tangents = workload.tangents(N_TANGENTS)
    few = tangents[: 20 if quick else 60]
    one = scipy_baseline.pointwise_acceleration(data, metric.sigma, metric.rho)
    many = scipy_baseline.meshwise_acceleration(data, metric.sigma, metric.rho)

    def loop(**options: object) -> Array:
        return np.stack([scipy_baseline.exp_map(one, base, v, **options) for v in few])

    def stacked() -> Array:
        return scipy_baseline.stacked_exp_map(
            many, base, tangents, method="DOP853", **TOLERANCES
        )

    solvers: dict[str, Callable[[], Array]] = {
        "land": lambda: land.exp_map(metric, base, tangents).points
    }
    for method in SCIPY_METHODS:
        solvers[f"solve_ivp {method}, one by one"] = lambda method=method: loop(
            method=method, **TOLERANCES
        )
    solvers["solve_ivp DOP853, stacked"] = stacked
    if find_spec("diffrax") is not None:
        for method in DIFFRAX_METHODS:
            solvers[f"diffrax {method}, vmap"] = diffrax_maps(
                metric, base, tangents, method
            )
    solvers = {name: _on_one_thread(name, each) for name, each in solvers.items()}
    arrivals = {name: solve() for name, solve in solvers.items()}  # compiles
    times = by_turns(solvers, 2 if quick else 5)
    truth = loop(**REFERENCE)
    result = land.exp_map(metric, base, tangents)
    table = _table()
    own = float(np.median(times["land"])) / N_TANGENTS
    for name, found in arrivals.items():
        each = float(np.median(times[name])) / len(found)
        table.rows.append(
            {
                "solver": name,
                "maps": len(found),
                "ms": 1e3 * each,
                "ratio": each / own,
                "error": float(np.abs(found[: len(few)] - truth).max()),
            }
        )
    table.rows[0] |= {
        "failures": int(np.sum(~result.converged)),
        "steps": float(result.n_steps.mean()),
    }
    return [table]


def _table() -> Table:
    return Table(
        title=f"Exponential maps, half-ellipse, 300 data points, sigma {SIGMA:g}",
        columns=[
            Column("solver", "solver"),
            Column("maps", "maps"),
            Column("ms", "ms per map", ".3g"),
            Column("ratio", "× land", ".0f"),
            Column("error", "error", ".0e"),
            Column("failures", "failures"),
            Column("steps", "steps", ".1f"),
        ],
        notes=(
            "`land.exp_map` of all tangents, warm, at its own tolerance, against "
            f"others at rtol = atol = {TOLERANCES['rtol']:g}: SciPy in a loop over "
            "some of the same tangents, on one thread, and with all of them stacked "
            "into one system, with land's algebra, which ties them to one step size; "
            "diffrax, if it is installed, as its documentation has it. The error is "
            "the largest at the points of arrival, in coordinates."
        ),
    )


def _on_one_thread(name: str, solve: Callable[[], Array]) -> Callable[[], Array]:
    """Matrices of SciPy's problems are so small that threads would only wait."""

    def run() -> Array:
        with threadpool_limits(1 if name.startswith("solve_ivp") else None):
            return solve()

    return run


def diffrax_maps(
    metric: land.metrics.Metric, base: Array, tangents: Array, method: str
) -> Callable[[], Array]:
    """All exponential maps as diffrax's documentation would have them."""
    import diffrax

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
                getattr(diffrax, method)(),
                t0=0.0,
                t1=1.0,
                dt0=None,
                y0=(jnp.asarray(base), tangent),
                args=metric,
                stepsize_controller=diffrax.PIDController(**TOLERANCES),
            )
            return solution.ys[0][-1]

        return jax.vmap(arrive)(tangents)

    def run() -> Array:
        with jax.enable_x64(True):
            return np.asarray(solve(metric, jnp.asarray(tangents)))

    return run
