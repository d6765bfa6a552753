"""Jobs in several threads, which need no processes to test what becomes of them."""

import sys

import joblib
import numpy as np
import pytest

from land.estimators.scoring import in_chunks, spread


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
