"""Confidence regions as they are drawn."""

import numpy as np
import pytest

import land
from land import plotting
from land.metrics import EuclideanMetric


def test_regions_are_curves_around_the_mean(ax):
    data = np.random.default_rng(0).normal(size=(40, 2))
    model = land.LAND(metric=EuclideanMetric(2)).fit(data)
    found = land.inference.bootstrap(model, data, 50, random_state=0)
    narrow, wide, dot = plotting.plot_mean_region(
        found, ax, level=[0.5, 0.9], linewidth=3
    )
    np.testing.assert_allclose(narrow.get_xydata()[0], found.mean_region(0.5)[0])
    np.testing.assert_allclose(wide.get_xydata()[0], found.mean_region(0.9)[0])
    assert np.ptp(wide.get_xdata()) > np.ptp(narrow.get_xdata())
    np.testing.assert_allclose(dot.get_xydata(), [model.mean_])
    assert narrow.get_linewidth() == 3
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        plotting.plot_mean_region(found, ax, level=2.0)
