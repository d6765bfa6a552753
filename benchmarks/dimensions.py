"""What becomes of the normalisation constant in many dimensions.

Data lie along a curve in three dimensions, with noise in all of them.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import land
from benchmarks.common import Column, Table, seconds

DIMENSIONS, QUICK_DIMENSIONS = (3, 5, 10, 20, 50), (3, 5)
N_DATA, NOISE = 300, 0.1
STEPS = 10
SEEDS, QUICK_SEEDS = range(6), range(3)


def curve(dim: int, seed: int = 0) -> np.ndarray:
    """Noisy points along a turn of a helix, in a random position."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0.0, 1.5 * np.pi, N_DATA)
    data = np.zeros((N_DATA, dim))
    data[:, :3] = np.stack([np.cos(angles), np.sin(angles), 0.3 * angles], axis=1)
    data += NOISE * rng.normal(size=data.shape)
    rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    return data @ rotation


def run(quick: bool) -> list[Table]:
    """The constant of a least-squares fit, over several random states."""
    table = Table(
        title="The constant in D dimensions",
        columns=[
            Column("dim", "D"),
            Column("covariance_type", "covariance"),
            Column("effective", "effective nodes", ".0f"),
            Column("stderr", "standard error of log C", ".1e"),
            Column("spread", "spread of log C", ".1e"),
            Column("volumes", "log volume, 90% range", ".1f"),
            Column("seconds", "s", ".1f"),
        ],
        notes=(
            f"{N_DATA} points along a curve, noise {NOISE:g} in all directions; "
            '`method="least_squares"`, a few steps, automatic sigma and rho. '
            "The standard error is the one that the fit reports (median), the spread "
            "that of its values over random states, the range that of log sqrt|M| over "
            "the data. Time is for one fit, cold."
        ),
    )
    for dim in QUICK_DIMENSIONS if quick else DIMENSIONS:
        for kind in ("diag", "full"):
            if kind == "full" and dim > 20:  # 1275 entries: too many for any fit
                continue
            table.rows.append(_row(dim, kind, QUICK_SEEDS if quick else SEEDS))
    return [table]


def _row(dim: int, kind: str, seeds: range) -> dict:
    data = curve(dim)
    models, times = [], []
    for seed in seeds:
        # Later fits start where the first one ended, and differ in constants only.
        init = models[0].mean_ if models else "least_squares"
        model = land.LAND(
            method="least_squares",
            covariance_type=kind,
            init=init,
            max_iter=1 if models else STEPS,
            random_state=seed,
        )
        with warnings.catch_warnings():  # any mean among the data will do
            warnings.simplefilter("ignore", ConvergenceWarning)
            times.append(seconds(lambda model=model: model.fit(data)))
        models.append(model)
    models = models[1:]
    volumes = models[0].metric_.log_volume(data)
    return {
        "dim": dim,
        "covariance_type": kind,
        "effective": float(np.median([model.effective_samples_ for model in models])),
        "stderr": float(np.median([model.log_constant_stderr_ for model in models])),
        "spread": float(np.std([model.log_constant_ for model in models], ddof=1)),
        "volumes": float(np.ptp(np.quantile(volumes, [0.05, 0.95]))),
        "seconds": times[0],
    }
