"""What is shown, and when; the cache of compiled code."""

import io
import os
import warnings
from types import SimpleNamespace

import pytest

from land.cli import _keep_compiled_code
from land.cli.console import Console, describe


class Terminal(io.StringIO):
    def isatty(self):
        return True


STEP = SimpleNamespace(iteration=3, objective=1.25, stage="fit", n_log_maps=7)


def test_work_is_announced_at_once(capsys):
    with Console().working("fitting"):
        assert capsys.readouterr().err == "fitting ...\n"


def test_a_terminal_sees_the_latest_step(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    console = Console()
    with console.working("fitting"):
        console.step(STEP)
    assert "\r\x1b[Kfitting: step 3, log density -1.25  0." in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_rows_that_are_done_are_counted(capsys):
    console = Console()
    with console.working("scoring"):
        console._started -= 30.0
        console.rows(750, 1000)
    shown = capsys.readouterr().err
    assert "\n  750 of 1000 rows, about 10 s left  30." in shown


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


def test_errors_in_one_line():
    assert describe(ValueError("two\n  lines")) == "two lines"
    missing = FileNotFoundError(2, "No such file or directory", "a.csv")
    assert describe(missing) == "a.csv: No such file or directory"
    assert "--traceback" in describe(KeyError("x"))


# The cache.

CACHE = "JAX_COMPILATION_CACHE_DIR"


@pytest.mark.parametrize("root", ["folder", "file", "switched off"])
def test_compiled_code_is_kept_in_the_users_folder(monkeypatch, tmp_path, root):
    """Unless it is switched off; a folder that cannot be made is no error."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / root))
    monkeypatch.setenv("LAND_NO_CACHE", "1" if root == "switched off" else "")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    os.environ.pop(CACHE, None)
    _keep_compiled_code()
    assert (CACHE in os.environ) == (root == "folder")
    if root == "folder":
        (folder,) = (tmp_path / root / "land").iterdir()
        assert os.environ[CACHE] == str(folder)
        assert folder.stat().st_mode & 0o077 == 0
        os.environ[CACHE] = "the user's choice"
        _keep_compiled_code()
        assert os.environ[CACHE] == "the user's choice"
