"""Mixtures: the two moons, growth with components and data, and whether EM descends."""

import time
import warnings

import numpy as np

import land
from benchmarks.common import Column, Table, time_split

MAKERS = ("half_ellipse", "circle", "spiral", "s_curve", "two_moons", "wave_and_arc")


def run(quick: bool) -> list[Table]:
    """Times of converged fits, and the largest rises of the objective."""
    data, _ = land.datasets.make_two_moons(100 if quick else 600, random_state=0)
    model = land.LANDMixture(2, random_state=0)
    title = f"Where the time of a warm fit goes, N = {len(data)}, K = 2"
    times = _times(quick)
    return [times, time_split(title, lambda: model.fit(data)), _rises(quick)]


def _times(quick: bool) -> Table:
    table = Table(
        title="Mixture fits",
        columns=[
            Column("data", "data"),
            Column("n", "N"),
            Column("k", "K"),
            Column("cold_s", "first, s", ".1f"),
            Column("warm_s", "second, s", ".1f"),
            Column("search_s", "search", ".1f"),
            Column("objective", "objective", ".4f"),
            Column("converged", "converged"),
            Column("n_iter", "steps"),
            Column("n_log_maps", "log maps"),
        ],
        notes=(
            "Two moons, automatic sigma and rho. The first fit of a kind compiles. "
            "Search: the part of the second fit before its first step on all data."
        ),
    )
    cases = [(600, 2), (600, 1), (600, 4), (1200, 2)]
    for n, k in cases[: 1 if quick else None]:
        data, _ = land.datasets.make_two_moons(n, random_state=0)
        times, model = [], None
        for _ in range(2):
            start = time.perf_counter()
            model = land.LANDMixture(k, random_state=0).fit(data)
            times.append(time.perf_counter() - start)
        table.rows.append(
            {
                "data": "two moons",
                "n": n,
                "k": k,
                "cold_s": times[0],
                "warm_s": times[1],
                "search_s": model.history_[0].seconds,
                "objective": model.objective_,
                "converged": "yes" if model.converged_ else "no",
                "n_iter": model.n_iter_,
                "n_log_maps": model.n_log_maps_,
            }
        )
    return table


def _rises(quick: bool) -> Table:
    """What EM steps do to the objective, on every data set."""
    counts = (1, 2) if quick else (1, 2, 3, 4)
    table = Table(
        title="Objectives of mixtures, and the largest rise in a step",
        columns=[
            Column("data", "data"),
            *(Column(f"objective_{k}", f"K={k}", ".3f") for k in counts),
            *(Column(f"rise_{k}", f"rise, K={k}", ".0e") for k in counts),
        ],
        notes=(
            "100 of each data set's points, automatic sigma and rho, n_samples=1000. "
            "Constants in a fit may have standard errors of 5e-4; the last value of a "
            "fit is on directions that it has not seen."
        ),
    )
    for name in MAKERS[: 1 if quick else None]:
        made = getattr(land.datasets, f"make_{name}")(100, random_state=0)
        data = made[0] if isinstance(made, tuple) else made
        row = {"data": name}
        for k in counts:
            model = land.LANDMixture(k, n_samples=1000, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(data)
            changes = np.diff([step.objective for step in model.history_])
            row[f"objective_{k}"] = model.objective_
            row[f"rise_{k}"] = float(changes.max(initial=0.0))
        table.rows.append(row)
    return table
