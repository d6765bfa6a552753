"""What `land.exp_map` promises besides the right point."""

import numpy as np
import pytest

import land
from land.geodesics.dormand_prince import FIFTH, STAGES, TABLEAU, THIRD
from land.metrics import EuclideanMetric


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@pytest.fixture(scope="module")
def tangents():
    return 0.5 * np.random.default_rng(0).standard_normal((6, 2))


def test_flat_space_has_straight_lines():
    tangents = np.random.default_rng(1).standard_normal((5, 3))
    base = np.array([1.0, -2.0, 1e6])
    result = land.exp_map(EuclideanMetric(3), base, tangents)
    np.testing.assert_allclose(result.points, base + tangents, rtol=1e-14)
    np.testing.assert_allclose(result.velocities, tangents, rtol=1e-14)
    assert result.converged.all()


def test_one_solve_gives_the_whole_ray(metric, on_the_arc, tangents):
    times = np.array([0.0, 0.1, 1.0 / 3.0, 0.77, 1.0])
    whole = land.exp_map(metric, on_the_arc, tangents, times=times)
    assert whole.rays.shape == (6, 5, 2)
    for index, time in enumerate(times):
        part = land.exp_map(metric, on_the_arc, time * tangents)
        np.testing.assert_allclose(whole.rays[:, index], part.points, atol=1e-6)
    np.testing.assert_allclose(whole.rays[:, -1], whole.points, rtol=1e-13)
    # Asking for times does not change the end, and they need no order.
    plain = land.exp_map(metric, on_the_arc, tangents)
    assert plain.rays is None
    np.testing.assert_allclose(whole.points, plain.points, rtol=1e-12)
    order = [3, 0, 4, 2, 2]
    other = land.exp_map(metric, on_the_arc, tangents, times=times[order])
    np.testing.assert_allclose(other.rays, whole.rays[:, order], atol=1e-12)


def test_zero_tangent_stays(metric, on_the_arc, tangents):
    mixed = np.concatenate([np.zeros((1, 2)), tangents[:5]])
    result = land.exp_map(metric, on_the_arc, mixed, times=[0.0, 0.1, 0.3, 0.6, 1.0])
    np.testing.assert_array_equal(result.points[0], on_the_arc)
    np.testing.assert_array_equal(result.velocities[0], 0.0)
    np.testing.assert_array_equal(result.rays[0], np.tile(on_the_arc, (5, 1)))
    assert result.converged.all()


def test_each_tangent_may_have_its_own_base(metric, half_ellipse, tangents):
    bases = half_ellipse[:6]
    together = land.exp_map(metric, bases, tangents)
    for base, tangent, point in zip(bases, tangents, together.points, strict=True):
        alone = land.exp_map(metric, base, [tangent])
        np.testing.assert_allclose(alone.points[0], point, rtol=1e-10)


def test_leading_axes_are_kept(metric, on_the_arc, tangents):
    flat = land.exp_map(metric, on_the_arc, tangents, times=[0.0, 0.1, 0.3, 0.6, 1.0])
    folded = land.exp_map(
        metric, on_the_arc, tangents.reshape(2, 3, 2), times=[0.0, 0.1, 0.3, 0.6, 1.0]
    )
    assert folded.points.shape == folded.velocities.shape == (2, 3, 2)
    assert folded.converged.shape == folded.n_steps.shape == (2, 3)
    assert folded.rays.shape == (2, 3, 5, 2)
    np.testing.assert_array_equal(folded.points.reshape(6, 2), flat.points)
    single = land.exp_map(metric, on_the_arc, tangents[0])
    assert single.points.shape == (2,)
    assert single.converged.shape == ()
    nothing = land.exp_map(metric, on_the_arc, np.empty((0, 2)))
    assert nothing.points.shape == (0, 2)
    assert nothing.converged.shape == (0,)


def test_a_tighter_tolerance_gives_a_smaller_error(space_form):
    space = space_form(-1, 2, "diagonal")
    rng = np.random.default_rng(2)
    base = space.draw_base(rng)
    tangents = space.draw_tangents(rng, base, 12, longest=4.0)
    expected = space.exp(base, tangents)
    errors = []
    for tol in (1e-2, 1e-5, 1e-8, 1e-11):
        result = land.exp_map(space.metric, base, tangents, tol=tol)
        assert result.converged.all()
        errors.append(np.abs(result.points - expected).max())
    assert np.all(np.diff(errors) < 0)
    assert errors[0] < 1e-1
    assert errors[-1] < 1e-10


def test_what_cannot_be_finished_is_reported(metric, on_the_arc, tangents):
    """Too few steps: converged is False and the point is where it had got to."""
    result = land.exp_map(metric, on_the_arc, 20.0 * tangents, max_steps=3)
    assert not result.converged.any()
    assert np.isfinite(result.points).all()
    assert np.all(result.n_steps <= 3)


def test_more_items_than_slots(metric, on_the_arc):
    """Items beyond a block wait for a slot; none is lost or exchanged."""
    many = 0.3 * np.random.default_rng(3).standard_normal((1500, 2))
    # Lengths differ, so slots come free at different times.
    many *= np.linspace(0.0, 2.0, 1500)[:, None]
    result = land.exp_map(metric, on_the_arc, many)
    assert result.converged.all()
    rows = np.random.default_rng(4).choice(1500, 40, replace=False)
    few = land.exp_map(metric, on_the_arc, many[rows])
    np.testing.assert_allclose(result.points[rows], few.points, atol=1e-7)


def test_coefficients_are_of_their_orders():
    """They integrate powers of time; errors of higher order vanish for lower ones."""
    nodes = TABLEAU[: STAGES + 1].sum(axis=1)
    powers = nodes ** np.arange(8)[:, None]
    exact = 1.0 / np.arange(1.0, 9.0)
    found = powers @ TABLEAU[STAGES, : STAGES + 1]
    np.testing.assert_allclose(found, exact, rtol=1e-13)
    np.testing.assert_allclose(powers[:5] @ FIFTH, 0.0, atol=1e-13)
    np.testing.assert_allclose(powers[:3] @ THIRD, 0.0, atol=1e-13)
    # Stages are right to second order, but for the first two.
    stages = TABLEAU[2 : STAGES + 1, : STAGES + 1] @ nodes
    np.testing.assert_allclose(stages, 0.5 * nodes[2:] ** 2, rtol=1e-12)
