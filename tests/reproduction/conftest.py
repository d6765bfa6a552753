"""Experiments in a smoke configuration: tiny, but run by the harness."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from reproduction.data import DataUnavailableError
from reproduction.runner import reproduce


@pytest.fixture(scope="session")
def smoke_folder(tmp_path_factory):
    """One folder for all, as `land reproduce all` has: pieces are shared."""
    return tmp_path_factory.mktemp("experiments") / "new"


@pytest.fixture(scope="session")
def smoke(smoke_folder, request) -> Callable[..., Any]:
    """Run an experiment with some settings of its own; skip where data are missing."""

    def run(name: str, data: bool = False, **changes: Any) -> Any:
        home = request.getfixturevalue("data_folder") if data else None
        settings = import_module(f"reproduction.{name}").settings(quick=True)
        unknown = changes.keys() - settings.keys()
        assert not unknown, f"no such settings: {unknown}"
        lines: list[str] = []
        try:
            result = reproduce(
                name,
                smoke_folder,
                quick=True,
                data_home=home,
                report=lines.append,
                changes=changes,
            )
        except DataUnavailableError as error:
            pytest.skip(str(error))
        _check_files(result)
        numbers = result.numbers["numbers"]
        return SimpleNamespace(result=result, lines=lines, **numbers)

    return run


def _check_files(result: Any) -> None:
    kinds = {".png": b"\x89PNG", ".pdf": b"%PDF", ".md": b"# ", ".json": b"{"}
    assert {file.suffix for file in result.files} == set(kinds)
    for file in result.files:
        assert file.read_bytes().startswith(kinds[file.suffix])
    assert result.verdict_file in result.files
    text = result.verdict_file.read_text()
    stored = json.loads(result.files[1].read_text())
    assert stored["claims"]
    for claim in stored["claims"]:
        assert claim["quote"] in text
        assert claim["measured"] in text
    assert {"land", "python", "jax", "numpy", "scipy", "scikit-learn"} <= set(
        stored["versions"]
    )
    assert "nan" not in text.lower().split()
