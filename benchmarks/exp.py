"""Exponential maps of the half-ellipse against SciPy's initial value solvers."""

from collections.abc import Callable

import jax
import numpy as np
from threadpoolctl import threadpool_limits

import land
from benchmarks import scipy_baseline, workload
from benchmarks.common import Column, Table, best_and_median, seconds
from benchmarks.workload import Array
from land.geodesics.equation import acceleration_and_tensor

SIGMA = 0.3
N_TANGENTS = 3000
# Right-hand sides in one trial step of our Runge-Kutta method.
STAGES = 12
BLOCK = 1024
SCIPY_METHODS = ("RK45", "DOP853", "LSODA")
SCIPY_TOLERANCES = {"rtol": 1e-6, "atol": 1e-6}
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

    def ours() -> Array:
        return land.exp_map(metric, base, tangents).points

    def loop(**options: object) -> Array:
        return np.stack([scipy_baseline.exp_map(one, base, v, **options) for v in few])

    def stacked() -> Array:
        return scipy_baseline.stacked_exp_map(
            many, base, tangents, method="DOP853", **SCIPY_TOLERANCES
        )

    solvers: dict[str, Callable[[], Array]] = {"land": ours}
    for method in SCIPY_METHODS:
        for style in ("plain", "tuned"):
            solvers[f"solve_ivp {method} {style}, one by one"] = lambda method=method: (
                loop(method=method, **SCIPY_TOLERANCES)
            )
    solvers["solve_ivp DOP853 tuned, stacked"] = stacked
    arrivals, times = _take_turns(solvers, rounds=2 if quick else 7)
    truth = loop(**REFERENCE)
    own = float(np.median(times["land"])) / N_TANGENTS
    maps = _table()
    for name, found in arrivals.items():
        best, median = best_and_median(times[name])
        n = len(found)
        maps.rows.append(
            {
                "solver": name,
                "maps": n,
                "median_ms": 1e3 * median / n,
                "best_ms": 1e3 * best / n,
                "ratio": median / n / own,
                "error": float(np.abs(found[: len(few)] - truth).max()),
            }
        )
    maps.rows[0] |= _details(metric, base, tangents, seconds_per_map=own)
    return [maps]


def _table() -> Table:
    return Table(
        title=f"Exponential maps, half-ellipse, 300 data points, sigma {SIGMA:g}",
        columns=[
            Column("solver", "solver"),
            Column("maps", "maps"),
            Column("median_ms", "ms per map", ".3g"),
            Column("best_ms", "best", ".3g"),
            Column("ratio", "× land", ".1f"),
            Column("error", "error", ".0e"),
            Column("failures", "failures"),
            Column("steps", "steps", ".1f"),
            Column("map_ns", "ns per pair", ".2f"),
            Column("kernel_ns", "of which kernel", ".2f"),
        ],
        notes=(
            "`land.exp_map` of all tangents, warm, at its own tolerance, against "
            f"`solve_ivp` at rtol = atol = {SCIPY_TOLERANCES['rtol']:g}: in a loop "
            "over some of the same tangents, and with all of them stacked into one "
            "system, which ties them to one step size; plain with NumPy's own "
            "threads, tuned with one. The error is the largest at "
            "the points of arrival, in coordinates. Pairs are (point, datum) in every "
            "right-hand side of every step that was tried; the kernel is the "
            "right-hand side alone."
        ),
    )


def _take_turns(
    solvers: dict[str, Callable[[], Array]], rounds: int
) -> tuple[dict[str, Array], dict[str, list[float]]]:
    """Run the solvers by turns, so that a noisy machine is noisy to all."""
    answers = {name: solve() for name, solve in solvers.items()}
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for _ in range(rounds):
        for name, solve in solvers.items():
            with threadpool_limits(1 if "tuned" in name else None):
                times[name].append(seconds(solve))
    return answers, times


def _details(
    metric: land.metrics.Metric, base: Array, tangents: Array, seconds_per_map: float
) -> dict:
    result = land.exp_map(metric, base, tangents)
    steps = float(result.n_steps.mean())
    n = len(metric.landmarks)
    points, velocities = result.points[:BLOCK], result.velocities[:BLOCK]
    with jax.enable_x64(True):
        compiled = jax.jit(acceleration_and_tensor)
        kernel = [
            seconds(lambda: jax.block_until_ready(compiled(metric, points, velocities)))
            for _ in range(30)
        ]
    return {
        "failures": int(np.sum(~result.converged)),
        "steps": steps,
        "map_ns": 1e9 * seconds_per_map / (steps * STAGES * n),
        "kernel_ns": 1e9 * float(np.median(kernel[1:])) / (BLOCK * n),
    }
