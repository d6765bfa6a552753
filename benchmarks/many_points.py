"""Many points to score, with peaks of memory.

Run as a module (``python -m benchmarks.many_points``) this is the fresh process that
measures one row: a peak of memory cannot be reset.
"""

import json
import sys

import numpy as np
from joblib.externals.loky import get_reusable_executor

from benchmarks.common import Column, Table, in_fresh_process, seconds

# Numbers of points, and of processes that share them.
CASES, QUICK_CASES = ((10_000, 1), (100_000, 1), (1_000_000, 2)), ((2_000, 1),)
# Data of the model.
N_DATA = 300


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    table = Table(
        title="Scoring points",
        columns=[
            Column("points", "points"),
            Column("n_jobs", "n_jobs"),
            Column("seconds", "s", ".0f"),
            Column("rate", "points/s", ".0f"),
            Column("failures", "failures"),
            Column("before_gib", "GiB before", ".2f"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            f"`score_samples`, density in dx, of a LAND fitted to {N_DATA} points of "
            "the half-ellipse, default settings but for n_jobs. Memory is that of the "
            "process with the highest peak; before is the peak when the first chunk "
            "was compiled and the points were there. Where several processes share "
            "the work, their start and compilation are included."
        ),
    )
    for case in QUICK_CASES if quick else CASES:
        table.rows.append(in_fresh_process("many_points", *case))
    return [table]


def main(n: int, n_jobs: int) -> None:
    """The fresh process: one row."""
    import land
    from benchmarks.memory import peak_gib, peak_of_children_gib

    data = land.datasets.make_half_ellipse(N_DATA, random_state=0)
    points = land.datasets.make_half_ellipse(n, random_state=1)
    model = land.LAND(random_state=0, n_jobs=n_jobs).fit(data)
    model.score_samples(points[:2048])
    before = peak_gib()
    values = []
    elapsed = seconds(lambda: values.append(model.score_samples(points)))
    get_reusable_executor().shutdown(wait=True)  # else nobody knows their memory
    report = {
        "points": n,
        "n_jobs": n_jobs,
        "seconds": elapsed,
        "rate": n / elapsed,
        "failures": int(np.isnan(values[0]).sum()),
        "before_gib": before,
        "peak_gib": max(peak_gib(), peak_of_children_gib()),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
