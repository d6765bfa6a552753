"""With many rows a descent begins on a sample of them and ends on all."""

import numpy as np
import pytest

import land
from land.fitting import fidelity
from land.metrics import EuclideanMetric

# Where space is flat there is one optimum, and a sample is no help to find it.
FLAT = {"metric": EuclideanMetric(2), "n_samples": 500, "random_state": 0, "tol": 1e-7}


@pytest.fixture
def few_are_many(monkeypatch):
    """Sixty rows are many, and fifteen for each component are a sample of them."""
    monkeypatch.setattr(fidelity, "_MANY_ROWS", 30)
    monkeypatch.setattr(fidelity, "_SAMPLES", (15,))


def fit(model, data):
    """Fit; also the first objectives of the searches."""
    heard = []
    model.set_params(callback=heard.append).fit(data)
    firsts = [s.objective for s in heard if (s.stage, s.iteration) == ("search", 0)]
    return model, firsts


def test_the_optimum_is_that_of_all_rows(cloud, few_are_many):
    model, searches = fit(land.LAND(**FLAT), cloud)
    np.testing.assert_allclose(model.mean_, cloud.mean(axis=0), atol=1e-3)
    covariance = np.cov(cloud.T, bias=True)
    np.testing.assert_allclose(model.covariance_, covariance, atol=5e-3)
    assert len(searches) == 2  # with rough constants, and on the sample
    assert {step.stage for step in model.history_} == {"fit"}


def test_of_very_many_rows_there_is_a_second_sample(cloud, monkeypatch):
    monkeypatch.setattr(fidelity, "_MANY_ROWS", 30)
    monkeypatch.setattr(fidelity, "_SAMPLES", (10, 20, 60))
    model, searches = fit(land.LAND(**FLAT), cloud)
    assert len(searches) == 3
    np.testing.assert_allclose(model.mean_, cloud.mean(axis=0), atol=1e-3)


def test_few_rows_are_taken_as_they_are(cloud):
    _, searches = fit(land.LAND(**FLAT), cloud)
    assert len(searches) == 1


def test_mixtures_too(cloud, monkeypatch):
    clouds = np.concatenate([cloud, cloud[:50] + 9.0])
    model, searches = fit(land.LANDMixture(2, **FLAT), clouds)
    monkeypatch.setattr(fidelity, "_MANY_ROWS", 30)
    monkeypatch.setattr(fidelity, "_SAMPLES", (15,))
    other, more_searches = fit(land.LANDMixture(2, **FLAT), clouds)
    assert len(more_searches) == len(searches) + 1
    np.testing.assert_allclose(other.means_, model.means_, atol=1e-3)
    assert other.objective_ == pytest.approx(model.objective_, abs=1e-5)
