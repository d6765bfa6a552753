"""Awkward but legitimate data: a warning with a remedy, and a model that serves."""

import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


def assert_usable(model, data):
    """Finite parameters, scores and samples, and a covariance that is one."""
    assert np.all(np.isfinite(model.mean_))
    assert np.linalg.eigvalsh(model.covariance_)[0] > 0.0
    assert np.all(np.isfinite(model.score_samples(data)))
    points, _ = model.sample(5, random_state=0)
    assert points.shape == (5, data.shape[1])
    assert np.all(np.isfinite(points))


@pytest.mark.parametrize("method", ["ml", "least_squares"])
def test_constant_column(cloud, method):
    data = cloud.copy()
    data[:, 1] = 7.0
    with pytest.warns(UserWarning, match=r"constant in column\(s\) \[1\].*drop"):
        model = land.LAND(method=method, sigma=0.5, random_state=0).fit(data)
    assert_usable(model, data)
    assert model.mean_[1] == pytest.approx(7.0, abs=1e-3)
    assert model.covariance_[1, 1] < 1e-3 * model.covariance_[0, 0]


def test_no_more_rows_than_columns(cloud):
    data = cloud[:2]
    with pytest.warns(UserWarning, match=r"2 rows for 2 columns.*PCA"):
        model = land.LAND(method="least_squares", **FAST).fit(data)
    assert_usable(model, data)
    np.testing.assert_allclose(model.mean_, data.mean(axis=0), atol=0.1)


def test_sigma_far_too_small_is_an_error(cloud):
    with pytest.raises(ValueError, match=r"far smaller than the distance.*'auto'"):
        land.LAND(sigma=1e-3, rho=1.0, **FAST).fit(cloud)


def test_sigma_far_too_large(cloud):
    with pytest.warns(UserWarning, match=r"far larger than the extent.*'auto'"):
        model = land.LAND(sigma=100.0, rho=1e6, **FAST).fit(cloud)
    assert_usable(model, cloud)
    # A large rho makes the metric the same everywhere: a normal distribution.
    np.testing.assert_allclose(model.mean_, cloud.mean(axis=0), atol=1e-2)
    truth = np.cov(cloud.T, bias=True)
    np.testing.assert_allclose(model.covariance_, truth, rtol=1e-2)


FLAT = {"metric": EuclideanMetric(2)}
WARN = {
    "constant": land.LAND(method="least_squares", **FLAT, **FAST),
    "X is constant": land.RiemannianKMeans(1, **FLAT),
    "far larger": land.LAND(sigma=100.0, rho=1e6, method="least_squares", **FAST),
    "converge": land.LAND(optimizer="paper", max_iter=1, tol=1e-12, **FLAT, **FAST),
}


@pytest.mark.parametrize("text", WARN)
def test_warnings_point_to_the_call_of_fit(cloud, text):
    data = cloud * [1.0, 0.0] if "constant" in text else cloud
    with pytest.warns(UserWarning, match=text) as caught:
        WARN[text].fit(data)
    assert {each.filename for each in caught} == {__file__}
