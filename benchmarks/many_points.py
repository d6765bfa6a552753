"""Many points to score, with peaks of memory.

Run as a module (``python -m benchmarks.many_points``) this is the fresh process that
measures one row: a peak of memory cannot be reset.
"""

import json
import sys

import numpy as np

from benchmarks.common import Column, Table, in_fresh_process, seconds

SIZES, QUICK_SIZES = (10_000, 1_000_000), (2_000,)
# Data of the model.
N_DATA = 300


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    table = Table(
        title="Scoring points",
        columns=[
            Column("points", "points"),
            Column("seconds", "s", ".0f"),
            Column("rate", "points/s", ".0f"),
            Column("failures", "failures"),
            Column("before_gib", "GiB before", ".2f"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            f"`score_samples`, density in dx, of a LAND fitted to {N_DATA} points of "
            "the half-ellipse, default settings. Before is the peak when the first "
            "chunk was compiled and the points were there."
        ),
    )
    for n in QUICK_SIZES if quick else SIZES:
        table.rows.append(in_fresh_process("many_points", n))
    return [table]


def main(n: int) -> None:
    """The fresh process: one row."""
    import land
    from benchmarks.memory import peak_gib

    data = land.datasets.make_half_ellipse(N_DATA, random_state=0)
    points = land.datasets.make_half_ellipse(n, random_state=1)
    model = land.LAND(random_state=0).fit(data)
    model.score_samples(points[:2048])
    before = peak_gib()
    values = []
    elapsed = seconds(lambda: values.append(model.score_samples(points)))
    report = {
        "points": n,
        "seconds": elapsed,
        "rate": n / elapsed,
        "failures": int(np.isnan(values[0]).sum()),
        "before_gib": before,
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]))
