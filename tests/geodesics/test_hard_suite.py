"""Data on which geodesics are hard to find: every single log map must converge.

The metric is chosen as a user would: sigma three times the median distance to the
nearest neighbour, so that a kernel sees a few points, and rho = (sigma / 10)^2, so that
leaving the data costs ten times as much as a spread of sigma. Targets are data, and
points one and a half times and twice as far from their centre as the outermost data.
"""

import numpy as np
import pytest
from scipy.spatial import KDTree

import land
from land import datasets
from land.metrics import LocalDiagonalMetric

# The same number of data throughout: fewer compilations.
N_DATA, N_INSIDE, N_OUTSIDE = 300, 60, 15


def learned_metric(data):
    """The metric with the sigma and rho that the head of this file states."""
    distances, _ = KDTree(data).query(data, k=2)
    sigma = 3.0 * np.median(distances[:, 1])
    return LocalDiagonalMetric(data, sigma=sigma, rho=(0.1 * sigma) ** 2)


def outside(data):
    """The outermost points, moved away from the centre."""
    centre = data.mean(axis=0)
    outermost = np.argsort(-np.linalg.norm(data - centre, axis=1))[:N_OUTSIDE]
    ways = data[outermost] - centre
    return np.concatenate([centre + 1.5 * ways, centre + 2.0 * ways])


def principal_components(rows, n_components):
    """Scores of the rows on their first principal components."""
    centred = rows - rows.mean(axis=0)
    return centred @ np.linalg.svd(centred, full_matrices=False)[2][:n_components].T


def assert_all_converge(metric, base, targets):
    """Hold every log map to its verdict, and to the length of the straight line."""
    found = land.log_map(metric, base, targets)
    assert found.converged.all(), f"not converged: {np.flatnonzero(~found.converged)}"
    # A geodesic is as fast at both of its ends as on average.
    start = np.sqrt(metric.inner(base, found.tangents, found.tangents))
    end = np.sqrt(metric.inner(targets, found.end_velocities, found.end_velocities))
    np.testing.assert_allclose(start, found.lengths, rtol=2e-6)
    np.testing.assert_allclose(end, found.lengths, rtol=2e-6)
    # Whatever else a geodesic is, it is no longer than the line between its ends.
    times = (np.arange(2000) + 0.5) / 2000
    ways = targets - base
    for way, length in zip(ways, found.lengths, strict=True):
        line = np.sqrt(metric.inner(base + times[:, None] * way, way, way)).mean()
        assert length <= 1.001 * line
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        # Below, targets on both sides of it stand for it.
        pytest.param(datasets.make_circle, id="circle", marks=pytest.mark.nightly),
        pytest.param(datasets.make_spiral, id="spiral"),
        pytest.param(datasets.make_s_curve, id="s_curve"),
    ],
)
def test_curves_and_sheets(make):
    data = make(N_DATA, random_state=0)
    targets = np.concatenate([data[:N_INSIDE], outside(data)])
    assert_all_converge(learned_metric(data), data[0], targets)


def test_circle_is_crossed_along_the_nearer_side():
    """Around a closed loop there are two ways; to either side we take the shorter."""
    data = datasets.make_circle(N_DATA, random_state=0)
    angles = np.pi * np.array([-0.9, -0.7, -0.4, 0.4, 0.7, 0.9])
    targets = np.column_stack([np.cos(angles), np.sin(angles)])
    found = assert_all_converge(learned_metric(data), np.array([1.0, 0.0]), targets)
    middle = found.curves[:, found.curves.shape[1] // 2]
    np.testing.assert_array_equal(np.sign(middle[:, 1]), np.sign(angles))
    # Along the loop, not across the empty disc.
    assert np.linalg.norm(found.curves, axis=2).min() > 0.7


def test_two_moons_across_the_gap():
    data, moon = datasets.make_two_moons(N_DATA, random_state=0)
    base = data[moon == 0][0]
    targets = np.concatenate([data[moon == 1][:N_INSIDE], outside(data)])
    assert_all_converge(learned_metric(data), base, targets)


@pytest.mark.parametrize(
    "n_components",
    [*(pytest.param(n, marks=pytest.mark.nightly) for n in (2, 10)), 50],
)
def test_mnist_digit_one(n_components, data_folder):
    images = load(data_folder, "mnist_digit1.npz", "images")
    rows = np.random.default_rng(0).choice(len(images), N_DATA, replace=False)
    pixels = images[rows].reshape(N_DATA, -1) / 255.0
    data = principal_components(pixels, n_components)
    targets = np.concatenate([data[:N_INSIDE], outside(data)])
    assert_all_converge(learned_metric(data), data[0], targets)


@pytest.mark.slow
@pytest.mark.parametrize(
    "clip",
    [
        pytest.param("22_16", id="jumping_jacks"),
        pytest.param("09_01", id="run", marks=pytest.mark.nightly),
    ],
)
def test_mocap(clip, data_folder):
    joints = load(data_folder, "cmu_mocap_bvh.npz", f"{clip}_joints")
    data = principal_components(joints.reshape(len(joints), -1), 3)[:N_DATA]
    targets = np.concatenate([data[::5], outside(data)])
    assert_all_converge(learned_metric(data), data[0], targets)


def load(folder, file, name):
    """One array of a data file, as float64."""
    if not (folder / file).exists():
        pytest.skip(f"{file} is not in {folder}")
    with np.load(folder / file) as arrays:
        return arrays[name].astype(np.float64)
