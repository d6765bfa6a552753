"""select: the table of candidates, and the choice."""

import pytest

import land

FAST = ("--n-samples", "200", "--max-iter", "3", "--tol", "0.05")
# Where it does not matter how a model is fitted: no search, and less to compile.
LEAST = ("--method", "least_squares", *FAST)


def test_select(cli, result, table, tmp_path, in_units, columns):
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


@pytest.mark.parametrize("counts", ["-2", "a", "", "2-"])
def test_select_needs_counts(fails, table, counts):
    assert "must be" in fails("select", table, f"-k={counts}", code=2)
