import numpy as np
import pytest

import land
from land.plotting import plot_data, plot_geodesics, plot_metric


def test_shading_is_the_volume_element(ax, arc):
    metric = land.metrics.LocalDiagonalMetric(arc, 0.4, 0.1)
    shading = plot_metric(metric, ax, limits=[[-1, 1], [0, 2]], grid=5)
    x, y = np.meshgrid(np.linspace(-1, 1, 5), np.linspace(0, 2, 5))
    expected = metric.log_volume(np.stack([x, y], axis=-1))
    np.testing.assert_allclose(shading.get_array(), expected)


def test_where_to_draw_a_metric_without_landmarks(ax, arc):
    flat = land.metrics.EuclideanMetric(2)
    with pytest.raises(ValueError, match="limits"):
        plot_metric(flat, ax)
    plot_data(arc, ax)
    plot_metric(flat, ax, grid=3)


def test_data_and_curves(ax, arc):
    np.testing.assert_array_equal(plot_data(arc, ax).get_offsets(), arc)
    curves = np.stack([arc[:5], arc[5:10]])
    segments = plot_geodesics(curves, ax).get_segments()
    np.testing.assert_array_equal(np.stack(segments), curves)
