"""Geodesic PCA against scikit-learn's in flat space, and along curves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

import land
from land.metrics import EuclideanMetric, FunctionMetric


@pytest.fixture(scope="module")
def curve(arc):
    return land.GeodesicPCA(1, random_state=0).fit(arc)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_flat_space_gives_pca(count):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) + 5.0
    truth = PCA(count).fit(data)
    found = land.GeodesicPCA(count, metric=EuclideanMetric(3), random_state=0).fit(data)
    close = {"rtol": 0.0, "atol": 1e-6}
    np.testing.assert_allclose(found.mean_, truth.mean_, **close)
    np.testing.assert_allclose(found.components_, truth.components_, **close)
    for name in ("explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(found, name), getattr(truth, name), **close)
    scores = found.transform(data)
    np.testing.assert_allclose(scores, truth.transform(data), **close)
    np.testing.assert_allclose(
        found.inverse_transform(scores), truth.inverse_transform(scores), **close
    )


def test_a_constant_metric_is_pca_of_stretched_columns(cloud):
    stretch = np.array([[2.0, 0.5], [0.5, 1.0]])  # the root of the metric's tensor
    metric = FunctionMetric(lambda x: stretch @ stretch + 0.0 * x[0], dim=2)
    truth = PCA(1).fit(cloud @ stretch)
    found = land.GeodesicPCA(1, metric=metric, random_state=0).fit(cloud)
    np.testing.assert_allclose(found.components_, truth.components_, atol=1e-6)
    np.testing.assert_allclose(
        found.transform(cloud), truth.transform(cloud @ stretch), atol=1e-5
    )


def test_one_component_follows_a_curve(arc, curve):
    new = land.datasets.make_half_ellipse(60, random_state=1)

    def error(model):
        again = model.inverse_transform(model.transform(new))
        return np.mean(np.sum((new - again) ** 2, axis=1))

    assert curve.converged_
    assert error(curve) < 0.25 * error(PCA(1).fit(arc))


def test_one_component_follows_an_s():
    """Its ends come near its middle: a smooth metric cuts the corners."""
    X, new = (
        land.datasets.make_s_curve(150, random_state=k)[:, [0, 2]] for k in (0, 1)
    )
    model = land.GeodesicPCA(1, random_state=0).fit(X)
    missed = new - model.inverse_transform(model.transform(new))
    straight = PCA(1).fit(X)
    rest = new - straight.inverse_transform(straight.transform(new))
    assert np.mean(missed**2) < 0.15 * np.mean(rest**2)


def test_a_cloud_keeps_the_flat_metric(cloud, tmp_path):
    found, truth = land.GeodesicPCA(1, random_state=0).fit(cloud), PCA(1).fit(cloud)
    assert isinstance(found.metric_, EuclideanMetric)
    assert found.sigma_ == found.rho_ == np.inf
    np.testing.assert_allclose(found.components_, truth.components_, atol=1e-6)
    found.save(tmp_path / "cloud")
    assert land.load(tmp_path / "cloud").sigma_ == np.inf
    bent = land.GeodesicPCA(1, sigma=1.0, random_state=0).fit(cloud)
    assert bent.sigma_ == 1.0


def test_names_and_files(arc, curve, tmp_path):
    assert curve.get_feature_names_out().tolist() == ["geodesicpca0"]
    curve.save(tmp_path / "curve.land")
    loaded = land.load(tmp_path / "curve.land")
    np.testing.assert_array_equal(loaded.transform(arc), curve.transform(arc))
    scores = np.linspace(-1.0, 1.0, 5)[:, None]
    np.testing.assert_array_equal(
        loaded.inverse_transform(scores), curve.inverse_transform(scores)
    )
    frame = pd.DataFrame(arc, columns=["east", "north"])
    flat = land.GeodesicPCA(1, metric=EuclideanMetric(2), random_state=0)
    found = flat.set_output(transform="pandas").fit_transform(frame)
    assert found.columns.tolist() == ["geodesicpca0"]


def test_bad_parameters(cloud, curve):
    with pytest.raises(ValueError, match="n_components=3 must not exceed the number"):
        land.GeodesicPCA(3).fit(cloud)
    with pytest.raises(ValueError, match="n_components must be at least 1, got 0"):
        land.GeodesicPCA(0).fit(cloud)
    with pytest.raises(ValueError, match="X must have 1 coordinates"):
        curve.inverse_transform(cloud)


def test_a_fit_that_has_not_converged_says_so(arc):
    model = land.GeodesicPCA(1, max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge within 1 steps"):
        model.fit(arc)
    assert not model.converged_
