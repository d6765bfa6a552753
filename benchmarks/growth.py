"""Both maps, and scores, against the numbers of data, dimensions and points.

Run as a module (``python -m benchmarks.growth WHAT ...``) this is the fresh process
that measures one row: a peak of memory cannot be reset.
"""

import json
import sys
import time

import numpy as np

from benchmarks.common import (
    Column,
    Table,
    in_fresh_process,
    median_seconds,
    peak_gib,
    seconds,
)

# Numbers of data, and how the metric sums over them.
AGAINST_N = [(n, form) for n in (100, 1000, 10_000) for form in ("all data", "table")]
AGAINST_N += [(n, "table") for n in (100_000, 1_000_000)]
# Dimensions, and numbers of data.
AGAINST_D = [(dim, 1000) for dim in (2, 5, 10, 50, 784)]
AGAINST_D += [(3, 20_000)]
SCORED = (10_000, 50_000)
# Data in a square as wide as sigma = 1, rho as a share of the local variance, and the
# spread of targets and tangents.
DENSITY, SHARE, SPREAD = 3.0, 0.3, 6.0
N_TARGETS, N_TANGENTS = 64, 1024


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    against_n = Table(
        title="Maps against the number of data N, at fixed sigma and density, D = 2",
        columns=[Column("n", "N", ","), Column("form", "sum over"), *_MAPS],
        notes=(
            f"Uniform data, {DENSITY:g} in a square as wide as sigma, rho {SHARE:g} of "
            "the local variance; targets and tangents with a standard deviation of "
            f"{SPREAD:g} sigma about the middle. The first log maps compile and build "
            "the graph of landmarks; the others are warm."
        ),
    )
    for n, form in AGAINST_N[2:4] if quick else AGAINST_N:
        row = {"n": n, "form": form}
        against_n.rows.append(row | in_fresh_process("growth", "n", n, form))
    against_d = Table(
        title="Maps against the number of dimensions D",
        columns=[
            Column("dim", "D"),
            Column("n", "N", ","),
            Column("data", "data"),
            *_MAPS,
        ],
        notes=(
            "Leading principal components of images, all pixels in the row of 784; a "
            "noisy curve in D dimensions where there are not so many images. sigma is "
            "the median distance to the tenth neighbour, rho 1 % of its square. "
            "Tangents are those of the log maps, shortened at random."
        ),
    )
    for dim, n in AGAINST_D[:1] if quick else AGAINST_D:
        row = {"dim": dim, "n": n}
        against_d.rows.append(row | in_fresh_process("growth", "d", dim, n))
    scores = Table(
        title="Scores of new points: LAND of 300 points of the half-ellipse",
        columns=[
            Column("points", "points", ","),
            Column("seconds", "s", ".1f"),
            Column("rate", "points/s", ",.0f"),
            Column("failures", "failures"),
            Column("before_gib", "GiB before", ".2f"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes="`score_samples` with default settings, warm, in one process.",
    )
    for n in SCORED[:1] if quick else SCORED:
        row = {"points": n}
        scores.rows.append(row | in_fresh_process("growth", "scores", n))
    return [against_n, against_d, scores]


_MAPS = [
    Column("build_s", "metric, s", ".2f"),
    Column("first_s", "first log maps, s", ".1f"),
    Column("log_ms", "ms per log map", ".3g"),
    Column("exp_ms", "ms per exp map", ".3g"),
    Column("failures", "failures"),
    Column("peak_gib", "peak GiB", ".2f"),
]


def against_n(n: int, form: str) -> dict:
    """Uniform data: a point has the same neighbours in every row."""
    import land

    rng = np.random.default_rng(0)
    data = (rng.random((n, 2)) - 0.5) * np.sqrt(n / DENSITY)
    spread = min(SPREAD, 0.25 * np.sqrt(n / DENSITY))
    targets = spread * rng.standard_normal((N_TARGETS, 2))
    tangents = spread * rng.standard_normal((N_TANGENTS, 2))
    start = time.perf_counter()
    rho = SHARE * 2.0 * np.pi * DENSITY
    metric = land.metrics.LocalDiagonalMetric(data, 1.0, rho)
    if form == "table":
        metric = metric.tabulated()
    row = {"build_s": time.perf_counter() - start}
    return row | _maps(metric, np.zeros(2), targets, tangents)


def against_d(dim: int, n: int) -> dict:
    """Images, or a curve."""
    import land
    from benchmarks import workload

    name, data = workload.high_dimensional(dim, n)
    start = time.perf_counter()
    metric = workload.local_metric(data)
    row = {"data": name, "build_s": time.perf_counter() - start}
    base = data[np.argmin(np.linalg.norm(data - data.mean(axis=0), axis=1))]
    rng = np.random.default_rng(0)
    few = N_TARGETS if dim * n <= 50_000 else N_TARGETS // 4
    targets = data[rng.choice(n, few, replace=False)]
    found = []
    first = seconds(lambda: found.append(land.log_map(metric, base, targets)))
    tangents = np.resize(found[0].tangents, (4 * few, dim))
    tangents *= rng.uniform(0.2, 1.0, size=(len(tangents), 1))
    return row | _maps(metric, base, targets, tangents) | {"first_s": first}


def _maps(metric, base, targets, tangents) -> dict:
    import land

    found = []
    jobs = {
        "log": lambda: land.log_map(metric, base, targets),
        "exp": lambda: land.exp_map(metric, base, tangents),
    }
    first = {
        name: seconds(lambda job=job: found.append(job())) for name, job in jobs.items()
    }
    warm = {
        name: 1e3 * median_seconds(job, 1 if first[name] > 5.0 else 3)
        for name, job in jobs.items()
    }
    return {
        "first_s": first["log"],
        "log_ms": warm["log"] / len(targets),
        "exp_ms": warm["exp"] / len(tangents),
        "failures": sum(int((~each.converged).sum()) for each in found),
        "peak_gib": peak_gib(),
    }


def scores(n: int) -> dict:
    """A fitted model, and many points."""
    import land

    data = land.datasets.make_half_ellipse(300, random_state=0)
    points = land.datasets.make_half_ellipse(n, random_state=1)
    model = land.LAND(random_state=0).fit(data)
    model.score_samples(points[:2048])
    before, values = peak_gib(), []
    took = seconds(lambda: values.append(model.score_samples(points)))
    return {
        "seconds": took,
        "rate": n / took,
        "failures": int(np.isnan(values[0]).sum()),
        "before_gib": before,
        "peak_gib": peak_gib(),
    }


def main(what: str, *arguments: str) -> None:
    """The fresh process: one row."""
    if what == "n":
        row = against_n(int(arguments[0]), arguments[1])
    elif what == "d":
        row = against_d(*map(int, arguments))
    else:
        row = scores(int(arguments[0]))
    print(json.dumps(row))


if __name__ == "__main__":
    main(*sys.argv[1:])
