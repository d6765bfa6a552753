"""plot, demo and reproduce: which files come out, and where figures are impossible."""

import re
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

import land
from land.cli import demo
from land.plotting.figures import View, model_figure

SIGNATURES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture(scope="module")
def solid(one_file, tmp_path_factory):
    """A model in three dimensions, made up."""
    model, X = land.load(one_file), np.random.default_rng(0).normal(size=(30, 3))
    model.n_features_in_, model.mean_, model.history_ = 3, np.zeros(3), []
    model.covariance_ = model.precision_ = np.eye(3)
    model.metric_ = land.metrics.LocalDiagonalMetric(X, model.sigma_, model.rho_)
    file = tmp_path_factory.mktemp("solid") / "solid.land"
    model.save(file)
    return file


@pytest.mark.parametrize("kind", SIGNATURES)
def test_figures_are_of_the_kind_of_their_name(cli, one_file, tmp_path, kind):
    file = tmp_path / f"figure{kind}"
    done = cli("plot", one_file, "-o", file, "--grid", 5)
    assert done.code == 0
    assert done.out == f"figure: {file}\n"
    assert file.read_bytes().startswith(SIGNATURES[kind])


@pytest.mark.parametrize("kind", ["pairs", "metric", "responsibilities", "history"])
def test_other_kinds(cli, scaled_file, tmp_path, kind):
    file = tmp_path / "figure.svg"
    assert cli("plot", scaled_file, "-o", file, "--kind", kind).code == 0
    text = file.read_text()
    assert ("across" in text) == (kind != "history")


def in_units_of_the_table(axis, name, center, scale):
    """Whether an axis has its name, and marks that are round numbers in its units."""
    marks = [float(label.get_text()) for label in axis.get_ticklabels()]
    assert axis.get_label_text() == name
    assert len(marks) >= 3
    np.testing.assert_allclose(axis.get_ticklocs() * scale + center, marks, rtol=1e-5)


@pytest.mark.parametrize("kind", ["metric", "pairs"])
def test_axes_have_the_units_of_the_table(scaled_file, scaled, in_units, kind):
    _, center, scale = scaled
    ax = model_figure(
        View(land.Standardized.around(*scaled), ["across", "up"]), kind, 5
    ).axes[0]
    in_units_of_the_table(ax.xaxis, "across", center[0], scale[0])
    in_units_of_the_table(ax.yaxis, "up", center[1], scale[1])


def test_more_than_two_columns(cli, fails, solid, tmp_path):
    for kind in ([], ["--kind", "view3d"]):
        assert cli("plot", solid, "-o", tmp_path / "f.png", *kind).code == 0
    message = fails("plot", solid, "-o", tmp_path / "f.png", "--kind", "density")
    assert "must have 2 dimensions to be drawn, got 3; see plot_pairs" in message


def test_other_kinds_of_files(fails, one_file, tmp_path):
    message = fails("plot", one_file, "-o", tmp_path / "f.xyz", code=2)
    assert "use .png, .pdf, .svg" in message


def test_figures_without_matplotlib(fails, one_file, tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "matplotlib" or name.startswith("land.plotting"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delattr(land, "plotting", raising=False)
    message = fails("plot", one_file, "-o", tmp_path / "f.png", "--grid", 5)
    assert "pip install 'land[plot]'" in message
    assert not (tmp_path / "f.png").exists()


@pytest.fixture
def _light_demo(monkeypatch):
    """The demonstration with far fewer data and effort than the real one."""
    for name, value in {"ROWS": 60, "SAMPLES": 100, "GRID": 5}.items():
        monkeypatch.setattr(demo, name, value)
    cases = [case._replace(n_components=1) for case in demo.builtin_cases(0)]
    monkeypatch.setattr(demo, "builtin_cases", lambda seed: cases)


@pytest.mark.usefixtures("_light_demo")
def test_demo_writes_a_figure_and_a_table(cli, tmp_path):
    done = cli("demo", "-o", tmp_path / "new" / "folder")
    assert done.code == 0, done.err
    for kind in ("png", "pdf", "csv"):
        file = tmp_path / "new" / "folder" / f"demo.{kind}"
        assert file.stat().st_size > 0
        assert str(file) in done.out
    rows = (tmp_path / "new" / "folder" / "demo.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 3
    for model in ("LAND", "least squares", "Gaussian mixture"):
        assert re.search(rf"two moons +{model}", done.out)


@pytest.mark.usefixtures("_light_demo")
def test_an_interrupt_ends_the_demo(fails, tmp_path, monkeypatch):
    """A fit answers it with what it has so far, which is not to be compared."""

    def step(console, step):
        raise KeyboardInterrupt

    monkeypatch.setattr("land.cli.console.Console.step", step)
    assert fails("demo", "-o", tmp_path, code=130) == "land: interrupted"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def runner(monkeypatch):
    """The experiments, without the work."""
    module = import_module("reproduction.runner")
    calls = []

    def reproduce(name, folder, *, quick=False, data_home=None, report=None):
        calls.append(SimpleNamespace(name=name, folder=folder, quick=quick))
        report(f"{name}: a piece")
        if name == "broken":
            raise OSError("no data; say --data")
        if name == "slow":
            raise KeyboardInterrupt
        files = [folder / f"{name}.md", folder / f"{name}.png"]
        return SimpleNamespace(verdict_file=files[0], files=files, summary="it holds")

    monkeypatch.setattr(module, "reproduce", reproduce)
    monkeypatch.setattr(module, "EXPERIMENTS", {"one": "the first", "two": "more"})
    return SimpleNamespace(module=module, calls=calls)


def test_reproduce_lists(cli, result, runner):
    assert cli("reproduce", "--list").out == "one  the first\ntwo  more\n"
    found = result(cli("reproduce", "--list", "--json").out)
    assert found["experiments"] == {"one": "the first", "two": "more"}


def test_reproduce_runs(cli, result, runner, tmp_path):
    done = cli("reproduce", "one", "-o", tmp_path, "--quick")
    assert done.code == 0
    assert runner.calls[0].quick is True
    assert done.out.splitlines() == [
        "one: it holds",
        str(tmp_path / "one.md"),
        str(tmp_path / "one.png"),
    ]
    found = result(cli("reproduce", "all", "-o", tmp_path, "--json").out)
    assert [each["name"] for each in found["experiments"]] == ["one", "two"]
    assert found["experiments"][0]["verdict_file"] == str(tmp_path / "one.md")
    assert [call.name for call in runner.calls] == ["one", "one", "two"]


def test_reproduce_outside_a_checkout(fails, monkeypatch, tmp_path):
    """The installed package has no experiments, and says where they are."""
    monkeypatch.setattr(sys.modules["land.cli"], "_CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "path", [])
    for name in list(sys.modules):
        if name.split(".")[0] == "reproduction":
            monkeypatch.delitem(sys.modules, name)
    message = fails("reproduce", "--list")
    assert "repository" in message
    assert "pip install '.[reproduction]'" in message


def test_reproduce_needs_a_name(fails, runner):
    assert "--list" in fails("reproduce", code=2)
    assert "choose one of one, two, or all" in fails("reproduce", "three", code=2)
