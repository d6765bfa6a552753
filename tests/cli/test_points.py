"""score, predict and sample: points in, points out."""

import numpy as np
import pytest

import land


def test_scores_are_in_the_units_of_the_table(
    cli, scaled, scaled_file, table, in_units, columns, numbers
):
    model, center, scale = scaled
    done = cli("score", scaled_file, table)
    found = columns(done.out)
    assert list(found) == ["row", "kind", "log_density"]
    z = (in_units - center) / scale
    expected = model.score_samples(z) - np.log(scale).sum()
    np.testing.assert_array_equal(numbers(found["log_density"]), expected)
    assert "mean log density" in done.err


@pytest.mark.parametrize("command", ["score", "predict"])
def test_rows_are_counted_until_an_interrupt(
    cli, scaled_file, table, tmp_path, monkeypatch, command
):
    heard = []

    def rows(console, done, total):
        heard.append((done, total))
        if done == 20:
            raise KeyboardInterrupt

    monkeypatch.setattr("land.estimators.scoring.CHUNK_ROWS", 10)
    monkeypatch.setattr("land.cli.console.Console.rows", rows)
    file = tmp_path / "out.csv"
    done = cli(command, scaled_file, table, "-o", file, "-q")
    assert (done.code, done.out, done.err) == (130, "", "land: interrupted\n")
    assert heard == [(10, 40), (20, 40)]
    assert not file.exists()


def test_score_as_json(cli, result, scaled, scaled_file, table, in_units):
    model, center, scale = scaled
    found = result(cli("score", scaled_file, table, "--json").out)
    z = (in_units - center) / scale
    expected = model.score_samples(z) - np.log(scale).sum()
    assert found["columns"]["log_density"] == expected.tolist()
    assert found["mean_log_density"] == pytest.approx(expected.mean())
    shift = 2.0 * len(z) * np.log(scale).sum()
    assert found["aic"] == pytest.approx(model.aic(z) + shift)
    assert found["bic"] == pytest.approx(model.bic(z) + shift)
    assert found["failed_rows"] == 0


def test_columns_are_checked(fails, scaled_file, tmp_path):
    (tmp_path / "d.csv").write_text("u,v\n100,0.001\n")
    for name in ("score", "predict"):
        message = fails(name, scaled_file, tmp_path / "d.csv")
        assert "no column 'across':" in message
        assert "d.csv has u, v;" in message
        assert "across, up with --columns" in message


def test_predictions(
    cli, result, scaled, scaled_file, table, in_units, moons, columns, numbers
):
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


def test_samples_are_in_units(cli, scaled, scaled_file, columns, numbers):
    model, center, scale = scaled
    done = cli("sample", scaled_file, "-n", 30, "--seed", 4, "-q")
    found = columns(done.out)
    assert list(found) == ["across", "up", "component"]
    points, components = model.sample(30, random_state=4)
    expected = points * scale + center
    np.testing.assert_array_equal(numbers(found["across"]), expected[:, 0])
    np.testing.assert_array_equal(numbers(found["component"]), components)


def test_clusters_have_no_density(fails, cli, moons, tmp_path, columns, numbers):
    file, data = tmp_path / "m", tmp_path / "d.npy"
    model = land.RiemannianKMeans(2, random_state=0).fit(moons[0])
    model.save(file)
    np.save(data, moons[0])
    assert "has clusters but no density" in fails("sample", file)
    assert "has clusters but no density" in fails("score", file, data)
    found = columns(cli("predict", file, data, "-q").out)
    np.testing.assert_array_equal(numbers(found["component"]), model.labels_)
    assert "k-means, 2 components" in cli("info", file).out
