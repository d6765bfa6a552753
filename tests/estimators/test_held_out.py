"""Sigma and rho, learned; models side by side on the same held-out rows."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold

import land
from land.estimators import learning
from land.estimators.held_out import Candidate, Entry, behind, beside, judge
from land.estimators.learning import learn


@pytest.fixture(scope="module")
def learned():
    X = land.datasets.make_half_ellipse(50, n_centers=None, noise=0.1, random_state=0)
    return land.LAND(rho="learn", n_samples=300, random_state=0).fit(X)


@pytest.mark.nightly
def test_the_best_candidate_is_chosen_and_used(learned):
    rows = learned.learning_
    (chosen,) = [row for row in rows if row["chosen"]]
    best = max(rows, key=lambda row: row["score"])
    assert chosen["behind"] <= chosen["stderr"]
    assert (learned.sigma_, learned.rho_) == (chosen["sigma"], chosen["rho"])
    assert chosen["score"] == pytest.approx(best["score"] - chosen["behind"])
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
    score = learning._Search.score

    def interrupted(search, place):
        if len(search.judged) == 1:
            raise KeyboardInterrupt
        return score(search, place)

    monkeypatch.setattr(learning._Search, "score", interrupted)
    assert learn(land.LAND(sigma="learn"), X, 0).interrupted
    model = land.LAND(sigma="learn", random_state=0).fit(X)
    assert [row["chosen"] for row in model.learning_] == [True]


def test_the_search_climbs_and_confirms_on_the_other_half(monkeypatch):
    """Densities that are told: rho four times the automatic one is the best."""
    X, splits = np.random.default_rng(0).normal(size=(60, 2)), []

    def told(candidate, data, parts):
        splits.append((candidate.place, len(parts)))
        values = np.full(len(data), np.nan)
        for _, test in parts:
            loss = min(abs(candidate.place[1] - np.log(4.0)), 3.0)
            values[test] = np.sin(test) - loss - (10.0 if flawed(candidate) else 0.0)
        return learning.Judgement(values, [], 1.0, 1.0, 7, 2)

    def flawed(candidate):
        return candidate.place[1] < -5.0

    monkeypatch.setattr(learning, "judge", told)
    learned = learn(land.LAND(rho="learn"), X, 0)
    assert learned.candidate.place == pytest.approx((0.0, np.log(4.0)))
    confirmed = [place for place, _ in splits if splits.count((place, 1)) == 2]
    assert set(confirmed) == {learned.candidate.place, learning.FLAT}
    assert learned.n_log_maps == 7 * len(splits)
    (chosen,) = [row for row in learned.table if row["chosen"]]
    flat = learned.table[0]
    assert learned.gain == pytest.approx(chosen["score"] - flat["score"])
    assert flat["behind"] == pytest.approx(3.0)


def test_rows_are_scored_by_fits_to_others():
    # A row far from all others costs nothing unless it is left out of the fit.
    X = np.random.default_rng(0).normal(size=(41, 2))
    X[40] = [1e3, -1e3]
    flat = land.LANDMixture(metric=land.metrics.EuclideanMetric(2), random_state=0)
    found = judge(Candidate(flat), X, list(KFold(2).split(X)), clusters=True)
    assert found.values[40] < -1e4 < found.values[:40].min()
    assert [len(each) for each in found.labels] == [41, 41]
    assert found.sigma == found.rho == np.inf
    half = judge(Candidate(flat), X, list(KFold(2).split(X))[:1])
    np.testing.assert_array_equal(half.values[:21], found.values[:21])
    assert np.isnan(half.values[21:]).all()


def test_models_are_ranked_row_by_row():
    noise = 10.0 * np.random.default_rng(0).normal(size=50)
    gaps = behind({"a": noise + 1.0, "b": noise + 0.5, "c": noise + np.arange(50) / 50})
    assert gaps["a"] == (0.0, 0.0)
    assert gaps["b"] == pytest.approx((0.5, 0.0))
    assert gaps["c"][0] == pytest.approx(0.51)
    assert gaps["c"][1] == pytest.approx(np.std(np.arange(50) / 50, ddof=1) / 50**0.5)


def test_rivals_see_the_same_rows_in_the_same_order():
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1.0, 100.0]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    own = Entry("LAND", "", np.zeros(60), 1.0)
    found = beside(own, 1, False, X, splits, 0)
    assert found.n_fitted == 40
    _, same, _, kernel = (entry.values for entry in found.entries)
    for train, test in splits:
        expected = GaussianMixture(1, reg_covar=1e-9).fit(X[train])
        np.testing.assert_allclose(same[test], expected.score_samples(X[test]), 1e-4)
    # In the units of the data: else they were log 100 apart.
    assert abs(np.mean(kernel - same)) < 0.3


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
