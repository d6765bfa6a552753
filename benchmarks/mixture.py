"""Mixtures: the two moons, and growth with components and data."""

import time

import land
from benchmarks.common import Column, Table, best_and_median


def run(quick: bool) -> list[Table]:
    """Times of converged fits."""
    table = Table(
        title="Mixture fits",
        columns=[
            Column("data", "data"),
            Column("n", "N"),
            Column("k", "K"),
            Column("cold_s", "first, s", ".1f"),
            Column("median_s", "warm, s", ".1f"),
            Column("objective", "objective", ".4f"),
            Column("converged", "converged"),
            Column("n_iter", "steps"),
            Column("n_log_maps", "log maps"),
            Column("n_exp_maps", "exp maps"),
        ],
        notes="Two moons, automatic sigma and rho. The first fit of a kind compiles.",
    )
    cases = [(600, 2), (600, 1), (600, 4), (1200, 2)]
    for n, k in cases[: 1 if quick else None]:
        data, _ = land.datasets.make_two_moons(n, random_state=0)
        times, model = [], None
        for _ in range(2 if quick else 3):
            start = time.perf_counter()
            model = land.LANDMixture(k, random_state=0).fit(data)
            times.append(time.perf_counter() - start)
        table.rows.append(
            {
                "data": "two moons",
                "n": n,
                "k": k,
                "cold_s": times[0],
                "median_s": best_and_median(times[1:])[1],
                "objective": model.objective_,
                "converged": "yes" if model.converged_ else "no",
                "n_iter": model.n_iter_,
                "n_log_maps": model.n_log_maps_,
                "n_exp_maps": model.n_exp_maps_,
            }
        )
    return [table]
