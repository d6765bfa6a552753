from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from land.plotting import plot_selection

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


def test_large_is_good_for_held_out_data(ax):
    *_, ring = plot_selection(ROWS, ax, criterion="held_out")
    np.testing.assert_array_equal(ring.get_xydata(), [[2, -4.0]])


def test_results_of_select_and_data_frames(ax):
    frame = pd.DataFrame(ROWS)
    chosen = SimpleNamespace(table=frame, criterion="held_out")
    *_, ring = plot_selection(chosen, ax)
    np.testing.assert_array_equal(ring.get_xydata(), [[2, -4.0]])
    assert len(plot_selection(frame, ax)) == 3


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
