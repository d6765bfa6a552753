"""What the pages say of the code and of each other: names, messages, links, files."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]+`|\$[^$]+\$", re.MULTILINE | re.DOTALL)
# Names of messages that are written elsewhere: in the health of a fit.
_FINDINGS = ("text",)
# The longest way of a datum that a reader should have to follow.
_MOST_FILES = 15


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_work_in_the_repository(page):
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if not link.startswith("https://"):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.is_file(), link
            assert not anchor or anchor in _anchors(target), link


def _anchors(page):
    """Anchors of the headings of a page, as GitHub and MyST both write them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings
    }


def test_promises_name_tests_that_exist():
    text = (ROOT / "docs" / "promises.md").read_text()
    named = set(re.findall(r"`([a-z_/]*test_[a-z_]+\.py)`", text))
    assert len(named) > 10
    for name in named - {"test_bad_input.py"}:  # there is one in each layer
        assert (ROOT / "tests" / name).is_file(), name


@pytest.mark.parametrize("folder", ["gallery", "../examples"])
def test_gallery_lists_every_script(folder):
    text = (DOCS / "gallery.md").read_text()
    listed = set(re.findall(rf"\({re.escape(folder)}/(\w+\.py)\)", text))
    assert listed == {each.name for each in (DOCS / folder).glob("*.py")}


def test_the_notebook_is_that_of_the_tutorial():
    """Its cells run with the page's code blocks, see test_code_blocks.py."""
    path = DOCS / "notebook.py"
    spec = spec_from_file_location("notebook", path)
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    expected = made.notebook((DOCS / "tutorial.md").read_text())
    assert (DOCS / "tutorial.ipynb").read_text() == expected, "run make notebook"
    cells = json.loads(expected)["cells"]
    code = [each["source"] for each in cells if each["cell_type"] == "code"]
    text = (DOCS / "tutorial.md").read_text()
    assert len(code) == len(re.findall(r"^```(?:python|sh)$", text, re.MULTILINE)) > 10
    assert "model.fit(X)" in code[0]
    assert any(each.startswith("%%sh\nland fit") for each in code)


def test_ways_of_a_datum_name_files_and_are_short():
    text = (DOCS / "architecture.md").read_text()
    ways = re.findall(r"^### `(.*?)`\n\n```text\n(.*?)^```$", text, re.M | re.S)
    assert len(ways) == 4
    for name, drawing in ways:
        files = re.findall(r"[\w/]+\.py", drawing)
        assert 0 < len(files) <= _MOST_FILES, name
        for file in files:
            assert (ROOT / "src" / "land" / file).is_file(), f"{name}: {file}"


@pytest.mark.parametrize(
    "module",
    [
        "land",
        "land.callbacks",
        "land.datasets",
        "land.inference",
        "land.metrics",
        "land.plotting",
        "reproduction.data",
    ],
)
def test_api_reference_has_every_public_name(module):
    source = import_module(module)
    text = (DOCS / "api.md").read_text()
    names = set(re.findall(r"^(?:   |.. autoclass:: )(\w+)$", text, re.MULTILINE))
    apart = {"__version__", "callbacks", "datasets", "inference", "metrics"}
    assert set(source.__all__) - apart - names - _constants(source) == set()


def _constants(module):
    return {name for name in module.__all__ if name.isupper() and name != "LAND"}


def _warnings():
    """Openings of the literal pieces of every warning and finding of the estimators."""
    for file in sorted((ROOT / "src" / "land" / "estimators").glob("*.py")):
        tree = ast.parse(file.read_text())
        functions = [
            each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)
        ]
        for function in functions:
            for node in ast.walk(function):
                name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                message = node.args[0] if name == "warnings.warn" else None
                if isinstance(node, ast.Yield) and file.stem == "health":
                    message = node.value
                if message is not None and ast.unparse(message) not in _FINDINGS:
                    # Messages may be put together before, in the same function.
                    own = _texts(message)
                    for pieces in (
                        [own] if own else [[each] for each in _texts(function)]
                    ):
                        where = f"{file.stem}-{node.lineno}-{pieces[0]}"
                        yield pytest.param(pieces, id=where)


def _texts(node):
    """The beginnings of the longer strings in a piece of code, docstrings apart."""
    texts = [
        " ".join(each.value.split())[:14]
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    doc = (ast.get_docstring(node) or "") if isinstance(node, ast.FunctionDef) else ""
    return [text for text in texts if len(text) >= 8 and not doc.startswith(text)]


@pytest.mark.parametrize("pieces", list(_warnings()))
def test_faq_has_every_warning(pieces):
    text = " ".join((DOCS / "faq.md").read_text().split())
    assert any(piece in text for piece in pieces), pieces
