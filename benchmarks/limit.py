"""Where the limit is: the arithmetic of the metric at the machine's peak, and ours.

Kernel sums over the data are an exponential and some multiplications for each pair of a
point and a datum. How many pairs there are is the solvers' merit, how long each takes
the device's; what is left is arithmetic with curves, and Python.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp

import land
from benchmarks import workload
from benchmarks.common import Column, Table, median_seconds
from land import _device
from land.geodesics import equation
from land.metrics import base as metrics_base

SIGMAS = (0.3, 0.15, 0.1)
N_TANGENTS = 3000
# What is asked of the metric: its tensors, with first, and with second derivatives.
ORDERS = {"_tensor_batch": 0, "_forces": 1, "_linearised": 2}


def run(quick: bool) -> list[Table]:
    """The machine's peak, and how far from it the maps and a fit are."""
    gemm, exponential = peak()
    machine = Table(
        title="The machine's peak, float64",
        columns=[
            Column("gemm", "matrix product, GFLOP/s", ".0f"),
            Column("exp", "exponential, ns", ".2f"),
        ],
        notes="As XLA has them: a product of matrices of 2048 rows and columns, and "
        "exponentials of numbers in the cache; all cores.",
        rows=[{"gemm": gemm, "exp": exponential}],
    )
    table = Table(
        title="Where the limit is: half-ellipse, 300 data points, warm",
        columns=[
            Column("work", "work"),
            Column("order_0", "tensors", ","),
            Column("order_1", "equations", ","),
            Column("order_2", "with derivatives", ","),
            Column("ns", "ns each", ".0f"),
            Column("ns_per_pair", "ns per pair", ".2f"),
            Column("peak_ns", "at the peak", ".2f"),
            Column("peak_ms", "ms at the peak", ".1f"),
            Column("metric_ms", "ms in the metric", ".1f"),
            Column("ms", "ms in all", ".0f"),
            Column("ratio", "× peak", ".1f"),
        ],
        notes=(
            "How often the metric is evaluated: its tensors alone, the geodesic "
            "equation, and the equation with its derivatives; how long that takes on "
            "average, for a point, and for a pair of a point and a datum. A fit in "
            "the plane takes sums from a table, without pairs. At the peak: "
            "one exponential for each pair and the multiplications of the matrix "
            "products. The last column compares the whole work with that."
        ),
    )
    data = workload.half_ellipse()
    base = workload.top_of_arc(data)
    jobs: dict[str, Callable[[], Any]] = {}
    for sigma in SIGMAS:
        metric = workload.half_ellipse_metric(data, sigma)
        jobs[f"300 log maps, sigma {sigma:g}"] = lambda metric=metric: land.log_map(
            metric, base, data
        )
    metric, tangents = (
        workload.half_ellipse_metric(data, SIGMAS[0]),
        workload.tangents(N_TANGENTS),
    )
    jobs[f"{N_TANGENTS} exp maps, sigma {SIGMAS[0]:g}"] = lambda: land.exp_map(
        metric, base, tangents
    )
    model = land.LAND(sigma=SIGMAS[0], rho=workload.RHO, random_state=0)
    jobs[f"a fit, sigma {SIGMAS[0]:g}"] = lambda: model.fit(data)
    for name, job in jobs.items():
        row = measure(job, len(data), gemm, exponential, 1 if quick else 5)
        if name.startswith("a fit"):
            row = {
                key: row[key] for key in row if "peak" not in key and "pair" not in key
            }
            del row["ratio"]
        table.rows.append({"work": name} | row)
    return [machine, table]


class _Counted(AbstractContextManager):
    """Points at which programs are evaluated while it lasts, and the seconds."""

    def __enter__(self) -> "_Counted":
        self.points: Counter[str] = Counter()
        self.seconds = 0.0
        self.patches = [
            patch.object(module, "in_blocks", self._in_blocks)
            for module in (equation, metrics_base)
        ]
        for each in self.patches:
            each.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self.patches:
            each.stop()

    def _in_blocks(self, function: Any, sizes: Any, fixed: Any, *rows: Any) -> Any:
        start = time.perf_counter()
        found = _device.in_blocks(function, sizes, fixed, *rows)
        self.seconds += time.perf_counter() - start
        self.points[function.__name__] += len(rows[0])
        return found


def measure(
    job: Callable[[], Any], n_data: int, gemm: float, exponential: float, times: int
) -> dict:
    """One row: the median in all, the counts of one run."""
    job()  # compiles
    total = median_seconds(job, times)
    with _Counted() as counted:
        job()
    points = {ORDERS[name]: count for name, count in counted.points.items()}
    pairs = n_data * sum(points.values())
    least = 1e-9 * sum(
        n_data * count * (exponential + multiplications(order) / gemm)
        for order, count in points.items()
    )
    return {
        **{f"order_{order}": count for order, count in points.items()},
        "ns": 1e9 * counted.seconds / sum(points.values()),
        "ns_per_pair": 1e9 * counted.seconds / pairs,
        "peak_ns": 1e9 * least / pairs,
        "peak_ms": 1e3 * least,
        "metric_ms": 1e3 * counted.seconds,
        "ms": 1e3 * total,
        "ratio": total / least,
    }


def multiplications(order: int, dim: int = 2) -> int:
    """Operations for each pair: the exponent, and all moments of the weights.

    Local variances are polynomials in the point whose coefficients are moments of
    degree two at most, and so many more with each derivative.
    """
    exponent = 2 * (dim + 2)
    moments = 1 + 2 * dim
    columns = [1, 1 + dim, 1 + dim + dim * (dim + 1) // 2]
    return exponent + 2 * moments * columns[order]


def peak() -> tuple[float, float]:
    """GFLOP/s of matrix products, and nanoseconds of an exponential."""
    size = 2048
    with jax.enable_x64(True):
        matrix = jnp.ones((size, size)) / size
        row = -jnp.linspace(0.0, 20.0, 2**18)
        product, exponentials = jax.jit(jnp.matmul), jax.jit(lambda x: jnp.exp(x).sum())
        jobs = [
            lambda: jax.block_until_ready(product(matrix, matrix)),
            lambda: jax.block_until_ready(exponentials(row)),
        ]
        for job in jobs:
            job()
        took = [median_seconds(job, 9) for job in jobs]
    return 2e-9 * size**3 / took[0], 1e9 * took[1] / row.size
