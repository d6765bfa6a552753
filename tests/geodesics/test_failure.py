"""What cannot be reached is reported item by item, never as NaN in silence."""

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.metrics import FunctionMetric


def wall(x):
    """The plane, cut in two by a strip where there is no metric."""
    return jnp.where(jnp.abs(x[0]) < 0.3, jnp.nan, 1.0) * jnp.ones(2)


def shrinking(x):
    """The half-plane x_0 < 1, whose edge is reached in finite time."""
    return jnp.array([1.0 - x[0], 1.0])


BASE = np.array([-1.0, 0.0])


@pytest.fixture(scope="module")
def cut_plane():
    return FunctionMetric(wall, dim=2)


@pytest.fixture(scope="module")
def across(cut_plane):
    """Two targets on this side of the wall and two beyond it."""
    points = [[-2.0, 0.5], [1.0, 0.0], [-0.5, -3.0], [1.0, 5.0]]
    return land.log_map(cut_plane, BASE, points)


def test_log_map_tells_the_reachable_from_the_others(across):
    np.testing.assert_array_equal(across.converged, [True, False, True, False])
    np.testing.assert_allclose(
        across.tangents[[0, 2]], [[-1.0, 0.5], [0.5, -3.0]], atol=1e-9
    )


def test_nan_comes_only_with_a_verdict(across):
    for values in (across.tangents, across.curves, across.end_velocities):
        assert np.isfinite(values[across.converged]).all()
    assert np.isfinite(across.lengths[across.converged]).all()
    # No length is claimed for what was not found.
    assert not np.any(across.lengths[~across.converged] < 2.0)


def test_exp_map_stops_at_the_wall(cut_plane):
    result = land.exp_map(cut_plane, BASE, [[2.0, 0.0], [-2.0, 0.5]])
    np.testing.assert_array_equal(result.converged, [False, True])
    # As documented: the last point that was reached.
    np.testing.assert_allclose(result.points[0], [-0.3, 0.0], atol=1e-6)
    np.testing.assert_allclose(result.points[1], [-3.0, 0.5], atol=1e-9)


def test_exp_map_does_not_step_over_the_edge_of_a_metric():
    """The edge is at length 2/3; beyond it there is a formula but no metric."""
    metric = FunctionMetric(shrinking, dim=2)
    result = land.exp_map(metric, [0.0, 0.0], [[0.5, 0.0], [0.7, 0.0], [2.0, 0.3]])
    np.testing.assert_array_equal(result.converged, [True, False, False])
    # Closed form along the first axis: 2/3 (1 - (1 - x)^(3/2)) = length.
    expected = 1.0 - (1.0 - 1.5 * 0.5) ** (2.0 / 3.0)
    np.testing.assert_allclose(result.points[0], [expected, 0.0], atol=1e-6)
    assert np.all(result.points[:, 0] <= 1.0)


def test_too_few_iterations_are_no_convergence(
    half_ellipse_metric, half_ellipse, on_the_arc
):
    """Stopped at once: every verdict that is given all the same must be true."""
    metric = half_ellipse_metric(0.15)
    stopped = land.log_map(metric, on_the_arc, half_ellipse[:12], max_iter=1)
    full = land.log_map(metric, on_the_arc, half_ellipse[:12])
    assert full.converged.all()
    assert not stopped.converged.all()
    for values in (stopped.tangents, stopped.lengths, stopped.curves):
        assert np.isfinite(values).all()
    done = stopped.converged
    np.testing.assert_allclose(stopped.lengths[done], full.lengths[done], rtol=1e-5)
    # Not finished is longer: the shortest curve is approached from above.
    assert np.all(stopped.lengths > (1.0 - 1e-6) * full.lengths)


def test_a_tolerance_below_rounding_is_not_claimed(half_ellipse_metric, on_the_arc):
    metric = half_ellipse_metric(0.3)
    result = land.exp_map(metric, on_the_arc, [[1.0, 0.5]], tol=1e-30)
    assert not result.converged.any()
    assert np.isfinite(result.points).all()
