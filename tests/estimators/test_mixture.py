"""Mixtures against scikit-learn's in flat space, against one LAND, and on the moons."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.mixture import GaussianMixture

import land
from land.estimators.first_clusters import (
    first_clusters,
    merged_clusters,
    spectral_clusters,
)
from land.geodesics.graph import graph_distances
from land.metrics import EuclideanMetric

FAST = {"n_samples": 500, "random_state": 0}


@pytest.fixture(scope="module")
def clusters():
    """Two slanted clouds, far enough apart to be settled by the objective's digits."""
    rng = np.random.default_rng(0)
    shapes = [[[1.0, 0.4], [0.0, 0.5]], [[0.5, 0.0], [0.3, 0.9]]]
    centers = [[0.0, 0.0], [4.0, 3.0]]
    return np.concatenate(
        [
            np.array(center) + rng.normal(size=(60 + 30 * k, 2)) @ np.array(shape)
            for k, (center, shape) in enumerate(zip(centers, shapes, strict=True))
        ]
    )


@pytest.fixture(scope="module")
def flat(clusters):
    model = land.LANDMixture(2, metric=EuclideanMetric(2), tol=1e-9, **FAST)
    return model.fit(clusters)


def test_shares_are_those_of_the_densities(clusters, flat):
    densities = [
        weight * multivariate_normal(mean, covariance).pdf(clusters)
        for weight, mean, covariance in zip(
            flat.weights_, flat.means_, flat.covariances_, strict=True
        )
    ]
    shares = np.transpose(densities / np.sum(densities, axis=0))
    np.testing.assert_allclose(flat.predict_proba(clusters), shares, atol=1e-5)
    np.testing.assert_array_equal(flat.predict(clusters), flat.fit_predict(clusters))


def test_samples_come_with_labels(flat):
    points, labels = flat.sample(400, random_state=0)
    assert points.shape == (400, 2)
    assert np.all(np.diff(labels) >= 0)
    np.testing.assert_allclose(np.bincount(labels) / 400, flat.weights_, atol=0.1)
    for k in range(2):
        own = points[labels == k]
        np.testing.assert_allclose(own.mean(axis=0), flat.means_[k], atol=0.3)
    again, _ = flat.sample(400, random_state=0)
    np.testing.assert_array_equal(points, again)


def test_a_component_out_of_reach_is_left_out(flat, clusters, monkeypatch):
    points = clusters[:4]
    whole = flat.score_samples(points)
    lost = iter(np.array([[True, True, False, False], [True, False, False, False]]))

    def log_map(metric, base, points):
        logs = land.log_map(metric, base, points)
        return replace(logs, converged=logs.converged & ~next(lost))

    monkeypatch.setattr("land.estimators.scoring.log_map", log_map)
    with pytest.warns(RuntimeWarning) as caught:
        scores = flat.score_samples(points)
    messages = [str(each.message) for each in caught]
    assert any("1 of 4" in text and "left out" in text for text in messages)
    assert any("1 of 4" in text and "is NaN" in text for text in messages)
    assert np.isnan(scores[0])
    other = multivariate_normal(flat.means_[1], flat.covariances_[1])
    expected = np.log(flat.weights_[1]) + other.logpdf(points[1])
    assert scores[1] == pytest.approx(expected, abs=1e-3)
    np.testing.assert_allclose(scores[2:], whole[2:])


def test_one_component_is_one_distribution(smooth_model, arc):
    one = smooth_model
    mixture = land.LANDMixture(1, sigma=0.8, rho=0.5, **FAST).fit(arc)
    assert mixture.weights_ == pytest.approx([1.0])
    slack = 3.0 * one.log_constant_stderr_ + 1e-3
    assert mixture.objective_ == pytest.approx(one.objective_, abs=slack)


def test_spectral_clusters_go_by_distances_along_the_data():
    rings, labels = make_circles(300, factor=0.5, noise=0.07, random_state=5)
    metric = land.metrics.LocalDiagonalMetric(rings, sigma=0.1, rho=0.01)
    found = spectral_clusters(graph_distances(metric, rings), 2, 7)
    assert land.f_measure(labels, found) == 1.0
    gaussian = GaussianMixture(2, random_state=0).fit_predict(rings)
    assert land.f_measure(labels, gaussian) < 0.9


def test_merged_clusters_are_bent():
    moons, labels = land.datasets.make_two_moons(600, random_state=0)
    assert land.f_measure(labels, merged_clusters(moons, 2, 1e-6, seed=0)) > 0.99


def test_first_clusters_differ():
    """Clear clusters have one clustering, others several."""
    clouds = np.random.default_rng(0).normal(size=(60, 2))
    for gap, count in ((20.0, 1), (0.0, 3)):
        rows = clouds + gap * (np.arange(60) % 2)[:, None]
        metric = land.metrics.LocalDiagonalMetric(rows, sigma=1.0, rho=0.1)
        found = first_clusters(metric, rows, 2, 1e-6, seed=0)
        assert len(found) == count
        for each in found:
            np.testing.assert_array_equal(each.sum(axis=1), np.ones(60))


