"""Sigma and rho, learned by the log density of held-out rows."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from land.estimators import held_out


@pytest.fixture(scope="module")
def learned():
    X = land.datasets.make_half_ellipse(50, n_centers=None, noise=0.1, random_state=0)
    return land.LAND(rho="learn", n_samples=300, random_state=0).fit(X)


@pytest.mark.nightly
def test_the_best_candidate_is_chosen_and_used(learned):
    rows = learned.learning_
    (chosen,) = [row for row in rows if row["chosen"]]
    best = max(rows, key=lambda row: row["score"])
    assert best["behind"] == 0.0
    assert chosen["behind"] <= chosen["stderr"]
    assert (learned.sigma_, learned.rho_) == (chosen["sigma"], chosen["rho"])
    near = [row for row in rows if row["behind"] <= row["stderr"]]
    assert chosen["rho"] == max(row["rho"] for row in near)
    flat = learned.learning_[0]
    assert flat["sigma"] == flat["rho"] == np.inf
    X = land.datasets.make_half_ellipse(200, n_centers=None, noise=0.1, random_state=1)
    gaussian = GaussianMixture(1).fit(learned.metric_.data)
    assert learned.score(X) > gaussian.score(X) + 0.2
    assert learned.geometry_gain_ > 0.1


def test_a_normal_cloud_stays_flat():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = land.LAND(rho="learn", n_samples=300, random_state=0).fit(X)
    assert model.sigma_ == model.rho_ == np.inf
    assert len(model.learning_) > 2
    (chosen,) = [row for row in model.learning_ if row["chosen"]]
    assert chosen["rho"] == np.inf
    assert chosen["behind"] <= chosen["stderr"] or chosen["behind"] == 0.0
    assert model.score(X) == pytest.approx(GaussianMixture(1).fit(X).score(X), abs=1e-4)


def test_an_interrupt_keeps_the_best_so_far(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    score = held_out._Search.score

    def interrupted(search, place):
        if len(search.found) == 1:
            raise KeyboardInterrupt
        return score(search, place)

    monkeypatch.setattr(held_out._Search, "score", interrupted)
    model = land.LAND(sigma="learn", random_state=0).fit(X)
    assert [row["chosen"] for row in model.learning_] == [True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": land.metrics.EuclideanMetric(2)}, "need a metric that is learned"),
        ({"method": "least_squares"}, "method='ml'"),
        ({"rho": "guess"}, "rho must be 'auto', 'learn' or a positive number"),
    ],
)
def test_what_cannot_be_learned(arguments, message):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        land.LAND(**{"sigma": "learn", "rho": "learn"} | arguments).fit(X)


def test_few_rows_cannot_be_held_out():
    with pytest.raises(ValueError, match="need at least 4 of them, got 3"):
        land.LAND(sigma="learn").fit(np.eye(3)[:, :2])
