"""The command in this process, and in one of its own."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import land
from land.cli import main
from land.estimators.files import load_with_extra

FAST = ("--method", "least_squares", "--n-samples", "200", "--tol", "0.05")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    """The command keeps no compiled code of its own."""
    monkeypatch.setenv("LAND_NO_CACHE", "1")


@pytest.fixture
def cli(capsys):
    """Run a command in this process; returns its code, output and messages."""

    def run(*arguments):
        code = main([str(each) for each in arguments])
        shown = capsys.readouterr()
        return SimpleNamespace(code=code, out=shown.out, err=shown.err)

    return run


@pytest.fixture
def fails(cli):
    """Run a command that must fail, with one line that says why."""

    def run(*arguments, code=1):
        done = cli(*arguments, "--quiet")
        assert done.code == code, done.err
        lines = [
            line
            for line in done.err.splitlines()
            if not line.startswith("land: warning:")
        ]
        assert len(lines) == 1, done.err
        assert lines[0].startswith("land: ")
        assert "Traceback" not in done.err
        return lines[0]

    return run


@pytest.fixture(scope="session")
def users_environment(tmp_path_factory):
    """The environment of a process of its own: nothing but an empty cache folder."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JAX_", "XLA_", "LAND_", "XDG_"))
        and name != "PYTHONUNBUFFERED"  # users have buffers, and trouble with them
    }
    cache = tmp_path_factory.mktemp("cache")
    return kept | {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(cache)}


@pytest.fixture(scope="session")
def environment(users_environment, compiled_code):
    """The same, with the code that the tests compile: a user may say where it is."""
    return users_environment | compiled_code


@pytest.fixture(scope="session")
def command():
    """How to start the command."""
    return [sys.executable, "-m", "land.cli"]


@pytest.fixture(scope="session")
def moons():
    return land.datasets.make_two_moons(40, random_state=0)


@pytest.fixture(scope="session")
def table(moons, tmp_path_factory) -> Path:
    """A tidy file: two columns of very different units, and a text column of labels."""
    (X, y), file = moons, tmp_path_factory.mktemp("data") / "moons.csv"
    rows = [
        f"{100 + 50 * a},{0.01 * b},{'low' if label else 'high'}"
        for (a, b), label in zip(X, y, strict=True)
    ]
    file.write_text("\n".join(["across,up,kind", *rows]) + "\n")
    return file


@pytest.fixture(scope="session")
def in_units(moons):
    """The columns of the table, as they are read."""
    X, _ = moons
    return np.stack([100 + 50 * X[:, 0], 0.01 * X[:, 1]], axis=1)


@pytest.fixture(scope="session")
def scaled_file(table, tmp_path_factory) -> Path:
    """A model of two components, of standardised columns."""
    file = tmp_path_factory.mktemp("models") / "scaled.land"
    arguments = ["fit", table, "-k", 2, "-l", "kind", "--standardize", "-q", *FAST]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAND_NO_CACHE", "1")
        assert main([str(each) for each in (*arguments, "-o", file)]) == 0
    return file


@pytest.fixture(scope="session")
def one_file(arc_points, tmp_path_factory) -> Path:
    """A model of one component that Python has saved."""
    file = tmp_path_factory.mktemp("models") / "one.land"
    model = land.LAND(method="least_squares", n_samples=200, random_state=0)
    model.fit(arc_points).save(file)
    return file


@pytest.fixture(scope="session")
def arc_points():
    return land.datasets.make_half_ellipse(40, random_state=0)


@pytest.fixture(scope="session")
def result():
    """The JSON that a command has printed, which is all that it has printed."""

    def read(text):
        (line,) = text.splitlines()
        return json.loads(line, parse_constant=pytest.fail)

    return read


@pytest.fixture(scope="session")
def columns():
    """Reads a CSV of numbers and words, by name."""

    def read(text):
        header, *rows = (line.split(",") for line in text.splitlines())
        return dict(zip(header, zip(*rows, strict=True), strict=True))

    return read


@pytest.fixture(scope="session")
def numbers():
    """Makes an array of cells."""
    return lambda cells: np.array([float(cell) for cell in cells])


@pytest.fixture(scope="module")
def scaled(scaled_file):
    """The model of standardised columns, its center and scale."""
    model, extra = load_with_extra(scaled_file)
    return model, extra["center"], extra["scale"]
