"""Standardised columns: nothing depends on the units, and all is in them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import NotFittedError

import land
from land.metrics import EuclideanMetric

UNITS = np.array([1e-3, 1e4])


@pytest.fixture(scope="module")
def model(cloud):
    normal = land.LAND(metric=EuclideanMetric(2), n_samples=200, random_state=0)
    return land.Standardized(normal).fit(cloud * UNITS)


def test_a_normal_distribution_is_one_in_any_units(model, cloud):
    """The densities are those of scikit-learn's, in the units of the data."""
    X = cloud * UNITS
    gaussian = GaussianMixture(1, reg_covar=0.0).fit(X)
    np.testing.assert_allclose(
        model.score_samples(X), gaussian.score_samples(X), atol=1e-4
    )
    assert model.score(X) == pytest.approx(gaussian.score(X), abs=1e-4)


def test_samples_are_in_the_units_of_the_data(model, cloud):
    points, _ = model.sample(2000, random_state=0)
    expected = cloud * UNITS
    np.testing.assert_allclose(points.std(axis=0), expected.std(axis=0), rtol=0.06)
    shift = (points.mean(axis=0) - expected.mean(axis=0)) / expected.std(axis=0)
    assert np.abs(shift).max() < 0.1


def test_the_metrics_volume_has_no_units(model, cloud):
    X = cloud * UNITS
    z = (X - model.center_) / model.scale_
    expected = model.estimator_.score_samples(z, "riemannian")
    np.testing.assert_array_equal(model.score_samples(X, "riemannian"), expected)


def test_clusters_do_not_depend_on_the_units(moons, tmp_path):
    mixture = land.LANDMixture(2, metric=EuclideanMetric(2), n_samples=200)
    first, second = (
        land.Standardized(clone(mixture).set_params(random_state=0)).fit(moons * units)
        for units in (1.0, UNITS)
    )
    np.testing.assert_array_equal(first.predict(moons), second.predict(moons * UNITS))
    second.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    shares = second.predict_proba(moons * UNITS)
    np.testing.assert_array_equal(loaded.predict_proba(moons * UNITS), shares)


def test_it_has_what_its_model_has(model):
    assert not hasattr(model, "predict")
    assert not hasattr(land.Standardized(land.RiemannianKMeans(2)), "sample")
    with pytest.raises(NotFittedError):
        clone(model).score_samples([[0.0, 0.0]])
    with pytest.raises(ValueError, match="2 features"):
        model.score_samples([[0.0]])
