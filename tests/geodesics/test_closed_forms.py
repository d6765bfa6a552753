"""Sphere and hyperbolic space, where every map is known, at default tolerances."""

import numpy as np
import pytest

import land

# Both curvatures, both kinds, few and many dimensions; each is compiled anew.
SPACES = [(1, 2, "diagonal"), (-1, 5, "diagonal"), (-1, 3, "sheared")]
MORE_SPACES = [(-1, 2, "diagonal"), (1, 3, "diagonal"), (-1, 5, "sheared")]
NIGHTLY = [pytest.param(space, marks=pytest.mark.nightly) for space in MORE_SPACES]


@pytest.fixture(
    scope="module",
    params=[*SPACES, *NIGHTLY],
    ids=lambda p: f"k{p[0]}-{p[1]}d-{p[2]}",
)
def space(request, space_form):
    return space_form(*request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def test_exp_arrives_where_the_formula_says(space, rng):
    base = space.draw_base(rng)
    tangents = space.draw_tangents(rng, base, 12)
    found = land.exp_map(space.metric, base, tangents)
    assert found.converged.all()
    expected = space.exp(base, tangents)
    lengths = space.norm(base, tangents)
    # Relative to the way: in coordinates, and in the metric at the point of arrival.
    assert_close(found.points, expected, np.linalg.norm(expected - base, axis=1))
    misses = np.array(
        [space.norm(y, z - y) for y, z in zip(expected, found.points, strict=True)]
    )
    assert np.max(misses / lengths) < 1e-6


def test_geodesics_keep_their_speed_and_can_be_walked_back(space, rng):
    base = space.draw_base(rng)
    tangents = space.draw_tangents(rng, base, 12)
    there = land.exp_map(space.metric, base, tangents)
    speeds = np.sqrt(
        space.metric.inner(there.points, there.velocities, there.velocities)
    )
    np.testing.assert_allclose(speeds, space.norm(base, tangents), rtol=1e-6)
    back = land.exp_map(space.metric, there.points, -there.velocities)
    assert_close(back.points, np.broadcast_to(base, back.points.shape), 1.0, 1e-5)


def test_log_gives_the_tangent_and_length_of_the_formula(space, rng):
    base = space.draw_base(rng)
    points = space.draw_points(rng, 12)
    found = land.log_map(space.metric, base, points)
    assert found.converged.all()
    expected = space.log(base, points)
    assert_close(found.tangents, expected, np.linalg.norm(expected, axis=1))
    np.testing.assert_allclose(found.lengths, space.distance(base, points), rtol=1e-6)


def test_log_curves_are_the_geodesic_at_equal_times(space, rng):
    base = space.draw_base(rng)
    points = space.draw_points(rng, 12)
    found = land.log_map(space.metric, base, points, n_segments=8)
    times = np.linspace(0.0, 1.0, 9)[1:]
    expected = space.exp(base, times[:, None] * space.log(base, points)[:, None])
    assert_close(found.curves[:, 1:], expected, 1.0, 1e-5)
    np.testing.assert_allclose(found.curves[:, 0], np.broadcast_to(base, points.shape))


def test_determinant_of_exp_is_that_of_the_formula(space, rng):
    base = space.draw_base(rng)
    tangents = space.draw_tangents(rng, base, 12)
    log_dets, signs = land.exp_log_det(space.metric, base, tangents, return_sign=True)
    expected = space.exp_det(base, tangents)
    # 1e-5 in the logarithm is 1e-5 relative in the determinant.
    np.testing.assert_allclose(log_dets, np.log(np.abs(expected)), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(signs, np.sign(expected))


def test_determinant_changes_sign_past_a_conjugate_point(space_form):
    # On the sphere all geodesics from a point meet again at length pi and 2 pi. The
    # directions are chosen so that none passes the point that has no coordinates.
    sphere = space_form(1, 2, "diagonal")
    base = np.array([0.5, 0.0])
    lengths = np.pi * np.array([0.5, 0.9, 1.1, 1.5, 1.9, 2.1, 2.5])
    tangents = lengths[:, None] * [0.0, 1.0] / sphere.norm(base, np.array([0.0, 1.0]))
    result = land.exp_jacobian(sphere.metric, base, tangents)
    assert result.converged.all()
    np.testing.assert_array_equal(result.signs, [1, 1, -1, -1, -1, 1, 1])
    expected = sphere.exp_det(base, tangents)
    np.testing.assert_allclose(result.log_dets, np.log(np.abs(expected)), atol=1e-5)
    np.testing.assert_array_equal(result.signs, np.sign(expected))


def test_even_multiplicity_hides_a_conjugate_point_from_the_sign(space_form):
    # In three dimensions two directions collapse at once: det keeps its sign.
    sphere = space_form(1, 3, "diagonal")
    base = np.array([0.5, 0.0, 0.0])
    lengths = np.pi * np.array([0.9, 1.1])
    tangents = lengths[:, None] * [0.0, 0.6, 0.8] / sphere.norm(base, np.eye(3)[1])
    log_dets, signs = land.exp_log_det(sphere.metric, base, tangents, return_sign=True)
    np.testing.assert_array_equal(signs, 1)
    expected = np.log(sphere.exp_det(base, tangents))
    np.testing.assert_allclose(log_dets, expected, atol=1e-5)


def assert_close(found, expected, scale, tolerance=1e-6):
    """Hold the distance between rows to `tolerance` times `scale`."""
    errors = np.linalg.norm(found - expected, axis=-1)
    assert np.max(errors / scale) < tolerance, np.max(errors / scale)
