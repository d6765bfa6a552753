import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.mixture import GaussianMixture

import land
from land.metrics import EuclideanMetric
from land.plotting import plot_pairs, plot_view3d
from land.plotting.space import pair_ellipse, principal_ellipses

SIGMA = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, -0.2], [0.3, -0.2, 0.5]])
FLAT = EuclideanMetric(3)


@pytest.fixture(scope="module")
def sheet():
    return land.datasets.make_s_curve(60, random_state=0)


@pytest.fixture(scope="module")
def sheet_model(sheet):
    options = {"sigma": 0.8, "rho": 0.5, "method": "least_squares"}
    return land.LAND(n_samples=100, random_state=0, **options).fit(sheet)


def test_pairs_below_the_diagonal(sheet, sheet_model):
    panels = plot_pairs(sheet_model, sheet, Figure(), names=["a", "b", "c"])
    assert panels.shape == (2, 2)
    assert panels[0, 1] is None
    for (row, column), ax in np.ndenumerate(panels):
        if ax is None:
            continue
        points, mean = ax.collections
        pair = [column, row + 1]
        drawn = np.sort(points.get_offsets(), axis=0)
        np.testing.assert_allclose(drawn, np.sort(sheet[:, pair], axis=0))
        np.testing.assert_allclose(mean.get_offsets()[0], sheet_model.mean_[pair])
        assert len(ax.lines) == 1
    assert panels[1, 0].get_xlabel() == "a"
    assert panels[1, 0].get_ylabel() == "c"
    assert panels[0, 0].get_xlabel() == ""


def test_dense_points_are_dark_and_come_last(sheet, sheet_model):
    panels = plot_pairs(sheet_model, sheet, Figure())
    points = panels[0, 0].collections[0]
    shades = points.get_array()
    assert np.all(np.diff(shades) >= 0.0)
    density = sheet_model.score_samples(sheet, measure="riemannian")
    densest = sheet[np.argmax(density), :2]
    np.testing.assert_allclose(points.get_offsets()[-1], densest)


def test_ellipses_of_pairs_are_outlines_where_space_is_flat():
    mean = np.array([1.0, 2.0, 3.0])
    curve = pair_ellipse(FLAT, mean, SIGMA, [0, 2], 2.0) - mean
    block = np.linalg.inv(SIGMA[np.ix_([0, 2], [0, 2])])
    radii = np.einsum("ni,ij,nj->n", curve[:, [0, 2]], block, curve[:, [0, 2]])
    np.testing.assert_allclose(np.sqrt(radii), 2.0)
    # They lie on the ellipsoid itself: nothing of it reaches farther in this plane.
    inverse = np.linalg.inv(SIGMA)
    full = np.einsum("ni,ij,nj->n", curve, inverse, curve)
    np.testing.assert_allclose(np.sqrt(full), 2.0)
    np.testing.assert_array_equal(curve[0], curve[-1])


def test_principal_ellipses_lie_on_the_ellipsoid():
    curves = principal_ellipses(FLAT, np.zeros(3), SIGMA, 1.5)
    assert curves.shape[0] == 3
    inverse = np.linalg.inv(SIGMA)
    radii = np.einsum("kni,ij,knj->kn", curves, inverse, curves)
    np.testing.assert_allclose(np.sqrt(radii), 1.5)


def test_a_view_of_space(sheet, sheet_model):
    ax = Figure().add_subplot(projection="3d")
    assert plot_view3d(sheet_model, sheet, ax, dimensions=(0, 2, 1)) is ax
    assert len(ax.lines) == 3
    assert len(ax.collections) == 2
    gaussian = GaussianMixture(2, random_state=0).fit(sheet)
    ax = plot_view3d(gaussian, sheet, Figure().add_subplot(projection="3d"))
    assert len(ax.lines) == 6


def test_bad_input(ax, sheet, sheet_model, gaussians):
    with pytest.raises(ValueError, match="projection"):
        plot_view3d(sheet_model, sheet, ax)
    space = Figure().add_subplot(projection="3d")
    with pytest.raises(ValueError, match="three different"):
        plot_view3d(sheet_model, sheet, space, dimensions=(0, 1, 1))
    with pytest.raises(ValueError, match="names must have 3"):
        plot_pairs(sheet_model, sheet, Figure(), names=["a"])
    with pytest.raises(ValueError, match="full covariances"):
        plot_pairs(land.LAND(), sheet, Figure())
    wide = np.random.default_rng(0).normal(size=(30, 9))
    with pytest.raises(ValueError, match="2 to 8 columns"):
        plot_pairs(GaussianMixture().fit(wide), wide, Figure())
