"""select: the table of candidates, and the choice."""

import pytest

import land

LEAST = ("--n-samples", "200", "--max-iter", "3", "--tol", "0.05", "--metric", "flat")


def test_select(cli, result, table, tmp_path, columns):
    model_file, table_file = tmp_path / "best.land", tmp_path / "table.csv"
    arguments = ("select", table, "-x", "kind", "-k", "1-2", "--standardize", *LEAST)
    done = cli(*arguments, "-o", model_file, "--table", table_file, "--json")
    assert done.code == 0
    found = result(done.out)
    best, *rows = found["table"]
    assert found["best"] == best
    assert best["chosen"]
    assert sorted(row["n_components"] for row in (best, *rows[:1])) == [1, 2]
    assert [row["model"].split()[0] for row in rows] == [
        "LAND",
        "Gaussian",
        "Gaussian",
        "kernel",
    ]
    assert rows[-1]["n_components"] is None
    assert "this LAND is itself a Gaussian mixture" in found["sentence"]
    assert columns(table_file.read_text())["model"][0] == "LAND"
    assert land.load(model_file).estimator_.n_components == best["n_components"]
    assert "select: round 1 of 1  flat, n_components 2" in done.err
    text = cli(*arguments, "-q").out
    assert "held_out" in text.splitlines()[0]
    assert "flat metric" in text


def test_bic_is_that_of_the_table(cli, result, table, tmp_path):
    """In its units, as `land score` has it."""
    file, more = tmp_path / "best.land", ("--criterion", "bic", "--standardize")
    arguments = ("select", table, "-x", "kind", "-k", "1-2", *LEAST, *more)
    found = result(cli(*arguments, "-o", file, "--json").out)
    scored = result(cli("score", file, table, "--json", "-q").out)
    assert scored["bic"] == pytest.approx(found["best"]["bic"])


def test_select_that_is_interrupted_chooses_among_the_rest(
    cli, result, table, tmp_path, monkeypatch
):
    """Ctrl-C in the second candidate, a curved one."""

    def step(console, step):
        if step.stage == "search":
            raise KeyboardInterrupt

    monkeypatch.setattr("land.cli.console.Console.step", step)
    file, more = tmp_path / "best.land", ("--json", "--metric", "diagonal")
    arguments = ("select", table, "-x", "kind", "-k", "1", *LEAST, "-o", file, *more)
    done = cli(*arguments)
    assert done.code == 130
    found = result(done.out)
    assert found["best"]["metric"] == "flat"
    assert land.load(file).n_components == 1
    assert "land: interrupted; the choice is among the candidates so far" in done.err


@pytest.mark.parametrize("counts", ["-2", "a", "", "2-"])
def test_select_needs_counts(fails, table, counts):
    assert "must be" in fails("select", table, f"-k={counts}", code=2)


def test_select_needs_a_metric_that_there_is(fails, table):
    message = fails("select", table, "-x", "kind", "--metric", "diagonal,round")
    assert "metric must be 'flat', 'diagonal'" in message
