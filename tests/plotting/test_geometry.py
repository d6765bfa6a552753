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


def test_geodesics_of_the_library(ax, arc):
    """A geodesic, several of them, and what a log map returns."""
    metric = land.metrics.LocalDiagonalMetric(arc, 0.4, 0.1)
    one = land.geodesic(metric, arc[0], arc[5])
    (curve,) = plot_geodesics(one, ax).get_segments()
    np.testing.assert_allclose(curve[[0, -1]], [arc[0], arc[5]])
    np.testing.assert_allclose(curve[len(curve) // 2], one(0.5))
    assert len(plot_geodesics([one, one], ax).get_segments()) == 2
    logs = land.log_map(metric, arc[0], arc[1:4])
    segments = plot_geodesics(logs, ax).get_segments()
    np.testing.assert_array_equal(np.stack(segments), logs.curves)


def test_a_metric_in_space_has_no_plane(ax):
    with pytest.raises(ValueError, match="2 dimensions to be drawn, got 3"):
        plot_metric(land.metrics.EuclideanMetric(3), ax)
