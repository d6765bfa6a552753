"""Peak memory of very many maps against many data points, in a fresh process.

Run as a module (``python -m benchmarks.memory``) this is that process.
"""

import json
import resource
import sys
from pathlib import Path

from benchmarks.common import Column, Table, in_fresh_process, seconds

# (data points, maps)
SIZES, QUICK_SIZES = (10_000, 100_000), (2_000, 1_000)
# As wide as the data: geodesics are nearly straight and take few iterations, so that
# the run takes minutes. The size of the arrays does not depend on it.
SIGMA = 3.0
LOG_TOLERANCE, EXP_TOLERANCE = 1e-2, 1e-3
LIMIT_GIB = 4.0


def run(quick: bool) -> list[Table]:
    """One process for each map: a peak cannot be reset."""
    n_data, n = QUICK_SIZES if quick else SIZES
    table = Table(
        title="Peak memory",
        columns=[
            Column("map", "map"),
            Column("maps", "maps"),
            Column("n_data", "N"),
            Column("before_gib", "GiB before", ".2f"),
            Column("peak_gib", "peak GiB", ".2f"),
            Column("limit_gib", "limit", "g"),
            Column("seconds", "s", ".0f"),
            Column("failures", "failures"),
        ],
        notes=(
            f"Half-ellipse, sigma {SIGMA:g}, tolerances {LOG_TOLERANCE:g} (log) and "
            f"{EXP_TOLERANCE:g} (exp): wide and loose, to keep the run short. The peak "
            "is the resident set of the whole process, compilation included; before is "
            "what it was when all inputs were there."
        ),
    )
    for name in ("exp", "log"):
        row = {"map": f"`{name}_map`", "n_data": n_data, "limit_gib": LIMIT_GIB}
        table.rows.append(row | in_fresh_process("memory", name, n_data, n))
    return [table]


def peak_gib() -> float:
    """Peak resident set of this process so far.

    The kernel's own counter where there is one: `getrusage` also remembers the peak of
    the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**20
    return _gib(resource.RUSAGE_SELF)


def peak_of_children_gib() -> float:
    """Largest peak of the processes that this one started and that have ended.

    It is not less than what this one took when it started them.
    """
    return _gib(resource.RUSAGE_CHILDREN)


def _gib(who: int) -> float:
    scale = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(who).ru_maxrss / scale


def main(name: str, n_data: int, n: int) -> None:
    """The fresh process."""
    import land
    from benchmarks import workload

    data = workload.half_ellipse(n_data)
    metric = workload.half_ellipse_metric(data, SIGMA)
    base = workload.top_of_arc(data)
    targets, tangents = workload.half_ellipse(n, seed=1), workload.tangents(n)
    results = []

    def solve() -> None:
        if name == "log":
            results.append(land.log_map(metric, base, targets, tol=LOG_TOLERANCE))
        else:
            results.append(land.exp_map(metric, base, tangents, tol=EXP_TOLERANCE))

    before = peak_gib()
    elapsed = seconds(solve)
    report = {
        "maps": n,
        "before_gib": before,
        "peak_gib": peak_gib(),
        "seconds": elapsed,
        "failures": int((~results[0].converged).sum()),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
