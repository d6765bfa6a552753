"""Cost of both maps against the number of data points and of dimensions."""

import time

import numpy as np

import land
from benchmarks import workload
from benchmarks.common import Column, Table, seconds
from benchmarks.workload import Array

SIGMA = 0.3
N_IMAGES = 1000
# (data points, targets, tangents). Where maps are dear there are fewer of them, in
# numbers that still fill the solvers' blocks.
SIZES = ((100, 256, 1024), (1_000, 256, 1024), (10_000, 256, 64), (100_000, 8, 64))
QUICK_SIZES = ((1_000, 64, 64),)
# (dimensions, targets, tangents)
DIMENSIONS = (
    (2, 64, 1024),
    (5, 64, 1024),
    (10, 64, 1024),
    (50, 64, 64),
    (100, 64, 64),
    (784, 8, 64),
)
QUICK_DIMENSIONS = ((10, 16, 64),)
# A first call that would take longer than this, in seconds, is not made.
PATIENCE = 180.0


def run(quick: bool) -> list[Table]:
    """Two curves: N on the half-ellipse, D on images."""
    return [
        _against_data(QUICK_SIZES if quick else SIZES),
        _against_dimensions(QUICK_DIMENSIONS if quick else DIMENSIONS),
    ]


def _against_data(sizes: tuple[tuple[int, int, int], ...]) -> Table:
    table = Table(
        title=f"Cost against the number of data points N, D = 2, sigma {SIGMA:g}",
        columns=[Column("n_data", "N"), *_COLUMNS],
        notes=(
            "Half-ellipse, with rho in proportion to N, so that the geometry is the "
            f"same in every row. {_NOTES}"
        ),
    )
    compilation, last = 0.0, {"n_data": 1, "first_log_s": 0.0}
    for n, n_targets, n_tangents in sizes:
        data = workload.half_ellipse(n)
        metric = workload.half_ellipse_metric(data, SIGMA)
        base = workload.top_of_arc(data)
        row = {"n_data": n}
        # The landmark graph's edges and the kernel both grow in proportion to N.
        growth = (n / last["n_data"]) ** 2
        expected = growth * (last["first_log_s"] - compilation)
        if expected <= PATIENCE:
            row |= _log_maps(metric, base, workload.half_ellipse(n_targets, seed=1))
            compilation, last = compilation or row["first_log_s"], row
        else:
            table.notes += (
                f" N = {n}: log maps not run, their first call would take about "
                f"{expected:.0f} s."
            )
        row |= _exp_maps(metric, base, workload.tangents(n_tangents))
        table.rows.append(row)
    return table


def _against_dimensions(dimensions: tuple[tuple[int, int, int], ...]) -> Table:
    table = Table(
        title=f"Cost against the number of dimensions D, N = {N_IMAGES}",
        columns=[Column("dim", "D"), Column("data", "data"), *_COLUMNS],
        notes=(
            "Leading principal components of images, all pixels in the last row; a "
            "noisy curve in D dimensions where there are no images. sigma is the "
            "median distance to the tenth neighbour, rho = sigma² / 100. Tangents are "
            f"those of the log maps, shortened at random. {_NOTES}"
        ),
    )
    for dim, n_targets, n_tangents in dimensions:
        name, data = workload.high_dimensional(dim, N_IMAGES)
        metric = workload.local_metric(data)
        middle = np.linalg.norm(data - data.mean(axis=0), axis=1)
        base = data[np.argmin(middle)]
        rng = np.random.default_rng(0)
        targets = data[rng.choice(N_IMAGES, n_targets, replace=False)]
        row = {"dim": dim, "data": name, "sigma": metric.sigma}
        row |= _log_maps(metric, base, targets)
        found = land.log_map(metric, base, targets).tangents
        shares = rng.uniform(0.2, 1.0, size=(n_tangents, 1))
        row |= _exp_maps(metric, base, shares * np.resize(found, (n_tangents, dim)))
        table.rows.append(row)
    return table


_COLUMNS = [
    Column("targets", "log maps"),
    Column("first_log_s", "first call, s", ".1f"),
    Column("log_ms", "ms per log map", ".3g"),
    Column("log_failures", "failures"),
    Column("iterations", "iterations", ".1f"),
    Column("tangents", "exp maps"),
    Column("exp_ms", "ms per exp map", ".3g"),
    Column("exp_failures", "failures"),
    Column("steps", "steps", ".1f"),
]
_NOTES = (
    "The first call builds the graph of the data and compiles; the other times are "
    "warm."
)


def _log_maps(metric: land.metrics.Metric, base: Array, targets: Array) -> dict:
    start = time.perf_counter()
    result = land.log_map(metric, base, targets)
    first = time.perf_counter() - start
    warm = _warm(lambda: land.log_map(metric, base, targets), first)
    return {
        "targets": len(targets),
        "first_log_s": first,
        "log_ms": 1e3 * warm / len(targets),
        "log_failures": int(np.sum(~result.converged)),
        "iterations": float(result.n_iter.mean()),
    }


def _exp_maps(metric: land.metrics.Metric, base: Array, tangents: Array) -> dict:
    start = time.perf_counter()
    result = land.exp_map(metric, base, tangents)
    first = time.perf_counter() - start
    warm = _warm(lambda: land.exp_map(metric, base, tangents), first)
    return {
        "tangents": len(tangents),
        "first_exp_s": first,
        "exp_ms": 1e3 * warm / len(tangents),
        "exp_failures": int(np.sum(~result.converged)),
        "steps": float(result.n_steps.mean()),
    }


def _warm(function, first: float) -> float:
    """Median of three calls, or one where a call takes long."""
    return float(np.median([seconds(function) for _ in range(3 if first < 8 else 1)]))
