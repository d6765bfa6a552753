"""The normalisation constant: error against the number of exponential maps."""

import numpy as np

import land
from benchmarks import workload
from benchmarks.common import Column, Table, best_and_median, seconds

COVARIANCE = np.diag([0.64, 0.0225])


def run(quick: bool) -> list[Table]:
    """Plain Monte Carlo and lattices, for both volumes, over several seeds."""
    n_seeds = 3 if quick else 10
    data = workload.half_ellipse()
    problem = workload.half_ellipse_metric(data, 0.3), workload.top_of_arc(data)
    tables = []
    for volume in ("paper", "exact"):
        table = Table(
            title=f'log C on the half-ellipse, volume="{volume}"',
            columns=[
                Column("method", "estimator"),
                Column("n_samples", "n_samples"),
                Column("n_maps", "exponential maps"),
                Column("error", "rms error", ".1e"),
                Column("stderr", "its own estimate", ".1e"),
                Column("time_s", "s", ".3f"),
            ],
            notes=(
                "sigma 0.3, mean at the top of the arc, covariance "
                f"diag(0.64, 0.0225); {n_seeds} seeds, against a lattice with "
                "n_samples=50000."
            ),
        )
        truth = land.log_constant(
            *problem, COVARIANCE, volume, 50_000, random_state=99
        ).value
        for method, efforts in (
            ("monte_carlo", (100, 300, 1000, 3000)),
            ("lattice", (100, 300, 1000, 3000)),
        ):
            for effort in efforts:
                row = measure(problem, volume, method, effort, n_seeds, truth)
                table.rows.append(row)
        tables.append(table)
    return tables


def measure(problem, volume, method, effort, n_seeds, truth) -> dict:
    """One row: root mean square error over seeds."""
    found, times = [], []
    for seed in range(n_seeds):

        def estimate(seed: int = seed) -> None:
            found.append(
                land.log_constant(
                    *problem,
                    COVARIANCE,
                    volume,
                    effort,
                    random_state=seed,
                    method=method,
                )
            )

        times.append(seconds(estimate))
    errors = np.array([each.value for each in found]) - truth
    return {
        "method": {"monte_carlo": "plain Monte Carlo", "lattice": "lattice"}[method],
        "n_samples": effort,
        "n_maps": found[0].n_maps,
        "error": float(np.sqrt(np.mean(errors**2))),
        "stderr": float(np.mean([each.stderr for each in found])),
        "time_s": best_and_median(times)[1],
    }
