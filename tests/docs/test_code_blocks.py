"""Every code block of the documentation runs, page by page, in the order of the page.

Blocks of one page share a namespace and an empty folder. ``python`` blocks are
executed. In ``sh`` and ``console`` blocks the commands that begin with ``land`` run
through the command's entry point, with less effort; others must be known. In
``console`` blocks a command is followed by what it shows: if that is an error, exactly
this error must come.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import land
from land.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SLOW = {
    "README.md",
    "docs/choosing.md",
    "docs/extending.md",
    "docs/tutorial.md",
}
NIGHTLY = {"docs/larger.md"}  # starts a cluster
OTHER_PROGRAMS = {"make", "pip", ".venv/bin/python"}
# Appended to commands: what is tested is that they work, not what they find.
_FAST_FIT = ["--n-samples", "100", "--tol", "0.05", "--method", "least_squares"]
LESS_EFFORT = dict.fromkeys(("fit", "report", "select"), _FAST_FIT)
LESS_EFFORT["plot"] = ["--grid", "12"]
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A code block, and the line of the page that it begins on."""

    language: str
    text: str
    line: int


def blocks_of(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [
        Block(match[1], match[2], text.count("\n", 0, match.start()) + 1)
        for match in _FENCE.finditer(text)
        if match[1] in ("python", "sh", "console")
    ]


def _pages() -> list:
    names = ["README.md", *(f"docs/{each.name}" for each in sorted(DOCS.glob("*.md")))]
    return [pytest.param(name, marks=_marks(name)) for name in names if blocks_of(name)]


def _marks(name: str) -> list:
    if name in NIGHTLY:
        return [pytest.mark.nightly]
    return [pytest.mark.slow] if name in SLOW else []


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run in, but for the table that the README names."""
    import matplotlib

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAND_NO_CACHE", "1")
    X, _ = land.datasets.make_two_moons(100, random_state=0)
    rows = "\n".join(f"{a},{b}" for a, b in X)
    (tmp_path / "data.csv").write_text(f"across,up\n{rows}\n")
    yield tmp_path
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize("page", _pages())
def test_blocks_run(page, folder, capsys):
    namespace = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.language == "python":
            _run_python(page, block, namespace)
        else:
            for command, shown in _commands(block):
                _run_command(page, block, command, shown, capsys)


def _run_python(page, block, namespace):
    # Empty lines before it, so that errors name the line of the page.
    source = "\n" * block.line + block.text
    exec(compile(source, page, "exec"), namespace)


def _commands(block):
    """The commands of a block, each with the text that is shown after it."""
    if block.language == "sh":
        lines = block.text.replace("\\\n", " ").splitlines()
        return [(line, "") for line in lines if line.strip()]
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def _run_command(page, block, command, shown, capsys):
    where = f"{page}, block in line {block.line}: {command}"
    program, *arguments = shlex.split(command, comments=True)
    if program != "land":
        assert program in OTHER_PROGRAMS, where
        return
    capsys.readouterr()
    code = main(arguments + LESS_EFFORT.get(arguments[0], []))
    messages = capsys.readouterr().err
    if shown.startswith("land: ") and not shown.startswith("land: warning"):
        assert code == 1, where
        # Pages break long lines.
        assert " ".join(shown.split()) in " ".join(messages.split()), where
    else:
        assert code == 0, f"{where}\n{messages}"
