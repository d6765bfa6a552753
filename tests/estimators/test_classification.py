"""The classifier against scikit-learn's discriminants in flat space, and on curves."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.naive_bayes import GaussianNB

import land
from land.metrics import EuclideanMetric

FLAT = EuclideanMetric(2)


@pytest.fixture(scope="module")
def classes():
    """Three overlapping classes of different sizes, with words for names."""
    rng = np.random.default_rng(0)
    sizes, centers = (20, 30, 40), np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]])
    shapes = np.eye(2) + 0.2 * rng.normal(size=(3, 2, 2))
    data = [
        center + rng.normal(size=(n, 2)) @ shape
        for n, center, shape in zip(sizes, centers, shapes, strict=True)
    ]
    return np.concatenate(data), np.repeat(["a", "b", "c"], sizes)


def discriminant(covariance, priors):
    """scikit-learn's, with covariances of maximum likelihood."""
    if covariance == "diag":
        return GaussianNB(priors=priors, var_smoothing=0.0)
    if covariance == "shared":
        return LinearDiscriminantAnalysis("lsqr", priors=priors)
    return MaximumLikelihoodQDA(priors=priors)


class MaximumLikelihoodQDA(QuadraticDiscriminantAnalysis):
    """It divides by N - 1 in some versions."""

    def fit(self, X, y):
        super().fit(X, y)
        parts = zip(self.classes_, self.rotations_, strict=True)
        self.scalings_ = [np.var(X[y == k] @ turn, axis=0) for k, turn in parts]
        return self


# Covariances have a ridge of a millionth of the variance; it shows in log densities.
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
@pytest.mark.parametrize("covariance", ["full", "shared", "diag"])
def test_flat_space_gives_the_classical_discriminants(classes, covariance, priors):
    X, y = classes
    truth = discriminant(covariance, priors)
    if covariance == "shared" and priors is not None:  # it pools with the priors
        truth = discriminant(covariance, None).fit(X, y)
        truth.intercept_ += np.log(priors) - np.log(truth.priors_)
    else:
        truth.fit(X, y)
    model = land.LANDClassifier(covariance, priors, metric=FLAT, random_state=0)
    found = model.fit(X, y)
    new = X[::-1]
    np.testing.assert_array_equal(found.predict(new), truth.predict(new))
    np.testing.assert_allclose(
        found.predict_proba(new), truth.predict_proba(new), rtol=0.0, atol=1e-6
    )
    np.testing.assert_allclose(
        found.predict_log_proba(new), truth.predict_log_proba(new), rtol=1e-5, atol=1e-6
    )


@pytest.fixture(scope="module")
def bent():
    X, y = land.datasets.make_two_moons(80, random_state=0)
    return land.LANDClassifier(n_samples=300, tol=1e-2, random_state=0).fit(X, y)


def test_bent_classes(bent):
    new, kind = land.datasets.make_two_moons(80, random_state=1)
    X, y = land.datasets.make_two_moons(80, random_state=0)
    straight = QuadraticDiscriminantAnalysis().fit(X, y)
    assert bent.score(new, kind) > straight.score(new, kind) + 0.03
    assert all(each.geometry_gain_ > 0.05 for each in bent.distributions_)
    outlier = bent.score_samples([[0.5, 4.0]])
    assert outlier < bent.score_samples(X).min()


def test_one_covariance_for_all_has_one_metric():
    X, y = land.datasets.make_two_moons(60, random_state=0)
    options = {"n_samples": 300, "tol": 1e-2, "random_state": 0}
    model = land.LANDClassifier("shared", sigma=0.6, rho=0.5, **options).fit(X, y)
    first, second = model.distributions_
    assert first.metric_ is second.metric_
    frames = [
        root @ each.covariance_ @ root
        for each in (first, second)
        for root in [np.sqrt(each.metric_.tensor(each.mean_))]
    ]
    np.testing.assert_allclose(*frames)
    constant = land.log_constant(
        second.metric_, second.mean_, second.covariance_, reference="lebesgue"
    )
    assert second.log_constant_ == pytest.approx(constant.value, abs=0.05)


def check_file(model, X, path, **options):
    """What is loaded predicts and draws as what was saved."""
    model.save(path)
    loaded = land.load(path, **options)
    assert vars(loaded).keys() == vars(model).keys()
    assert loaded.get_params().keys() == model.get_params().keys()
    assert loaded.predict(X).dtype == model.predict(X).dtype
    for name in ("predict", "predict_proba", "score_samples"):
        expected = getattr(model, name)(X)
        np.testing.assert_array_equal(getattr(loaded, name)(X), expected)
    for mine, theirs in zip(loaded.sample(9, 3), model.sample(9, 3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    return loaded


def test_files_of_bent_classes(bent, tmp_path):
    X, _ = land.datasets.make_two_moons(20, random_state=1)
    loaded = check_file(bent, X, tmp_path / "model")
    assert loaded.metric is None
    assert loaded.distributions_[0].sigma_ == bent.distributions_[0].sigma_


@pytest.mark.parametrize("covariance", ["full", "shared", "diag"])
@pytest.mark.parametrize("kind", [str, object])
def test_files_of_flat_classes(classes, covariance, kind, tmp_path):
    X, y = classes
    model = land.LANDClassifier(covariance, [0.2, 0.5, 0.3], metric=FLAT)
    loaded = check_file(model.fit(X, y.astype(kind)), X, tmp_path / "model")
    assert isinstance(loaded.metric, EuclideanMetric)


def test_files_with_a_shared_or_a_given_metric(classes, tmp_path):
    X, y = classes
    options = {"n_samples": 100, "tol": 0.1, "random_state": 0}
    smooth = land.LANDClassifier("shared", sigma=2.0, rho=50.0, **options).fit(X, y)
    assert check_file(smooth, X[:5], tmp_path / "shared").sigma_ == 2.0
    metric = land.metrics.FunctionMetric(lambda x: 1.0 + 0.0 * x, dim=2)
    own = land.LANDClassifier(metric=metric, **options).fit(X, y)
    check_file(own, X[:5], tmp_path / "own", metric=metric)
    with pytest.raises(land.ModelFileError, match="its metric is a function"):
        land.load(tmp_path / "own")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariance": "tied"}, "covariance must be 'full', 'shared' or 'diag'"),
        ({"priors": [0.5, 0.5]}, r"priors must have shape \(3,\)"),
        ({"priors": [0.5, 0.6, 0.1]}, "priors must not be negative, and sum to one"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"sigma": "learn", "metric": None}, "need at least 4 of them, got 3"),
        (
            {"covariance": "shared", "sigma": "learn", "metric": None},
            "sigma must be 'auto' or a positive number, got 'learn'",
        ),
    ],
)
def test_bad_parameters(classes, options, message):
    X, y = classes
    with pytest.raises(ValueError, match=message):
        land.LANDClassifier(**{"metric": FLAT} | options).fit(X[17:53], y[17:53])


def test_bad_classes(classes):
    X, _ = classes
    with pytest.raises(ValueError, match="at least 2 classes, got 1"):
        land.LANDClassifier(metric=FLAT).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="2 rows of each class, got 1 of"):
        land.LANDClassifier(metric=FLAT).fit(X, np.arange(len(X)) == 3)
