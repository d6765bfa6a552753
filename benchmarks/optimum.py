"""Is the default's optimum the best one? Against the paper's and random restarts."""

import warnings

import numpy as np

import land
from benchmarks.common import Column, Table

MAKERS = ("half_ellipse", "circle", "spiral", "s_curve", "two_moons", "wave_and_arc")


def run(quick: bool) -> list[Table]:
    """Objectives of one distribution on every built-in data set."""
    n_restarts = 2 if quick else 20
    table = Table(
        title="Objectives reached by one distribution",
        columns=[
            Column("data", "data"),
            Column("default", "default", ".4f"),
            Column("paper", "paper's optimizer", ".4f"),
            Column("least_squares", "least squares", ".4f"),
            Column("best", "best restart", ".4f"),
            Column("median", "median restart", ".4f"),
            Column("n_restarts", "restarts"),
            Column("stderr", "standard error", ".0e"),
        ],
        notes=(
            "Mean negative log likelihood; lower is better. Automatic sigma and rho, "
            "100 of the default's data points; restarts are the default optimizer "
            f'with init="random", {n_restarts} of them, less those that did not '
            "converge (their mean was leaving the data). The standard error is that of "
            "the default's log constant."
        ),
    )
    for name in MAKERS[: 1 if quick else None]:
        made = getattr(land.datasets, f"make_{name}")(100, random_state=0)
        data = made[0] if isinstance(made, tuple) else made

        def fitted(data: np.ndarray = data, **options):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return land.LAND(**({"random_state": 0} | options)).fit(data)

        default = fitted()
        fits = [fitted(init="random", random_state=seed) for seed in range(n_restarts)]
        restarts = [fit.objective_ for fit in fits if fit.converged_]
        table.rows.append(
            {
                "data": name,
                "default": default.objective_,
                "paper": fitted(optimizer="paper").objective_,
                "least_squares": fitted(method="least_squares").objective_,
                "best": float(np.min(restarts)),
                "median": float(np.median(restarts)),
                "n_restarts": len(restarts),
                "stderr": default.log_constant_stderr_,
            }
        )
    return [table]
