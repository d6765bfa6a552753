"""The number of components: too many to begin with, and those needed at the end."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from land.metrics import EuclideanMetric

FLAT = {"metric": EuclideanMetric(2), "n_samples": 200, "random_state": 0}


def clouds(seed):
    """Three to five slanted clouds of fifty points, which may touch."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-8.0, 8.0, size=(rng.integers(3, 6), 2))
    noise = [rng.normal(size=(50, 2)) @ rng.normal(size=(2, 2)) for _ in centers]
    return np.concatenate([c + each for c, each in zip(centers, noise, strict=True)])


def best_by_bic(X, most):
    tried = [
        GaussianMixture(count, n_init=5, random_state=0).fit(X)
        for count in range(1, most + 1)
    ]
    return min(tried, key=lambda model: model.bic(X))


@pytest.mark.parametrize("seed", range(5))
def test_the_number_is_that_of_the_smallest_bic(seed):
    X = clouds(seed)
    best = best_by_bic(X, 8)
    model = land.LANDMixture(8, prune=True, tol=1e-5, **FLAT).fit(X)
    assert model.n_components_ == best.n_components > 1
    assert model.bic(X) == pytest.approx(best.bic(X), abs=0.5)
    assert model.weights_.shape == (best.n_components,)
    assert model.predict_proba(X).shape == (len(X), best.n_components)
    assert model.get_params()["n_components"] == 8


def test_one_cloud_keeps_one(cloud):
    model = land.LANDMixture(6, prune=True, **FLAT).fit(cloud)
    assert model.n_components_ == 1
    np.testing.assert_allclose(model.means_[0], cloud.mean(axis=0), atol=1e-3)
    assert land.LANDMixture(2, **FLAT).fit(cloud).n_components_ == 2


def test_no_component_has_fewer_rows_than_parameters():
    """BIC would keep one of two rows: its likelihood has no bound."""
    X = np.concatenate([clouds(0)[:100], [[0.0, 30.0], [0.001, 30.0]]])
    assert GaussianMixture(3, random_state=0, reg_covar=1e-12).fit(X).bic(X) < min(
        GaussianMixture(count, random_state=0).fit(X).bic(X) for count in (1, 2)
    )
    model = land.LANDMixture(8, prune=True, **FLAT).fit(X)
    assert len(X) * model.weights_.min() > 6
    assert not any("use fewer components" in text for text in model.health_)


def test_weights_count_as_rows_do_not():
    """Rows without weight are not there."""
    X = clouds(1)
    more = np.concatenate([X, np.random.default_rng(0).uniform(-8, 8, (100, 2))])
    weights = np.append(np.ones(len(X)), np.zeros(100))
    model = land.LANDMixture(6, prune=True, **FLAT).fit(X)
    other = land.LANDMixture(6, prune=True, init="random", **FLAT)
    other.fit(more, sample_weight=weights)
    assert other.n_components_ == model.n_components_


def test_a_second_fit_starts_from_what_is_left():
    X = clouds(0)
    model = land.LANDMixture(8, prune=True, warm_start=True, **FLAT).fit(X)
    assert 1 < model.n_components_ < 8
    model.means_ = turned = model.means_[::-1]
    np.testing.assert_allclose(model.fit(X).means_, turned, atol=0.05)


def test_the_best_of_several_fits_is_by_bic():
    X = clouds(2)
    options = {"prune": True, "init": "random", **FLAT}
    several = land.LANDMixture(8, n_init=4, **options).fit(X)
    one = land.LANDMixture(8, **options).fit(X)
    assert several.bic(X) <= one.bic(X) + 1e-6


def test_a_file_has_the_components_that_are_left(tmp_path):
    X = clouds(1)
    model = land.LANDMixture(6, prune=True, **FLAT).fit(X)
    model.save(tmp_path / "model.land")
    loaded = land.load(tmp_path / "model.land")
    assert loaded.n_components_ == model.n_components_ < 6
    assert loaded.prune is True
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prune": "bic"}, "prune must be True or False, got 'bic'"),
        ({"prune": True, "method": "least_squares"}, "needs method='ml'"),
    ],
)
def test_bad_parameters(cloud, options, message):
    with pytest.raises(ValueError, match=message):
        land.LANDMixture(2, **options, **FLAT).fit(cloud)


def test_an_interrupted_fit_goes_on_with_what_is_left(moons, tmp_path):
    """Along curves; the search removes components one at a time."""
    options = {"sigma": 0.6, "rho": 0.2, "n_samples": 200, "tol": 1e-2}
    kept, steps = land.callbacks.Checkpoint(tmp_path / "fit.checkpoint"), []

    def stop(step):
        steps.append(step)
        if step.stage == "fit" and step.iteration == 1:
            raise KeyboardInterrupt

    def fit(*callbacks):
        model = land.LANDMixture(6, prune=True, random_state=0, **options)
        return model.set_params(callback=list(callbacks)).fit(moons)

    whole = fit()
    assert 1 <= whole.n_components_ < 6
    with pytest.warns(UserWarning, match="interrupted"):
        stopped = fit(kept, stop)
    assert stopped.interrupted_
    np.testing.assert_array_equal(fit(kept).means_, whole.means_)
    counts = {len(step.means) for step in steps if step.stage == "search"}
    assert counts >= set(range(whole.n_components_, 7))
