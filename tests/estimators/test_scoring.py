"""Many rows: chunks change neither the results nor the memory that they take."""

import json
from functools import partial

import numpy as np
import pytest

import land
from land.estimators import chunks
from land.estimators.chunks import heard_by, in_chunks

ROWS = np.arange(30.0).reshape(10, 3)


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of at most eight rows."""
    monkeypatch.setattr(chunks, "_MOST_ROWS", 8)


def test_values_are_those_of_the_rows(small_chunks):
    sizes = []

    def squares(rows):
        sizes.append(len(rows))
        return rows**2

    np.testing.assert_array_equal(in_chunks(squares, ROWS), ROWS**2)
    assert sizes == [5, 5]  # and not eight and two
    np.testing.assert_array_equal(in_chunks(lambda rows: rows[:, 0], ROWS), ROWS[:, 0])


@pytest.mark.parametrize(("dim", "size"), [(1, 4096), (64, 4096), (784, 334)])
def test_chunks_are_smaller_in_many_dimensions(dim, size):
    sizes = []
    in_chunks(lambda rows: sizes.append(len(rows)) or rows, np.zeros((2 * size, dim)))
    assert sizes == [size, size]


def test_whoever_wants_to_hears_of_rows_that_are_done(small_chunks):
    heard = []
    with heard_by(lambda done, total: heard.append((done, total))):
        in_chunks(np.asarray, ROWS)
    in_chunks(np.asarray, ROWS)  # nobody listens any more
    assert heard == [(5, 10), (10, 10)]


def test_scores_do_not_depend_on_chunks(arc_model, arc, monkeypatch):
    whole = [arc_model.score_samples(arc), arc_model.tangents(arc)]
    monkeypatch.setattr(chunks, "_MOST_ROWS", 8)
    parts = [arc_model.score_samples(arc), arc_model.tangents(arc)]
    for value, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-4, atol=1e-5)


def test_clusters_do_not_depend_on_chunks(monkeypatch):
    data, _ = land.datasets.make_two_moons(60, random_state=0)
    options = {"method": "least_squares", "n_samples": 200, "random_state": 0}
    mixture = land.LANDMixture(2, **options).fit(data)
    means = land.RiemannianKMeans(2, random_state=0).fit(data)
    functions = [
        mixture.score_samples,
        partial(mixture.score_samples, measure="riemannian"),
        mixture.predict_proba,
        mixture.predict,
        means.transform,
        means.predict,
    ]
    whole = [function(data) for function in functions]
    monkeypatch.setattr(chunks, "_MOST_ROWS", 8)
    for function, value in zip(functions, whole, strict=True):
        np.testing.assert_allclose(function(data), value, rtol=1e-4, atol=1e-5)


PROGRAM = """
import json, resource
import numpy as np
import land
from land.metrics import EuclideanMetric

def peak():
    "Peak resident memory so far, in MiB."
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rows = np.random.default_rng(0).standard_normal((FEW * 5, 16))
model = land.RiemannianKMeans(2, metric=EuclideanMetric(16), max_iter=1).fit(rows[:64])
for _ in range(2):
    model.transform(rows[:FEW])
few = peak()
model.transform(rows)
print(json.dumps([few, peak()]))
"""


def test_memory_does_not_grow_with_the_number_of_rows(run_fresh):
    # Few rows are one full chunk, many are five.
    few, many = json.loads(run_fresh(PROGRAM.replace("FEW", "4096")))
    # Two curves of 33 points for each row, as `log_map` returns them, are 165 MiB.
    assert many - few < 40.0
