"""Both maps and a fit on the device that JAX sees, for few and many data.

Run it once on the processor (JAX_PLATFORMS=cpu) and once on an accelerator; the tables
of both belong in docs/performance.md. Data lie on a curved sheet.
Run as a module (``python -m benchmarks.accelerator``) this is the fresh process that
measures the maps, or the fit, of one row.
"""

import json
import subprocess
import sys
import time

import numpy as np
from scipy.spatial import KDTree

from benchmarks.common import Column, Table, in_fresh_process, seconds

CASES = [(n, dim) for dim in (2, 50, 784) for n in (300, 10_000, 100_000)]
QUICK_CASES = [(300, 2), (300, 50)]
# Maps are made in batches that grow until one takes so long, in seconds.
LONG_ENOUGH, QUICK_LONG_ENOUGH = 4.0, 0.5
# An accelerator's blocks are not smaller than a full batch.
SMALL_BATCH, FULL_BATCH, LARGEST_BATCH = 16, 2**10, 2**18
# Pairs, times dimensions, that are enough to time them on a processor.
MANY_PAIRS = 2**30
# Maps that are compared with the processor's, where that does not take minutes.
N_COMPARED, MOST_COMPARED = 8, 10**7
# The same sigma for any number of data: so many share a neighbourhood of it.
FEWEST_DATA, NEIGHBOURS = 300, 30
# A fit is repeated, warm, if the first one takes less than this; and given up after so
# many seconds.
SHORT_FIT, FIT_LIMIT = 30.0, 200.0


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    table = Table(
        title="Maps per second on the device that JAX computes on",
        columns=[
            Column("platform", "device"),
            Column("n_data", "N", ","),
            Column("dim", "D"),
            Column("logs_per_s", "log maps/s", ",.1f"),
            Column("exps_per_s", "exp maps/s", ",.1f"),
            Column("ns_per_pair", "ns per pair", ".3f"),
            Column("fit_s", "LAND fit, s", ".1f"),
            Column("fit_converged", "converged"),
            Column("fit_failures", "failed in it"),
            Column("difference", "from the processor's", ".0e"),
            Column("failures", "failures"),
        ],
        notes=(
            "Data on a curved sheet, the same sheet and sigma for any N, geodesics "
            "from the middle to points about 0.1 sigma from data. A pair is a point "
            "where the metric is evaluated and a datum. A fit is to all N data: in the "
            "plane by maximum likelihood, in more dimensions by least squares with a "
            "diagonal covariance. It is "
            f"warm, unless the first one takes longer than {SHORT_FIT:.0f} s, and "
            f"given up after {FIT_LIMIT:.0f} s. The last columns: the largest relative "
            "difference of lengths from those of the processor over "
            f"{N_COMPARED} maps, and maps that failed."
        ),
    )
    for n, dim in QUICK_CASES if quick else CASES:
        row = in_fresh_process("accelerator", "maps", n, dim, int(quick))
        table.rows.append(row | fit_within_limit(n, dim))
    return [table]


def fit_within_limit(n: int, dim: int) -> dict:
    """What the fresh process says about a fit; nothing if it takes too long."""
    try:
        return in_fresh_process("accelerator", "fit", n, dim, limit=FIT_LIMIT)
    except subprocess.TimeoutExpired:
        return {"fit_s": None, "fit_converged": "", "fit_failures": None}


def main(what: str, n: int, dim: int, quick: bool) -> None:
    """The fresh process: the maps, or the fit, of one row."""
    print(json.dumps(measure_maps(n, dim, quick) if what == "maps" else fit(n, dim)))


def learned_metric(n: int, dim: int):
    """The metric of a row."""
    import land

    sigma = neighbour_distance(sheet(FEWEST_DATA, dim))
    rho = 0.1 * sigma**2 * n / FEWEST_DATA
    return land.metrics.LocalDiagonalMetric(sheet(n, dim), sigma, rho)


