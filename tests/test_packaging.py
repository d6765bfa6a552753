"""What is written in more than one place: versions, dependencies, supported Pythons."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
# Names that packages have on conda-forge.
ON_CONDA = {"matplotlib": "matplotlib-base"}


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def project(pyproject):
    return pyproject["project"]


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())


def _requirements(lines):
    """Names and least versions: "numpy>=2.0" here, "numpy >=2.0" in a recipe."""
    found = dict(line.replace(" ", "").split(">=") for line in lines)
    return {ON_CONDA.get(name, name): least for name, least in found.items()}


def test_version(project, recipe):
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert recipe["context"]["version"] == citation["version"] == project["version"]
    assert recipe["about"]["license"] == citation["license"] == project["license"]


def test_dependencies(project, recipe):
    python, *others = recipe["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    expected = project["dependencies"] + project["optional-dependencies"]["cli"]
    assert _requirements(others) == _requirements(expected)


def test_pythons(project, recipe):
    least = project["requires-python"].removeprefix(">=")
    assert recipe["context"]["python_min"] == least
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert supported[0] == least


def test_build(pyproject, project, recipe):
    points = recipe["build"]["python"]["entry_points"]
    assert points == [f"{k} = {v}" for k, v in project["scripts"].items()]
    _, *tools = recipe["requirements"]["host"]
    tools.remove("pip")
    assert _requirements(tools) == _requirements(pyproject["build-system"]["requires"])


def test_extras_agree(project):
    versions = {}
    for extra in project["optional-dependencies"].values():
        for requirement in extra:
            name, _, least = requirement.partition(">=")
            assert versions.setdefault(name, least) == least, name
