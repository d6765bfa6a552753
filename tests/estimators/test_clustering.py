"""Riemannian k-means against scikit-learn's in flat space, and along curves."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

import land
from land import f_measure
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


# The F-measure: cases computed by hand.


@pytest.mark.parametrize(
    ("classes", "clusters", "expected"),
    [
        # Two classes of the same size in one cluster: P = 1/2, R = 1.
        ("aabb", "0000", 2 / 3),
        # Singletons: P = 1, R = 1/2 for each class.
        ("aabb", "0123", 2 / 3),
        # Every cluster holds half of every class: P = R = 1/2.
        ("aabb", "0101", 1 / 2),
        # a: best with 0, P = 3/4, R = 3/4. b: 1, P = 2/3, R = 2/3. c: 2, P = R = 1.
        ("aaaabbbc", "00010112", 4 / 8 * 3 / 4 + 3 / 8 * 2 / 3 + 1 / 8),
        # Both classes are matched with the cluster 0: a 2*3/(3+5), b 2*2/(4+5) > 1/3.
        ("aaabbbb", "0000012", 3 / 7 * 3 / 4 + 4 / 7 * 4 / 9),
        # One row.
        ("a", "0", 1.0),
    ],
)
def test_by_hand(classes, clusters, expected):
    assert f_measure(list(classes), list(clusters)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "classes",
    [
        ["w", "w", "n1", "rem", "rem"],
        np.array(["w", "w", "n1", "rem", "rem"]),
        np.array([0.5, 0.5, -1.0, 2.0, 2.0]),
        jnp.array([0, 0, 1, 2, 2]),
        pd.Series(["w", "w", "n1", "rem", "rem"], index=[9, 8, 7, 6, 5]),
        pd.Series(["w", "w", "n1", "rem", "rem"], dtype="category"),
        pd.Series([1, 1, 2, 3, 3], dtype="Int64"),
    ],
)
def test_any_kind_of_labels(classes):
    # Two rows with F = 1, one with 2*1/(1+2), two with 2*1/(2+1).
    assert f_measure(classes, [0, 0, 1, 1, 2]) == pytest.approx(
        2 / 5 + 1 / 5 * 2 / 3 + 2 / 5 * 2 / 3
    )


@pytest.mark.parametrize(
    ("classes", "clusters", "message"),
    [
        ([0, 1], [0], "same length, got 2 and 1"),
        ([], [], "minimum of 1"),
        (np.zeros((3, 1)), [0, 0, 0], r"one label for each row, got shape \(3, 1\)"),
        ("ab", [0, 0], "labels_true must be numbers or words"),
        (3, [0], "labels_true must be numbers or words"),
        ([1j, 2.0], [0, 0], "labels_true must be numbers or words"),
        ([0, 0], [], "labels_pred must be numbers or words"),
        (np.array([0, "a"], dtype=object), [0, 0], "must be numbers or words"),
        ([0, 0], [np.nan, 1.0], "labels_pred must be .* contains NaN"),
        (
            pd.Series([1, None], dtype="Int64"),
            [0, 0],
            "labels_true must be .* contains NaN",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(classes, clusters, message):
    with pytest.raises(ValueError, match=message):
        f_measure(classes, clusters)
