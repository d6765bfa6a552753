"""What is shown, and when; the cache of compiled code."""

import io
import os
import time
import warnings
from types import SimpleNamespace

import pytest

from land.cli import cache
from land.cli.console import Console, describe


class Terminal(io.StringIO):
    def isatty(self):
        return True


STEP = SimpleNamespace(iteration=3, objective=1.25, stage="fit", n_log_maps=7)


def test_work_is_announced_at_once(capsys):
    with Console().working("fitting"):
        assert capsys.readouterr().err == "fitting ...\n"


def test_a_terminal_sees_the_latest_step(monkeypatch):
    monkeypatch.setattr("land.cli.console.PAUSE", 0.2)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    console = Console()
    with console.working("fitting"):
        console.step(STEP)
        time.sleep(0.5)
    assert "\r\x1b[Kfitting: step 3, log density -1.25  0." in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_rows_that_are_done_are_a_bar(capsys):
    console = Console()
    with console.working("scoring"):
        console._written = 0.0  # long ago
        console._started -= 30.0
        console.rows(750, 1000)
    shown = capsys.readouterr().err
    assert f"\n  [{18 * '#'}{6 * '.'}] 750 of 1000 rows, about 10 s left  30." in shown


def test_a_log_gets_lines_and_not_too_many(capsys):
    console = Console()
    with console.working("fitting"):
        for _ in range(100):
            console.step(STEP)
    shown = capsys.readouterr().err
    assert shown.startswith("fitting ...\n")
    assert shown.count("step 3") <= 1
    assert "\r" not in shown


def test_a_log_hears_that_work_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("land.cli.console.PATIENCE", 0.3)
    with Console().working("fitting"):
        time.sleep(0.8)
    assert "\n  fitting  0." in capsys.readouterr().err


def test_quiet_means_warnings_only(capsys):
    console = Console(quiet=True)
    with console, console.working("fitting"):
        console.say("reading")
        console.step(STEP)
        warnings.warn("take\ncare", UserWarning, stacklevel=1)
        warnings.warn("take\ncare", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert capsys.readouterr().err == "land: warning: take care\n"
    assert console.warnings == ["take care"]


def test_warnings_are_as_before_afterwards():
    before = warnings.showwarning, list(warnings.filters)
    with Console():
        pass
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_a_stream_that_is_gone_is_no_error(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    console = Console()
    stream.close()
    console.say("hello")


def test_errors_in_one_line():
    assert describe(ValueError("two\n  lines")) == "two lines"
    missing = FileNotFoundError(2, "No such file or directory", "a.csv")
    assert describe(missing) == "a.csv: No such file or directory; check the path"
    assert "--traceback" in describe(KeyError("x"))
    assert describe(MemoryError()) == "out of memory; try fewer rows"


# The cache.


@pytest.fixture
def settings(monkeypatch):
    """What JAX would be told."""
    import jax

    told = {}
    monkeypatch.setattr(jax.config, "update", told.__setitem__)
    # The tests themselves have chosen a folder.
    monkeypatch.setattr(type(jax.config), "values", {})
    monkeypatch.delenv("LAND_NO_CACHE", raising=False)
    return told


def test_the_cache_is_in_the_users_folder(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache.enable()
    assert folder.parent == tmp_path / "land"
    assert folder.stat().st_mode & 0o077 == 0
    assert settings["jax_compilation_cache_dir"] == str(folder)
    assert cache.enable() == folder


def test_the_cache_can_be_switched_off(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LAND_NO_CACHE", "1")
    assert cache.enable() is None
    assert settings == {}
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_no_error(settings, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache.enable() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert cache.enable() is None
    assert settings == {}


def test_a_folder_that_others_may_write_is_not_used(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache.enable()
    os.chmod(folder, 0o777)  # noqa: PTH101
    settings.clear()
    assert cache.enable() is None
    assert settings == {}


def test_a_relative_folder_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.cache_folder().is_absolute()
