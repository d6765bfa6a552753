"""What `land.log_map` promises besides the right tangent."""

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.geodesics import LogMap
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@pytest.fixture(scope="module")
def found(metric, on_the_arc, half_ellipse):
    return land.log_map(metric, on_the_arc, half_ellipse[:6])


def test_flat_space_has_straight_lines():
    points = np.random.default_rng(1).standard_normal((5, 3))
    base = np.array([1.0, -2.0, 3.0])
    result = land.log_map(EuclideanMetric(3), base, points, n_segments=4)
    np.testing.assert_allclose(result.tangents, points - base, rtol=1e-9)
    np.testing.assert_allclose(
        result.lengths, np.linalg.norm(points - base, axis=1), rtol=1e-9
    )
    times = np.linspace(0.0, 1.0, 5)[:, None]
    np.testing.assert_allclose(
        result.curves, base + times * (points - base)[:, None], atol=1e-9
    )
    assert result.converged.all()


def test_base_among_the_targets_gives_a_zero_tangent(metric, half_ellipse):
    base = half_ellipse[3]
    result = land.log_map(metric, base, half_ellipse[:6])
    np.testing.assert_array_equal(result.tangents[3], 0.0)
    np.testing.assert_array_equal(result.end_velocities[3], 0.0)
    np.testing.assert_array_equal(result.curves[3], np.tile(base, (33, 1)))
    assert result.lengths[3] == 0.0
    assert result.converged.all()
    assert np.all(result.lengths[[0, 1, 2, 4, 5]] > 0.0)


@pytest.mark.parametrize("gap", [1e-3, 1e-12])
def test_close_targets_are_reached_along_the_straight_line(metric, on_the_arc, gap):
    way = gap * np.array([[0.6, 0.8], [-0.8, 0.6]])
    # The gap as it is after rounding.
    way = (on_the_arc + way) - on_the_arc
    result = land.log_map(metric, on_the_arc, on_the_arc + way)
    assert result.converged.all()
    lengths = np.sqrt(metric.inner(on_the_arc, way, way))
    # The metric changes over sigma = 0.3, so both agree up to gap / sigma.
    tolerance = 10 * gap + 1e-6
    np.testing.assert_allclose(result.lengths, lengths, rtol=tolerance)
    errors = np.linalg.norm(result.tangents - way, axis=1)
    assert np.max(errors) < tolerance * np.linalg.norm(way, axis=1).max()


def test_each_target_may_have_its_own_base(metric, half_ellipse):
    bases, points = half_ellipse[:6], half_ellipse[6:12]
    together = land.log_map(metric, bases, points)
    assert together.converged.all()
    for row in range(6):
        alone = land.log_map(metric, bases[row], points[[row]])
        np.testing.assert_allclose(
            alone.tangents[0], together.tangents[row], rtol=1e-6, atol=1e-8
        )


def test_leading_axes_are_kept(metric, on_the_arc, half_ellipse, found):
    folded = land.log_map(metric, on_the_arc, half_ellipse[:6].reshape(2, 3, 2))
    assert folded.tangents.shape == folded.end_velocities.shape == (2, 3, 2)
    assert folded.lengths.shape == folded.converged.shape == (2, 3)
    assert folded.curves.shape == (2, 3, 33, 2)
    np.testing.assert_allclose(folded.tangents.reshape(6, 2), found.tangents, rtol=1e-9)
    nothing = land.log_map(metric, on_the_arc, np.empty((0, 2)))
    assert nothing.tangents.shape == (0, 2)
    assert nothing.curves.shape == (0, 33, 2)
    single = land.log_map(metric, on_the_arc, half_ellipse[0])
    assert single.tangents.shape == (2,)
    assert single.lengths.shape == ()


def test_jax_arrays_come_in_and_numpy_arrays_go_out(metric, on_the_arc, half_ellipse):
    result = land.log_map(
        metric, jnp.asarray(on_the_arc), jnp.asarray(half_ellipse[:6])
    )
    for array in (result.tangents, result.lengths, result.curves, result.converged):
        assert type(array) is np.ndarray
    assert result.tangents.dtype == result.lengths.dtype == np.float64
    assert result.converged.all()


