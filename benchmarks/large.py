"""A fit to many data, and many points to score, with peaks of memory.

Run as a module (``python -m benchmarks.large``) this is the fresh process that measures
one row: a peak of memory cannot be reset.
"""

import json
import sys

import numpy as np

from benchmarks.common import Column, Table, in_fresh_process, seconds

FIT_SIZES, QUICK_FIT_SIZES = (1_000, 10_000, 100_000), (1_000,)
SCORE_SIZES, QUICK_SCORE_SIZES = (10_000, 1_000_000), (2_000,)
# The same for every number of data, and what is automatic for a few hundred.
SIGMA = 0.15
# Data of the model that scores.
N_DATA = 300


def run(quick: bool) -> list[Table]:
    """One process for each row."""
    fits = Table(
        title="LAND fit against the number of data N, cold",
        columns=[
            Column("n_data", "N"),
            Column("seconds", "s", ".0f"),
            Column("steps", "steps"),
            Column("converged", "converged"),
            Column("log_maps", "log maps"),
            Column("exp_maps", "exp maps"),
            Column("failures", "failures"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            f"Half-ellipse, sigma {SIGMA:g}, otherwise default settings: maximum "
            "likelihood, metric and likelihood of all N data."
        ),
    )
    scores = Table(
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
            "the half-ellipse. Before is the peak when the first chunk was compiled "
            "and the points were there."
        ),
    )
    for n in QUICK_FIT_SIZES if quick else FIT_SIZES:
        fits.rows.append(in_fresh_process("large", "fit", n))
    for n in QUICK_SCORE_SIZES if quick else SCORE_SIZES:
        scores.rows.append(in_fresh_process("large", "score", n))
    return [fits, scores]


def measure_fit(n: int) -> dict:
    """A row of the first table."""
    import land
    from benchmarks.memory import peak_gib

    data = land.datasets.make_half_ellipse(n, random_state=0)
    model = land.LAND(sigma=SIGMA, random_state=0)
    elapsed = seconds(lambda: model.fit(data))
    return {
        "n_data": n,
        "seconds": elapsed,
        "steps": model.n_iter_,
        "converged": str(model.converged_).lower(),
        "log_maps": model.n_log_maps_,
        "exp_maps": model.n_exp_maps_,
        "failures": model.n_failed_log_maps_,
        "peak_gib": peak_gib(),
    }


def measure_scores(n: int) -> dict:
    """A row of the second table."""
    import land
    from benchmarks.memory import peak_gib

    data = land.datasets.make_half_ellipse(N_DATA, random_state=0)
    points = land.datasets.make_half_ellipse(n, random_state=1)
    model = land.LAND(random_state=0).fit(data)
    model.score_samples(points[:2048])
    before = peak_gib()
    values = []
    elapsed = seconds(lambda: values.append(model.score_samples(points)))
    return {
        "points": n,
        "seconds": elapsed,
        "rate": n / elapsed,
        "failures": int(np.isnan(values[0]).sum()),
        "before_gib": before,
        "peak_gib": peak_gib(),
    }


if __name__ == "__main__":
    measure = {"fit": measure_fit, "score": measure_scores}[sys.argv[1]]
    print(json.dumps(measure(int(sys.argv[2]))))
