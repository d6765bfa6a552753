"""`land report`: a page from a table."""


def test_a_page_from_a_table(cli, result, table, tmp_path):
    page = tmp_path / "a page.html"
    quick = ("--method", "least_squares", "--n-samples", 200, "--tol", 0.05)
    arguments = ("report", table, "-l", "kind", "--standardize", *quick, "-o", page)
    done = cli(*arguments, "--json")
    assert done.code == 0, done.err
    found, text = result(done.out), page.read_text()
    assert found["page"] == str(page)
    assert found["sentence"] in text
    assert "drawing: " in done.err  # progress
    assert "LAND report: moons.csv" in text
    assert "across" in text
    assert "--method least_squares --n-samples 200" in text


def test_what_is_refused(fails, table, tmp_path):
    assert "use .html" in fails("report", table, "-o", tmp_path / "p.pdf", code=2)
