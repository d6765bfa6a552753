import numpy as np
from matplotlib.colors import to_rgba

from land.plotting import plot_means, plot_responsibilities


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


def test_no_more_curves_than_asked_for(ax, arc, arc_model):
    (artist,) = plot_responsibilities(arc_model, arc, ax, max_curves=7)
    assert len(artist.get_segments()) == 7
    assert np.all(artist.get_colors()[:, 3] == 1.0)


def test_gaussian_mixtures_have_straight_lines(ax, arc, gaussians):
    curves = plot_responsibilities(gaussians, arc, ax)[0].get_segments()
    for curve in curves:
        straight = np.linspace(curve[0], curve[-1], len(curve))
        np.testing.assert_allclose(curve, straight, atol=1e-6)


def test_a_style_is_passed_on(ax, arc, arc_model):
    options = {"max_curves": 3, "colors": "black"}
    (artist,) = plot_responsibilities(arc_model, arc, ax, **options)
    assert tuple(artist.get_colors()[0]) == to_rgba("black")
