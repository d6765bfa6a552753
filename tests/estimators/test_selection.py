"""Choice of components and metric: flat space has a known answer."""

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import RepeatedKFold

import land
from land.estimators import contest
from land.estimators.held_out import Candidate, Judgement
from land.estimators.learning import Learned
from land.estimators.selection import Selection, select
from land.metrics.bandwidth import automatic_sigma

COLUMNS = [
    *("model", "n_components", "metric", "reference", "sigma", "rho", "round"),
    *("held_out", "behind", "stderr", "stability", "bic", "aic", "f_measure"),
    *("n_log_maps", "seconds", "chosen", "error"),
]
QUICK = {"n_samples": 200, "tol": 0.05, "max_iter": 5}


@pytest.fixture(scope="module")
def pair():
    """Two normal clouds far apart."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(30, 2)), 8.0 + rng.normal(size=(30, 2))])


@pytest.fixture(scope="module")
def found(pair):
    labels = ["a"] * 29 + [None] + ["b"] * 30
    return select(pair, (1, 2, 3), "flat", labels=labels, random_state=0)


def test_flat_candidates_are_gaussian_mixtures(found, pair):
    assert isinstance(found, Selection)
    assert found.best["n_components"] == found.model.n_components == 2
    assert found.best["metric"] == "flat"
    table = found.table.set_index("n_components")
    folds = RepeatedKFold(n_splits=5, n_repeats=1, random_state=0)
    expected = np.zeros(len(pair))
    for train, test in folds.split(pair):
        mixture = GaussianMixture(2, random_state=0).fit(pair[train])
        expected[test] = mixture.score_samples(pair[test])
    assert found.best["held_out"] == pytest.approx(expected.mean(), abs=1e-3)
    assert table["held_out"][2] > table["held_out"][1] + 0.1
    fresh = GaussianMixture(2, random_state=0).fit(pair)
    assert found.model.score(pair) == pytest.approx(fresh.score(pair), abs=1e-3)


def test_table_has_all_candidates_the_best_first_and_rivals(found):
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table.columns) == COLUMNS
    candidates, rivals = found.table[:3], found.table[3:]
    assert set(candidates["n_components"]) == {1, 2, 3}
    assert candidates["chosen"].tolist() == [True, False, False]
    assert found.best["held_out"] == candidates["held_out"][0]
    assert (candidates["error"] == "").all()
    assert np.isinf(candidates["sigma"]).all()
    assert (candidates["round"] == 1).all()
    assert candidates["behind"].min() == 0.0
    same, best, kernel = rivals["model"]
    assert same == "Gaussian mixture of 2 components"
    assert best.startswith("Gaussian mixture of 2")
    assert kernel == "kernel density estimate"
    # On the same rows: the first rival is the chosen candidate.
    assert rivals["held_out"][3] == pytest.approx(found.best["held_out"], abs=1e-3)
    assert "this LAND is itself a Gaussian mixture" in found.sentence
    assert (found.criterion, found.purpose) == ("held_out", "density")
    assert not found.interrupted


def test_clusters_are_compared_with_labels(found):
    # One cluster holds rows of two classes; two are the classes themselves.
    table = found.table[:3].set_index("n_components")
    assert table["f_measure"][1] < 0.8
    assert table["f_measure"][2] == 1.0


@pytest.mark.filterwarnings("ignore:the chosen number of components")
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_information_criteria_are_those_of_all_rows(pair, criterion):
    found = select(pair, (1, 2, 3), "flat", criterion=criterion, random_state=0)
    table = found.table.set_index("n_components")
    for count in (1, 2):  # three components in two clouds have many optima
        mixture = GaussianMixture(count, random_state=0).fit(pair)
        expected = getattr(mixture, criterion)(pair)
        assert table[criterion][count] == pytest.approx(expected, rel=1e-3)
    assert found.best[criterion] == table[criterion].min()
    assert found.sentence == ""


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 2), "components, 2, is the largest that was tried; try more"),
        ((2, 3), "components, 2, is the smallest that was tried; try fewer"),
    ],
)
def test_a_choice_at_the_edge_of_the_range_says_so(pair, counts, message):
    with pytest.warns(UserWarning, match=message):
        select(pair, counts, "flat", random_state=0)


def test_two_clouds_are_the_stable_clusters(pair):
    found = select(pair, (1, 2, 3), "flat", purpose="clusters", random_state=0)
    table = found.table.set_index("n_components")
    assert found.best["n_components"] == 2
    assert table["stability"][2] == 1.0 > table["stability"][3]
    assert "2 components" in found.sentence


def test_a_cloud_has_no_clusters():
    X = np.random.default_rng(0).normal(size=(60, 2)) * [3.0, 1.0]
    found = select(X, (1, 2, 3), "flat", purpose="clusters", random_state=0)
    assert found.best["n_components"] == 1


# How the contest goes, with log densities that are told, and noise of mean zero.


@pytest.fixture
def told(monkeypatch):
    """Makes candidates as good as a function of components and metric says."""

    def tell(score, fails=lambda model: False):
        calls = []

        def judge(candidate, data, splits, clusters=False):
            model = candidate.model
            calls.append((model.n_components, model.metric, len(data)))
            if fails(model):
                raise ValueError("no such fit")
            values = score(model) + 0.01 * np.cos(
                np.arange(len(data)) * model.n_components
            )
            return Judgement(values, [], 1.0, 1.0, 10, 2)

        monkeypatch.setattr(contest, "judge", judge)
        return calls

    return tell


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(500, 2))


def _is_flat(model):
    return isinstance(model.metric, land.metrics.EuclideanMetric)


def test_the_best_third_goes_on(told, cloud):
    calls = told(lambda model: model.n_components - 10.0 * (not _is_flat(model)))
    metrics = ("diagonal", "full")
    with pytest.warns(UserWarning, match="largest"):
        found = select(cloud, (1, 2, 3, 4), metrics, random_state=0, **QUICK)
    sizes = [n for _, metric, n in calls if isinstance(metric, str)]
    assert sizes == [200] * 8 + [400] * 3 + [500] * 2
    curved = found.table[found.table["metric"].isin(metrics)]
    rounds = curved.groupby("n_components")["round"].max()
    assert rounds.to_dict() == {1: 1, 2: 1, 3: 2, 4: 3}
    assert (found.table[found.table["metric"] == "flat"]["round"] == 3).all()
    assert curved[curved["round"] == 3]["n_log_maps"].tolist() == [30, 30]


def test_ties_go_to_the_flat_metric_and_to_fewer_components(told, cloud):
    calls = told(lambda model: 3e-5 * model.n_components * (1 + (not _is_flat(model))))
    found = select(cloud, (2, 1, 3), "diagonal", random_state=0, **QUICK)
    assert (found.best["n_components"], found.best["metric"]) == (1, "flat")
    assert calls


def test_a_curved_metric_that_is_better_is_chosen_and_refitted(told):
    X = land.datasets.make_half_ellipse(60, random_state=0)
    told(lambda model: 0.0 if _is_flat(model) else 5.0)
    measures = ("lebesgue", "riemannian")
    settings = {"method": "least_squares", "sigma": 0.5} | QUICK
    found = select(X, 2, ("flat", "full"), measures, random_state=0, **settings)
    assert found.best["metric"] == found.model.metric == "full"
    assert found.model.sigma_ == 0.5
    assert found.model.n_features_in_ == 2
    assert set(found.table["reference"].dropna()) == {"lebesgue", "riemannian"}
    assert found.sentence.startswith("The curved metric pays here")


def test_a_failed_candidate_does_not_lose_the_others(told, cloud, capsys):
    told(lambda model: 0.0, fails=lambda model: model.n_components == 2)
    found = select(cloud, (1, 2), "diagonal", random_state=0, verbose=1, **QUICK)
    failed = found.table[found.table["n_components"] == 2]
    assert (failed["error"] == "ValueError: no such fit").all()
    assert failed["held_out"].isna().all()
    told_lines = capsys.readouterr().err.splitlines()
    assert "select: round 1 of 1  flat, n_components 1  log density" in told_lines[0]
    assert told_lines[0].endswith(" s left")
    assert "left" not in told_lines[3]
    assert any("no such fit" in line for line in told_lines)
    told(lambda model: 0.0, fails=lambda model: True)
    with pytest.raises(RuntimeError, match="all 1 candidates failed; ValueError: no"):
        select(cloud, 1, "flat", random_state=0)


def test_an_interrupt_keeps_the_last_standing(told, cloud):
    count = 0

    def interrupted(model):
        nonlocal count
        count += 1
        if count == 6:  # a flat and three curved ones, and the flat one of round 2
            raise KeyboardInterrupt
        return False

    told(lambda model: 0.0 if _is_flat(model) else 1.0, fails=interrupted)
    metrics = ("diagonal", "full", "density")
    settings = {"method": "least_squares", "sigma": 1.0, "random_state": 0} | QUICK
    with pytest.warns(UserWarning, match=r"ended early \(interrupted\)"):
        found = select(cloud[:210], 1, metrics, **settings)
    assert found.interrupted
    assert found.best["metric"] == found.model.metric == "diagonal"
    assert (found.table["round"] == 1).all()
    count = 5
    with pytest.raises(KeyboardInterrupt):
        select(cloud, 1, metrics, **settings)


def test_sigma_is_learned_for_the_finalists_only(told, cloud, monkeypatch):
    told(lambda model: 0.0 if _is_flat(model) else float(model.n_components))
    asked = []

    def learn(model, data, seed):
        asked.append((model.n_components, len(data)))
        candidate = Candidate(model, (0.5, 0.0))
        return Learned(candidate, 1.0, [{"sigma": 1.0}], 100, False)

    monkeypatch.setattr(contest, "learn", learn)
    settings = QUICK | {"sigma": "learn", "max_iter": 100}
    with pytest.warns(UserWarning, match="largest"):
        found = select(cloud, (1, 2, 3, 4), "diagonal", random_state=0, **settings)
    assert sorted(asked) == [(3, 500), (4, 500)]
    assert found.best["n_log_maps"] == 100 + 2 * 10
    assert found.model.learning_ == [{"sigma": 1.0}]
    expected = np.exp(0.5) * automatic_sigma(cloud, 4, sharp=True)
    assert found.model.sigma_ == pytest.approx(expected)


def test_the_same_seed_gives_the_same(pair):
    first, second = (
        select(pair, (1, 2, 3), "flat", purpose="clusters", random_state=7)
        for _ in range(2)
    )
    pd.testing.assert_frame_equal(
        first.table.drop(columns="seconds"), second.table.drop(columns="seconds")
    )
    np.testing.assert_array_equal(first.model.means_, second.model.means_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": ()}, "n_components must have at least one value"),
        ({"n_components": (1, 0)}, "n_components must be at least 1, got 0"),
        ({"n_components": "two"}, "n_components must be an integer, got 'two'"),
        ({"metric": "round"}, "metric must be 'flat', 'diagonal', .*got 'round'"),
        ({"reference": "dx"}, "reference must be 'lebesgue' or 'riemannian', got 'dx'"),
        ({"sigma": "guess"}, "sigma must be"),
        ({"labels": [1, 2]}, "labels must have one entry for each row of X, 60, got 2"),
        ({"labels": [None] * 60}, "labels must be known"),
        ({"criterion": "silhouette"}, "criterion must be 'held_out', 'bic' or 'aic'"),
        ({"purpose": "fun"}, "purpose must be 'density' or 'clusters', got 'fun'"),
        ({"purpose": "clusters", "criterion": "bic"}, "is for purpose='density' only"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0"),
        ({"X": np.zeros(5)}, "2D array"),
        ({"X": np.zeros((5, 2))}, "minimum of 25 is required"),
    ],
)
def test_arguments_that_make_no_sense(pair, arguments, message):
    with pytest.raises(ValueError, match=message):
        select(**({"X": pair} | arguments))
