"""Matrices of geodesic distances against closed forms and single log maps."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import land
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric


def test_flat_space_has_euclidean_distances(cloud):
    flat = EuclideanMetric(2)
    found = land.pairwise_distances(flat, cloud, cloud[:7] + 1.0)
    np.testing.assert_allclose(found, cdist(cloud, cloud[:7] + 1.0), atol=1e-12)
    found = land.pairwise_distances(flat, cloud)
    np.testing.assert_allclose(found, cdist(cloud, cloud), atol=1e-12)


def test_hyperbolic_distances():
    poincare = FunctionMetric(lambda x: 4.0 / (1.0 - x @ x) ** 2 + 0.0 * x, dim=2)
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 2))
    room = 1.0 - np.sum(points**2, axis=1)
    squares = cdist(points, points, "sqeuclidean")
    truth = np.arccosh(1.0 + 2.0 * squares / np.outer(room, room))
    found = land.pairwise_distances(poincare, points)
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_each_pair_is_computed_once(arc, monkeypatch):
    points, computed = arc[:12], []

    def counting(metric, starts, ends, **options):
        computed.append(len(starts))
        return land.log_map(metric, starts, ends, **options)

    monkeypatch.setattr("land.estimators.scoring.log_map", counting)
    metric = LocalDiagonalMetric(arc, sigma=0.8, rho=0.5)
    found = land.pairwise_distances(metric, points)
    assert computed == [12 * 11 // 2]
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diagonal(found), 0.0)
    logs = land.log_map(metric, points[3], points)
    np.testing.assert_allclose(found[3], logs.lengths, rtol=1e-5)
    both_ways = land.pairwise_distances(metric, points, points)
    np.testing.assert_allclose(found, both_ways, rtol=1e-5)


def test_what_failed_is_nan(arc, monkeypatch):
    monkeypatch.setattr(
        "land.estimators.scoring.log_map",
        lambda *args, **options: land.log_map(*args, max_iter=1, **options),
    )
    metric = LocalDiagonalMetric(arc, sigma=0.3, rho=0.01)
    with pytest.warns(
        RuntimeWarning, match=r"of 10 points did not converge: their distances"
    ):
        found = land.pairwise_distances(metric, arc[:5])
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), "points must have 2 axes"),
        (([[1.0, 2.0, 3.0]],), "points must have 2 coordinates"),
        (([[1.0, 2.0]], [[1.0]]), "others must have 2 coordinates"),
    ],
)
def test_bad_points(arguments, message):
    with pytest.raises(ValueError, match=message):
        land.pairwise_distances(EuclideanMetric(2), *arguments)
