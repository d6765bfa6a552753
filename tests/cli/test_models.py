"""fit, score, predict, sample, select and info: what they say and write."""

import errno
import json

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import land
from land.cli.commands import fit, select
from land.cli.console import Console
from land.cli.main import build_parser
from land.estimators.files import load_with_extra

FAST = ("--n-samples", "200", "--max-iter", "3", "--tol", "0.05")
# Where it does not matter how a model is fitted: no search, and less to compile.
LEAST = ("--method", "least_squares", *FAST)


@pytest.fixture(scope="module")
def scaled(scaled_file):
    """The model of standardised columns, its center and scale."""
    model, extra = load_with_extra(scaled_file)
    return model, extra["center"], extra["scale"]


def columns(text):
    """A CSV of numbers and words, by name."""
    header, *rows = (line.split(",") for line in text.splitlines())
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def numbers(cells):
    return np.array([float(cell) for cell in cells])


# fit


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
    assert found["sigma"] == expected.sigma_
    assert found["means"] == [expected.mean_.tolist()]
    assert found["model"] == str(file)
    assert "  objective " in done.err


def test_fit_hands_its_arguments_on():
    options = {
        "--sigma": "20",
        "--rho": "300",
        "--method": "least_squares",
        "--volume": "exact",
        "--covariance-type": "diag",
        "--init": "random",
        "--n-init": "2",
        "--n-samples": "150",
        "--max-iter": "7",
        "--tol": "0.03",
        "--seed": "5",
    }
    words = [word for pair in options.items() for word in pair]
    arguments = build_parser().parse_args(["fit", "t.csv", "-o", "m", "-k2", *words])
    parameters = fit.build(arguments, Console()).get_params()
    for name, value in options.items():
        name = {"--seed": "random_state"}.get(name, name[2:].replace("-", "_"))
        assert str(parameters[name]) in (value, f"{value}.0"), name
    assert parameters["n_components"] == 2


def test_fit_knows_labels_and_scaling(scaled, scaled_file, in_units):
    model, center, scale = scaled
    np.testing.assert_array_equal(center, in_units.mean(axis=0))
    np.testing.assert_array_equal(scale, in_units.std(axis=0))
    _, extra = load_with_extra(scaled_file)
    assert extra["columns"] == ["across", "up"]
    assert extra["label"] == "kind"
    np.testing.assert_allclose(model.metric_.data.std(axis=0), 1.0)


def test_fit_compares_with_labels(cli, result, table, tmp_path, moons):
    file = tmp_path / "model.land"
    arguments = ("fit", table, "-k", 2, "-l", "kind", "-o", file, *LEAST)
    done = cli(*arguments, "--json", "-q", "--standardize")
    found = result(done.out)
    with pytest.warns(UserWarning, match="standardised"):
        model = land.load(file)
    expected = land.f_measure(moons[1], model.predict(model.metric_.data))
    assert found["f_measure"] == pytest.approx(expected)
    assert done.err == ""


def test_fit_shows_a_summary(cli, table, tmp_path):
    arguments = ("fit", table, "-x", "kind", "-o", tmp_path / "m", *LEAST, "-q")
    done = cli(*arguments, "--covariance-type", "diag")
    assert "LAND, 1 component, columns across, up" in done.out
    assert "diag covariance, 4 parameters" in done.out
    assert f"model: {tmp_path / 'm'}" in done.out


def test_few_rows_for_many_parameters(cli, tmp_path):
    (tmp_path / "d.csv").write_text("a,b\n0,0.1\n1.2,2\n2.1,0.3\n")
    done = cli("fit", tmp_path / "d.csv", "-o", tmp_path / "m", *LEAST, "-q")
    assert "3 rows are few for 5 parameters" in done.err


