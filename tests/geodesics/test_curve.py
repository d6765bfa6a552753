"""`land.geodesic`: one curve between two points, as a function of time."""

import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric

ENDS = np.array([-2.0, 1.1]), np.array([2.2, 1.0])


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@pytest.fixture(scope="module")
def curve(metric):
    return land.geodesic(metric, *ENDS)


def test_it_is_the_log_map_of_its_ends(metric, curve):
    log = land.log_map(metric, ENDS[0], [ENDS[1]])
    assert curve.converged is True
    assert isinstance(curve.length, float)
    assert curve.length == pytest.approx(log.lengths[0], rel=1e-12)
    np.testing.assert_allclose(curve.start_velocity, log.tangents[0], rtol=1e-12)
    np.testing.assert_allclose(curve.end_velocity, log.end_velocities[0], rtol=1e-12)
    np.testing.assert_allclose(
        curve(np.linspace(0.0, 1.0, 33)), log.curves[0], atol=1e-12
    )


def test_it_starts_and_ends_where_it_should(curve):
    np.testing.assert_array_equal(curve.start, ENDS[0])
    np.testing.assert_array_equal(curve.end, ENDS[1])
    np.testing.assert_allclose(curve(0.0), ENDS[0], atol=1e-13)
    np.testing.assert_allclose(curve(1.0), ENDS[1], atol=1e-10)


def test_it_takes_times_of_any_shape(curve):
    assert curve(0.3).shape == (2,)
    assert curve([0.1, 0.2, 0.3]).shape == (3, 2)
    assert curve(np.full((4, 3), 0.5)).shape == (4, 3, 2)
    # Rounding depends on how many times there are.
    np.testing.assert_allclose(curve([0.7, 0.2])[1], curve(0.2), rtol=1e-12)


def test_its_velocity_at_the_start_is_its_slope(curve):
    slope = (curve(1e-5) - curve(0.0)) / 1e-5
    np.testing.assert_allclose(slope, curve.start_velocity, rtol=1e-3, atol=1e-3)
    slope = (curve(1.0) - curve(1.0 - 1e-5)) / 1e-5
    np.testing.assert_allclose(slope, curve.end_velocity, rtol=1e-3, atol=1e-3)


def test_from_a_point_to_itself(metric):
    still = land.geodesic(metric, ENDS[0], ENDS[0])
    assert still.length == 0.0
    assert still.converged
    np.testing.assert_array_equal(still([0.0, 0.5, 1.0]), np.tile(ENDS[0], (3, 1)))


def test_it_says_what_it_is():
    line = land.geodesic(EuclideanMetric(2), [0, 0], [3, 4])
    assert repr(line) == "Geodesic(length=5, converged)"
