"""The command as users start it: one path for each command, and what can go wrong."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import land
from land.estimators.files import load_with_extra

FAST = ("--method", "least_squares", "--n-samples", "150", "--tol", "0.1")
# The paper's steps are small, so that there is time enough between two of them.
SLOW = ("--optimizer", "paper", "--n-samples", "3000", "--tol", "1e-13")


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


@pytest.fixture(scope="module")
def done(start, scaled_file, table, tmp_path_factory):
    """Each command in a process of its own: what it has shown, and written."""
    folder = tmp_path_factory.mktemp("processes")
    commands = {
        "score": ["score", scaled_file, "-"],
        "predict": ["predict", scaled_file, table, "-o", "out.csv", "--json"],
        "sample": ["sample", scaled_file, "-n", 3],
        "info": ["info", scaled_file, "--json", "-q"],
        "plot": ["plot", scaled_file, "-o", "figure.png", "--kind", "metric"],
        "select": ["select", table, "-x", "kind", "-k", 1, *FAST, "--json"],
    }
    fit = ["fit", table, "-k", 2, "-l", "kind", "-o", "model.land", *FAST]
    commands["fit"] = fit

    def run(arguments):
        return start(arguments, folder, stdin=table.read_text())

    with ThreadPoolExecutor(2) as pool:
        shown = dict(zip(commands, pool.map(run, commands.values()), strict=True))
    return SimpleNamespace(folder=folder, **shown)


def test_compiled_code_is_kept_in_the_users_cache_folder(
    command, users_environment, table, tmp_path
):
    fit = ["fit", str(table), "-x", "kind", "-o", "model.land", *FAST]
    # Where space is nearly flat, little is compiled.
    fit += ["--standardize", "--sigma", "1", "--rho", "10", "-q"]
    done = subprocess.run(
        [*command, *fit],
        env=users_environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (cached,) = (Path(users_environment["XDG_CACHE_HOME"]) / "land").iterdir()
    assert list(cached.glob("*-cache"))


def test_fit_in_a_process(done):
    assert done.fit.returncode == 0, done.fit.stderr
    assert "F-measure against kind" in done.fit.stdout
    assert "reading" in done.fit.stderr
    assert load_with_extra(done.folder / "model.land")[1]["label"] == "kind"


def test_score_in_a_process(done):
    assert done.score.returncode == 0, done.score.stderr
    assert done.score.stdout.startswith("row,kind,log_density\n1,high,")
    assert done.score.stdout.count("\n") == 41


def test_predict_in_a_process(done, result):
    assert result(done.predict.stdout)["output"] == "out.csv"
    assert (done.folder / "out.csv").read_text().startswith("row,kind,component,")


def test_samples_are_those_of_this_process(done, cli, scaled_file):
    assert done.sample.stdout.startswith("across,up,component\n")
    assert done.sample.stdout == cli("sample", scaled_file, "-n", 3).out


def test_info_in_a_process(done, result):
    assert result(done.info.stdout)["components"] == 2


def test_plot_in_a_process(done):
    assert done.plot.returncode == 0, done.plot.stderr
    assert (done.folder / "figure.png").stat().st_size > 1000


def test_select_in_a_process(done, result):
    assert done.select.returncode == 0, done.select.stderr
    assert len(result(done.select.stdout)["table"]) == 1


def test_reproduce_in_a_process(process):
    """From any folder: a checkout is found by where land is."""
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


# What is printed where nothing can be: of the command that takes least time.
PRINTING = ("reproduce", "--list")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
def test_a_full_disk(command, environment):
    """As standard output only: root could replace the device by a file."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, *PRINTING],
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "land: No space left on device\n"


def test_a_reader_that_leaves_early(command, environment):
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*command, *PRINTING],
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
    arguments = ["fit", "data.csv", "-x", "kind", "--standardize", "-o", "model.land"]
    with subprocess.Popen(
        [*command, *arguments, *SLOW],
        env=environment,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            assert running.stderr.readline() == "reading data.csv\n"
            lines = iter(running.stderr.readline, "")
            assert any(line.startswith("  fitting: step") for line in lines)
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130, err
    assert "land: warning: the fit was interrupted" in err
    assert "land: interrupted; the model so far is in model.land" in err
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
