"""DExp: against differences of Exp, at its limits, and where it fails."""

import numpy as np
import pytest

import land


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@pytest.fixture(scope="module")
def tangents():
    return 0.5 * np.random.default_rng(0).standard_normal((6, 2))


def test_zero_tangent_has_the_identity(metric, on_the_arc):
    """Also where the metric curves: DExp(0) = I."""
    result = land.exp_jacobian(metric, on_the_arc, [[0.0, 0.0], [1e-8, 1e-8]])
    np.testing.assert_allclose(
        result.jacobians, np.broadcast_to(np.eye(2), (2, 2, 2)), atol=1e-6
    )
    np.testing.assert_allclose(result.log_dets, 0.0, atol=1e-6)


def test_jacobian_is_the_derivative_of_exp(metric, on_the_arc, tangents):
    result = land.exp_jacobian(metric, on_the_arc, tangents)
    assert result.converged.all()
    slopes = []
    for step in 1e-5 * np.eye(2):
        after = land.exp_map(metric, on_the_arc, tangents + step, tol=1e-11).points
        before = land.exp_map(metric, on_the_arc, tangents - step, tol=1e-11).points
        slopes.append((after - before) / 2e-5)
    expected = np.stack(slopes, axis=-1)
    sizes = np.linalg.norm(expected, axis=(1, 2))
    errors = np.linalg.norm(result.jacobians - expected, axis=(1, 2))
    assert np.max(errors / sizes) < 1e-5
    np.testing.assert_allclose(
        result.points, land.exp_map(metric, on_the_arc, tangents).points, atol=1e-6
    )


def test_log_det_is_that_of_the_jacobian(metric, on_the_arc, tangents):
    result = land.exp_jacobian(metric, on_the_arc, tangents)
    dets = np.linalg.det(result.jacobians)
    np.testing.assert_allclose(result.signs * np.exp(result.log_dets), dets, rtol=1e-10)
    alone = land.exp_log_det(metric, on_the_arc, tangents)
    pair = land.exp_log_det(metric, on_the_arc, tangents, return_sign=True)
    np.testing.assert_array_equal(alone, result.log_dets)
    np.testing.assert_array_equal(pair, [result.log_dets, result.signs])


def test_leading_axes_and_bases_are_kept(metric, half_ellipse, tangents):
    bases = half_ellipse[:6]
    flat = land.exp_jacobian(metric, bases, tangents)
    folded = land.exp_jacobian(
        metric, bases.reshape(3, 2, 2), tangents.reshape(3, 2, 2)
    )
    assert folded.jacobians.shape == (3, 2, 2, 2)
    assert folded.log_dets.shape == folded.signs.shape == (3, 2)
    assert folded.points.shape == (3, 2, 2)
    np.testing.assert_array_equal(folded.log_dets.reshape(6), flat.log_dets)
    assert land.exp_log_det(metric, bases[0], tangents[0]).shape == ()
    assert land.exp_log_det(metric, bases[0], np.empty((0, 2))).shape == (0,)


def test_failures_are_counted_and_come_back_as_nan(metric, on_the_arc, tangents):
    mixed = np.concatenate([20.0 * tangents[:2], np.zeros((4, 2))])
    with pytest.warns(RuntimeWarning, match="2 of 6 integrations"):
        log_dets = land.exp_log_det(metric, on_the_arc, mixed, max_steps=3)
    np.testing.assert_array_equal(np.isnan(log_dets), [1, 1, 0, 0, 0, 0])
    result = land.exp_jacobian(metric, on_the_arc, mixed, max_steps=3)
    np.testing.assert_array_equal(result.converged, [0, 0, 1, 1, 1, 1])
