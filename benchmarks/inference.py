"""Two-sample tests: their level on null data, their power on curved data."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

import land
from benchmarks.common import Column, Table
from land.inference import goodness_of_fit, two_sample_test

Array = NDArray[np.float64]
N_NULL, NULL_ROWS, N_POWER, POWER_ROWS = 1000, 10, 100, 25
LEVEL, N_PERMUTATIONS = 0.05, 199
TESTS = {
    "energy": "energy",
    "likelihood_ratio": "likelihood ratio",
    "euclidean": "Euclidean energy",
    "hotelling": "Hotelling's T²",
}


class Pair(NamedTuple):
    """Two distributions; `draw` has a sample of the first or the second."""

    name: str
    draw: Callable[[np.random.Generator, int, bool], Array]


def run(quick: bool) -> list[Table]:
    """Levels and powers at 5 %."""
    n_null, n_power = (20, 4) if quick else (N_NULL, N_POWER)
    jobs = [(_null, seed) for seed in range(n_null)]
    jobs += [(_fit, seed) for seed in range(n_null)]
    jobs += [(_power, pair, seed) for pair in PAIRS for seed in range(n_power)]
    found = Parallel(n_jobs=-1)(delayed(job)(*rest) for job, *rest in jobs)
    nulls, fits, powers = (
        found[:n_null],
        found[n_null : 2 * n_null],
        found[2 * n_null :],
    )
    return [_levels(nulls, fits), _powers(powers, n_power)]


def _levels(nulls: list[dict], fits: list[float]) -> Table:
    table = Table(
        title="Level of the tests",
        columns=[
            Column("test", "test"),
            *(Column(f"{p}", f"p ≤ {p}", ".3f") for p in (0.01, 0.05, 0.1, 0.5)),
            Column("uniform", "uniform, p-value", ".2f"),
        ],
        notes=(
            f"Shares of p-values over {len(nulls)} pairs of {NULL_ROWS} and "
            f"{NULL_ROWS} points of one half-ellipse, the metric learned from each "
            f"pair; {N_PERMUTATIONS} permutations. Goodness of fit: {NULL_ROWS} draws "
            "of a fitted model. The last column tests whether p-values are uniform, "
            "by chi-squared over ten classes."
        ),
    )
    for name in TESTS:
        values = np.array([each[name] for each in nulls])
        table.rows.append({"test": TESTS[name], **_shares(values)})
    table.rows.append({"test": "goodness of fit", **_shares(np.array(fits))})
    return table


def _shares(values: Array) -> dict[str, float]:
    shares = {f"{p}": float(np.mean(values <= p)) for p in (0.01, 0.05, 0.1, 0.5)}
    # Permutation p-values are multiples of 1 / 200: (0, 0.1], (0.1, 0.2], ...
    classes = np.minimum(np.ceil(values * 10.0 - 1e-9), 10)
    counts = np.bincount(classes.astype(int), minlength=11)[1:]
    return shares | {"uniform": float(stats.chisquare(counts).pvalue)}


def _powers(found: list[dict], count: int) -> Table:
    table = Table(
        title="Power at 5 %",
        columns=[
            Column("pair", "what differs"),
            *(Column(name, title, ".2f") for name, title in TESTS.items()),
        ],
        notes=(
            f"Shares of {count} pairs of {POWER_ROWS} and {POWER_ROWS} points that a "
            f"test tells apart: standard errors are at most {0.5 / count**0.5:.3f}. "
            f"{N_PERMUTATIONS} permutations; Hotelling's T² by its F distribution."
        ),
    )
    for k, pair in enumerate(PAIRS):
        own = found[k * count : (k + 1) * count]
        shares = {
            name: float(np.mean([each[name] <= LEVEL for each in own]))
            for name in TESTS
        }
        table.rows.append({"pair": pair.name, **shares})
    return table


def _null(seed: int) -> dict[str, float]:
    rng = np.random.default_rng([0, seed])
    X = land.datasets.make_half_ellipse(2 * NULL_ROWS, random_state=rng)
    return p_values(X[:NULL_ROWS], X[NULL_ROWS:], seed)


@cache
def _model() -> land.LAND:
    X = land.datasets.make_half_ellipse(60, random_state=0)
    options = {"sigma": 0.8, "rho": 0.5, "n_samples": 500, "tol": 1e-2}
    return land.LAND(random_state=0, **options).fit(X)


def _fit(seed: int) -> float:
    rng = np.random.default_rng([1, seed])
    rows, _ = _model().sample(NULL_ROWS, rng)
    options = {"n_draws": NULL_ROWS, "n_permutations": N_PERMUTATIONS}
    return goodness_of_fit(_model(), rows, random_state=rng, **options).pvalue


def _power(pair: Pair, seed: int) -> dict[str, float]:
    rng = np.random.default_rng([2, seed])
    X, Y = (pair.draw(rng, POWER_ROWS, second) for second in (False, True))
    return p_values(X, Y, seed)


def p_values(X: Array, Y: Array, seed: int) -> dict[str, float]:
    """Of all tests; permutations are the same."""
    options = {"n_permutations": N_PERMUTATIONS, "random_state": seed}
    flat = land.metrics.EuclideanMetric(X.shape[1])
    return {
        "energy": two_sample_test(X, Y, **options).pvalue,
        "likelihood_ratio": two_sample_test(X, Y, "likelihood_ratio", **options).pvalue,
        "euclidean": two_sample_test(X, Y, metric=flat, **options).pvalue,
        "hotelling": _hotelling(X, Y),
    }


def _hotelling(X: Array, Y: Array) -> float:
    (n, dim), m = X.shape, len(Y)
    pooled = ((n - 1) * np.cov(X.T) + (m - 1) * np.cov(Y.T)) / (n + m - 2)
    gap = X.mean(axis=0) - Y.mean(axis=0)
    squared = n * m / (n + m) * gap @ np.linalg.solve(pooled, gap)
    ratio = squared * (n + m - dim - 1) / (dim * (n + m - 2))
    return float(stats.f.sf(ratio, dim, n + m - dim - 1))


def _tilted(rng: np.random.Generator, n: int, second: bool) -> Array:
    """Shares of the way along a curve: uniform, or more of them near its end."""
    return rng.beta(1.6 if second else 1.0, 1.0, n)


def _ellipse(rng: np.random.Generator, n: int, second: bool) -> Array:
    t = np.pi * _tilted(rng, n, second)
    points = np.stack([3.0 * np.cos(t), 1.5 * np.sin(t)], axis=1)
    return points + 0.1 * rng.normal(size=(n, 2))


def _spiral(rng: np.random.Generator, n: int, second: bool) -> Array:
    radii = np.sqrt(0.25 + 6.0 * _tilted(rng, n, second))
    angles = 2.0 * np.pi * (radii - 0.5)
    points = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return points + 0.1 * rng.normal(size=(n, 2))


def _ends(rng: np.random.Generator, n: int, second: bool) -> Array:
    """A half-ellipse, uniform or with more points at both of its ends."""
    shape = 0.6 if second else 1.0
    t = np.pi * rng.beta(shape, shape, n)
    points = np.stack([3.0 * np.cos(t), 1.5 * np.sin(t)], axis=1)
    return points + 0.1 * rng.normal(size=(n, 2))


def _cloud(rng: np.random.Generator, n: int, second: bool) -> Array:
    return rng.normal(size=(n, 2)) + np.array([0.7 if second else 0.0, 0.0])


PAIRS = (
    Pair("half-ellipse, density along it", _ellipse),
    Pair("half-ellipse, more at both ends", _ends),
    Pair("spiral, density along it", _spiral),
    Pair("normal clouds, mean", _cloud),
)
