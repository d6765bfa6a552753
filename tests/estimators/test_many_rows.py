"""With many rows a descent begins on a sample of them and ends on all."""

import numpy as np
import pytest

import land
from land.metrics import EuclideanMetric

FLAT = {"metric": EuclideanMetric(2), "n_samples": 500, "random_state": 0, "tol": 1e-7}


@pytest.fixture(scope="module")
def rows():
    """More rows than anybody wants to descend with: there are two samples of them."""
    shape, center = np.array([[1.0, 0.3], [0.0, 0.5]]), np.array([3.0, -1.0])
    return center + np.random.default_rng(0).normal(size=(101_000, 2)) @ shape


def fit(model, data):
    """Fit; also the first objectives of the searches."""
    heard = []
    model.set_params(callback=heard.append).fit(data)
    firsts = [s.objective for s in heard if (s.stage, s.iteration) == ("search", 0)]
    return model, firsts


def test_in_flat_space_the_optimum_needs_no_search(rows):
    data = rows
    model, searches = fit(land.LAND(**FLAT), data)
    assert searches == []
    np.testing.assert_allclose(model.mean_, data.mean(axis=0), atol=1e-6)
    covariance = np.cov(data.T, bias=True)
    np.testing.assert_allclose(model.covariance_, covariance, atol=1e-5)
    assert {step.stage for step in model.history_} == {"fit"}


@pytest.mark.slow
def test_samples_lead_to_the_optimum_of_all_rows(rows):
    """The first search is on a few rows, to find a start; the second on 2000."""
    data = rows[:5000]
    metric = land.metrics.LocalDiagonalMetric(data[:200], sigma=1.0, rho=1.0)
    curved = FLAT | {"metric": metric, "tol": 1e-4}
    model, searches = fit(land.LAND(**curved), data)
    assert len(searches) == 2
    other = data[0]
    direct = land.LAND(**curved, init=other).fit(data)
    assert model.objective_ < direct.objective_ + 1e-3
    sizes = np.sqrt(np.diag(direct.covariance_))
    np.testing.assert_allclose(model.mean_, direct.mean_, atol=0.05 * sizes.min())


def test_mixtures_too(rows):
    """Two clouds far apart: each component is the normal distribution of its own."""
    clouds = rows[:9000], rows[9000:10_000] + 9.0
    model, searches = fit(land.LANDMixture(2, **FLAT), np.concatenate(clouds))
    assert len(searches) == 2
    order = np.argsort(model.means_[:, 0])
    means = [cloud.mean(axis=0) for cloud in clouds]
    np.testing.assert_allclose(model.means_[order], means, atol=1e-4)
    np.testing.assert_allclose(model.weights_[order], [0.9, 0.1], atol=1e-5)
