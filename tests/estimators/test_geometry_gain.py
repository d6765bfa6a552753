"""Default fits: the curved metric against the flat one."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from land.metrics import EuclideanMetric, LocalDiagonalMetric
from land.metrics.bandwidth import SMOOTHER, automatic_rho

FAST = {"n_samples": 500, "random_state": 0}


@pytest.fixture(scope="module")
def blob():
    return np.random.default_rng(5).normal(size=(80, 2)) @ [[2.0, 0.0], [0.7, 0.5]]


def test_a_cloud_keeps_the_flat_metric_and_is_a_normal_distribution(blob, tmp_path):
    model = land.LAND(**FAST).fit(blob)
    assert isinstance(model.metric_, EuclideanMetric)
    assert model.sigma_ == model.rho_ == np.inf
    assert model.geometry_gain_ < 0.05
    gaussian = GaussianMixture(1).fit(blob)
    np.testing.assert_allclose(model.mean_, gaussian.means_[0], atol=1e-6)
    np.testing.assert_allclose(
        model.score_samples(blob), gaussian.score_samples(blob), atol=1e-4
    )
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert loaded.sigma_ == np.inf
    assert loaded.geometry_gain_ == model.geometry_gain_
    np.testing.assert_array_equal(loaded.score_samples(blob), model.score_samples(blob))


def test_a_curve_has_a_metric_of_its_own(arc_model, arc):
    assert isinstance(arc_model.metric_, LocalDiagonalMetric)
    gain = arc_model.score(arc) - GaussianMixture(1).fit(arc).score(arc)
    assert gain == pytest.approx(arc_model.geometry_gain_, abs=2e-3)
    assert gain > 0.3


def test_an_open_curve_has_a_smooth_metric_a_closed_one_a_sharp_one():
    """Each is the better of the two where it is kept."""
    rough = {"n_samples": 500, "tol": 1e-2, "random_state": 0}
    makers = land.datasets.make_half_ellipse, land.datasets.make_circle
    for make, factor in zip(makers, (SMOOTHER, 1.0), strict=True):
        X, new = make(150, random_state=0), make(150, random_state=1)
        kept = land.LAND(**rough).fit(X)
        sharp = automatic_rho(X, kept.sigma_, sharp=True)
        assert kept.rho_ == pytest.approx(factor * sharp)
        other = SMOOTHER / factor * sharp
        rejected = land.LAND(sigma=kept.sigma_, rho=other, **rough).fit(X)
        assert kept.score(new) > rejected.score(new) + 0.05


@pytest.mark.parametrize(
    "options", [{"sigma": 0.5}, {"rho": 0.5}, {"method": "least_squares"}]
)
def test_whoever_chooses_is_not_overruled(blob, options):
    model = land.LAND(**options, **FAST).fit(blob)
    assert isinstance(model.metric_, LocalDiagonalMetric)
    assert np.isnan(model.geometry_gain_)
