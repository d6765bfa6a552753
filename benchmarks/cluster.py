"""Scoring many points on a Dask cluster of this machine: two workers against one.

joblib does not hand work to a cluster with a single thread, so one worker is this
process itself. Every worker has a core of its own, as it would have a machine of its
own: otherwise a single process of JAX would use both.
"""

import os
from pathlib import Path

import joblib
import numpy as np
from dask.distributed import Client, LocalCluster

import land
from benchmarks.common import Column, Table, best_and_median, seconds

N_POINTS, QUICK_POINTS = 16 * 1024, 2 * 1024
WORKERS = 2


def confine(core: int) -> None:
    """Keep all threads of this process on one core, where that can be done."""
    if hasattr(os, "sched_setaffinity"):
        for thread in Path("/proc/self/task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})


def run(quick: bool) -> list[Table]:
    """Times of the same call in this process and on the cluster, in turns."""
    n = QUICK_POINTS if quick else N_POINTS
    data = land.datasets.make_half_ellipse(300, random_state=0)
    points = land.datasets.make_half_ellipse(n, random_state=1)
    model = land.LAND(method="least_squares", n_samples=300, random_state=0).fit(data)
    values, times = [], {1: [], WORKERS: []}

    def score() -> None:
        values.append(model.score_samples(points))

    cluster = LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0"
    )
    confine(0)
    with cluster, Client(cluster) as client:
        for core, address in enumerate(client.scheduler_info()["workers"]):
            client.run(confine, core, workers=[address])
        for turn in range(2 if quick else 4):
            alone = seconds(score)
            with joblib.parallel_config(backend="dask"):
                shared = seconds(score)
            if turn:  # the first turn compiles
                times[1].append(alone)
                times[WORKERS].append(shared)
    table = Table(
        title="Scoring points on a Dask cluster of this machine",
        columns=[
            Column("workers", "workers"),
            Column("median_s", "s", ".1f"),
            Column("rate", "points/s", ".0f"),
            Column("ratio", "speed-up", ".2f"),
            Column("difference", "largest difference", ".0e"),
        ],
        notes=(
            f"{n} points, LAND on the half-ellipse (N=300, automatic sigma and rho), "
            "density in dx; warm, medians of calls in turns. Every worker has one "
            "core. Differences are between the two, over all points."
        ),
    )
    medians = {count: best_and_median(own)[1] for count, own in times.items()}
    difference = float(np.max(np.abs(values[-1] - values[-2])))
    for count, median in medians.items():
        table.rows.append(
            {
                "workers": count,
                "median_s": median,
                "rate": n / median,
                "ratio": medians[1] / median,
                "difference": difference,
            }
        )
    return [table]
