"""Work on a real Dask cluster: a scheduler and two worker processes on loopback."""

import contextlib
import os
import signal
from pathlib import Path

import joblib
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster

import land
from land.estimators import scoring
from land.metrics import EuclideanMetric, FunctionMetric

pytestmark = pytest.mark.nightly  # each worker imports and compiles for itself


@pytest.fixture(scope="module")
def cluster():
    """Two workers, each with one thread; one that dies is replaced."""
    local = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=":0",  # any port that is free
        silence_logs=50,  # it would report the worker that is killed
    )
    with Client(local) as client:
        yield client
    with contextlib.suppress(TimeoutError):  # on a busy machine workers end later
        local.close()


@pytest.fixture
def many_chunks(monkeypatch):
    """Eight rows to a chunk, so that little data are many jobs."""
    monkeypatch.setattr(scoring, "CHUNK_ROWS", 8)


@pytest.fixture(scope="module")
def pair():
    """Two normal clouds far apart."""
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(30, 2)), 8.0 + rng.normal(size=(30, 2))])


def test_scores_are_those_of_this_process(cluster, many_chunks, arc):
    model = land.LAND(method="least_squares", n_samples=200, random_state=0).fit(arc)
    here = model.score_samples(arc)
    with joblib.parallel_config(backend="dask"):
        there = model.score_samples(arc)
    np.testing.assert_array_equal(there, here)


@pytest.mark.filterwarnings("ignore:the chosen number of components:UserWarning")
def test_candidates_are_those_of_this_process(cluster, pair):
    template = land.LANDMixture(
        metric=EuclideanMetric(2), method="least_squares", n_samples=200
    )
    here = land.select(pair, (1, 2), estimator=template, random_state=0)
    with joblib.parallel_config(backend="dask"):
        there = land.select(pair, (1, 2), estimator=template, random_state=0)
    for name in ("aic", "bic", "log_likelihood", "objective", "converged"):
        assert there.table[name].tolist() == here.table[name].tolist()
    np.testing.assert_array_equal(there.model.means_, here.model.means_)


@pytest.mark.parametrize("what", ["fit", "transform"])
def test_a_worker_that_is_killed_costs_time_but_not_the_result(
    what, cluster, many_chunks, pair, tmp_path
):
    victim = next(iter(cluster.run(os.getpid).values()))
    metric = FunctionMetric(_deadly(victim, tmp_path / "killed"), dim=2)
    model = land.RiemannianKMeans(2, metric=metric, n_init=6, random_state=0)
    model.fit(pair)

    def outcome():
        if what == "fit":
            return model.fit(pair).cluster_centers_
        return model.transform(pair)

    here = outcome()
    with joblib.parallel_config(backend="dask"):
        there = outcome()
    np.testing.assert_array_equal(there, here)
    assert (tmp_path / "killed").exists()


def _deadly(victim: int, marker: Path):
    """A flat metric that one worker dies of while it compiles."""
    scale = np.array([2.0, 1.0])

    def fn(point):
        if os.getpid() == victim:
            marker.touch()
            os.kill(victim, signal.SIGKILL)
        return scale + 0.0 * point

    return fn
