import numpy as np
import pytest
from matplotlib.colors import to_rgba
from sklearn.mixture import GaussianMixture

import land
from land.plotting import plot_covariance, plot_means, plot_responsibilities


def mahalanobis(model, k, curve):
    """Radius of the curve's points in component k's tangent space."""
    mean, precision = model.means_[k], np.linalg.inv(model.covariances_[k])
    tangents = land.log_map(model.metric_, mean, curve).tangents
    return np.sqrt(np.einsum("ni,ij,nj->n", tangents, precision, tangents))


def test_curves_have_the_radius_they_claim(ax, mixture):
    # Small enough for the shortest way to be the one that Exp took.
    n_std = (0.5, 1.0)
    lines = plot_covariance(mixture, ax, n_std=n_std)
    assert len(lines) == 4
    for index, line in enumerate(lines):
        curve = line.get_xydata()
        np.testing.assert_array_equal(curve[0], curve[-1])
        radii = mahalanobis(mixture, index // 2, curve[:-1:16])
        np.testing.assert_allclose(radii, n_std[index % 2], rtol=2e-3)
    assert lines[0].get_color() == lines[1].get_color() != lines[2].get_color()
    assert [line.get_label() for line in lines[::2]] == ["component 0", "component 1"]
    assert all(line.get_label().startswith("_") for line in lines[1::2])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_gaussian_mixtures_have_plain_ellipses(ax, arc, kind):
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(arc)
    lines = plot_covariance(model, ax, n_std=[2.0])
    for k, line in enumerate(lines):
        # scikit-learn's own log density tells the radius, however it stores Sigma.
        alone = GaussianMixture(1, covariance_type=kind)
        own = slice(None) if kind == "tied" else slice(k, k + 1)
        alone.weights_, alone.means_ = np.ones(1), model.means_[k : k + 1]
        alone.precisions_cholesky_ = model.precisions_cholesky_[own]
        fall = alone.score_samples(alone.means_) - alone.score_samples(
            line.get_xydata()
        )
        np.testing.assert_allclose(np.sqrt(2.0 * fall), 2.0, rtol=1e-6)


def test_means_are_marked_in_the_components_colours(ax, arc_model, mixture):
    one = plot_means(arc_model, ax)
    np.testing.assert_array_equal(one.get_offsets(), arc_model.mean_[None])
    two = plot_means(mixture, ax)
    np.testing.assert_array_equal(two.get_offsets(), mixture.means_)
    line = plot_covariance(mixture, ax, n_std=1.0)[1]
    assert tuple(two.get_facecolors()[1]) == to_rgba(line.get_color())


def test_bad_input(ax, arc_model):
    with pytest.raises(ValueError, match="n_std must be positive"):
        plot_covariance(arc_model, ax, n_std=(0.0, 1.0))
    with pytest.raises(ValueError, match="must be fitted"):
        plot_means(land.LAND(), ax)
    space = GaussianMixture().fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(ValueError, match="2 dimensions"):
        plot_means(space, ax)


# Responsibilities.


def test_curves_lead_from_means_to_data_as_strong_as_responsibilities(ax, arc, mixture):
    artists = plot_responsibilities(mixture, arc, ax)
    assert len(artists) == 2
    shares = mixture.predict_proba(arc)
    colors = plot_means(mixture, ax).get_facecolors()
    reached = set()
    for k, artist in enumerate(artists):
        for curve, stroke in zip(
            artist.get_segments(), artist.get_colors(), strict=True
        ):
            np.testing.assert_allclose(curve[0], mixture.means_[k], atol=1e-12)
            row = int(np.argmin(np.linalg.norm(arc - curve[-1], axis=1)))
            np.testing.assert_allclose(curve[-1], arc[row], atol=1e-12)
            np.testing.assert_allclose(stroke[3], shares[row, k], atol=1e-9)
            np.testing.assert_allclose(stroke[:3], colors[k][:3])
            reached.add(row)
    assert reached == set(range(len(arc)))


def test_gaussian_mixtures_have_straight_lines(ax, arc, gaussians):
    curves = plot_responsibilities(gaussians, arc, ax)[0].get_segments()
    for curve in curves:
        straight = np.linspace(curve[0], curve[-1], len(curve))
        np.testing.assert_allclose(curve, straight, atol=1e-6)
