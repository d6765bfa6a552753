"""The estimator in the hands of scikit-learn, pandas, joblib and people who watch."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import land
from land.fitting import Step
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


def test_grid_search_chooses_sigma_by_log_likelihood(arc):
    arc = np.random.default_rng(0).permutation(arc)
    grid = {"sigma": [0.4, 0.8]}
    model = land.LAND(rho=0.5, method="least_squares", **FAST)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(arc)
    scores = search.cv_results_["mean_test_score"]
    assert np.all(np.isfinite(scores))
    assert search.best_params_["sigma"] == grid["sigma"][int(np.argmax(scores))]
    assert search.best_estimator_.sigma_ == search.best_params_["sigma"]
    # The score is the mean log density of the held-out rows, and nothing else.
    train, test = arc[20:], arc[:20]
    held_out = clone(model).set_params(sigma=0.4).fit(train).score_samples(test)
    first = search.cv_results_["split0_test_score"][0]
    assert first == pytest.approx(held_out.mean(), rel=1e-9)


def test_same_random_state_gives_the_same_fit_bit_for_bit(arc_means, smooth_model, arc):
    again = clone(smooth_model).fit(arc)
    for name in ("mean_", "covariance_", "log_constant_", "objective_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(smooth_model, name))
    np.testing.assert_array_equal(
        again.sample(5, random_state=1)[0], smooth_model.sample(5, random_state=1)[0]
    )
    other = clone(arc_means).set_params(random_state=1).fit(arc)
    assert other.log_constant_ != arc_means.log_constant_
    one, two = (smooth_model.sample(5, random_state=seed)[0] for seed in (1, 2))
    assert not np.array_equal(one, two)


def test_callback_hears_every_step(arc):
    steps = []
    model = land.LAND(sigma=0.8, rho=0.5, callback=steps.append, **FAST).fit(arc)
    assert all(isinstance(step, Step) for step in steps)
    search = [step for step in steps if step.stage == "search"]
    assert steps == search + model.history_
    assert [step.stage for step in model.history_] == len(model.history_) * ["fit"]
    assert len(search) > 0
    for stage in (search, model.history_):
        assert [step.iteration for step in stage] == list(range(len(stage)))
    assert steps[-1].objective == model.objective_
    np.testing.assert_array_equal(steps[-1].means, model.mean_[None])
    for name in ("n_log_maps", "seconds"):
        assert np.all(np.diff([getattr(step, name) for step in steps]) >= 0)
        assert getattr(steps[0], name) > 0


def test_objective_falls_from_a_poor_start(arc):
    far = arc[np.argmin(np.abs(arc[:, 0] - 2.0))]
    model = land.LAND(sigma=0.8, rho=0.5, init=far, **FAST).fit(arc)
    objectives = np.array([step.objective for step in model.history_])
    # The last entry is a fresh evaluation, on directions that no step has seen.
    assert np.all(np.diff(objectives[:-1]) < 1e-4)
    assert np.diff(objectives)[-1] < 3.0 * model.log_constant_stderr_ + 1e-4
    assert np.linalg.norm(model.mean_ - far) > 1.0


def test_verbose_reports_on_standard_error(cloud, capsys):
    settings = {"sigma": 1.5, "rho": 1.0} | FAST
    model = land.LAND(verbose=1, **settings).fit(cloud)
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert sum(line.startswith("LAND: fit ") for line in lines) == len(model.history_)
    assert lines[0].startswith("LAND: search   0  objective ")
    land.LAND(**settings).fit(cloud)
    silent = capsys.readouterr()
    assert silent.out == ""
    assert silent.err == ""


@pytest.mark.parametrize(
    "estimator", [land.LAND, land.LANDMixture, land.RiemannianKMeans]
)
def test_a_generator_is_used_and_advanced(cloud, estimator):
    def fit(generator):
        model = estimator(metric=EuclideanMetric(2), init="random")
        count = {"n_components", "n_clusters"} & model.get_params().keys()
        model.set_params(random_state=generator, **dict.fromkeys(count, 2))
        return model.fit(cloud)

    once, twice = np.random.default_rng(0), np.random.default_rng(0)
    first, again = fit(once), fit(twice)
    for name in ("mean_", "means_", "cluster_centers_"):
        if hasattr(first, name):
            np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert once.bit_generator.state == twice.bit_generator.state
    assert once.bit_generator.state != np.random.default_rng(0).bit_generator.state
