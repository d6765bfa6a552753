"""Finished pieces of a long experiment, so that it can go on where it stopped.

A piece is one fit, one sample, one timing: what it takes to lose only a little when an
experiment is interrupted. Each is a JSON file of its own with the settings that it was
computed under. It gets its name only once it is complete, so that there are never half
pieces; one with other settings or from another state of land is not used.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import land

# The layers that results depend on, beside the loaders: a change of any of their files
# outdates a piece.
_LAYERS = ("datasets", "density", "estimators", "fitting", "geodesics", "metrics")


class Pieces:
    """The finished pieces of one experiment in a folder.

    Parameters
    ----------
    folder : Path
        Where the files are; made when the first piece is finished.
    report : callable
        Told in a line what is being computed, and what was found.
    """

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self.folder = folder
        self.report = report
        self.counts = {"computed": 0, "found": 0, "seconds": 0.0}

    def beside(self, name: str) -> Pieces:
        """The pieces of another experiment in the same folder, counted with these."""
        other = Pieces(self.folder.parent / name, self.report)
        other.counts = self.counts
        return other

    def get(
        self,
        key: str,
        settings: Mapping[str, Any],
        compute: Callable[[], Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Return a piece: the stored one if there is one, else compute and store it.

        Parameters
        ----------
        key : str
            What the piece is, in a few words; unique within the experiment.
        settings : mapping
            Everything its numbers depend on, as JSON knows it.
        compute : callable
            Returns the piece: names and numbers, lists or arrays of numbers.

        Returns
        -------
        dict
            The piece with arrays as lists and without NaN (None in their place), the
            same whether it was computed or found; "seconds" is the time it took.
        """
        wanted = {"key": key, "land": state_of_land(), "settings": plain(settings)}
        path = self.folder / _file_name(wanted)
        result = _read(path, wanted)
        found = result is not None
        self.report(f"{key}: found" if found else key)
        if result is None:
            start = time.perf_counter()
            result = plain(compute())
            result["seconds"] = round(time.perf_counter() - start, 3)
            write_json(path, wanted | {"result": result})
        self.counts["found" if found else "computed"] += 1
        self.counts["seconds"] += result["seconds"]
        return result


def plain(value: Any) -> Any:
    """What JSON can hold: lists for arrays, numbers for scalars, None for NaN."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file: all of it under its name, or nothing."""
    write_text(path, json.dumps(plain(content), allow_nan=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file: all of it under its name, or nothing."""
    from land.estimators.files import replacing  # the list of names needs no JAX

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(text.encode())


@cache
def state_of_land() -> str:
    """The version of land, and a digest of the code that results depend on.

    Between two releases the version alone would not tell one state from another.
    """
    root = Path(land.__path__[0])
    folders = [root / layer for layer in _LAYERS] + [Path(__file__).parent / "data"]
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.glob("**/*.py")):
            digest.update(f"{folder.name}/{file.relative_to(folder)}\0".encode())
            digest.update(file.read_bytes() + b"\0")
    return f"{version('land')} {digest.hexdigest()[:12]}"


def _file_name(wanted: Mapping[str, Any]) -> str:
    """The key, for the reader, and a digest of key, land and settings."""
    words = re.sub(r"[^a-z0-9.]+", "-", wanted["key"].lower()).strip("-.")
    text = json.dumps(wanted, sort_keys=True)
    return f"{words[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"


def _read(path: Path, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result in a file, or None if it is missing, broken or of something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or not isinstance(content.get("result"), dict):
        return None
    if any(content.get(name) != value for name, value in wanted.items()):
        return None
    result: dict[str, Any] = content["result"]
    return result
