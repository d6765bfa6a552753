"""The stories of `examples`: they run, with data and without."""

import re
import runpy
from pathlib import Path

import pooch
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STORIES = sorted(each.stem for each in EXAMPLES.glob("*.py"))
# Lines that a reader has patience for.
_MOST_LINES = 80


@pytest.fixture
def tell(monkeypatch, capsys):
    """Run a story with the data of a folder, but no network; what it has printed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    def offline(*_, **__):
        raise OSError("no connection")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", offline)

    def run(name, folder):
        monkeypatch.setenv("LAND_DATA_DIR", str(folder))
        monkeypatch.setattr(pyplot, "show", lambda: None)
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        assert len(pyplot.get_fignums()) == 1
        return capsys.readouterr().out

    yield run
    pyplot.close("all")


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_short_and_says_how_to_run_it(name):
    text = (EXAMPLES / f"{name}.py").read_text()
    assert f"Run ``python -m examples.{name}``" in text
    assert len(text.splitlines()) <= _MOST_LINES


@pytest.mark.parametrize("name", [each for each in STORIES if each != "digits"])
def test_without_data_a_story_says_where_they_may_be(tell, tmp_path, name):
    with pytest.raises(SystemExit, match=r"needs data.*LAND_DATA_DIR"):
        tell(name, tmp_path)


def test_digits_need_no_data(tell, tmp_path):
    shown = tell("digits", tmp_path)
    assert shown.startswith("1797 images of 64 pixels")
    assert _gains(shown)["1"] > 0.1 > _gains(shown)["7"]


def _gains(shown):
    return {d: float(gain) for d, gain in re.findall(r"^(\d):.*out (.*)$", shown, re.M)}


@pytest.mark.nightly
@pytest.mark.parametrize("name", STORIES)
def test_a_story_with_its_data(tell, data_folder, name):
    shown = tell(name, data_folder)
    if name == "digits":
        assert shown.startswith("10000 images of 784 pixels")
    elif name == "motion_capture":
        far = [float(each) for each in re.findall(r"([\d.]+) from", shown)]
        assert max(far[0], far[2]) < 2.0 < 4.0 < min(far[1], far[3])
    else:
        assert min(map(float, re.findall(r"F-measure ([\d.]+)", shown))) > 0.7
