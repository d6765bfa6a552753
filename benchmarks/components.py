"""Reconstruction by GeodesicPCA, PCA and kernel PCA."""

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import PCA, KernelPCA

import land
from benchmarks.common import Column, Table

Array = NDArray[np.float64]
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)


class Data(NamedTuple):
    """A data set, and the number of components that should describe it."""

    name: str
    n_components: int
    n_rows: int
    make: Callable[[int, int], Array]


def run(quick: bool) -> list[Table]:
    """Mean squared errors of new points."""
    sets = SETS[: 2 if quick else None]
    table = Table(
        title="Mean squared error of new points",
        columns=[
            Column("data", "data"),
            Column("n_components", "components"),
            Column("n_rows", "points"),
            Column("geodesic", "GeodesicPCA", ".3f"),
            Column("pca", "PCA", ".3f"),
            Column("kernel", "kernel PCA", ".3f"),
            Column("lost", "not reached"),
            Column("seconds", "GeodesicPCA, s", ".1f"),
        ],
        notes=(
            "As many new points as points fitted to. GeodesicPCA at its defaults; "
            "points that no geodesic reaches are left out. Kernel PCA: the best of "
            f"{len(GAMMAS) * len(ALPHAS)} Gaussian kernels and ridges on these points."
        ),
    )
    table.rows = Parallel(n_jobs=-1)(delayed(measure)(data) for data in sets)
    return [table]


def measure(data: Data) -> dict:
    """The row of a data set."""
    X, new = data.make(data.n_rows, 0), data.make(data.n_rows, 1)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = land.GeodesicPCA(data.n_components, random_state=0).fit(X)
        seconds = time.perf_counter() - start
        errors = squared_errors(model, new)
    kernels = [
        KernelPCA(
            data.n_components,
            kernel="rbf",
            gamma=gamma / X.var(),
            alpha=alpha,
            fit_inverse_transform=True,
        )
        for gamma in GAMMAS
        for alpha in ALPHAS
    ]
    pca = PCA(data.n_components).fit(X)
    return {
        "data": data.name,
        "n_components": data.n_components,
        "n_rows": data.n_rows,
        "geodesic": float(np.nanmean(errors)),
        "pca": float(squared_errors(pca, new).mean()),
        "kernel": min(float(squared_errors(k.fit(X), new).mean()) for k in kernels),
        "lost": int(np.isnan(errors).sum()),
        "seconds": seconds,
    }


def squared_errors(model, points: Array) -> Array:
    """Of what is left of the points; NaN where a geodesic was not found."""
    coordinates = model.transform(points)
    known = np.isfinite(coordinates).all(axis=1)
    errors = np.full(len(points), np.nan)
    again = model.inverse_transform(coordinates[known])
    errors[known] = np.sum((points[known] - again) ** 2, axis=1)
    return errors


def _moon(n: int, seed: int) -> Array:
    X, y = land.datasets.make_two_moons(2 * n, random_state=seed)
    return X[y == 0]


def _s_curve(n: int, seed: int) -> Array:
    return land.datasets.make_s_curve(n, random_state=seed)


def _s_line(n: int, seed: int) -> Array:
    return _s_curve(n, seed)[:, [0, 2]]


def _roll(n: int, seed: int) -> Array:
    return make_swiss_roll(n, noise=0.3, random_state=seed)[0] / 5.0


def _roll_line(n: int, seed: int) -> Array:
    return _roll(n, seed)[:, [0, 2]]


def _ellipse(n: int, seed: int) -> Array:
    return land.datasets.make_half_ellipse(n, random_state=seed)


def _cloud(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=(n, 2)) * np.array([2.0, 0.5])


SETS = (
    Data("half-ellipse", 1, 150, _ellipse),
    Data("one moon", 1, 150, _moon),
    Data("S-curve, two of its axes", 1, 150, _s_line),
    Data("S-curve in space", 2, 400, _s_curve),
    Data("swiss roll, two of its axes", 1, 150, _roll_line),
    Data("swiss roll in space", 2, 400, _roll),
    Data("normal cloud", 1, 150, _cloud),
)
