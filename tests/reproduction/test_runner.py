"""The harness, with an experiment that takes no time."""

import json
import sys
from importlib import import_module
from types import ModuleType

import pytest
from matplotlib.figure import Figure

import land
from reproduction import models
from reproduction.data import DataUnavailableError
from reproduction.runner import EXPERIMENTS, Claim, Outcome, reproduce

QUICK = {"n_samples": 100, "random_state": 0, "sigma": 0.5, "rho": 0.1}


@pytest.fixture
def steps(monkeypatch):
    """An experiment of three pieces; an entry of the list is called before each."""
    calls: list = [None, None, None]

    def run(settings, task):
        values = []
        for index, call in enumerate(calls):

            def compute(index=index, call=call):
                if call is not None:
                    call()
                return {"value": index * settings["factor"]}

            values.append(task.pieces.get(f"step {index}", settings, compute)["value"])
        claim = Claim("Words of the paper.", "section 0", "fails", "Found otherwise.")
        figures = {"": Figure(), "more": Figure()}
        return Outcome({"values": values}, figures, [claim], "| a |", ["A choice."])

    module = ModuleType("reproduction.steps")
    module.TITLE = "three steps"
    module.settings = lambda quick: {"quick": quick, "factor": 1 if quick else 10}
    module.run = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(EXPERIMENTS, "steps", "three steps")
    return calls


def test_files_and_numbers(steps, tmp_path):
    lines = []
    result = reproduce("steps", tmp_path / "out", report=lines.append)
    assert lines[0] == "steps: three steps"
    assert lines[1:] == ["steps: step 0", "steps: step 1", "steps: step 2"]
    assert [file.name for file in result.files] == [
        "steps.md",
        "steps.json",
        "steps.png",
        "steps.pdf",
        "steps_more.png",
        "steps_more.pdf",
    ]
    stored = json.loads((tmp_path / "out" / "steps.json").read_text())
    assert stored["numbers"]["values"] == [0, 10, 20]
    assert stored["settings"] == {"quick": False, "factor": 10}
    assert stored["seconds"] >= 0.0
    text = result.verdict_file.read_text()
    for words in (
        "> Words of the paper.",
        "does not hold",
        "steps_more.png",
        "A choice",
    ):
        assert words in text
    assert result.summary == "of 1 claims: 1 do not hold"


def test_an_interrupted_run_goes_on_where_it_stopped(steps, tmp_path):
    def interrupt():
        raise KeyboardInterrupt

    steps[1] = interrupt
    with pytest.raises(KeyboardInterrupt):
        reproduce("steps", tmp_path)
    assert not (tmp_path / "steps.md").exists()
    steps[0] = pytest.fail
    steps[1] = None
    result = reproduce("steps", tmp_path)
    assert result.numbers["numbers"]["values"] == [0, 10, 20]
    assert result.numbers["pieces"]["found"] == 1
    assert result.numbers["pieces"]["computed"] == 2


def test_an_unknown_name(tmp_path):
    with pytest.raises(ValueError, match="geodesics, means, synthetic"):
        reproduce("nothing", tmp_path)


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_every_experiment_has_its_parts(name):
    module = import_module(f"reproduction.{name}")
    assert module.TITLE
    assert callable(module.run)
    quick, full = module.settings(True), module.settings(False)
    assert quick["quick"]
    assert not full["quick"]
    assert quick.keys() == full.keys()
    json.dumps(full)


@pytest.mark.parametrize("name", ["mnist", "mocap", "sleep", "scalability"])
def test_missing_data(name, tmp_path, monkeypatch):
    def offline(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("pooch.Pooch.fetch", offline)
    with pytest.raises(DataUnavailableError, match="no network"):
        reproduce(name, tmp_path / "out", quick=True, data_home=tmp_path / "empty")


def test_an_interrupt_of_a_fit_is_not_a_result():
    """Estimators keep the model reached so far; a piece must not."""

    def interrupt(step):
        raise KeyboardInterrupt

    data = land.datasets.make_half_ellipse(30, random_state=0)
    model = land.LAND(callback=interrupt, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        models.fit(model, data)
