"""The kinds of metric that estimators learn: `metric="full"` and the others."""

import numpy as np
import pytest

import land
from land.metrics import KINDS

COS, SIN = np.cos(0.6), np.sin(0.6)
TURN = np.array([[COS, -SIN], [SIN, COS]])
SMOOTH = {"sigma": 0.8, "rho": 0.5, "random_state": 0}
QUICK = {"method": "least_squares", "n_samples": 500, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    return land.datasets.make_half_ellipse(50, random_state=0)


def test_turning_the_data_turns_distances_mean_covariance_and_density(rows):
    """Fits too: starts, quadrature points and steps lie in frames that turn."""
    quick = {"n_samples": 500, "tol": 1e-3}
    one, other = (
        land.LAND(metric="full", **quick | SMOOTH).fit(X) for X in (rows, rows @ TURN.T)
    )
    assert not one.metric_.is_flat
    np.testing.assert_allclose(other.mean_, TURN @ one.mean_, atol=1e-6)
    expected = TURN @ one.covariance_ @ TURN.T
    np.testing.assert_allclose(other.covariance_, expected, atol=1e-5)
    assert other.log_constant_ == pytest.approx(one.log_constant_, abs=1e-6)
    found, expected = (
        land.log_map(model.metric_, model.mean_, X).lengths
        for model, X in ((other, rows @ TURN.T), (one, rows))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    found, expected = other.score_samples(rows @ TURN.T), one.score_samples(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_turning_the_data_turns_clusters_of_a_sharp_metric():
    moons, _ = land.datasets.make_two_moons(80, random_state=0)
    quick = {"n_samples": 300, "tol": 1e-2, "random_state": 0}
    one, other = (
        land.LANDMixture(2, metric="full", **quick).fit(X)
        for X in (moons, moons @ TURN.T)
    )
    assert not one.metric_.is_flat
    assert other.sigma_ == pytest.approx(one.sigma_)
    np.testing.assert_array_equal(other.predict(moons @ TURN.T), one.predict(moons))
    np.testing.assert_allclose(other.means_, one.means_ @ TURN.T, atol=1e-4)
    found, expected = other.score_samples(moons @ TURN.T), one.score_samples(moons)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("word", KINDS)
def test_every_kind_is_learned_and_survives_a_file(word, rows, tmp_path):
    model = land.LAND(metric=word, **QUICK).fit(rows)
    assert type(model.metric_) is KINDS[word]
    assert np.isfinite([model.sigma_, model.rho_]).all()
    model.save(tmp_path / "model")
    loaded = land.load(tmp_path / "model")
    assert loaded.metric == word
    assert type(loaded.metric_) is KINDS[word]
    found, expected = loaded.score_samples(rows[:9]), model.score_samples(rows[:9])
    np.testing.assert_array_equal(found, expected)


def test_units_do_not_matter(rows):
    one, other = (
        land.LAND(metric="full", **QUICK).fit(c * rows) for c in (1.0, 1024.0)
    )
    assert other.sigma_ == pytest.approx(1024.0 * one.sigma_)
    assert other.rho_ == pytest.approx(1024.0**2 * one.rho_)
    np.testing.assert_allclose(other.mean_, 1024.0 * one.mean_, rtol=1e-6)