def test_equal_rows_have_first_clusters():
    rows = np.zeros((30, 2))
    metric = land.metrics.LocalDiagonalMetric(rows, sigma=0.5, rho=0.1)
    found = first_clusters(metric, rows, 2, 1e-6, seed=0)[0]
    np.testing.assert_array_equal(found.sum(axis=1), np.ones(30))


def test_the_best_of_the_first_clusters_is_chosen():
    """Of 200 moons of this seed spectral clustering has an F-measure of 0.79."""
    data, labels = land.datasets.make_two_moons(400, random_state=2)
    rows = np.random.default_rng(2).permutation(400)[:200]
    model = land.LANDMixture(2, n_samples=1000, random_state=2).fit(data[rows])
    assert land.f_measure(labels[rows], model.predict(data[rows])) > 0.98


@pytest.mark.slow
def test_two_moons_are_found():
    data, labels = land.datasets.make_two_moons(random_state=0)
    model = land.LANDMixture(2, n_samples=600, random_state=0).fit(data)
    gaussian = GaussianMixture(2, random_state=0).fit(data)
    assert land.f_measure(labels, gaussian.predict(data)) < 0.9
    assert land.f_measure(labels, model.predict(data)) >= 0.98
    assert rises(model) <= 0.0
    for mean in model.means_:
        assert np.linalg.norm(data - mean, axis=1).min() < model.sigma_


def rises(model):
    """The largest rise of the objective in a step, beyond three standard errors.

    Constants in a fit are allowed errors of 5e-4: their nodes serve several covariances
    until they are placed anew. The last entry is no step, but another evaluation: in
    other directions and without mass that was counted twice, covariances solved again.
    """
    stderr = max(5e-4, float(model.weights_ @ model.log_constants_stderr_))
    changes = np.diff([step.objective for step in model.history_[:-1]])
    return changes.max(initial=0.0) - 3.0 * stderr


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the fit did not converge")
@pytest.mark.parametrize(
    ("name", "count"),
    [("circle", 3), pytest.param("s_curve", 4, marks=pytest.mark.nightly)],
)
def test_the_objective_never_rises(name, count):
    data = getattr(land.datasets, f"make_{name}")(60, random_state=0)
    smooth = {"sigma": 0.6, "rho": 0.3, "tol": 1e-9, "max_iter": 8}
    model = land.LANDMixture(count, **smooth, **FAST).fit(data)
    assert len(model.history_) > 2
    assert rises(model) <= 0.0
    assert model.weights_.sum() == pytest.approx(1.0)


def test_a_component_without_data_is_named(clusters):
    """Its mean is given where only a row without weight is."""
    data = np.concatenate([clusters, [[50.0, 50.0]]])
    weights = np.append(np.ones(len(clusters)), 0.0)
    start = np.stack([clusters[0], clusters[-1], data[-1]])
    model = land.LANDMixture(3, metric=EuclideanMetric(2), init=start, **FAST)
    with pytest.warns(RuntimeWarning, match=r"component\(s\) \[2\] have lost"):
        model.fit(data, sample_weight=weights)
    assert model.weights_[2] < 1e-6
    assert np.all(np.isfinite(model.score_samples(clusters)))
    assert set(model.predict(clusters)) == {0, 1}


@pytest.mark.parametrize("init", ["gmm", "least_squares", "random", "given"])
@pytest.mark.parametrize("method", ["ml", "least_squares"])
def test_every_start(clusters, init, method):
    options = {"metric": EuclideanMetric(2), "method": method, "n_init": 2, **FAST}
    start = clusters[[0, -1]] if init == "given" else init
    model = land.LANDMixture(2, init=start, **options).fit(clusters)
    assert model.converged_
    assert np.ptp(model.means_[:, 0]) > 1.5
    assert clone(model).get_params()["n_init"] == 2


def test_too_many_components(clusters):
    few = clusters[:5]
    with pytest.raises(ValueError, match="n_components=6 must not exceed"):
        land.LANDMixture(6, **FAST).fit(few)
    data = np.repeat(clusters[:3], 4, axis=0)
    model = land.LANDMixture(3, metric=EuclideanMetric(2), **FAST).fit(data)
    assert np.all(np.isfinite(model.score_samples(data)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"init": "magic"}, "init must be 'auto', 'gmm', 'least_squares'"),
        ({"init": np.zeros((3, 2))}, "init must have 2 rows"),
        ({"n_init": 0}, "n_init must be at least 1"),
    ],
)
def test_bad_parameters(clusters, change, message):
    model = land.LANDMixture(**({"n_components": 2} | change))
    with pytest.raises(ValueError, match=message):
        model.fit(clusters)
