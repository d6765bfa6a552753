"""The half-ellipse workload of the speed contract, and data of other sizes."""

import os
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
    if dim <= 784 and images.exists():
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


def data_folder() -> Path:
    """Where the project's data sets lie, if anywhere."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("LAND_DATA_DIR", default))


def local_metric(data: Array) -> land.metrics.LocalDiagonalMetric:
    """A metric as wide as the neighbourhoods of ten points."""
    distances, _ = KDTree(data).query(data, 11)
    sigma = float(np.median(distances[:, -1]))
    return land.metrics.LocalDiagonalMetric(data, sigma, 1e-2 * sigma**2)
