"""A whole fit of one distribution: cold, warm, and where the time goes.

Run as a module (``python -m benchmarks.fit``) this is the fresh process of a cold fit.
"""

import json
import time

from benchmarks.common import (
    Column,
    Table,
    best_and_median,
    in_fresh_process,
    time_split,
)

SIGMA, RHO = 0.3, 1e-3


def run(quick: bool) -> list[Table]:
    """Both optimizers and volumes on the half-ellipse."""
    table = Table(
        title="Fit of one distribution, K = 1, N = 300, sigma 0.3",
        columns=[
            Column("settings", "settings"),
            Column("cold_s", "cold, s", ".1f"),
            Column("median_s", "warm, s", ".1f"),
            Column("best_s", "best", ".1f"),
            Column("objective", "objective", ".4f"),
            Column("converged", "converged"),
            Column("n_iter", "steps"),
            Column("n_log_maps", "log maps"),
        ],
        notes=(
            "Half-ellipse, rho 0.001, n_samples=3000, from data to fitted model. Cold "
            "is a fresh process with nothing compiled, its imports not counted."
        ),
    )
    settings = [{}, {"optimizer": "paper"}, {"volume": "exact"}]
    for options in settings[: 1 if quick else None]:
        cold = in_fresh_process("fit", json.dumps(options))
        times, model = [], None
        fit(options)
        for _ in range(1 if quick else 3):
            start = time.perf_counter()
            model = fit(options)
            times.append(time.perf_counter() - start)
        best, median = best_and_median(times)
        table.rows.append(
            {
                "settings": ", ".join(f"{k}={v}" for k, v in options.items())
                or "defaults",
                "cold_s": cold["seconds"],
                "median_s": median,
                "best_s": best,
                "objective": model.objective_,
                "converged": "yes" if model.converged_ else "no",
                "n_iter": model.n_iter_,
                "n_log_maps": model.n_log_maps_,
            }
        )
    shares = time_split("Where the time of a warm fit goes", lambda: fit({}))
    return [table, shares]


def fit(options: dict):
    """One fit."""
    import land
    from benchmarks import workload

    model = land.LAND(sigma=SIGMA, rho=RHO, random_state=0, **options)
    return model.fit(workload.half_ellipse())


def main() -> None:
    """The fresh process."""
    import sys

    import land  # noqa: F401

    start = time.perf_counter()
    fit(json.loads(sys.argv[1]))
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main()
