"""Model files: what info says of them, and those that are broken."""

import numpy as np
import pytest

import land
from land.cli.console import Console
from land.cli.models import load_model, model_text


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
    assert "covariance_type: full\n" in text
    assert "parameters: 11\n" in text
    assert text.count("±") == 2 * 2 + 1


@pytest.mark.parametrize(
    ("gain", "words"),
    [(0.21, "gains 0.21 in log density per row"), (-0.9, "loses 0.9 in log density")],
)
def test_what_geometry_is_worth_is_said_without_signs(one_file, gain, words):
    stored = load_model(one_file, Console(quiet=True))
    text = model_text(stored.summary() | {"geometry_gain": gain}, details=False)
    assert f"following the data {words}" in text


def test_a_model_reads_numbers_as_its_table_had_them(cli, tmp_path):
    """The signs of the fit are used for later tables, unless others are given."""
    X = np.random.default_rng(0).normal(size=(30, 2)).round(3)
    lines = [";".join(f"{value:.3f}".replace(".", ",") for value in row) for row in X]
    table = tmp_path / "data.csv"
    table.write_text("a;b\n" + "\n".join(lines))
    settings = ("--metric", "diagonal", "--sigma", 2, "--rho", 1, "--tol", 0.05)
    assert (
        cli("fit", table, "--decimal", ",", "-o", tmp_path / "m", *settings).code == 0
    )
    done = cli("score", tmp_path / "m", table, "-o", tmp_path / "scores.npy")
    assert done.code == 0, done.err
    expected = land.load(tmp_path / "m").score_samples(X)
    np.testing.assert_allclose(np.load(tmp_path / "scores.npy")[:, 1], expected)
    again = cli("score", tmp_path / "m", table, "--decimal", ".", "-o", tmp_path / "no")
    assert again.code != 0


def test_broken_models(fails, tmp_path):
    (tmp_path / "m").write_bytes(b"no model")
    assert "is not a land model file" in fails("info", tmp_path / "m")
    assert "No such file" in fails("info", tmp_path / "none")


def test_models_that_are_for_python_only(fails, tmp_path):
    data = np.random.default_rng(0).normal(size=(10, 2))
    flat = land.metrics.EuclideanMetric(2)
    land.GeodesicPCA(1, metric=flat).fit(data).save(tmp_path / "m")
    assert "holds a GeodesicPCA" in fails("info", tmp_path / "m")


def test_beside_the_model(fails, one_file, tmp_path):
    """What the command line stored is checked as well."""
    model = land.load(one_file)
    wrong = [
        ({"columns": ["a"]}, "do not go with"),
        ({"columns": 3}, "unexpected TypeError"),
        (
            {"center": np.zeros(3), "scale": np.ones(3)},
            "center must have 2 coordinates",
        ),
        ({"scale": -np.ones(2)}, "scale must be positive"),
    ]
    for extra, message in wrong:
        model.save(tmp_path / "m", extra=extra)
        assert message in fails("info", tmp_path / "m")
