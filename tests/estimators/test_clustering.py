"""Riemannian k-means against scikit-learn's in flat space, and along curves."""

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import land
from land.metrics import EuclideanMetric


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.0]])
    return np.concatenate([center + rng.normal(size=(30, 2)) for center in centers])


def test_flat_space_gives_k_means(clusters):
    start = clusters[[0, 30, 60]]
    truth = KMeans(3, init=start, n_init=1, tol=1e-10).fit(clusters)
    found = land.RiemannianKMeans(
        3, metric=EuclideanMetric(2), init=start, tol=1e-8
    ).fit(clusters)
    assert found.converged_
    np.testing.assert_allclose(
        found.cluster_centers_, truth.cluster_centers_, atol=1e-6
    )
    np.testing.assert_array_equal(found.labels_, truth.labels_)
    assert found.inertia_ == pytest.approx(truth.inertia_)
    np.testing.assert_allclose(
        found.transform(clusters), truth.transform(clusters), atol=1e-6
    )
    np.testing.assert_array_equal(found.predict(clusters), truth.predict(clusters))


def test_scores_and_names(clusters):
    frame = pd.DataFrame(clusters, columns=["east", "north"])
    start = clusters[[0, 30, 60]]
    options = {"metric": EuclideanMetric(2), "init": start, "tol": 1e-8}
    truth = KMeans(3, init=start, n_init=1, tol=1e-10).fit(clusters)
    found = land.RiemannianKMeans(3, **options).fit(frame)
    weights = np.arange(90.0)
    assert found.score(frame) == pytest.approx(truth.score(clusters))
    assert found.score(frame) == pytest.approx(-found.inertia_)
    assert found.score(frame, sample_weight=weights) == pytest.approx(
        truth.score(clusters, sample_weight=weights)
    )
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(90,\)"):
        found.score(frame, sample_weight=weights[:5])
    names = [f"riemanniankmeans{k}" for k in range(3)]
    assert found.get_feature_names_out().tolist() == names
    distances = found.set_output(transform="pandas").transform(frame)
    assert distances.columns.tolist() == names


def test_centres_are_the_intrinsic_means_of_their_clusters(moons):
    data = moons
    found = land.RiemannianKMeans(2, tol=1e-3, random_state=0).fit(data)
    assert found.converged_
    np.testing.assert_array_equal(found.predict(data), found.labels_)
    distances = found.transform(data)
    assert found.inertia_ == pytest.approx(np.sum(distances.min(axis=1) ** 2), rel=1e-3)
    for k, center in enumerate(found.cluster_centers_):
        logs = land.log_map(found.metric_, center, data[found.labels_ == k])
        drift = logs.tangents.mean(axis=0)
        spread = np.sqrt(np.mean(logs.lengths**2))
        assert np.sqrt(found.metric_.inner(center, drift, drift)) < 0.01 * spread


def test_bad_parameters(clusters):
    with pytest.raises(ValueError, match="n_clusters=99 must not exceed"):
        land.RiemannianKMeans(99).fit(clusters)
    with pytest.raises(ValueError, match="init must be 'k-means"):
        land.RiemannianKMeans(2, init="magic").fit(clusters)
    with pytest.raises(ValueError, match="init must have 2 rows"):
        land.RiemannianKMeans(2, init=clusters[:3]).fit(clusters)
    with pytest.warns(RuntimeWarning, match="clusters are empty"):
        land.RiemannianKMeans(3, metric=EuclideanMetric(2), random_state=0).fit(
            np.repeat(clusters[:2], 2, axis=0)
        )


def test_clusters_that_have_not_converged_say_so(moons):
    model = land.RiemannianKMeans(2, max_iter=1, tol=1e-9, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge within 1 steps"):
        model.fit(moons)
    assert not model.converged_
