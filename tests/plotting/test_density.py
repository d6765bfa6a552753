import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from land import LAND
from land.metrics import EuclideanMetric
from land.plotting import density_grid, plot_data, plot_density
from land.plotting.plane import SHARES, enclosing_levels

LIMITS = [[-4.5, 4.5], [-1.5, 3.0]]


def vertices(contours, level):
    """The points of the contour lines at one height."""
    index = int(np.argmin(np.abs(contours.levels - level)))
    return contours.get_paths()[index].vertices


@pytest.mark.parametrize("measure", ["riemannian", "lebesgue"])
def test_contour_lines_lie_at_their_height(ax, arc_model, measure):
    contours = plot_density(
        arc_model, ax, measure=measure, grid=20, limits=LIMITS, filled=False
    )
    level = contours.levels[len(contours.levels) // 2]
    points = vertices(contours, level)
    heights = np.exp(arc_model.score_samples(points[:30], measure=measure))
    # Contours interpolate between the points of a coarse grid.
    assert abs(np.median(heights) / level - 1.0) < 0.15


@pytest.fixture(scope="module")
def flat(arc):
    """A model of ours, whose space is flat."""
    metric = EuclideanMetric(2)
    return LAND(metric=metric, n_samples=200, random_state=0).fit(arc)


@pytest.mark.parametrize("name", ["gaussians", "flat"])
def test_a_flat_models_limits_follow_from_the_model(ax, name, request):
    model = request.getfixturevalue(name)
    contours = plot_density(model, ax, grid=60, filled=False)
    outermost = vertices(contours, contours.levels[0])
    # The 95 % contour is not cut off: it ends where the plot does not.
    step = np.ptp(ax.dataLim.get_points(), axis=0) / 60
    assert np.all(outermost.min(axis=0) > ax.dataLim.min + step)
    assert np.all(outermost.max(axis=0) < ax.dataLim.max - step)


def test_default_levels_enclose_shares_of_the_mass():
    x = np.linspace(-5.0, 5.0, 401)
    squares = x[:, None] ** 2 + x**2
    density = np.exp(-0.5 * squares)
    levels = enclosing_levels(np.ma.array(density), density)
    # The mass of a normal distribution in the plane outside radius r is exp(-r^2/2).
    np.testing.assert_allclose(levels, 1.0 - SHARES, atol=2e-3)


# The whole arc, and a window without any mean.
WINDOWS = {"whole": LIMITS, "tail": [[2.4, 4.0], [-1.5, 1.0]]}


@pytest.mark.parametrize("window", WINDOWS)
def test_density_is_left_out_only_where_it_is_negligible(mixture, window):
    """Contours are those of the density at all points."""
    limits = WINDOWS[window]
    lattice = density_grid(mixture, limits=limits, grid=24)
    x, y = np.meshgrid(lattice.x, lattice.y)
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    whole = np.exp(mixture.score_samples(points)).reshape(x.shape)
    missing = np.asarray(whole - lattice.density)
    assert np.abs(missing).sum() < 5e-3 * whole.sum()
    levels = enclosing_levels(whole, whole)
    np.testing.assert_allclose(
        enclosing_levels(lattice.density, lattice.mass), levels, rtol=0.02
    )
    seen = whole >= levels[0]
    np.testing.assert_allclose(lattice.density[seen], whole[seen], rtol=0.02)


def test_low_contours_are_drawn_where_they_are(ax, mixture):
    """Below the default ones; and most of the plane costs no geodesic."""
    calls = []
    scored = type(mixture).score_samples

    def counted(model, X, measure):
        calls.append(len(X))
        return scored(model, X, measure)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(mixture), "score_samples", counted)
        wide = [[-40.0, 40.0], [-40.0, 40.0]]
        density_grid(mixture, limits=wide, grid=80)
    assert sum(calls) < 0.1 * 80**2
    level = 1e-9
    contours = plot_density(mixture, ax, grid=40, levels=[level, 1e-3], filled=False)
    points = vertices(contours, level)
    heights = mixture.score_samples(points[::5])
    assert abs(np.median(heights) - np.log(level)) < 0.5


def test_anything_with_log_densities_will_do(ax, arc):
    kernels = KernelDensity(bandwidth=0.5).fit(arc)
    with pytest.raises(ValueError, match="limits must be given, or data drawn"):
        plot_density(kernels, ax)
    plot_data(arc, ax)
    contours = plot_density(kernels, ax, grid=40, filled=False)
    points = vertices(contours, contours.levels[3])
    heights = np.exp(kernels.score_samples(points))
    assert np.median(heights) == pytest.approx(contours.levels[3], rel=0.05)


@pytest.mark.parametrize("limits", [[[1, 0], [0, 1]], [[0, 1]], [0, 1]])
def test_bad_limits(ax, arc_model, limits):
    with pytest.raises(ValueError, match="limits"):
        plot_density(arc_model, ax, limits=limits)


def test_the_colour_bar_says_which_density(arc_model):
    figure = Figure()
    settings = {"measure": "riemannian", "grid": 8, "colorbar": True}
    contours = plot_density(arc_model, figure.add_subplot(), **settings)
    bar = figure.axes[1]
    assert "density with respect to the metric's volume" in bar.get_ylabel()
    shown = {text.get_text() for text in bar.get_yticklabels()}
    assert {"95 %", "5 %"} <= shown
    np.testing.assert_array_equal(contours.colorbar.get_ticks(), contours.levels)


def test_models_of_more_dimensions_are_refused(ax):
    space = GaussianMixture().fit(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(ValueError, match=r"2 dimensions .* got 4.*plot_pairs"):
        plot_density(space, ax)


def test_a_density_of_one_dimension_is_a_curve(ax):
    """Ours and scikit-learn's enclose an area of one."""
    X = np.random.default_rng(0).normal([[0.0]] * 60, 2.0)
    ours = LAND(method="least_squares", n_samples=300, random_state=0).fit(X)
    theirs = GaussianMixture(1).fit(X)
    for model in (theirs, ours):
        line = plot_density(model, ax)
        x, heights = line.get_data()
        np.testing.assert_allclose(heights, np.exp(model.score_samples(x[:, None])))
        assert abs(np.trapezoid(heights, x) - 1.0) < 0.02
    assert ax.get_ylabel() == "density"
    with pytest.raises(ValueError, match=r"limits must be \[\[x_min, x_max\]\]"):
        plot_density(theirs, ax, limits=LIMITS)
