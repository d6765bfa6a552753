"""The command as users start it: one path for each command, and what can go wrong."""

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
from land.estimators.files import load_with_extra

FAST = ("--n-samples", "150", "--max-iter", "2", "--tol", "0.1")
SCALED = ("--standardize", *FAST)
ENDLESS = ("--max-iter", "100000", "--tol", "1e-13")


@pytest.fixture(scope="module")
def script():
    """The installed script."""
    found = shutil.which("land", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("land is not installed beside this interpreter")
    return found


def test_help_answers_without_mathematics(run_fresh):
    program = """
import sys
from land.cli import main
assert main(["--help"]) == 0 and main(["fit", "--help"]) == 0
heavy = {"numpy", "jax", "sklearn", "scipy", "matplotlib", "pandas"}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_fresh(program).endswith("\n[]\n")


def test_the_script_is_the_command(script, environment):
    done = subprocess.run(
        [script, "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"land {land.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["fit"], ["fit", "x.csv"]])
def test_usage_errors_are_one_line(process, arguments):
    done = process(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("land: ")
    assert done.stderr.count("\n") == 1
    assert "--help" in done.stderr


@pytest.mark.slow
def test_a_table_from_beginning_to_end(process, result, table, tmp_path, environment):
    """fit, score, predict, sample, info, plot and select, each in its process."""
    model = tmp_path / "model.land"
    fit = process("fit", table, "-k", 2, "-l", "kind", "-o", "model.land", *SCALED)
    assert fit.returncode == 0, fit.stderr
    (cached,) = (Path(environment["XDG_CACHE_HOME"]) / "land").iterdir()
    assert list(cached.glob("*-cache"))  # compiled code, for the processes below
    assert "F-measure against kind" in fit.stdout
    assert "reading" in fit.stderr
    score = process("score", model, "-", stdin=table.read_text())
    assert score.returncode == 0, score.stderr
    assert score.stdout.startswith("row,kind,log_density\n1,high,")
    assert score.stdout.count("\n") == 41
    predict = process("predict", model, table, "-o", "out.csv", "--json")
    assert result(predict.stdout)["output"] == "out.csv"
    assert (tmp_path / "out.csv").read_text().startswith("row,kind,component,")
    sample = process("sample", model, "-n", 3)
    assert sample.stdout.startswith("across,up,component\n")
    again = process("sample", model, "-n", 3)
    assert again.stdout == sample.stdout
    info = process("info", model, "--json", "-q")
    assert result(info.stdout)["components"] == 2
    plot = process("plot", model, "-o", "figure.png", "--grid", 12)
    assert plot.returncode == 0, plot.stderr
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_select_in_a_process(process, result, table):
    least = ("--method", "least_squares")
    done = process("select", table, "-x", "kind", "-k", "1", *least, *FAST, "--json")
    assert done.returncode == 0, done.stderr
    assert len(result(done.stdout)["table"]) == 1


def test_reproduce_in_a_process(process):
    pytest.importorskip("land.experiments.runner")
    done = process("reproduce", "--list")
    assert done.returncode == 0, done.stderr
    assert "geodesics" in done.stdout
    assert process("reproduce", "nothing").returncode == 2


def test_demo_needs_a_folder_it_can_make(process):
    done = process("demo", "-o", "/dev/null/folder")
    assert done.returncode == 1
    assert done.stderr.startswith("land: /dev/null")
    assert done.stderr.count("\n") == 1


ERRORS = {
    "missing": (["fit", "none.csv", "-o", "m"], "none.csv: no such file"),
    "empty": (["fit", "empty.csv", "-o", "m"], "empty.csv: the file is empty"),
    "columns": (["fit", "data.csv", "-c", "z", "-o", "m"], "no column 'z'"),
    "no model": (["score", "data.csv", "data.csv"], "is not a land model file"),
    "no folder": (["fit", "data.csv", "-o", "none/m"], "there is no folder"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_one_line(process, tmp_path, case):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "data.csv").write_text("a,b\n1,2\n2,1\n3,3\n")
    arguments, message = ERRORS[case]
    # A cache folder that cannot be used is not worth a word.
    done = process(*arguments, "-q", XDG_CACHE_HOME="/proc/none")
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("land: ")
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write")
def test_a_read_only_folder(process, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n2,1\n3,3\n")
    (tmp_path / "closed").mkdir(mode=0o500)
    done = process("fit", "data.csv", "-o", "closed/m", "-q")
    assert done.returncode == 1
    assert "the folder is read-only" in done.stderr


def test_a_traceback_if_asked(process):
    done = process("fit", "none.csv", "-o", "m", "--traceback")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("land: none.csv")
    done = process("fit", "none.csv", "-o", "m", LAND_TRACEBACK="1")
    assert "Traceback" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk(command, environment, one_file):
    """As standard output only: root could replace the device by a file."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "info", str(one_file)],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "land: No space left on device\n"


def test_a_reader_that_leaves_early(command, environment, one_file):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*command, "info", str(one_file)],
        env=environment,
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert done.returncode == 141
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_in_mid_fit(command, environment, table, in_units, tmp_path):
    """Ctrl-C after a step: the model so far is in the file."""
    shutil.copy(table, tmp_path / "data.csv")
    arguments = ["fit", "data.csv", "-x", "kind", "-k", "2", "-o", "model.land"]
    running = subprocess.Popen(
        [*command, *arguments, *SCALED, "--n-samples", "3000", *ENDLESS],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first = time.perf_counter()
        assert running.stderr.readline() == "reading data.csv\n"
        assert time.perf_counter() - first < 1.0
        while not running.stderr.readline().startswith("  step"):
            pass
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, err
    assert "land: warning: the fit was interrupted" in err
    assert err.endswith("land: interrupted; the model so far is in model.land\n")
    assert "Traceback" not in err
    assert "interrupted after" in out
    model, extra = load_with_extra(tmp_path / "model.land")
    assert model.interrupted_ is True
    points = (in_units - extra["center"]) / extra["scale"]
    assert np.all(np.isfinite(model.score_samples(points)))


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_before_the_fit(command, environment, tmp_path):
    """Nothing is there to be kept."""
    running = subprocess.Popen(
        [*command, "fit", "-", "-o", "model.land"],
        env=environment,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr.readline() == "reading -\n"
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err == "land: interrupted\n"
    assert list(tmp_path.iterdir()) == []
