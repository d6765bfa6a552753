"""The benchmarks: every one has a module and a page, and only its own tables change."""

import json
import re
from importlib import import_module

import pytest

from benchmarks import PAGES, SPEED
from benchmarks import __main__ as command
from benchmarks.common import Column, Table


def test_every_benchmark_has_a_module_and_a_page():
    for name, page in PAGES.items():
        assert callable(import_module(f"benchmarks.{name}").run)
        text = (command.DOCS / f"{page}.md").read_text()
        assert command.BELOW in text
        assert f"`{name}`" in text.partition(command.BELOW)[0] or page != "performance"
    assert set(SPEED) <= set(PAGES)


@pytest.fixture
def a_run():
    """Makes the result of a benchmark, with one number."""

    def make(number, accelerator=""):
        table = Table("Title", [Column("value", "value")], rows=[{"value": number}])
        machine = command.machine() | {"accelerator": accelerator}
        tables = [table.as_data()]
        return {"machine": machine, "quick": False, "seconds": 1.0, "tables": tables}

    return make


def test_store_replaces_the_tables_of_one_benchmark(tmp_path, monkeypatch, a_run):
    monkeypatch.setattr(command, "DOCS", tmp_path)
    page = tmp_path / "performance.md"
    page.write_text(f"# Performance\n\n{command.BELOW}")
    command.store("exp", a_run(11))
    command.store("log", a_run(22))
    command.store("log", a_run(33, "a GPU"))
    command.store("log", a_run(44))
    text = page.read_text()
    assert text.startswith(f"# Performance\n\n{command.BELOW}\n## `log`")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## `log`", "## `log` on a GPU", "## `exp`"]
    assert re.findall(r"^\| +(\d+) \|$", text, re.MULTILINE) == ["44", "33", "11"]


def test_parts_of_a_fit_are_timed(run_fresh):
    """The functions that are timed are still those that a fit calls."""
    program = """
import json, time
import land
from benchmarks.fits import Stopwatch
data = land.datasets.make_half_ellipse(60, random_state=0)
watch = Stopwatch()
start = time.perf_counter()
land.LAND(sigma=0.4, rho=1.0, n_samples=100, random_state=0).fit(data)
print(json.dumps(watch.spent | {"total": time.perf_counter() - start}))
"""
    spent = json.loads(run_fresh(program))
    total, search = spent.pop("total"), spent.pop("search")
    assert all(seconds > 0.0 for seconds in spent.values())
    assert sum(spent.values()) <= total
    assert 0.0 < search < total
