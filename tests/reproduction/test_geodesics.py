"""A tiny run of the opening illustration."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def found(smoke):
    return smoke("geodesics", n_points=100, sigma=0.25, n_targets=5, n_rays=6)


def test_geodesics_are_shorter_than_straight_lines(found):
    geodesic, straight = np.array([found.geodesic_lengths, found.straight_lengths])
    assert np.all(geodesic <= straight * (1.0 + 1e-6))
    # The ends of the arc see each other through empty space.
    assert geodesic[0] < 0.8 * straight[0]
    assert found.log_maps_converged == 5
    assert found.exp_maps_converged == 6


def test_geodesics_stay_near_the_data(found):
    curved, straight = found.distances_to_data
    assert curved < 0.5 * straight
    (claim,) = found.result.numbers["claims"]
    assert claim["answer"] == "holds"