def measure_maps(n: int, dim: int, quick: bool) -> dict:
    """One row of the table, without the fit."""
    import jax

    import land

    enough = QUICK_LONG_ENOUGH if quick else LONG_ENOUGH
    metric = learned_metric(n, dim)
    metric = metric.tabulated()
    data, sigma = metric.data, metric.sigma
    rng = np.random.default_rng(1)
    base = data[np.argmin(np.sum((data - data.mean(axis=0)) ** 2, axis=1))]
    others = rng.permutation(n)
    logs = land.log_map(metric, base, data[others[:N_COMPARED]])
    difference = None
    if jax.default_backend() != "cpu" and n * dim <= MOST_COMPARED:
        with jax.default_device(jax.devices("cpu")[0]):
            expected = land.log_map(metric, base, data[others[:N_COMPARED]])
        difference = float(np.max(np.abs(logs.lengths / expected.lengths - 1.0)))

    def connect(count: int) -> int:
        targets = data[others[np.arange(count) % n]]
        noise = rng.standard_normal((count, dim)) / np.sqrt(dim)
        targets = targets + 0.1 * sigma * noise
        return int((~land.log_map(metric, base, targets).converged).sum())

    def shoot(count: int) -> int:
        found = logs.tangents[np.arange(count) % N_COMPARED]
        sizes = rng.uniform(0.5, 1.0, (count, 1))
        return int((~land.exp_map(metric, base, sizes * found).converged).sum())

    logs_per_s, failed_logs = rate(connect, enough)
    exps_per_s, failed_exps = rate(shoot, enough)
    return {
        "platform": jax.devices()[0].device_kind,
        "n_data": n,
        "dim": dim,
        "logs_per_s": logs_per_s,
        "exps_per_s": exps_per_s,
        "ns_per_pair": nanoseconds_per_pair(metric, base),
        "difference": difference,
        "failures": failed_logs + failed_exps,
    }


def sheet(n: int, dim: int) -> np.ndarray:
    """Points on a curved sheet."""
    rng = np.random.default_rng(0)
    inner = rng.uniform(-1.5, 1.5, (n, 2))
    slopes, phases = rng.normal(size=(2, dim)), rng.uniform(0.0, 6.0, dim)
    noise = 0.02 * rng.standard_normal((n, dim))
    return np.sin(inner @ slopes + phases) + noise


def neighbour_distance(data: np.ndarray) -> float:
    """Median distance of the data to a neighbour."""
    return float(np.median(KDTree(data).query(data, NEIGHBOURS + 1)[0][:, -1]))


def rate(compute, enough: float) -> tuple[float, int]:
    """Items per second in the first batch that is long enough, and its failures."""
    import jax

    count = SMALL_BATCH if jax.default_backend() == "cpu" else FULL_BATCH
    while True:
        compute(count)  # compiles
        start = time.perf_counter()
        failures = compute(count)
        took = time.perf_counter() - start
        long = took > enough or (count >= FULL_BATCH and took > 0.25 * enough)
        if long or count >= LARGEST_BATCH:
            return count / took, failures
        count *= 4 if took > 0.05 * enough else 16


def nanoseconds_per_pair(metric, base: np.ndarray) -> float:
    """Time of the tensor and its derivative, for a point and a datum."""
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(True):
        most = MANY_PAIRS if jax.default_backend() == "cpu" else 64 * MANY_PAIRS
        n_points = max(1, min(2**16, most // metric.data.size))
        points = jnp.asarray(
            base + metric.sigma * np.random.default_rng(3).random((n_points, len(base)))
        )

        @jax.jit
        def evaluate(metric, points):
            value, pull_back = jax.vjp(metric.tensor_batch, points)
            return value, pull_back(jnp.ones_like(value))

        jax.block_until_ready(evaluate(metric, points))
        times = []
        for _ in range(3):
            start = time.perf_counter()
            jax.block_until_ready(evaluate(metric, points))
            times.append(time.perf_counter() - start)
    return 1e9 * min(times) / (n_points * len(metric.data))


def fit(n: int, dim: int) -> dict:
    """A LAND fit."""
    import land

    metric = learned_metric(n, dim)
    options = {"method": "least_squares", "covariance_type": "diag"}
    model = land.LAND(metric=metric, random_state=0, **(options if dim > 2 else {}))
    took = seconds(lambda: model.fit(metric.data))
    if took < SHORT_FIT:
        took = seconds(lambda: model.fit(metric.data))
    return {
        "fit_s": took,
        "fit_converged": "yes" if model.converged_ else "no",
        "fit_failures": model.n_failed_log_maps_,
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["1"])
