import numpy as np
import pytest

import land
from land.plotting import plot_history, plot_learning, plot_selection

ROWS = [
    {"n_components": k, "sigma": s, "bic": b, "held_out": -b}
    for (k, s, b) in [(2, 0.1, 5.0), (1, 0.1, 7.0), (1, 0.2, 6.0), (2, 0.2, 4.0)]
]


def test_a_line_for_each_sigma_and_a_ring_around_the_best(ax):
    first, second, ring = plot_selection(ROWS, ax)
    np.testing.assert_array_equal(first.get_xydata(), [[1, 7.0], [2, 5.0]])
    np.testing.assert_array_equal(second.get_xydata(), [[1, 6.0], [2, 4.0]])
    assert "0.1" in first.get_label()
    assert first.get_color() != second.get_color()
    np.testing.assert_array_equal(ring.get_xydata(), [[2, 4.0]])
    assert ax.get_ylabel() == "BIC"


def test_failed_candidates_are_left_out(ax):
    rows = [*ROWS[:2], {"n_components": 3, "sigma": np.nan, "bic": np.nan}]
    line, _ = plot_selection(rows, ax, color="black")
    assert len(line.get_xydata()) == 2
    assert line.get_color() == "black"


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "land.select"),
        ([{"bic": 1.0}], {}, "n_components"),
        (ROWS, {"criterion": "aic"}, "finite aic"),
        (ROWS, {"criterion": "other"}, "criterion must be"),
    ],
)
def test_bad_input(ax, rows, options, words):
    with pytest.raises(ValueError, match=words):
        plot_selection(rows, ax, **options)


def test_objective_against_steps(ax, arc):
    flat = land.metrics.EuclideanMetric(2)
    model = land.LANDMixture(2, metric=flat, n_samples=200, random_state=0).fit(arc)
    line = plot_history(model, ax)
    assert len(model.history_) > 2
    expected = [(step.iteration, step.objective) for step in model.history_]
    np.testing.assert_array_equal(line.get_xydata(), expected)
    assert ax.get_xlabel() == "step"


def test_learning_shows_what_was_tried_and_what_was_chosen(ax):
    rows = [
        {"sigma": np.inf, "rho": np.inf, "score": -3.0, "chosen": False},
        {"sigma": 0.2, "rho": 0.1, "score": -2.5, "chosen": False},
        {"sigma": 0.2, "rho": 0.4, "score": -2.0, "chosen": True},
        {"sigma": 0.3, "rho": 0.4, "score": -np.inf, "chosen": False},
    ]
    model = land.LAND()
    with pytest.raises(ValueError, match="call fit first"):
        plot_history(model, ax)
    with pytest.raises(ValueError, match="must have a learning_"):
        plot_learning(model, ax)
    model.learning_ = rows
    artist = plot_learning(model, ax)
    np.testing.assert_allclose(artist.get_offsets(), [[0.2, 0.1], [0.2, 0.4]])
    (ring,) = ax.lines
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (0.2, 0.4)
    assert "-3.00 (held out)" in ax.get_title()