USAGE = {
    "optimizer": (["-k", 2, "--optimizer", "paper"], "for one component"),
    "gmm": (["--init", "gmm"], "for mixtures"),
    "init": (["--init", "zero"], "must be gmm"),
    "sigma": (["--sigma", "-1"], "positive number or auto, got '-1'"),
    "count": (["-k", "0"], "whole number from 1, got '0'"),
    "tol": (["--tol", "nan"], "positive number"),
    "seed": (["--seed", "-1"], "whole number from 0"),
    "unknown": (["--frobnicate"], "unrecognized arguments: --frobnicate"),
    "encoding": (["--encoding", "klingon"], "unknown encoding"),
    "delimiter": (["--delimiter", "ab"], "one character"),
    "headers": (["--header", "--no-header"], "not allowed with"),
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
    assert "must not exceed the number of rows" in fails(*arguments, "-k", 41)


OUTPUTS = {
    "folder": (".", "it is a folder"),
    "nowhere": ("none/model.land", "there is no folder"),
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
    (spare,) = tmp_path.iterdir()
    assert f"No space left on device; the model was written to {spare}" in message
    assert land.load(spare).method == "least_squares"


def test_a_folder_that_takes_no_files(fails, table, tmp_path, monkeypatch):
    """Even where the system claims that it may be written."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    arguments = ("fit", table, "-x", "kind", *LEAST)
    assert "/proc/model.land: " in fails(*arguments, "-o", "/proc/model.land")


def test_a_fit_that_is_interrupted_is_kept(cli, result, table, tmp_path, monkeypatch):
    """The estimator hears Ctrl-C at its second step."""
    monkeypatch.setattr("land.cli.console.Console.step", _Impatient())
    file = tmp_path / "model.land"
    done = cli("fit", table, "-x", "kind", "-o", file, "--json")
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


# score, predict, sample


def test_scores_are_in_the_units_of_the_table(
    cli, scaled, scaled_file, table, in_units
):
    model, center, scale = scaled
    done = cli("score", scaled_file, table)
    found = columns(done.out)
    assert list(found) == ["row", "kind", "log_density"]
    z = (in_units - center) / scale
    expected = model.score_samples(z) - np.log(scale).sum()
    np.testing.assert_array_equal(numbers(found["log_density"]), expected)
    assert "mean log density" in done.err


def test_the_density_in_units_integrates_to_one(cli, scaled_file, tmp_path):
    """The correction for the units is the right one: a sum over a lattice says so."""
    x, y = np.linspace(-60, 320, 24), np.linspace(-0.025, 0.03, 24)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    file = tmp_path / "lattice.npy"
    np.save(file, points)
    done = cli("score", scaled_file, file, "-c", "1,2", "-q")
    cell = (x[1] - x[0]) * (y[1] - y[0])
    total = np.exp(numbers(columns(done.out)["log_density"])).sum() * cell
    assert total == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("command", ["score", "predict"])
def test_rows_are_counted_until_an_interrupt(
    cli, scaled_file, table, tmp_path, monkeypatch, command
):
    heard = []

    def rows(console, done, total):
        heard.append((done, total))
        if done == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("land.estimators.chunks._MOST_ROWS", 10)
    monkeypatch.setattr("land.cli.console.Console.rows", rows)
    file = tmp_path / "out.csv"
    done = cli(command, scaled_file, table, "-o", file, "-q")
    assert (done.code, done.out, done.err) == (130, "", "land: interrupted\n")
    assert heard == [(10, 40), (20, 40)]
    assert not file.exists()


def test_riemannian_scores_have_no_units(cli, scaled, scaled_file, table, in_units):
    model, center, scale = scaled
    done = cli("score", scaled_file, table, "--measure", "riemannian", "-q")
    expected = model.score_samples((in_units - center) / scale, "riemannian")
    found = numbers(columns(done.out)["log_density"])
    np.testing.assert_array_equal(found, expected)


def test_score_as_json(cli, result, scaled, scaled_file, table, in_units):
    model, center, scale = scaled
    found = result(cli("score", scaled_file, table, "--json").out)
    z = (in_units - center) / scale
    expected = model.score_samples(z) - np.log(scale).sum()
    assert found["log_density"] == expected.tolist()
    assert found["mean_log_density"] == pytest.approx(expected.mean())
    shift = 2.0 * len(z) * np.log(scale).sum()
    assert found["aic"] == pytest.approx(model.aic(z) + shift)
    assert found["bic"] == pytest.approx(model.bic(z) + shift)
    assert found["failed_rows"] == 0
    normal = GaussianMixture(2, n_init=5, random_state=0).fit(z)
    expected = normal.score(z) - np.log(scale).sum()
    assert found["gaussian_mean_log_density"] == pytest.approx(expected)


def test_a_density_that_normal_distributions_beat(cli, one_file, arc_points, tmp_path):
    """A normal distribution expects data in the middle of an arc, LAND does not."""
    center = arc_points.mean(axis=0)
    np.save(tmp_path / "d.npy", center + 0.01 * arc_points[:9])
    text = cli("score", one_file, tmp_path / "d.npy").err
    assert "a Gaussian mixture with as many components" in text
    assert "--rho" in text
    np.save(tmp_path / "d.npy", arc_points)
    riemannian = cli("score", one_file, tmp_path / "d.npy", "--measure", "riemannian")
    assert "Gaussian" not in riemannian.err


def test_criteria_of_one_component(cli, result, one_file, arc_points, tmp_path):
    np.save(tmp_path / "d.npy", arc_points)
    found = result(cli("score", one_file, tmp_path / "d.npy", "--json", "-q").out)
    model = land.load(one_file)
    assert found["aic"] == pytest.approx(model.aic(arc_points))
    assert found["bic"] == pytest.approx(model.bic(arc_points))


def test_rows_that_are_dropped_leave_a_gap(cli, scaled_file, tmp_path):
    (tmp_path / "d.csv").write_text("across,up\n100,0.001\n,0.002\n120,0.003\n")
    done = cli("score", scaled_file, tmp_path / "d.csv", "--drop-missing", "-q")
    assert columns(done.out)["row"] == ("1", "3")
    assert "land: warning: left out 1 of 3 rows" in done.err


def test_scores_with_data_in_a_file(cli, scaled_file, table, tmp_path, in_units):
    file = tmp_path / "scores.csv"
    done = cli("score", scaled_file, table, "-o", file, "--with-data", "-q")
    found = columns(file.read_text())
    assert list(found) == ["row", "across", "up", "kind", "log_density"]
    np.testing.assert_array_equal(numbers(found["across"]), in_units[:, 0])
    assert f"log densities: {file}" in done.out


def test_columns_are_checked(fails, scaled_file, tmp_path):
    (tmp_path / "d.csv").write_text("u,v\n100,0.001\n")
    for name in ("score", "predict"):
        message = fails(name, scaled_file, tmp_path / "d.csv")
        assert "no column 'across', it has u, v" in message
        assert "across, up with --columns" in message


def test_predictions(cli, result, scaled, scaled_file, table, in_units, moons):
    model, center, scale = scaled
    z = (in_units - center) / scale
    done = cli("predict", scaled_file, table)
    found = columns(done.out)
    shares = np.stack([numbers(found[f"responsibility_{k}"]) for k in (0, 1)], axis=1)
    np.testing.assert_array_equal(shares, model.predict_proba(z))
    np.testing.assert_array_equal(numbers(found["component"]), model.predict(z))
    expected = land.f_measure(moons[1], model.predict(z))
    assert f"F-measure against kind: {expected:.4f}" in done.err
    as_json = result(cli("predict", scaled_file, table, "--json", "-q").out)
    assert as_json["f_measure"] == pytest.approx(expected)
    assert sum(as_json["sizes"]) == len(z)


def test_one_component_takes_everything(cli, one_file, arc_points, tmp_path):
    np.save(tmp_path / "d.npy", arc_points)
    found = columns(cli("predict", one_file, tmp_path / "d.npy").out)
    assert set(found["component"]) == {"0"}
    assert set(found["responsibility_0"]) == {"1.0"}


def test_samples_are_in_units(cli, scaled, scaled_file):
    model, center, scale = scaled
    done = cli("sample", scaled_file, "-n", 30, "--seed", 4, "-q")
    found = columns(done.out)
    assert list(found) == ["across", "up", "component"]
    points, components = model.sample(30, random_state=4)
    expected = points * scale + center
    np.testing.assert_array_equal(numbers(found["across"]), expected[:, 0])
    np.testing.assert_array_equal(numbers(found["component"]), components)


def test_samples_in_files_and_json(cli, result, one_file, tmp_path):
    file = tmp_path / "points.npy"
    cli("sample", one_file, "-n", 5, "-o", file, "-q")
    expected = land.load(one_file).sample(5, random_state=0)
    np.testing.assert_array_equal(np.load(file), expected)
    found = result(cli("sample", one_file, "-n", 5, "--json", "-q").out)
    assert found["columns"]["x1"] == expected[:, 0].tolist()


def test_clusters_have_no_density(fails, cli, moons, tmp_path):
    file, data = tmp_path / "m", tmp_path / "d.npy"
    model = land.RiemannianKMeans(2, random_state=0).fit(moons[0])
    model.save(file)
    np.save(data, moons[0])
    assert "has no density to draw from" in fails("sample", file)
    assert "has clusters but no density" in fails("score", file, data)
    found = columns(cli("predict", file, data, "-q").out)
    np.testing.assert_array_equal(numbers(found["component"]), model.labels_)
    assert "distance_1" in found
    assert "k-means, 2 components" in cli("info", file).out


# info


def test_info(cli, result, scaled, scaled_file):
    model, center, scale = scaled
    found = result(cli("info", scaled_file, "--json").out)
    assert found["standardized"] is True
    assert found["rows"] == 40
    assert (found["covariance_type"], found["parameters"]) == ("full", 11)
    np.testing.assert_allclose(found["means"], model.means_ * scale + center)
    expected = np.diag(scale) @ model.covariances_ @ np.diag(scale)
    np.testing.assert_allclose(found["covariances"], expected)
    text = cli("info", scaled_file).out
    assert "(standardised)" in text
    assert "full covariances, 11 parameters" in text
    assert text.count("±") == 2 * 2 + 1


BROKEN = {
    "text": (b"no model", "is not a land model file"),
    "empty": (b"", "is not a land model file"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("name", ["info", "sample", "score", "predict", "plot"])
def test_broken_models(fails, table, tmp_path, name, case):
    content, message = BROKEN[case]
    (tmp_path / "m").write_bytes(content)
    more = {"score": [table], "predict": [table], "plot": ["-o", tmp_path / "f.png"]}
    assert message in fails(name, tmp_path / "m", *more.get(name, []))
    assert "check the path" in fails(name, tmp_path / "none", *more.get(name, []))


def test_beside_the_model(fails, one_file, tmp_path):
    """What the command line stored is checked as well."""
    model = land.load(one_file)
    wrong = [
        ({"columns": ["a"]}, "do not go with"),
        ({"columns": 3}, "unexpected TypeError"),
        ({"center": np.zeros(3), "scale": np.ones(3)}, "do not go with"),
        ({"scale": -np.ones(2)}, "must be positive"),
    ]
    for extra, message in wrong:
        model.save(tmp_path / "m", extra=extra)
        assert message in fails("info", tmp_path / "m")


# select


def test_select(cli, result, table, tmp_path, in_units):
    model_file, table_file = tmp_path / "best.land", tmp_path / "table.csv"
    arguments = ("select", table, "-x", "kind", "-k", "1-2", "--standardize", *LEAST)
    done = cli(*arguments, "-o", model_file, "--table", table_file, "--json")
    assert done.code == 0
    found = result(done.out)
    assert [row["n_components"] for row in found["table"]] == [1, 2]
    best = min(found["table"], key=lambda row: row["bic"])
    assert found["best"]["n_components"] == best["n_components"]
    assert columns(table_file.read_text())["n_components"] == ("1", "2")
    # In the units of the table, as `land score` has it.
    scored = result(cli("score", model_file, table, "--json", "-q").out)
    assert scored["bic"] == pytest.approx(best["bic"])
    assert scored["mean_log_density"] * 40 == pytest.approx(best["log_likelihood"])
    assert "select: 2 of 2" in done.err


def test_select_shows_a_table(cli, table, tmp_path):
    file = tmp_path / "model.land"
    arguments = ("select", table, "-x", "kind", "-k", "1", "-q", *LEAST)
    text = cli(*arguments, "--covariance-type", "diag", "-o", file).out
    assert land.load(file).covariance_type == "diag"
    assert "chosen by bic: 1 component, sigma" in text
    assert "log_likelihood" in text


def test_select_tells_when_held_out_rows_disagree():
    common = {"error": "", "converged": True, "log_likelihood": 0.0, "aic": 0.0}
    common |= {"sigma": 0.5, "seconds": 1.0}
    rows = [
        common | {"n_components": 2, "bic": 7.0, "held_out": -1.0},
        common | {"n_components": 3, "bic": 5.0, "held_out": -2.0},
    ]
    assert "held-out rows prefer 2, sigma 0.5" in select._text(rows, rows[1], "bic")
    assert "prefer" not in select._text(rows, rows[0], "bic")


def test_select_that_is_interrupted_chooses_among_the_rest(
    cli, result, table, tmp_path, monkeypatch
):
    """Ctrl-C at the first step of the second candidate."""
    candidates = []

    def step(console, step):
        candidates.append(step.iteration == 0 and step.stage == "fit")
        if sum(candidates) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("land.cli.console.Console.step", step)
    file, more = tmp_path / "best.land", ("--json", *LEAST)
    done = cli("select", table, "-x", "kind", "-k", "1-2", "-o", file, *more)
    assert done.code == 130
    found = result(done.out)
    assert found["best"]["n_components"] == land.load(file).n_components == 1
    assert "interrupted" in found["table"][1]["error"]
    assert "land: interrupted; the choice is among the candidates so far" in done.err


@pytest.mark.parametrize("counts", ["0-2", "a", "", "2-1"])
def test_select_needs_counts(fails, table, counts):
    assert "must be" in fails("select", table, "-k", counts, code=2)


def test_json_has_no_nan(cli, result, one_file, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "land.cli.models.StoredModel.log_density",
        lambda self, X, measure: np.full(len(X), np.nan),
    )
    np.save(tmp_path / "d.npy", np.zeros((2, 2)))
    found = result(cli("score", one_file, tmp_path / "d.npy", "--json").out)
    assert found["log_density"] == [None, None]
    assert found["failed_rows"] == 2
    assert json.dumps(found)
