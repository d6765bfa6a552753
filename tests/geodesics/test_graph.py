"""First guesses through the data must cope with whatever the data look like."""

import gc
import weakref

import numpy as np
import pytest
from scipy.spatial import KDTree

import land
from land.geodesics.graph import _choose_landmarks, graph_distances
from land.metrics import LocalDiagonalMetric

RNG = np.random.default_rng(0)
CLUSTER = 0.3 * RNG.standard_normal((25, 2))

# All padded to 64 rows: one compilation serves them.
ODD_DATA = {
    "two data": [[0.0, 0.0], [1.0, 0.0]],
    "one datum many times": np.zeros((40, 2)),
    "many data twice": np.repeat(CLUSTER, 2, axis=0),
    "on a line": np.column_stack([np.linspace(0.0, 2.0, 50), np.zeros(50)]),
    "on a grid": np.stack(np.meshgrid(*[np.arange(7.0)] * 2), axis=-1).reshape(-1, 2),
    "two clusters far apart": np.concatenate(
        [CLUSTER, CLUSTER + np.array([30.0, 0.0])]
    ),
}


@pytest.mark.parametrize("data", ODD_DATA.values(), ids=ODD_DATA.keys())
def test_odd_data(data):
    data = np.asarray(data)
    metric = LocalDiagonalMetric(data, sigma=0.5, rho=0.1)
    targets = np.concatenate([data[-1:], [[0.3, 0.4]], data[:1]])
    found = land.log_map(metric, data[0], targets)
    assert found.converged.all()
    np.testing.assert_array_equal(found.tangents[2], 0.0)
    if np.ptp(data) > 20.0:
        # No neighbour of one cluster lies in the other: there is nothing but rho.
        assert found.lengths[0] == pytest.approx(30.0 / np.sqrt(0.1), rel=0.1)


def test_a_metric_is_let_go_with_its_graph():
    """Graphs are kept with their metrics, not for ever."""
    metric = LocalDiagonalMetric(ODD_DATA["many data twice"], sigma=0.5, rho=0.1)
    land.log_map(metric, [0.0, 0.0], [[0.3, 0.4]])
    alive = weakref.ref(metric)
    del metric
    gc.collect()
    assert alive() is None


def test_landmarks_are_as_dense_as_the_resolution():
    """Two thousand at random would be far apart where data extend over many sigma."""
    plane = 200.0 * np.random.default_rng(1).random((50_000, 2))
    chosen = _choose_landmarks(LocalDiagonalMetric(plane, sigma=1.0, rho=1.0))
    assert 2000 < len(chosen) <= 20_000
    distances, _ = KDTree(chosen).query(plane)
    assert distances.max() < 4.0
    # Where they extend over few, two thousand do.
    small = _choose_landmarks(LocalDiagonalMetric(plane, sigma=50.0, rho=1.0))
    assert len(small) == 2000


def test_graph_distances_are_a_little_longer_than_geodesics():
    data = land.datasets.make_half_ellipse(100, random_state=0)
    metric = LocalDiagonalMetric(data, sigma=0.5, rho=0.1)
    found = graph_distances(metric, data[:20])
    np.testing.assert_array_equal(found, found.T)
    lengths = land.log_map(metric, data[0], data[1:20]).lengths
    ratios = found[0, 1:] / lengths
    assert ratios.min() > 1.0 - 1e-3
    assert ratios.max() < 1.15
