"""Far from the data the metric is flat: geodesics there are straight, and quick."""

import numpy as np
import pytest

import land
from land.metrics import LocalDiagonalMetric

ANGLES = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
WAYS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)


@pytest.fixture(scope="module")
def data():
    return land.datasets.make_half_ellipse(60, random_state=0)


@pytest.fixture(scope="module")
def metric(data):
    return LocalDiagonalMetric(data, sigma=0.5, rho=0.05)


@pytest.fixture(scope="module")
def at_moderate_distance(metric, data):
    center, radius = metric.flat_outside
    points = center + 3.0 * radius * WAYS
    return points, land.log_map(metric, data[0], points)


def test_the_metric_is_flat_where_it_says(metric):
    center, radius = metric.flat_outside
    tensors = metric.tensor(center + radius * WAYS)
    np.testing.assert_allclose(tensors, np.tile(np.eye(2) / 0.05, (8, 1, 1)), rtol=1e-9)
    assert not np.allclose(metric.tensor(center + 0.5 * radius * WAYS), tensors)


def test_as_the_ordinary_solver_has_it(metric, data, at_moderate_distance):
    """Given first curves are relaxed as they are, without a horizon."""
    points, far = at_moderate_distance
    near = land.log_map(metric, data[0], points, curves=far.curves)
    assert far.converged.all()
    assert near.converged.all()
    np.testing.assert_allclose(far.lengths, near.lengths, rtol=1e-6)
    np.testing.assert_allclose(far.tangents, near.tangents, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(far.log_dets, near.log_dets, atol=2e-3)


@pytest.mark.parametrize("distance", [1e2, 1e8])
def test_exp_of_log_at_any_distance(metric, data, distance):
    points = distance * WAYS
    logs = land.log_map(metric, data[0], points)
    assert logs.converged.all()
    back = land.exp_map(metric, data[0], logs.tangents)
    assert back.converged.all()
    size = 1e-4 * distance
    np.testing.assert_allclose(back.points, points, atol=size)
    np.testing.assert_allclose(back.velocities, logs.end_velocities, atol=size)
    speeds = np.sqrt(metric.inner(data[0], logs.tangents, logs.tangents))
    np.testing.assert_allclose(speeds, logs.lengths, rtol=1e-6)
    # Through the data it is shorter than it would be without them.
    straight = np.linalg.norm(points - data[0], axis=1) / np.sqrt(0.05)
    assert np.all(logs.lengths < straight)
    assert np.isfinite(logs.curves).all()
    assert np.isfinite(logs.log_dets).all()


def test_ways_past_the_data_are_straight(metric):
    starts = 1e5 * WAYS
    ends = np.roll(starts, 1, axis=0)
    logs = land.log_map(metric, starts, ends)
    assert logs.converged.all()
    np.testing.assert_allclose(logs.tangents, ends - starts, rtol=1e-12, atol=1e-9)
    distances = np.linalg.norm(ends - starts, axis=1)
    np.testing.assert_allclose(logs.lengths, distances / np.sqrt(0.05), rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 8])
def test_in_other_dimensions(dim):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(30, dim))
    metric = LocalDiagonalMetric(data, sigma=1.0, rho=0.5)
    ways = rng.normal(size=(4, dim))
    points = 1e6 * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    logs = land.log_map(metric, data[0], points)
    assert logs.converged.all()
    back = land.exp_map(metric, data[0], logs.tangents).points
    np.testing.assert_allclose(back, points, atol=1e2)
