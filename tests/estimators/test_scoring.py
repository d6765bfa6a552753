"""Many rows and jobs: how they are shared out changes no result, nor the memory."""

import json
import sys

import joblib
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

import land
from land.estimators import scoring
from land.estimators.scoring import in_chunks, spread
from land.metrics import EuclideanMetric, FunctionMetric, LocalDiagonalMetric

ROWS = np.arange(30.0).reshape(10, 3)


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of at most eight rows."""
    monkeypatch.setattr(scoring, "CHUNK_ROWS", 8)


def test_values_are_those_of_the_rows(small_chunks):
    sizes = []

    def squares(rows):
        sizes.append(len(rows))
        return rows**2

    np.testing.assert_array_equal(in_chunks(squares, ROWS), ROWS**2)
    assert sizes == [5, 5]  # and not eight and two
    np.testing.assert_array_equal(in_chunks(lambda rows: rows[:, 0], ROWS), ROWS[:, 0])


def test_scores_do_not_depend_on_chunks(smooth_model, arc, monkeypatch):
    whole = [smooth_model.score_samples(arc), smooth_model.tangents(arc)]
    monkeypatch.setattr(scoring, "CHUNK_ROWS", 8)
    parts = [smooth_model.score_samples(arc), smooth_model.tangents(arc)]
    for value, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-4, atol=1e-5)


PROGRAM = """
import json, resource
import numpy as np
import land
from land.estimators import scoring
from land.metrics import EuclideanMetric

def peak():
    "Peak resident memory so far, in MiB."
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

scoring.CHUNK_ROWS = 1024
rows = np.random.default_rng(0).standard_normal((6 * 1024, 64))
model = land.RiemannianKMeans(1, metric=EuclideanMetric(64), init=rows[:1], tol=9.0)
model.fit(rows[:1024])
for _ in range(2):
    model.transform(rows[:1024])
