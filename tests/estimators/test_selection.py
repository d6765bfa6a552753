"""Choice of components and sigma: flat space has a known answer."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

import land
from land.estimators.selection import Selection, select
from land.metrics import EuclideanMetric

COLUMNS = [
    "n_components",
    "sigma",
    "rho",
    "log_likelihood",
    "aic",
    "bic",
    "held_out",
    "f_measure",
    "objective",
    "seconds",
    "converged",
    "n_failed_log_maps",
    "warnings",
    "error",
]


@pytest.fixture(scope="module")
def pair():
    """Two normal clouds far apart."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(30, 2)), 8.0 + rng.normal(size=(30, 2))])


def flat_template(**parameters):
    given = {"metric": EuclideanMetric(2), "n_samples": 200} | parameters
    return land.LANDMixture(**given)


@pytest.fixture(scope="module")
def found(pair):
    return select(
        pair,
        (1, 2, 3),
        estimator=flat_template(),
        labels=["a"] * 29 + [None] + ["b"] * 30,
        held_out=True,
        random_state=0,
    )


def test_finds_the_clusters_that_gaussian_mixtures_find(found, pair):
    mixtures = [GaussianMixture(k, random_state=0).fit(pair) for k in (1, 2, 3)]
    bic = [mixture.bic(pair) for mixture in mixtures]
    assert np.argmin(bic) == 1
    assert found.best["n_components"] == found.model.n_components == 2
    # Three components in two clouds have many optima; up to two have one.
    np.testing.assert_allclose(found.table["bic"][:2], bic[:2], rtol=1e-3)
    aic = [mixture.aic(pair) for mixture in mixtures]
    np.testing.assert_allclose(found.table["aic"][:2], aic[:2], rtol=1e-3)
    assert found.table["held_out"][1] > found.table["held_out"][0] + 0.1


def test_table_has_a_row_for_each_candidate(found):
    assert isinstance(found, Selection)
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table.columns) == COLUMNS
    assert found.table["n_components"].tolist() == [1, 2, 3]
    assert found.table["converged"].all()
    assert (found.table["error"] == "").all()
    assert (found.table["n_failed_log_maps"] == 0).all()
    assert (found.table["seconds"] > 0.0).all()
    assert found.table[["sigma", "rho"]].isna().all(axis=None)  # the metric was given
    assert found.criterion == "bic"
    assert not found.interrupted
    chosen = found.table.iloc[found.table["bic"].argmin()]
    for name in ("n_components", "log_likelihood", "aic", "bic", "held_out", "error"):
        assert found.best[name] == chosen[name]


def test_held_out_rows_are_not_trained_on(pair):
    # A row far from all others costs nothing unless it is left out of the fit.
    X = np.vstack([pair, [[1e3, -1e3]]])
    chosen = select(
        X,
        1,
        estimator=flat_template(),
        criterion="held_out",
        test_size=0.5,
        random_state=_seed_holding_out(len(X) - 1, len(X)),
    )
    assert chosen.best["held_out"] < -100.0
    assert chosen.best["log_likelihood"] / len(X) > -20.0


def _seed_holding_out(row, n):
    for seed in range(50):
        _, test = train_test_split(np.arange(n), test_size=0.5, random_state=seed)
        if row in test:
            return seed
    raise AssertionError


def test_clusters_are_compared_with_labels(found):
    # One cluster holds 29 and 30 rows of two classes; two are the classes themselves.
    one = 29 / 59 * 58 / (29 + 59) + 30 / 59 * 60 / (30 + 59)
    np.testing.assert_allclose(found.table["f_measure"][:2], [one, 1.0])
    assert found.table["f_measure"][2] < 1.0


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 2), "components, 2, is the largest that was tried; try more"),
        ((2, 3), "components, 2, is the smallest that was tried; try fewer"),
    ],
)
def test_a_choice_at_the_edge_of_the_range_says_so(pair, counts, message):
    template = flat_template(method="least_squares")
    with pytest.warns(UserWarning, match=message):
        select(pair, counts, estimator=template, random_state=0)


class Told(land.LANDMixture):
    """Has the scores that it is told, by its number of components."""

    scores: ClassVar[dict[int, tuple[float, float, float]]] = {}

    def fit(self, X, y=None):
        self.interrupted_, self.converged_ = False, True
        self.objective_, self.n_failed_log_maps_ = 0.0, 0
        self.sigma_ = np.nan if self.sigma == "auto" else self.sigma
        self.n_rows_ = len(X)
        return self

    @property
    def n_parameters_(self):
        return self.scores[self.n_components][1]

    def score_samples(self, X, measure="lebesgue"):
        which = 0 if len(X) == self.n_rows_ else 2
        return np.full(len(X), self.scores[self.n_components][which] / len(X))


