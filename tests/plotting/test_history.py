import numpy as np
import pytest

import land
from land.plotting import plot_history


def test_objective_against_steps(ax, arc):
    flat = land.metrics.EuclideanMetric(2)
    model = land.LANDMixture(2, metric=flat, n_samples=200, random_state=0).fit(arc)
    line = plot_history(model, ax)
    assert len(model.history_) > 2
    expected = [(step.iteration, step.objective) for step in model.history_]
    np.testing.assert_array_equal(line.get_xydata(), expected)
    assert ax.get_xlabel() == "step"


def test_without_a_history(ax):
    with pytest.raises(ValueError, match="call fit first"):
        plot_history(land.LAND(), ax)
