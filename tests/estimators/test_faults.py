"""Files survive what befalls a process: the old one or the new one, never a broken one.

A small part of the trials runs every time, the rest nightly.
"""

import errno
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import land
from land.estimators.files import FIELDS

KILLED = """
import itertools, os, pathlib, random, signal, time
import numpy as np
from land.estimators.files import read_archive, write_archive
from land.estimators.callbacks import Checkpoint

def save_model(path, k):
    write_archive(path, {"number": k}, {"values": np.full(50_000, float(k))})

def check_model(path):
    header, arrays = read_archive(path)
    assert (arrays["values"] == header["number"]).all()

def keep_checkpoint(path, k):
    values = [float(k)] * 20_000
    Checkpoint(path).open("fit", [1]).keep({"number": k, "values": values})

def check_checkpoint(path):
    progress = Checkpoint(path).open("fit", []).progress
    assert progress["values"] == [float(progress["number"])] * 20_000

def write_until_killed(write, path):
    for k in itertools.count(1):
        write(path, k)

folder, rng = pathlib.Path(FOLDER), random.Random(0)
kinds = [(save_model, check_model), (keep_checkpoint, check_checkpoint)]
for trial in range(KILLS):
    write, check = kinds[trial % 2]
    path = folder / write.__name__
    write(path, 0)
    process = os.fork()
    if process == 0:
        write_until_killed(write, path)
    time.sleep(rng.uniform(0.0, 0.05))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    check(path)
print(len(list(folder.glob(".*.tmp"))))
"""


@pytest.mark.parametrize(
    "kills", [20, pytest.param(200, marks=pytest.mark.nightly)], ids=str
)
def test_a_process_that_is_killed_leaves_whole_files(run_fresh, tmp_path, kills):
    program = KILLED.replace("FOLDER", repr(str(tmp_path)))
    cut_short = int(run_fresh(program.replace("KILLS", str(kills))))
    # Else no process was killed while it was writing, and this shows nothing.
    assert cut_short > 0


def assert_same(model, other):
    """Same fitted attributes, metric and history."""
    for name in FIELDS[type(other).__name__]:
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    np.testing.assert_array_equal(model.metric_.data, other.metric_.data)
    assert (model.sigma_, model.rho_) == (other.sigma_, other.rho_)
    for mine, theirs in zip(model.history_, other.history_, strict=True):
        assert mine.objective == theirs.objective


@pytest.mark.parametrize(
    "trials", [100, pytest.param(1000, marks=pytest.mark.nightly)], ids=str
)
def test_damaged_files_are_refused_or_read_as_they_were(
    moons_mixture, tmp_path, trials
):
    """Lost or changed bytes never give other numbers, or another kind of error."""
    file = tmp_path / "model"
    moons_mixture.save(file)
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(trials):
        position = int(rng.integers(len(content)))
        if trial % 3 == 0:
            damaged = content[:position]
        else:
            if trial % 3 == 1:  # the directory is at the end, and a small part of it
                position = len(content) - 1 - position % 2500
            changed = content[position] ^ int(rng.integers(1, 256))
            damaged = content[:position] + bytes([changed]) + content[position + 1 :]
        file.write_bytes(damaged)
        try:
            loaded = land.load(file)
        except land.ModelFileError:
            refused += 1
            continue
        assert_same(loaded, moons_mixture)
    assert refused > trials // 2


def test_of_two_writers_at_once_one_is_the_last(flat, moons_clusters, tmp_path):
    file = tmp_path / "model"
    with ThreadPoolExecutor(2) as writers:
        for _ in range(20):
            list(writers.map(lambda model: model.save(file), (flat, moons_clusters)))
            assert type(land.load(file)) in (land.LAND, land.RiemannianKMeans)
    assert list(tmp_path.iterdir()) == [file]


FULL = """
import pathlib, resource
import numpy as np
from land.estimators.files import read_archive, write_archive

folder = pathlib.Path(FOLDER)
write_archive(folder / "model", {"number": 1}, {"values": np.ones(10)})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
for size in range(5_000, 50_000, 5_000):
    try:
        write_archive(folder / "model", {"number": 2}, {"values": np.ones(size)})
    except OSError as error:
        assert read_archive(folder / "model")[0]["number"] in (1, 2)
        print(error.errno)
assert [each.name for each in folder.iterdir()] == ["model"]
"""


def test_a_disk_that_fills_up_leaves_the_old_file(run_fresh, tmp_path):
    errors = run_fresh(FULL.replace("FOLDER", repr(str(tmp_path)))).split()
    assert set(errors) == {str(errno.EFBIG)}
    assert len(errors) >= 8


@pytest.mark.nightly
def test_two_threads_fit_at_once_what_they_fit_alone(arc, cloud):
    options = {"sigma": 0.8, "rho": 0.5, "n_samples": 300, "random_state": 0}

    def fit(X):
        return land.LAND(**options).fit(X)

    alone = [fit(arc), fit(cloud)]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(fit, (arc, cloud)))
    for model, other in zip(together, alone, strict=True):
        assert_same(model, other)


INTERRUPTED = """
import os, signal, threading, time
import jax.numpy as jnp
import numpy as np
import land

hard = land.metrics.FunctionMetric(lambda x: jnp.exp(10 * x[0]) + 0 * x, 2)
points = 3.0 * np.random.default_rng(0).normal(size=(60, 2))
land.log_map(hard, [0.1, 0.0], points[:1], max_iter=2)

def press():
    global pressed
    pressed = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)

threading.Timer(1.0, press).start()
try:
    land.log_map(hard, [0.1, 0.0], points)
except KeyboardInterrupt:
    print(time.monotonic() - pressed)
"""


@pytest.mark.nightly
def test_an_interrupt_is_answered_within_a_second(run_fresh):
    assert float(run_fresh(INTERRUPTED)) < 1.0
