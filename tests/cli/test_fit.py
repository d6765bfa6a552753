"""fit: what it says and writes, and what it refuses."""

import errno

import numpy as np
import pytest

import land
from land.cli import build_parser, fit
from land.estimators.files import load_with_extra

FAST = ("--n-samples", "200", "--max-iter", "3", "--tol", "0.05")
# Where it does not matter how a model is fitted: no search, and less to compile.
LEAST = ("--method", "least_squares", *FAST)


def test_fit_is_what_python_does(cli, result, table, in_units, tmp_path):
    file = tmp_path / "model.land"
    done = cli("fit", table, "-x", "kind", "-o", file, "--json", "--seed", 3, *FAST)
    assert done.code == 0
    expected = land.LAND(n_samples=200, max_iter=3, tol=0.05, random_state=3)
    expected.fit(in_units)
    model = land.load(file)
    np.testing.assert_array_equal(model.mean_, expected.mean_)
    assert model.objective_ == expected.objective_
    found = result(done.out)
    assert found["class"] == "LAND"
    assert found["columns"] == ["across", "up"]
    assert found["sigma"] is None  # infinite: the flat metric does
    assert found["metric"] == "EuclideanMetric"
    assert found["geometry_gain"] == expected.geometry_gain_
    assert found["means"] == [expected.mean_.tolist()]
    assert found["model"] == str(file)
    assert "fitting 1 component" in done.err


def test_fit_hands_its_arguments_on():
    options = {
        "--sigma": "20",
        "--rho": "300",
        "--metric": "full",
        "--method": "least_squares",
        "--covariance-type": "diag",
        "--n-init": "2",
        "--n-samples": "150",
        "--max-iter": "7",
        "--tol": "0.03",
        "--seed": "5",
    }
    words = [word for pair in options.items() for word in pair]
    arguments = build_parser().parse_args(["fit", "t.csv", "-o", "m", "-k2", *words])
    parameters = fit.estimator(arguments, None).get_params()
    for name, value in options.items():
        name = {"--seed": "random_state"}.get(name, name[2:].replace("-", "_"))
        assert str(parameters[name]) in (value, f"{value}.0"), name
    assert parameters["n_components"] == 2


def test_fit_shows_a_summary(cli, table, tmp_path):
    arguments = ("fit", table, "-x", "kind", "-o", tmp_path / "m", *LEAST, "-q")
    done = cli(*arguments, "--covariance-type", "diag")
    assert "LAND, 1 component; columns across, up\n" in done.out
    assert f"model: {tmp_path / 'm'}" in done.out
    for word in ("sigma", "parameter", "geodesic", "objective"):
        assert word not in done.out


USAGE = {
    "metric": (["--metric", "zero"], "invalid choice: 'zero'"),
    "count": (["-k", "two"], "invalid int value: 'two'"),
    "unknown": (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    "delimiter": (["--delimiter", "ab"], "one character"),
}


@pytest.mark.parametrize("case", USAGE)
def test_arguments_that_make_no_sense(fails, table, tmp_path, case):
    arguments, message = USAGE[case]
    file = tmp_path / "model"
    assert message in fails("fit", table, "-o", file, *arguments, code=2)
    assert not file.exists()


def test_what_the_estimator_refuses(fails, table, tmp_path):
    arguments = ("fit", table, "-x", "kind", "-o", tmp_path / "m")
    assert "sigma=1e-06 is far smaller" in fails(*arguments, "--sigma", "1e-6")
    assert "n_components must be at least 1" in fails(*arguments, "-k", 0)
    assert "tol must be positive" in fails(*arguments, "--tol", "nan")
    assert "sigma must be positive" in fails(*arguments, "--sigma", "-1")
    assert "rho must be 'auto', 'learn' or a positive" in fails(
        *arguments, "--rho", "far"
    )
    assert "must not exceed the number of rows" in fails(*arguments, "-k", 41)
    assert "between 0 and 2^32 - 1" in fails(*arguments, "--seed", "-1")
    assert "unknown encoding: x" in fails(*arguments, "--encoding", "x")


OUTPUTS = {
    "folder": (".", "it is a folder"),
    "nowhere": ("none/model.land", "its folder does not exist"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_are_checked_before_the_work(fails, tmp_path, case):
    """The data do not exist, but the output is looked at first."""
    name, message = OUTPUTS[case]
    assert message in fails("fit", "no.csv", "-o", tmp_path / name)


def test_a_model_that_cannot_be_written_is_not_lost(
    fails, table, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    full = iter([OSError(errno.ENOSPC, "No space left on device")])

    def fsync(descriptor):  # the first time only
        for error in full:
            raise error

    monkeypatch.setattr("os.fsync", fsync)
    arguments = ("fit", table, "-x", "kind", *LEAST)
    message = fails(*arguments, "-o", tmp_path / "model.land")
    (spare,) = tmp_path.glob("land-*/model.land")
    assert f"No space left on device; the model was written to {spare}" in message
    assert land.load(spare).method == "least_squares"


def test_a_fit_that_is_interrupted_is_kept(cli, result, table, tmp_path, monkeypatch):
    """The estimator hears Ctrl-C at its second step."""
    monkeypatch.setattr("land.cli.console.Console.step", _Impatient())
    file = tmp_path / "model.land"
    done = cli("fit", table, "-x", "kind", "--sigma", "20", "-o", file, "--json")
    assert done.code == 130
    assert f"land: interrupted; the model so far is in {file}" in done.err
    found = result(done.out)
    assert found["interrupted"] is True
    assert found["converged"] is False
    assert any(text.startswith("the fit was interrupted") for text in found["warnings"])
    assert "interrupted after" in cli("info", file).out
    assert load_with_extra(file)[0].interrupted_ is True


class _Impatient:
    """Presses Ctrl-C at the second step."""

    steps = 0

    def __call__(self, step):
        self.steps += 1
        if self.steps == 2:
            raise KeyboardInterrupt


def test_a_preview_takes_some_rows(cli, result, tmp_path):
    """As many as are quick, with their labels, at rough settings."""
    X, y = land.datasets.make_two_moons(210, random_state=0)
    np.savetxt(
        tmp_path / "d.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c"
    )
    where = ("-o", tmp_path / "m", "-l", "c", "--preview")
    where += ("--sigma", 0.3)
    done = cli("fit", tmp_path / "d.csv", "-k", 2, *where, *LEAST, "--json")
    assert "preview: 200 of 210 rows" in done.err
    model = land.load(tmp_path / "m")
    assert len(model.metric_.landmarks) == 200
    assert (model.n_samples, model.tol) == (300, 1e-2)
    assert result(done.out)["f_measure"] > 0.8


def test_many_columns_are_warned_of_before_the_fit(cli, tmp_path, monkeypatch):
    """The fit itself may take long: here it is not tried."""

    def refuse(*_):
        raise ValueError("not tried")

    monkeypatch.setattr(land.LAND, "fit", refuse)
    for count in (10, 11):
        rows = np.random.default_rng(0).normal(size=(30, count))
        np.savetxt(tmp_path / f"{count}.csv", rows, delimiter=",")
        done = cli("fit", tmp_path / f"{count}.csv", "-o", tmp_path / "m")
        assert done.err.endswith("land: not tried\n")
        assert ("a fit to 11 columns takes long" in done.err) == (count == 11)
