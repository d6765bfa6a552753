"""Metrics of decoders: lengths are those of the images."""

import jax.numpy as jnp
import numpy as np
import pytest

import land
from land.metrics import PullbackMetric

MATRIX = np.random.default_rng(0).standard_normal((5, 2))


def linear(x):
    return MATRIX @ x


def polar(x):
    return x[0] * jnp.array([jnp.cos(x[1]), jnp.sin(x[1])])


def test_a_linear_decoder_has_a_constant_tensor():
    metric = PullbackMetric(linear, dim=2)
    assert repr(metric) == "PullbackMetric(linear, dim=2)"
    np.testing.assert_allclose(metric.tensor([3.0, 4.0]), MATRIX.T @ MATRIX, rtol=1e-14)


def test_polar_coordinates_are_the_plane():
    """Distances are Euclidean: the law of cosines."""
    metric = PullbackMetric(polar, dim=2)
    logs = land.log_map(metric, [1.0, 0.2], [[1.0, 1.0], [2.0, 1.5], [0.7, -0.4]])
    ends = np.array([polar(np.array(x)) for x in ([1.0, 1.0], [2.0, 1.5], [0.7, -0.4])])
    expected = np.linalg.norm(ends - polar(np.array([1.0, 0.2])), axis=1)
    assert logs.converged.all()
    np.testing.assert_allclose(logs.lengths, expected, rtol=1e-6)
    back = land.exp_map(metric, [1.0, 0.2], logs.tangents).points
    np.testing.assert_allclose(back, [[1.0, 1.0], [2.0, 1.5], [0.7, -0.4]], atol=1e-5)


def test_uncertainty_adds_its_own_part():
    """It rises away from the circle: geodesics then go round, and not across."""

    def deviation(x):
        return 3.0 * jnp.array([(x @ x - 1.0) ** 2])

    ends = [1.0, 0.0], [-1.0, 0.01]
    plain, other = (
        PullbackMetric(lambda x: x, 2, uncertainty=each) for each in (None, deviation)
    )
    point = np.array([0.3, 0.4])
    slope = 12.0 * (point @ point - 1.0) * point
    expected = np.eye(2) + np.outer(slope, slope)
    np.testing.assert_allclose(other.tensor(point), expected, rtol=1e-12)
    assert land.geodesic(plain, *ends).length == pytest.approx(2.0, abs=1e-3)
    around = land.geodesic(other, *ends)
    assert around.converged
    assert 2.5 < around.length < np.pi  # across it would be above 6


def test_equal_decoders_share_a_compilation(count_compilations):
    counts = count_compilations("""
from math import pi
def decoder(x):
    return pi * x
for k in range(2):
    metric = land.metrics.PullbackMetric(decoder, 2)
    counts[k] = count(metric.host_tensors, np.zeros((5, 2)))
""")
    first, second = (sum(each.values()) for each in counts.values())
    assert first >= 1
    assert second == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"decoder": 3, "dim": 2}, "decoder must be callable, got int"),
        ({"decoder": linear, "dim": 2, "uncertainty": 1}, "uncertainty must be call"),
        ({"decoder": np.linalg.norm, "dim": 0}, "dim"),
        ({"decoder": linear, "dim": 3}, "could not be traced"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        PullbackMetric(**arguments)
