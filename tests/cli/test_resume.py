"""A fit that was stopped goes on with --resume, to the same model."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest

import land

SLOW = ("-k", "2", "--sigma", "0.5", "--rho", "0.3", "--tol", "1e-9")
SLOW += ("--n-samples", "200", "--quiet")


@pytest.fixture(scope="module")
def moons(tmp_path_factory):
    """A folder with a table."""
    folder = tmp_path_factory.mktemp("resume")
    X, _ = land.datasets.make_two_moons(60, random_state=0)
    np.savetxt(folder / "data.csv", X, delimiter=",", header="x,y", comments="")
    return folder


@pytest.fixture(scope="module")
def run(command, environment, moons):
    """Fit in a process of its own."""

    def fit(*arguments):
        return subprocess.run(
            [*command, "fit", "data.csv", *SLOW, *arguments],
            env=environment,
            cwd=moons,
            text=True,
            capture_output=True,
            check=False,
        )

    return fit


@pytest.fixture(scope="module")
def whole(run, moons):
    """The model without an interrupt."""
    done = run("-o", "whole.land")
    assert done.returncode == 0, done.stderr
    return land.load(moons / "whole.land")


@pytest.fixture
def stop(command, environment, moons):
    """Stop a fit as soon as there is a checkpoint; its code and messages."""

    def fit(name):
        kept = moons / f"{name}.land.checkpoint"
        running = subprocess.Popen(
            [*command, "fit", "data.csv", *SLOW, "-o", f"{name}.land"],
            env=environment,
            cwd=moons,
            stderr=subprocess.PIPE,
        )
        try:
            while not kept.exists() and running.poll() is None:
                time.sleep(0.005)
            running.send_signal(getattr(signal, name))
            _, messages = running.communicate(timeout=60)
        finally:
            running.kill()
        return running.returncode, messages

    return fit


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    "name", [pytest.param("SIGINT", marks=pytest.mark.nightly), "SIGKILL"]
)
def test_the_same_model_as_without_an_interrupt(run, stop, whole, moons, name):
    kept = moons / f"{name}.land.checkpoint"
    for _ in range(3):  # on a busy machine a fit may end before the signal is sent
        code, messages = stop(name)
        if code != 0:
            break
    assert code != 0
    if name == "SIGINT":
        assert code == 130
        assert b"--resume goes on" in messages
    assert kept.exists()

    if name == "SIGKILL":  # no model, but work that is not to be lost by accident
        again = run("-o", f"{name}.land")
        assert again.returncode == 1
        assert (
            "holds the progress of a fit that has not ended; --resume" in again.stderr
        )
    resumed = run("-o", f"{name}.land", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert not kept.exists()
    model = land.load(moons / f"{name}.land")
    assert not model.interrupted_
    assert model.n_iter_ == whole.n_iter_
    for each in ("means_", "covariances_", "weights_", "log_constants_"):
        np.testing.assert_array_equal(getattr(model, each), getattr(whole, each))


def test_without_a_checkpoint_a_fit_starts_anew(cli, moons):
    arguments = ("fit", moons / "data.csv", "-o", moons / "new.land", "--resume")
    done = cli(*arguments, "--method", "least_squares", "--sigma", "0.5")
    assert done.code == 0
    assert "fitting from the start" in done.err
    assert not (moons / "new.land.checkpoint").exists()


def test_a_model_without_a_checkpoint_is_not_replaced(fails, moons):
    output = moons / "ended.land"
    output.write_bytes(b"a model")
    message = fails("fit", moons / "data.csv", "-o", output, "--resume")
    assert "without --resume it is fitted anew" in message
    assert output.read_bytes() == b"a model"


def test_the_checkpoint_of_other_settings(fails, moons):
    output = moons / "other.land"
    output.with_name("other.land.checkpoint").write_text("{}")
    message = fails("fit", moons / "data.csv", "-o", output, "--resume")
    assert "is not a checkpoint of this version of land" in message


@pytest.mark.parametrize("extra", [("--n-init", "2"), ("-o", "/dev/null")])
def test_fits_that_cannot_be_resumed(fails, moons, extra):
    arguments = ("fit", moons / "data.csv", "-o", moons / "a.land", "--resume", "-k", 2)
    assert "--resume needs" in fails(*arguments, *extra, code=2)