@pytest.mark.filterwarnings("ignore:the chosen number of components")
def test_criteria_decide(pair):
    # Log likelihood, number of parameters, and the same of held-out rows.
    Told.scores = {1: (-9.0, 1, -3.0), 2: (-7.0, 2, -4.0), 3: (-5.5, 3, -2.0)}
    penalty = np.log(len(pair))
    expected = {
        name: min((1, 2, 3), key=lambda k, f=f: f(*Told.scores[k]))
        for name, f in {
            "bic": lambda total, count, _: penalty * count - 2 * total,
            "aic": lambda total, count, _: 2 * count - 2 * total,
            "held_out": lambda total, count, rest: -rest,
        }.items()
    }
    assert len(set(expected.values())) > 1
    for criterion, best in expected.items():
        chosen = select(pair, (1, 2, 3), estimator=Told(), criterion=criterion)
        assert chosen.best["n_components"] == best


def test_a_failed_candidate_does_not_lose_the_others(pair, capsys):
    found = select(
        pair, (61, 2, 70), estimator=flat_template(), random_state=0, verbose=1
    )
    assert found.best["n_components"] == 2
    errors = found.table["error"].tolist()
    assert errors[0].startswith("ValueError: n_components=61 must not exceed")
    assert errors[1] == ""
    assert "n_components=70" in errors[2]
    assert not found.table["converged"][0]
    assert np.isnan(found.table["bic"][0])
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert len(lines) == 3
    assert "n_components=61 must not exceed" in lines[0]
    assert lines[1].startswith("select: 2 of 3  n_components 2")
    assert "bic" in lines[1]


def test_candidates_without_a_finite_score_are_not_chosen(pair):
    Told.scores = {1: (-9.0, 1, 0.0), 2: (np.nan, 1, 0.0)}
    assert select(pair, (1, 2), estimator=Told()).best["n_components"] == 1
    with pytest.raises(RuntimeError, match="none of 1 candidates has a finite bic"):
        select(pair, 2, estimator=Told())


def test_warnings_are_kept_for_all_and_repeated_for_the_chosen(pair):
    X = pair * [1.0, 0.0]
    template = flat_template(method="least_squares")
    with pytest.warns(RuntimeWarning, match="the chosen model warns: X is constant"):
        found = select(X, (1, 2, 3), estimator=template, random_state=0)
    assert found.table["warnings"].str.contains("constant in column").all()
    assert (found.table["error"] == "").all()


def test_interrupt_keeps_the_finished_candidates(pair):
    template = flat_template(callback=_interrupt_fit_number(2))
    with pytest.warns(
        UserWarning, match=r"ended after 1 of 3 candidates \(interrupted\)"
    ):
        found = select(pair, (1, 2, 3), estimator=template, random_state=0)
    assert found.best["n_components"] == 1
    assert found.table["error"].tolist() == ["", "interrupted", "interrupted"]
    assert found.interrupted is True


def _interrupt_fit_number(number):
    """A callback that presses Ctrl-C in a fit, after its first step."""
    first_steps = []

    def callback(step):
        if step.stage == "search":
            return
        if step.iteration == 0:
            first_steps.append(step)
        elif len(first_steps) == number:
            raise KeyboardInterrupt

    return callback


@pytest.mark.slow  # each process compiles for itself
def test_processes_give_the_same(found, pair):
    with pytest.warns(UserWarning, match="largest"):
        other = select(
            pair, (1, 2), estimator=flat_template(), random_state=0, n_jobs=2
        )
    other_fits = ("seconds", "held_out", "f_measure")
    same = [name for name in COLUMNS if name not in other_fits]
    pd.testing.assert_frame_equal(other.table[same], found.table[same][:2], rtol=1e-6)
    np.testing.assert_allclose(other.model.means_, found.model.means_, rtol=1e-6)
    np.testing.assert_array_equal(other.model.predict(pair), found.model.predict(pair))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": ()}, "'n_components' need to be a non-empty"),
        ({"n_components": (1, 0)}, "n_components must be at least 1, got 0"),
        ({"n_components": "two"}, "n_components must be an integer, got 'two'"),
        ({"sigma": []}, "'sigma' need to be a non-empty"),
        ({"sigma": 0.1, "estimator": flat_template()}, "sigma has no effect"),
        ({"labels": [1, 2]}, "labels must have one entry for each row of X, 60, got 2"),
        ({"labels": [None] * 60}, "labels must be known"),
        ({"estimator": land.LAND()}, "estimator must be an instance of land.LANDMix"),
        ({"criterion": "silhouette"}, "criterion must be 'bic', 'aic' or 'held"),
        ({"criterion": None}, "criterion must be .*, got None"),
        ({"held_out": True, "test_size": 1.0}, "'test_size' parameter"),
        ({"held_out": True, "test_size": 0.99}, "train set will be empty"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0"),
        ({"X": np.zeros(5)}, "2D array"),
    ],
)
def test_arguments_that_make_no_sense(pair, arguments, message):
    with pytest.raises(ValueError, match=message):
        select(**({"X": pair} | arguments))
