"""The command as users start it, and what the system can do to it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import land

FAST = ("--method", "least_squares", "--n-samples", "150", "--tol", "0.1")

# The command, and then how many programs JAX was asked for, and how many it has found.
COUNTING = """
import json, sys
from land import cli
cli._keep_compiled_code()  # JAX reads the settings when it is imported
import jax
asked, loaded = [], []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: asked.append(event) if "backend_compile" in event else None
)
jax.monitoring.register_event_listener(
    lambda event, **_: loaded.append(event) if event.endswith("/cache_hits") else None
)
assert cli.main(sys.argv[1:]) == 0
print(json.dumps([len(asked), len(loaded)]))
"""


def test_help_answers_without_mathematics(run_fresh):
    program = """
import sys
from land.cli import main
assert main(["--help"]) == 0 and main(["fit", "--help"]) == 0
heavy = {"numpy", "jax", "sklearn", "scipy", "matplotlib", "pandas"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_fresh(program).endswith("\n[]\n")


def test_the_script_is_the_command(environment):
    script = shutil.which("land", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("land is not installed beside this interpreter")
    done = subprocess.run(
        [script, "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"land {land.__version__}\n"


def test_from_standard_input_to_a_model(command, users_environment, table, tmp_path):
    """What is compiled is kept in the user's cache folder."""
    fit = ["fit", "-", "-x", "kind", "-o", "model.land", *FAST]
    # Where space is nearly flat, little is compiled.
    fit += ["--standardize", "--sigma", "1", "--rho", "10"]
    done = subprocess.run(
        [*command, *fit],
        env=users_environment,
        cwd=tmp_path,
        input=table.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "LAND, 1 component; columns across, up (standardised)" in done.stdout
    assert done.stderr.startswith("reading -\n40 rows, columns across, up\n")
    assert isinstance(land.load(tmp_path / "model.land"), land.Standardized)
    (cached,) = (Path(users_environment["XDG_CACHE_HOME"]) / "land").iterdir()
    assert list(cached.glob("*-cache"))
    again = subprocess.run(
        [sys.executable, "-c", COUNTING, *fit],
        env=users_environment,
        cwd=tmp_path,
        input=table.read_text(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    asked, loaded = json.loads(again.stdout.splitlines()[-1])
    assert asked == loaded > 0, "the second process compiles nothing"


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["fit"], ["fit", "x.csv"]])
def test_usage_errors_are_one_line(cli, arguments):
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("land: ")
    assert done.err.count("\n") == 1
    assert "--help" in done.err


def test_a_traceback_if_asked(cli, fails):
    assert "none.csv: No such file" in fails("fit", "none.csv", "-o", "m")
    done = cli("fit", "none.csv", "-o", "m", "--traceback")
    assert done.code == 1
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("land: none.csv")


@pytest.fixture
def listing(command, environment, tmp_path):
    """Run a quick command, from a folder that is no checkout; its code and messages."""

    def run(stdout):
        done = subprocess.run(
            [*command, "reproduce", "--list"],
            env=environment,
            cwd=tmp_path,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    return run


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk(listing):
    """As standard output only: root could replace the device by a file."""
    with Path("/dev/full").open("w") as full:
        assert listing(full) == (1, "land: No space left on device\n")


def test_a_reader_that_leaves_early(listing):
    read_end, write_end = os.pipe()
    os.close(read_end)
    assert listing(write_end) == (141, "")
    os.close(write_end)


@pytest.fixture
def long_fit(in_units, tmp_path):
    """Arguments of a fit of many steps, without those for its output."""
    X = (in_units - in_units.mean(axis=0)) / in_units.std(axis=0)
    np.savetxt(tmp_path / "data.csv", X, delimiter=",", header="x,y", comments="")
    fit = ["fit", "data.csv", "-k", "2", "--sigma", "0.5", "--rho", "0.3"]
    return [*fit, "--n-samples", "200", "--tol", "1e-9"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_fit_goes_on_to_the_same_model(
    cli, fails, long_fit, command, environment, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "model.land.checkpoint"
    running = subprocess.Popen(
        [*command, *long_fit, "-o", "model.land"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not kept.exists() and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        out, messages = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, messages
    assert "land: interrupted; the model so far is in model.land; --resume" in messages
    assert "Traceback" not in messages
    assert "interrupted after" in out
    assert land.load("model.land").interrupted_
    message = fails(*long_fit, "-o", "model.land")
    assert "holds the progress of a fit that has not ended; --resume" in message

    assert cli(*long_fit, "-o", "model.land", "--resume").code == 0
    assert not kept.exists()
    assert cli(*long_fit, "-o", "whole.land").code == 0
    model, whole = land.load("model.land"), land.load("whole.land")
    assert not model.interrupted_
    assert model.n_iter_ == whole.n_iter_
    for each in ("means_", "covariances_", "weights_", "log_constants_"):
        np.testing.assert_array_equal(getattr(model, each), getattr(whole, each))


@pytest.mark.parametrize("extra", [("--n-init", "2"), ("-o", "/dev/null")])
def test_fits_that_cannot_be_resumed(fails, table, tmp_path, extra):
    fit = ("fit", table, "-o", tmp_path / "a.land", "--resume", "-k", 2)
    assert "--resume needs" in fails(*fit, *extra, code=2)
