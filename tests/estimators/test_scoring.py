"""Many rows: chunks change neither the results nor the memory that they take."""

import json

import numpy as np
import pytest

from land.estimators import scoring
from land.estimators.scoring import in_chunks

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


@pytest.fixture(scope="module")
def arc_model(smooth_model):
    """Any model serves; this one is quick."""
    return smooth_model


def test_scores_do_not_depend_on_chunks(arc_model, arc, monkeypatch):
    whole = [arc_model.score_samples(arc), arc_model.tangents(arc)]
    monkeypatch.setattr(scoring, "CHUNK_ROWS", 8)
    parts = [arc_model.score_samples(arc), arc_model.tangents(arc)]
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
