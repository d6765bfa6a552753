"""The half-ellipse workload of the speed contract, and data of other sizes."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

import land

Array = NDArray[np.float64]

RHO = 1e-3
N_DATA = 300


def half_ellipse(n: int = N_DATA, seed: int = 0) -> Array:
    """Points (3 cos t, 1.5 sin t), t uniform on [0, pi], with noise 0.1."""
    return land.datasets.make_half_ellipse(
        n, n_centers=None, noise=0.1, random_state=seed
    )


def half_ellipse_metric(data: Array, sigma: float) -> land.metrics.LocalDiagonalMetric:
    """The metric of `data`; the same geometry for any number of points."""
    return land.metrics.LocalDiagonalMetric(data, sigma, RHO * len(data) / N_DATA)


def top_of_arc(data: Array) -> Array:
    """The data point nearest to (0, 1.5)."""
    return data[np.argmin(np.linalg.norm(data - [0.0, 1.5], axis=1))]


def tangents(n: int, seed: int = 0) -> Array:
    """Tangent vectors of standard deviations 0.8 along the arc and 0.15 across."""
    return np.random.default_rng(seed).normal(size=(n, 2)) * [0.8, 0.15]


def high_dimensional(dim: int, n: int, seed: int = 0) -> tuple[str, Array]:
    """Data in `dim` dimensions: principal components of images, else a curve."""
    images = data_folder() / "mnist_digit1.npz"
    if dim <= 784 and n <= 5000 and images.exists():
        with np.load(images) as archive:
            pixels = archive["images"][:n].reshape(n, -1) / 255.0
        centred = pixels - pixels.mean(axis=0)
        _, _, axes = np.linalg.svd(centred, full_matrices=False)
        # All 784 pixels need no axes; the components beyond the data's rank are zero.
        return "MNIST digit 1", centred if dim == 784 else centred @ axes[:dim].T
    rng = np.random.default_rng(seed)
    curve = np.zeros((n, dim))
    curve[:, :2] = half_ellipse(n, seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    noise = rng.normal(size=(n, dim)) * (0.1 / np.sqrt(dim))
    return "half-ellipse", (curve + noise) @ rotation


def helix(dim: int, n: int, seed: int = 0) -> Array:
    """Points along a turn of a helix, with noise 0.1, in a random position."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0.0, 1.5 * np.pi, n)
    data = np.zeros((n, max(dim, 3)))
    data[:, :3] = np.stack([np.cos(angles), np.sin(angles), 0.3 * angles], axis=1)
    data = data[:, :dim] + 0.1 * rng.normal(size=(n, dim))
    rotation, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    return data @ rotation


def hard_data(quick: bool = False) -> Iterator[tuple[str, Array]]:
    """Data on which geodesics are hard to find, as in the tests."""
    names = ("circle", "spiral", "s_curve", "two_moons")
    for name in names[:2] if quick else names:
        made = getattr(land.datasets, f"make_{name}")(N_DATA, random_state=0)
        yield name.replace("_", " "), made[0] if isinstance(made, tuple) else made
    if not quick and (data_folder() / "mnist_digit1.npz").exists():
        for dim in (2, 10, 50):
            yield high_dimensional(dim, N_DATA)


def tight_metric(data: Array) -> land.metrics.LocalDiagonalMetric:
    """A kernel sees a few points; to leave the data costs ten times as much."""
    sigma = 3.0 * float(np.median(KDTree(data).query(data, 2)[0][:, 1]))
    return land.metrics.LocalDiagonalMetric(data, sigma, (0.1 * sigma) ** 2)


def outside(data: Array, n: int = 15) -> Array:
    """The outermost points, moved away from the centre."""
    ways = data - data.mean(axis=0)
    ways = ways[np.argsort(-np.linalg.norm(ways, axis=1))[:n]]
    return data.mean(axis=0) + np.concatenate([1.5 * ways, 2.0 * ways])


def data_folder() -> Path:
    """Where the project's data sets lie, if anywhere."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("LAND_DATA_DIR", default))


def local_metric(data: Array) -> land.metrics.LocalDiagonalMetric:
    """A metric as wide as the neighbourhoods of ten points."""
    distances, _ = KDTree(data).query(data, 11)
    sigma = float(np.median(distances[:, -1]))
    return land.metrics.LocalDiagonalMetric(data, sigma, 1e-2 * sigma**2)