def test_a_tighter_tolerance_gives_a_smaller_error(space_form):
    space = space_form(1, 2, "diagonal")
    rng = np.random.default_rng(2)
    base, points = space.draw_base(rng), space.draw_points(rng, 12)
    expected = space.log(base, points)
    errors = []
    for tol in (1e-2, 1e-5, 1e-9):
        result = land.log_map(space.metric, base, points, tol=tol)
        assert result.converged.all()
        misses = np.linalg.norm(result.tangents - expected, axis=1)
        errors.append(np.max(misses / np.linalg.norm(expected, axis=1)))
        assert errors[-1] < 5 * tol
    assert errors[-1] < 1e-3 * errors[0]


def test_landmarks_lead_around_an_obstacle():
    """A hill on the straight line: landmarks beside it show the way around."""

    def hill(x):
        return (1.0 + 400.0 * jnp.exp(-4.0 * (x @ x))) * jnp.ones(2)

    angles = np.linspace(0.0, np.pi, 40)
    ridge = 2.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    start, end = ridge[0], ridge[-1]
    guided = land.geodesic(FunctionMetric(hill, 2, landmarks=ridge), start, end)
    assert guided.converged
    assert guided(0.5)[1] > 0.5
    # Half of the circle is a way around; the shortest is no longer.
    assert 4.0 < guided.length < 2.0 * np.pi


def test_an_earlier_result_is_a_first_guess():
    data = land.datasets.make_half_ellipse(80, random_state=0)
    metric = land.metrics.LocalDiagonalMetric(data, sigma=0.3, rho=1e-3)
    base = np.array([0.0, 1.45])
    before = land.log_map(metric, base, data)
    moved = np.array([0.05, 1.46])
    after = land.log_map(metric, moved, data, curves=before)
    fresh = land.log_map(metric, moved, data)
    assert after.converged.all()
    assert after.n_iter.sum() < 0.8 * fresh.n_iter.sum()
    np.testing.assert_allclose(after.lengths, fresh.lengths, rtol=1e-5)
    np.testing.assert_allclose(after.tangents, fresh.tangents, rtol=1e-3, atol=1e-4)


def test_results_can_be_cut_and_joined():
    flat = land.metrics.EuclideanMetric(2)
    points = np.random.default_rng(0).normal(size=(6, 2))
    whole = land.log_map(flat, [0.0, 0.0], points)
    parts = [whole.take(np.array([4, 1])), whole.take(np.array([0]))]
    joined = LogMap.concatenate(parts)
    rows = np.array([4, 1, 0])
    np.testing.assert_array_equal(joined.tangents, whole.tangents[rows])
    again = land.log_map(flat, [0.1, 0.0], points[rows], curves=joined)
    np.testing.assert_allclose(again.tangents, points[rows] - [0.1, 0.0], atol=1e-9)
    # A datum at the base was at rest: it has no curve to start from.
    still = land.log_map(flat, points[0], points)
    onward = land.log_map(flat, [0.5, 0.5], points, curves=still)
    assert onward.converged.all()
    np.testing.assert_allclose(onward.tangents, points - [0.5, 0.5], atol=1e-9)
    with pytest.raises(ValueError, match="curves must be a result"):
        land.log_map(flat, [0.0, 0.0], points, curves=joined)


def test_alone_as_in_company():
    """These were farther alone than in one call with all of the data, by up to 5 %."""
    data = land.datasets.make_spiral(150, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.2, rho=1e-4)
    base = data[121]
    together = land.log_map(metric, base, data).lengths
    for row in (0, 22, 23, 29, 137):
        alone = land.geodesic(metric, base, data[row]).length
        assert alone == pytest.approx(together[row], rel=1e-3)


def test_order_does_not_matter():
    data, _ = land.datasets.make_two_moons(60, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.2, rho=1e-3)
    order = np.random.default_rng(0).permutation(60)
    one = land.log_map(metric, data[0], data).lengths
    other = land.log_map(metric, data[0], data[order]).lengths
    np.testing.assert_allclose(other, one[order], rtol=1e-3)
