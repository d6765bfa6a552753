"""A fit to many data, with peaks of memory.

Run as a module (``python -m benchmarks.many_data``) this is the fresh process that
measures one row: a peak of memory cannot be reset.
"""

import json
import sys

from benchmarks.common import Column, Table, in_fresh_process, seconds

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000), (1_000,)
# The same for every number of data, and what is automatic for a few hundred.
SIGMA = 0.15


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    table = Table(
        title="LAND fit against the number of data N, cold",
        columns=[
            Column("n_data", "N"),
            Column("seconds", "s", ".0f"),
            Column("steps", "steps"),
            Column("converged", "converged"),
            Column("log_maps", "log maps"),
            Column("failures", "failures"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            f"Half-ellipse, sigma {SIGMA:g}, otherwise default settings: maximum "
            "likelihood, metric and likelihood of all N data."
        ),
    )
    for n in QUICK_SIZES if quick else SIZES:
        table.rows.append(in_fresh_process("many_data", n))
    return [table]


def main(n: int) -> None:
    """The fresh process: one row."""
    import land
    from benchmarks.memory import peak_gib

    data = land.datasets.make_half_ellipse(n, random_state=0)
    model = land.LAND(sigma=SIGMA, random_state=0)
    elapsed = seconds(lambda: model.fit(data))
    report = {
        "n_data": n,
        "seconds": elapsed,
        "steps": model.n_iter_,
        "converged": str(model.converged_).lower(),
        "log_maps": model.n_log_maps_,
        "failures": model.n_failed_log_maps_,
        "peak_gib": peak_gib(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main(int(sys.argv[1]))
