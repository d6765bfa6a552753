"""Whatever a user hands in by mistake is answered by an error that names it."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import land
from land.metrics import EuclideanMetric, FunctionMetric

DATA = np.random.default_rng(0).normal(size=(30, 2))
FLAT = EuclideanMetric(2)


def spoiled(value):
    data = DATA.copy()
    data[3, 1] = value
    return data


@pytest.mark.parametrize(
    ("X", "what"),
    [
        (spoiled(np.nan), "contains NaN"),
        (spoiled(np.inf), "contains infinity"),
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (DATA[:1], "1 sample"),
        (DATA[:, 0], "Expected 2D array"),
        (DATA[None], "3"),
        ([["a", "b"], ["c", "d"]], "could not convert string"),
        ([[10**400, 1], [2, 3]], "X must be an array of real numbers: int too large"),
        (1e200 * DATA, r"X must be at most 1e\+150 in size"),
        ([[1.0, 2.0], [3.0]], "X must be an array of real numbers"),
    ],
)
def test_bad_data(X, what):
    with pytest.raises(ValueError, match=what):
        land.LAND().fit(X)


@pytest.mark.parametrize("name", ["method", "optimizer", "volume", "covariance_type"])
@pytest.mark.parametrize("value", ["foo", "ML", None])
def test_unknown_words(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*, got {value!r}"):
        land.LAND(**{name: value}).fit(DATA)


@pytest.mark.parametrize(
    ("init", "what"),
    [
        (np.zeros((1, 2)), "init must have 1 axes"),
        ([0.0, np.nan], "init must be finite"),
        (None, "init must"),
        ("foo", "init must be 'least_squares', 'random' or a mean, got 'foo'"),
    ],
)
def test_bad_init(init, what):
    with pytest.raises(ValueError, match=what):
        land.LAND(init=init).fit(DATA)


@pytest.mark.parametrize("name", ["sigma", "rho"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "foo", None, True])
def test_bad_widths(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be .*positive.*, got"):
        land.LAND(**{name: value}).fit(DATA)


@pytest.mark.parametrize(
    ("metric", "what"),
    [
        ("euclidean", "metric must be 'diagonal', 'full', 'density', None or an inst"),
        (EuclideanMetric, "None or an instance of land.metrics.Metric, got"),
        (EuclideanMetric(3), "metric has dimension 3, but X has 2 features"),
    ],
)
def test_bad_metric(metric, what):
    with pytest.raises(ValueError, match=what):
        land.LAND(metric=metric).fit(DATA)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.where(x[0] > 0.0, 100.0, 1.0) + 0.0 * x,
        lambda x: 1.5 + jnp.sin(1e3 * x) * jnp.cos(1e3 * x[::-1]),
    ],
    ids=["step", "noise"],
)
def test_a_metric_that_is_not_smooth(fn):
    metric = FunctionMetric(fn, 2)
    with pytest.raises(ValueError, match=r"^metric must be smooth .* of 30 rows"):
        land.LAND(metric=metric).fit(DATA)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_samples", 1),
        ("n_samples", "many"),
        ("max_iter", 0),
        ("tol", -1.0),
    ],
)
def test_numbers_out_of_range(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        land.LAND(metric=FLAT, **{name: value}).fit(DATA)


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        (-np.ones(30), "sample_weight must not be negative"),
        (np.ones(29), r"sample_weight must have shape \(30,\).*got \(29,\)"),
        (np.zeros(30), "sample_weight must be positive for at least 2 rows"),
        (np.full(30, np.nan), "sample_weight must be finite"),
        ("heavy", "sample_weight must be an array of real numbers"),
    ],
)
def test_bad_weights(weights, what):
    with pytest.raises(ValueError, match=what):
        land.LAND(metric=FLAT).fit(DATA, sample_weight=weights)


@pytest.mark.parametrize("verbose", [np.ones(3), "yes", 1.5, None])
def test_bad_verbosity(verbose):
    with pytest.raises(ValueError, match=r"^verbose must be a bool or an integer, got"):
        land.LAND(metric=FLAT, verbose=verbose).fit(DATA)


@pytest.mark.parametrize(
    ("X", "what"),
    [
        ([[10**400, 1], [2, 3]], "X must be an array of real numbers: int too large"),
        (1e200 * DATA, r"X must be at most 1e\+150 in size"),
        (np.ma.masked_greater(DATA, 1.0), "X has masked values"),
    ],
)
def test_bad_data_of_models_that_hold_models(X, what):
    y = np.arange(len(X)) % 2
    for model in (land.Standardized(land.LAND()), land.LANDClassifier()):
        with pytest.raises(ValueError, match=what):
            model.fit(X, y)


@pytest.mark.parametrize("estimator", [None, "LAND", land.LAND, [], DATA])
def test_what_is_standardized_must_be_a_model(estimator):
    with pytest.raises(ValueError, match=r"^estimator must be an estimator of land"):
        land.Standardized(estimator).fit(DATA)


@pytest.mark.parametrize("metric", [None, DATA, "diagonal"])
def test_distances_need_a_metric(metric):
    with pytest.raises(ValueError, match=r"^metric must be an instance of"):
        land.pairwise_distances(metric, DATA)


@pytest.mark.parametrize("extra", [1, "note", [1, 2], DATA])
def test_what_is_stored_beside_a_model_must_have_names(extra, flat, tmp_path):
    with pytest.raises(ValueError, match=r"^extra must be a mapping or None, got"):
        flat.save(tmp_path / "model", extra)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("callback", [1, "print", [print, "print"], {print}])
def test_callback_must_be_callable(callback):
    with pytest.raises(ValueError, match="callback must be callable, a list of"):
        land.LAND(metric=FLAT, callback=callback).fit(DATA)


@pytest.mark.parametrize("seed", ["lucky", -1, 1.5])
def test_bad_random_state(seed):
    with pytest.raises(ValueError, match=r"^random_state must be None, an integer"):
        land.LAND(metric=FLAT, random_state=seed).fit(DATA)


def test_identical_rows_have_no_distribution():
    with pytest.raises(ValueError, match="different rows"):
        land.LAND().fit(np.ones((10, 2)))


@pytest.mark.parametrize(
    "method", ["score_samples", "score", "sample", "tangents", "aic", "bic"]
)
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(land.LAND(), method)(DATA)


def test_unknown_measure(flat, cloud):
    with pytest.raises(ValueError, match=r"measure must be .*, got 'euclidean'"):
        flat.score_samples(cloud, "euclidean")
