"""Cost of both maps against the number of data at fixed sigma and density.

The area grows with the number of data, so that a point has the same neighbours in every
row. Run as a module (``python -m benchmarks.scaling_data``) this is the fresh process
that measures one row: a peak of memory cannot be reset.
"""

import json
import sys
import time

import numpy as np

from benchmarks.common import Column, Table, in_fresh_process

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000)
FORMS = ("all data", "table")
# Of the sum over all data only what ends within minutes.
MOST_IN_FULL = 10_000
# Data in a square as wide as sigma = 1, and rho as a share of the local variance.
DENSITY, SHARE = 3.0, 0.3
# Targets and tangents have this standard deviation, in units of sigma.
SPREAD = 6.0
N_TARGETS, N_TANGENTS, QUICK_MAPS = 64, 1024, 64


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    table = Table(
        title="Cost against the number of data N at fixed sigma and density, D = 2",
        columns=[
            Column("n_data", "N"),
            Column("sum", "sum over"),
            Column("build_s", "metric, s", ".2f"),
            Column("graph_s", "first log map, s", ".1f"),
            Column("log_ms", "ms per log map", ".2f"),
            Column("exp_ms", "ms per exp map", ".2f"),
            Column("failures", "failures"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            f"Uniform data, {DENSITY:g} in a square as wide as sigma, rho {SHARE:g} of "
            "the local variance; targets and tangents with a standard deviation of "
            f"{SPREAD:g} sigma about the middle. Processor time, warm: the best of "
            "three calls. The first log map compiles and builds the graph of landmarks."
        ),
    )
    for n in QUICK_SIZES if quick else SIZES:
        for form in FORMS:
            if form == "all data" and n > MOST_IN_FULL:
                continue
            row = in_fresh_process("scaling_data", n, form, int(quick))
            if row["sum"] == form:
                table.rows.append(row)
    return [table]


def main(n: int, form: str, quick: bool) -> None:
    """The fresh process: one row."""
    import land
    from benchmarks.memory import peak_gib

    rng = np.random.default_rng(0)
    data = (rng.random((n, 2)) - 0.5) * np.sqrt(n / DENSITY)
    n_targets = QUICK_MAPS if quick else N_TARGETS
    n_tangents = QUICK_MAPS if quick else N_TANGENTS
    targets = SPREAD * rng.standard_normal((n_targets, 2))
    tangents = SPREAD * rng.standard_normal((n_tangents, 2))
    rho = SHARE * 2.0 * np.pi * DENSITY
    start = time.process_time()
    metric = land.metrics.LocalDiagonalMetric(data, 1.0, rho)
    if form == "table":
        metric = metric.tabulated()
    built = time.process_time()
    logs = land.log_map(metric, np.zeros(2), targets)
    first = time.process_time()
    log_s = _best(lambda: land.log_map(metric, np.zeros(2), targets))
    exps = land.exp_map(metric, np.zeros(2), tangents)
    exp_s = _best(lambda: land.exp_map(metric, np.zeros(2), tangents))
    report = {
        "n_data": n,
        "sum": "table" if metric.is_tabulated else "all data",
        "build_s": built - start,
        "graph_s": first - built,
        "log_ms": 1e3 * log_s / n_targets,
        "exp_ms": 1e3 * exp_s / n_tangents,
        "failures": int((~logs.converged).sum() + (~exps.converged).sum()),
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report))


def _best(function) -> float:
    """Least processor time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "1")
