"""Laws that hold on every Riemannian manifold, on one that was learned from data."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import land
from land.metrics import LocalDiagonalMetric, Metric

# Points near the half-ellipse: angle along the arc, offset from it. Values vary, shapes
# do not, so nothing is compiled after the first example.
ARC = st.tuples(st.floats(0.05, 0.95), st.floats(-0.15, 0.15))
# A part of it, crossed on few meshes, for laws about metrics that compile anew.
SHORT_ARC = st.tuples(st.floats(0.4, 0.6), st.floats(-0.1, 0.1))
FEW = settings(max_examples=8)


def place(spot):
    """Coordinates of a spot near the arc."""
    angle, offset = np.pi * spot[0], spot[1]
    return np.array([(3.0 + offset) * np.cos(angle), (1.5 + offset) * np.sin(angle)])


@pytest.fixture(scope="module")
def metric(half_ellipse_metric):
    return half_ellipse_metric(0.3)


@FEW
@given(x=ARC, y=ARC)
def test_distance_is_symmetric(metric, x, y):
    there = land.log_map(metric, place(x), [place(y)])
    back = land.log_map(metric, place(y), [place(x)])
    assert there.converged.all()
    assert back.converged.all()
    np.testing.assert_allclose(there.lengths, back.lengths, rtol=1e-5)
    # It is one curve, walked in two directions.
    np.testing.assert_allclose(there.end_velocities, -back.tangents, atol=1e-4)


@FEW
@given(x=ARC, y=ARC, z=ARC)
def test_triangle_inequality(metric, x, y, z):
    x, y, z = place(x), place(y), place(z)
    direct, first = land.log_map(metric, x, [z, y]).lengths
    second = land.geodesic(metric, y, z).length
    assert direct <= (first + second) * (1.0 + 1e-6)


@FEW
@given(
    x=ARC,
    y=ARC,
    waves=st.integers(1, 4),
    amplitude=st.floats(0.02, 0.3),
    direction=st.floats(0.0, 2.0 * np.pi),
)
def test_a_perturbed_geodesic_is_longer(metric, x, y, waves, amplitude, direction):
    curve = land.geodesic(metric, place(x), place(y))
    times = np.linspace(0.0, 1.0, 801)
    push = amplitude * np.array([np.cos(direction), np.sin(direction)])
    bump = np.sin(waves * np.pi * times)[:, None] * push
    straightest = length_of(metric, curve(times))
    assert straightest == pytest.approx(curve.length, rel=1e-4, abs=1e-6)
    assert length_of(metric, curve(times) + bump) > straightest


def length_of(metric, points):
    """Length of a polyline by the midpoint rule."""
    steps = np.diff(points, axis=0)
    middles = 0.5 * (points[1:] + points[:-1])
    return np.sqrt(metric.inner(middles, steps, steps)).sum()


@jax.tree_util.register_pytree_node_class
class Scaled(Metric):
    """A multiple of a metric; a leaf of the pytree, so no factor is compiled in."""

    def __init__(self, metric, factor):
        self.metric, self.factor, self.dim = metric, factor, metric.dim

    @property
    def landmarks(self):
        return self.metric.landmarks

    @property
    def resolution(self):
        return self.metric.resolution

    def tensor_at(self, point):
        return self.factor * self.metric.tensor_at(point)

    def tree_flatten(self):
        return (self.metric, self.factor), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


@FEW
@given(x=SHORT_ARC, y=SHORT_ARC, factor=st.floats(1e-4, 1e4))
def test_scaling_the_metric_scales_lengths_and_leaves_tangents(metric, x, y, factor):
    plain = land.log_map(metric, place(x), [place(y)])
    scaled = land.log_map(Scaled(metric, factor), place(x), [place(y)])
    assert scaled.converged.all()
    np.testing.assert_allclose(
        scaled.lengths, np.sqrt(factor) * plain.lengths, rtol=1e-5
    )
    size = np.linalg.norm(plain.tangents) + 1e-9
    assert np.linalg.norm(scaled.tangents - plain.tangents) < 1e-5 * size


@FEW
@given(
    x=ARC,
    y=ARC,
    factor=st.floats(1e-3, 1e3),
    shift=st.tuples(st.floats(-1e5, 1e5), st.floats(-1e5, 1e5)),
)
def test_moving_and_scaling_the_data_moves_and_scales_geodesics(
    metric, x, y, factor, shift
):
    """With sigma in the units of the data and rho in their square, nothing changes."""

    def moved(points):
        return factor * (points + np.array(shift))

    other = LocalDiagonalMetric(
        moved(metric.data), sigma=factor * metric.sigma, rho=factor**2 * metric.rho
    )
    x, y = place(x), place(y)
    plain = land.log_map(metric, x, [y])
    found = land.log_map(other, moved(x), [moved(y)])
    np.testing.assert_allclose(found.lengths, plain.lengths, rtol=1e-5)
    size = np.linalg.norm(plain.tangents) + 1e-9
    assert np.linalg.norm(found.tangents / factor - plain.tangents) < 1e-5 * size
    tangents = 0.5 * plain.tangents
    ends = land.exp_map(metric, x, tangents).points
    np.testing.assert_allclose(
        land.exp_map(other, moved(x), factor * tangents).points,
        moved(ends),
        rtol=0,
        atol=1e-5 * factor,
    )


def test_order_of_rows_is_irrelevant(metric, half_ellipse):
    rng = np.random.default_rng(0)
    shuffled = LocalDiagonalMetric(
        rng.permutation(half_ellipse), metric.sigma, metric.rho
    )
    order = rng.permutation(40)
    base, targets = place((0.3, 0.0)), half_ellipse[:40]
    plain = land.log_map(metric, base, targets)
    other = land.log_map(shuffled, base, targets[order])
    np.testing.assert_allclose(other.lengths, plain.lengths[order], rtol=1e-6)
    np.testing.assert_allclose(other.tangents, plain.tangents[order], atol=1e-4)
    np.testing.assert_array_equal(other.converged, plain.converged[order])
    tangents = plain.tangents
    np.testing.assert_allclose(
        land.exp_map(shuffled, base, tangents[order]).points,
        land.exp_map(metric, base, tangents).points[order],
        atol=1e-5,
    )


def test_an_answer_does_not_depend_on_its_company(metric, half_ellipse):
    """A target alone, and the same among 300 that share its block."""
    base = place((0.3, 0.0))
    together = land.log_map(metric, base, half_ellipse)
    for row in (0, 57, 299):
        alone = land.log_map(metric, base, half_ellipse[[row]])
        np.testing.assert_allclose(alone.lengths[0], together.lengths[row], rtol=1e-9)
        np.testing.assert_allclose(alone.tangents[0], together.tangents[row], rtol=1e-6)
