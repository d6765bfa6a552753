"""The normalisation constant: error against cost, and in many dimensions."""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import land
from benchmarks import workload
from benchmarks.common import Column, Table

COVARIANCE = np.diag([0.64, 0.0225])
EFFORTS = (100, 300, 1000)
DIMENSIONS = (3, 5, 10)
TRUTH = 20_000
N_DATA = 300


def run(quick: bool) -> list[Table]:
    """Both tables."""
    return [_against_cost(quick), _against_dimension(quick)]


def _against_cost(quick: bool) -> Table:
    """Plain Monte Carlo and lattices, over several seeds."""
    n_seeds = 3 if quick else 5
    data = workload.half_ellipse()
    problem = workload.half_ellipse_metric(data, 0.3), workload.top_of_arc(data)
    table = Table(
        title="log C on the half-ellipse",
        columns=[
            Column("method", "estimator"),
            Column("effort", "n_samples", ","),
            Column("n_maps", "geodesics", ","),
            Column("error", "rms error", ".1e"),
            Column("stderr", "its own estimate", ".1e"),
            Column("seconds", "s", ".3f"),
        ],
        notes=(
            "sigma 0.3, mean at the top of the arc, covariance "
            f"diag(0.64, 0.0225); {n_seeds} seeds, against a lattice with "
            f"n_samples={TRUTH}."
        ),
    )

    def estimate(effort: int, seed: int, method: str) -> land.LogConstant:
        return land.log_constant(
            *problem, COVARIANCE, n_samples=effort, random_state=seed, method=method
        )

    truth = estimate(TRUTH, 99, "lattice").value
    for method, name in (("monte_carlo", "plain Monte Carlo"), ("lattice", "lattice")):
        for effort in EFFORTS[:2] if quick else EFFORTS:
            found = []
            start = time.perf_counter()
            for seed in range(n_seeds):
                found.append(estimate(effort, seed, method))
            each = (time.perf_counter() - start) / n_seeds
            errors = np.array([c.value for c in found]) - truth
            table.rows.append(
                {
                    "method": name,
                    "effort": effort,
                    "n_maps": found[0].n_maps,
                    "error": float(np.sqrt(np.mean(errors**2))),
                    "stderr": float(np.mean([c.stderr for c in found])),
                    "seconds": each,
                }
            )
    return table


def _against_dimension(quick: bool) -> Table:
    """The constant of a least-squares fit, over several random states."""
    table = Table(
        title="The constant in D dimensions",
        columns=[
            Column("dim", "D"),
            Column("covariance_type", "covariance"),
            Column("effective", "effective points", ".0f"),
            Column("stderr", "standard error of log C", ".1e"),
            Column("spread", "spread of log C", ".1e"),
        ],
        notes=(
            f"{N_DATA} points along a helix, noise 0.1 in all directions; "
            '`method="least_squares"`, sigma the distance to the tenth neighbour, '
            "rho 1 % of its square. The standard error is the one that the fit reports "
            "(median), the spread that of its values over random states."
        ),
    )
    for dim in DIMENSIONS[:1] if quick else DIMENSIONS:
        for kind in ("diag", "full"):
            table.rows.append(_row(dim, kind, 3 if quick else 4))
    return table


def _row(dim: int, kind: str, n_seeds: int) -> dict:
    data, models = workload.helix(dim, N_DATA), []
    metric = workload.local_metric(data)
    for seed in range(1 + n_seeds):
        # Later fits start where the first one ended, and differ in constants only.
        model = land.LAND(
            metric=metric,
            method="least_squares",
            covariance_type=kind,
            init=models[0].mean_ if models else "least_squares",
            max_iter=1 if models else 10,
            random_state=seed,
        )
        with warnings.catch_warnings():  # any mean among the data will do
            warnings.simplefilter("ignore", ConvergenceWarning)
            models.append(model.fit(data))
    models = models[1:]
    return {
        "dim": dim,
        "covariance_type": kind,
        "effective": float(np.median([model.effective_samples_ for model in models])),
        "stderr": float(np.median([model.log_constant_stderr_ for model in models])),
        "spread": float(np.std([model.log_constant_ for model in models], ddof=1)),
    }
