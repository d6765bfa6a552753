import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.mixture import GaussianMixture

import land
from land.plotting import plot_pairs, plot_view3d


@pytest.fixture(scope="module")
def sheet():
    return land.datasets.make_s_curve(60, random_state=0)


@pytest.fixture(scope="module")
def sheet_model(sheet):
    options = {"sigma": 0.8, "rho": 0.5, "method": "least_squares"}
    return land.LAND(n_samples=100, random_state=0, **options).fit(sheet)


@pytest.fixture(scope="module")
def normals(sheet):
    return GaussianMixture(2, covariance_type="diag", random_state=0).fit(sheet)


def test_a_panel_for_each_pair(sheet, sheet_model):
    panels = plot_pairs(sheet_model, sheet, Figure(), names=["a", "b", "c"])
    for ax, pair in zip(panels, ([0, 1], [0, 2], [1, 2]), strict=True):
        points, mean = ax.collections
        np.testing.assert_array_equal(points.get_offsets(), sheet[:, pair])
        np.testing.assert_allclose(mean.get_offsets()[0], sheet_model.mean_[pair])
        assert len(ax.lines) == 1
        assert ax.get_xlabel() + ax.get_ylabel() == "".join("abc"[d] for d in pair)


def test_a_view_of_space(sheet, sheet_model, normals):
    ax = Figure().add_subplot(projection="3d")
    assert plot_view3d(sheet_model, sheet, ax, dimensions=(0, 2, 1)) is ax
    assert len(ax.lines) == 3
    assert len(ax.collections) == 2
    ax = plot_view3d(normals, sheet, Figure().add_subplot(projection="3d"), n_std=1.5)
    assert len(ax.lines) == 6
    (legend,) = ax.figure.legends
    assert "1.5 standard deviations" in legend.get_title().get_text()
    # Principal ellipses lie on the ellipsoid.
    inverse = np.diag(1.0 / normals.covariances_[0])
    for line in ax.lines[:3]:
        steps = np.stack(line.get_data_3d(), axis=1) - normals.means_[0]
        radii = np.einsum("ni,ij,nj->n", steps, inverse, steps)
        np.testing.assert_allclose(np.sqrt(radii), 1.5)


def test_bad_input(ax, sheet, sheet_model):
    with pytest.raises(ValueError, match="projection"):
        plot_view3d(sheet_model, sheet, ax)
    space = Figure().add_subplot(projection="3d")
    with pytest.raises(ValueError, match="different columns"):
        plot_view3d(sheet_model, sheet, space, dimensions=(0, 1, 1))
    with pytest.raises(ValueError, match="must be three"):
        plot_view3d(sheet_model, sheet, space, dimensions=(0, 1))
    with pytest.raises(ValueError, match="names must have 3"):
        plot_pairs(sheet_model, sheet, Figure(), names=["a"])
    with pytest.raises(ValueError, match="must be fitted"):
        plot_pairs(land.LAND(), sheet, Figure())
    wide = np.random.default_rng(0).normal(size=(30, 9))
    with pytest.raises(ValueError, match="2 to 8 of 9 columns"):
        plot_pairs(GaussianMixture().fit(wide), wide, Figure())
