import numpy as np
import pytest

import land
from land.plotting import plot_history, plot_learning, plot_selection

ROWS = [
    {"model": "LAND", "n_components": k, "metric": metric, "reference": "lebesgue"}
    | {"round": n, "held_out": value, "bic": np.nan, "chosen": value == -1.0}
    for k, metric, n, value in [
        (2, "flat", 2, -3.0),
        (1, "flat", 2, -4.0),
        (2, "full", 2, -1.0),
        (1, "full", 1, -5.0),
        (3, "full", 1, np.nan),
    ]
]
RIVAL = {"model": "kernel density", "n_components": None, "held_out": -2.0}


def test_a_line_for_each_metric_and_rival_and_a_ring_around_the_choice(ax):
    flat, full, rival, ring = plot_selection([*ROWS, RIVAL], ax)
    np.testing.assert_array_equal(flat.get_xydata(), [[1, -4.0], [2, -3.0]])
    np.testing.assert_array_equal(full.get_xydata(), [[2, -1.0]])
    assert (flat.get_label(), full.get_label()) == ("flat", "full, lebesgue")
    assert flat.get_color() != full.get_color()
    assert set(rival.get_ydata()) == {-2.0}
    assert rival.get_label() == "kernel density"
    np.testing.assert_array_equal(ring.get_xydata(), [[2, -1.0]])
    assert ax.get_ylabel() == "held-out log density"


def test_a_selection_can_be_drawn(ax):
    X = np.random.default_rng(0).normal(size=(40, 2))
    found = land.select(X, (1, 2), "flat", purpose="clusters", random_state=0)
    line, ring = plot_selection(found, ax, color="black")
    assert "Rand" in ax.get_ylabel()
    assert line.get_color() == "black"
    assert ring.get_xdata() == [1]


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([], {}, "land.select"),
        ([{"bic": 1.0}], {}, "n_components"),
        ([RIVAL], {}, "no row with a finite held_out"),
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