few = peak()
model.transform(rows)
print(json.dumps([few, peak()]))
"""


def test_memory_does_not_grow_with_the_number_of_rows(run_fresh):
    # Few rows are one chunk, many are six.
    few, many = json.loads(run_fresh(PROGRAM))
    # A curve of 33 points for each row, as `log_map` returns them, is 99 MiB.
    assert many - few < 30.0


def test_a_density_far_away_is_low_and_never_unknown(smooth_model):
    distances = np.array([1e1, 1e2, 1e4, 1e8, 1e30, 1e149])
    for way in ([1.0, 0.0], [-0.6, 0.8], [0.0, -1.0]):
        scores = smooth_model.score_samples(distances[:, None] * way)
        assert not np.isnan(scores).any()
        assert np.all(np.diff(scores) < 0.0)
        # Like a Gaussian: the logarithm goes with the square of the distance.
        assert scores[3] / scores[2] == pytest.approx(1e8, rel=1e-2)


# Jobs in several threads, which need no processes to test what becomes of them.


@pytest.fixture
def threads():
    """Two threads do what would be done by processes."""
    with joblib.parallel_config(backend="threading", n_jobs=2):
        yield


def _square(number):
    return number**2


def test_results_have_their_positions(threads):
    expected = {number: number**2 for number in range(10)}
    assert dict(spread(_square, range(10), None)) == expected


def test_errors_of_jobs_are_errors(threads):
    with pytest.raises(ZeroDivisionError):
        list(spread(lambda number: 1 / number, range(4), None))


def test_chunks_are_the_same_for_any_number_of_jobs(threads, monkeypatch):
    monkeypatch.setattr("land.estimators.scoring.CHUNK_ROWS", 8)
    rows = np.random.default_rng(0).normal(size=(30, 2))

    def about_their_mean(rows):  # depends on what is in a chunk
        return rows - rows.mean(axis=0)

    with joblib.parallel_config(backend="sequential"):
        here = in_chunks(about_their_mean, rows)
    np.testing.assert_array_equal(in_chunks(about_their_mean, rows), here)
    np.testing.assert_array_equal(in_chunks(about_their_mean, rows, 3), here)


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_numbers_of_jobs_that_make_no_sense(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be None or an integer other"):
        list(spread(_square, range(2), n_jobs))


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_processes_share_the_processors():
    """JAX has as many threads in each of joblib's processes as that is granted."""

    def granted_and_used(_):
        import os
        from pathlib import Path

        import jax.numpy as jnp

        jnp.ones(3).sum().block_until_ready()
        names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
        used = sum("XLAEigen" in name for name in names)
        return int(os.environ["OMP_NUM_THREADS"]), used

    # Two jobs are for two processes, however many there might be.
    with joblib.parallel_config(backend="loky", n_jobs=joblib.cpu_count() + 2):
        found = dict(spread(granted_and_used, range(2), None))
    for granted, used in found.values():
        assert used == granted == max(1, joblib.cpu_count() // 2)


# Matrices of distances.


def test_nearest_neighbours_along_geodesics():
    """Six of sixty rows have labels; the others take that of the nearest of these."""
    X, labels = land.datasets.make_two_moons(60, random_state=0)
    metric = land.metrics.LocalDiagonalMetric(X, sigma=0.2, rho=2e-3)
    known = np.arange(60) % 10 == 0
    among = land.pairwise_distances(metric, X[known])
    to_known = land.pairwise_distances(metric, X[~known], X[known])
    nearest = KNeighborsClassifier(1, metric="precomputed").fit(among, labels[known])
    expected = labels[known][np.argmin(to_known, axis=1)]
    np.testing.assert_array_equal(nearest.predict(to_known), expected)
    plain = KNeighborsClassifier(1).fit(X[known], labels[known])
    score = plain.score(X[~known], labels[~known])
    assert nearest.score(to_known, labels[~known]) > score + 0.1


def test_flat_space_has_euclidean_distances(cloud):
    flat = EuclideanMetric(2)
    found = land.pairwise_distances(flat, cloud, cloud[:7] + 1.0)
    np.testing.assert_allclose(found, cdist(cloud, cloud[:7] + 1.0), atol=1e-12)
    found = land.pairwise_distances(flat, cloud)
    np.testing.assert_allclose(found, cdist(cloud, cloud), atol=1e-12)


def test_hyperbolic_distances():
    poincare = FunctionMetric(lambda x: 4.0 / (1.0 - x @ x) ** 2 + 0.0 * x, dim=2)
    points = np.random.default_rng(0).uniform(-0.5, 0.5, (6, 2))
    room = 1.0 - np.sum(points**2, axis=1)
    squares = cdist(points, points, "sqeuclidean")
    truth = np.arccosh(1.0 + 2.0 * squares / np.outer(room, room))
    found = land.pairwise_distances(poincare, points)
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_each_pair_is_computed_once(arc, monkeypatch):
    points, computed = arc[:12], []

    def counting(metric, starts, ends, **options):
        computed.append(len(starts))
        return land.log_map(metric, starts, ends, **options)

    monkeypatch.setattr("land.estimators.scoring.log_map", counting)
    metric = LocalDiagonalMetric(arc, sigma=0.8, rho=0.5)
    found = land.pairwise_distances(metric, points)
    assert computed == [12 * 11 // 2]
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diagonal(found), 0.0)
    logs = land.log_map(metric, points[3], points)
    np.testing.assert_allclose(found[3], logs.lengths, rtol=1e-5)
    both_ways = land.pairwise_distances(metric, points, points)
    np.testing.assert_allclose(found, both_ways, rtol=1e-5)


def test_what_failed_is_nan(arc):
    metric = LocalDiagonalMetric(arc, sigma=0.3, rho=0.01)
    with pytest.warns(
        RuntimeWarning, match=r"of 10 points did not converge: their distances"
    ):
        found = land.pairwise_distances(metric, arc[:5], max_iter=1)
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found, found.T)


def test_distances_obey_the_triangle_inequality():
    """Some geodesics that are found first are longer than a way by another point."""
    X, _ = land.datasets.make_two_moons(60, random_state=0)
    metric = LocalDiagonalMetric(X, sigma=0.2, rho=1e-4)
    found = land.pairwise_distances(metric, X)
    np.testing.assert_array_equal(found, found.T)
    by_others = np.min(found[:, None] + found[None], axis=2)
    assert np.all(found <= 1.002 * by_others)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0],), "points must have 2 axes"),
        (([[1.0, 2.0, 3.0]],), "points must have 2 coordinates"),
        (([[1.0, 2.0]], [[1.0]]), "others must have 2 coordinates"),
    ],
)
def test_bad_points(arguments, message):
    with pytest.raises(ValueError, match=message):
        land.pairwise_distances(EuclideanMetric(2), *arguments)
