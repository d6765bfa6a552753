"""Columns of data frames name the axes; small figures in notebooks."""

import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from matplotlib.figure import Figure

import land
from land import plotting

FAST = {"method": "least_squares", "n_samples": 200, "random_state": 0}


@pytest.fixture(scope="module")
def frame(arc):
    return pd.DataFrame(arc, columns=["length / $", "<width>"])


@pytest.fixture(scope="module")
def named(frame):
    return land.LANDMixture(2, sigma=0.4, rho=0.1, **FAST).fit(frame)


def _labels(ax):
    return [ax.get_xlabel(), ax.get_ylabel()]


@pytest.mark.parametrize(
    "draw",
    [
        lambda model, frame, ax: plotting.plot_data(frame, ax),
        lambda model, frame, ax: plotting.plot_density(model, ax, grid=12),
        lambda model, frame, ax: plotting.plot_means(model, ax),
        lambda model, frame, ax: plotting.plot_covariance(model, ax),
        lambda model, frame, ax: plotting.plot_responsibilities(model, frame, ax),
    ],
)
def test_columns_name_the_axes(draw, named, frame, arc, ax):
    draw(named, frame, ax)
    assert _labels(ax) == list(frame)
    assert not ax.xaxis.label.get_parse_math()
    ax.set_xlabel("mine")
    draw(named, frame, ax)
    assert _labels(ax) == ["mine", "<width>"]


def test_a_report_of_a_data_frame(named, frame, tmp_path):
    land.report(named, tmp_path / "page.html", frame)
    assert "<td>&lt;width&gt;</td>" in (tmp_path / "page.html").read_text()


def test_arrays_name_nothing(arc, ax):
    plotting.plot_data(arc, ax)
    assert _labels(ax) == ["", ""]


def test_panels_and_space(frame):
    three = frame.assign(third=frame.sum(axis=1))
    model = land.LAND(metric=land.metrics.EuclideanMetric(3), **FAST).fit(three)
    panels = plotting.plot_pairs(model, three, Figure())
    assert _labels(panels[2]) == ["<width>", "third"]
    ax = Figure().add_subplot(projection="3d")
    plotting.plot_view3d(model, three, ax, dimensions=(2, 0, 1))
    assert [*_labels(ax), ax.get_zlabel()] == ["third", "length / $", "<width>"]


def test_notebooks_show_a_figure(named, arc):
    shown = named._repr_html_()
    assert named._repr_mimebundle_()["text/html"].endswith(shown[-1000:])
    assert named._repr_mimebundle_()["text/html"].count("<figure") == 1
    assert "LANDMixture" in shown  # what scikit-learn shows
    figure = shown[shown.rindex("<figure") :]
    assert figure.count("<polygon") == 2
    assert figure.count("<circle") == len(arc) + 2
    assert "length / $ and &lt;width&gt;: data, means" in figure
    assert "<width>" not in figure
    assert len(figure) < 10_000
    # Places in the picture are those of the data, but for scale and direction.
    places = np.array(re.findall(r'cx="(.*?)" cy="(.*?)" r="1.5"', figure), float)
    for d, sign in ((0, 1.0), (1, -1.0)):
        assert np.corrcoef(places[:, d], arc[:, d])[0, 1] == pytest.approx(sign)
    with sklearn.config_context(display="text"):
        assert "text/html" not in named._repr_mimebundle_()


def test_other_models_have_no_figure(arc):
    assert "<figure" not in land.LAND()._repr_html_()
    one = land.LAND(metric=land.metrics.EuclideanMetric(1), **FAST).fit(arc[:, :1])
    assert "<figure" not in one._repr_html_()
    flat = land.LAND(metric=land.metrics.EuclideanMetric(2), **FAST).fit(arc)
    assert flat._repr_html_().count("<circle") == 2  # the mean, twice
