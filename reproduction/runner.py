"""Run an experiment of the paper: figures, numbers and a verdict, in one call.

Every experiment is a module of this package with

`TITLE`
    What it shows, in a line.
`settings(quick)`
    All its settings, as JSON knows them, with the seed.
`run(settings, task)`
    Computes, in pieces, and returns an `Outcome`.
"""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from reproduction.pieces import (
    Pieces,
    plain,
    state_of_land,
    write_json,
    write_text,
)

EXPERIMENTS: dict[str, str] = {
    "geodesics": "geodesics follow the data, straight lines do not",
    "means": "the LAND mean against the intrinsic least-squares mean",
    "synthetic": "samples of LAND, least squares and GMM under the true density",
    "clustering": "two moons, and a wave and an arc: three mixtures",
    "selection": "AIC and BIC of the three models on the half-ellipse",
    "constant": "the normalisation constant against the number of samples",
    "mnist": "digit 1 in two dimensions: LAND, least squares, normal",
    "mocap": "running and jumping jacks: LAND and GMM means against the data",
    "sleep": "sleep stages from EEG: F-measures of LAND and GMM",
    "scalability": "time of log maps against the dimension",
}
_PACKAGES = ("jax", "numpy", "scipy", "scikit-learn", "matplotlib")
Answer = Literal["holds", "partly", "fails", "not tested"]
_WORDS: dict[Answer, str] = {
    "holds": "It holds.",
    "partly": "It holds in part.",
    "fails": "It does not hold.",
    "not tested": "Not tested in this run.",
}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, where it is, and what came of it."""

    quote: str
    where: str
    answer: Answer
    measured: str


@dataclass(frozen=True)
class Outcome:
    """What an experiment found: numbers as JSON knows them, and what they say.

    The figure named "" is the main one, `table` is Markdown, and `notes` say what the
    paper leaves open and was chosen here.
    """

    numbers: dict[str, Any]
    figures: dict[str, Any]
    claims: list[Claim]
    table: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """What an experiment is given: the store of pieces, and the folder of data."""

    pieces: Pieces
    data_home: Any


@dataclass(frozen=True)
class Result:
    """What `reproduce` has written: all files, the verdict first, and the numbers."""

    name: str
    summary: str
    verdict_file: Path
    files: list[Path]
    numbers: dict[str, Any] = field(repr=False)


def reproduce(
    name: str,
    folder: str | Path,
    *,
    quick: bool = False,
    data_home: Any = None,
    report: Callable[[str], None] | None = None,
    changes: dict[str, Any] | None = None,
) -> Result:
    """Run one experiment and write its figures, numbers and verdict.

    Finished pieces are kept in the folder ``pieces``: after an interrupt (Ctrl-C) the
    same call goes on with the piece that was lost.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    folder : path-like
        Where ``<name>.md``, ``<name>.json``, ``<name>.png`` and ``<name>.pdf`` go.
    quick : bool
        A version of about a minute: fewer or smaller data, rougher constants.
    data_home : path-like, optional
        Folder of the real data, see `reproduction.data`.
    report : callable, optional
        Called with a line of text at the start and before each piece.
    changes : dict, optional
        Settings of one's own.

    Raises
    ------
    ValueError
        If there is no such experiment.
    reproduction.data.DataUnavailableError
        If its data are neither in the folder nor could be downloaded.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"name must be one of {', '.join(EXPERIMENTS)}, got {name!r}")
    tell = report if report is not None else lambda line: None
    tell(f"{name}: {EXPERIMENTS[name]}")
    module = import_module(f"reproduction.{name}")
    settings = module.settings(quick) | (changes or {})
    folder = Path(folder)
    pieces = Pieces(folder / "pieces" / name, lambda line: tell(f"{name}: {line}"))
    start = time.perf_counter()
    outcome = module.run(settings, Task(pieces, data_home))
    seconds = time.perf_counter() - start
    figures = _save_figures(name, outcome.figures, folder)
    numbers: dict[str, Any] = {
        "experiment": name,
        "title": module.TITLE,
        "claims": [vars(claim) for claim in outcome.claims],
        "settings": settings,
        "numbers": outcome.numbers,
        "notes": outcome.notes,
        "versions": versions(),
        "seconds": round(seconds, 2),
        "pieces": pieces.counts,
    }
    numbers = plain(numbers)
    json_file, verdict_file = folder / f"{name}.json", folder / f"{name}.md"
    write_json(json_file, numbers)
    images = [file.name for file in figures if file.suffix == ".png"]
    write_text(verdict_file, _verdict(numbers, outcome.table, images))
    files = [verdict_file, json_file, *figures]
    return Result(name, _summary(outcome.claims), verdict_file, files, numbers)


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    found = {name: version(name) for name in _PACKAGES}
    return {"land": state_of_land(), "python": platform.python_version()} | found


def _save_figures(name: str, figures: dict[str, Any], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for suffix, figure in figures.items():
        for kind in ("png", "pdf"):
            file = folder / f"{name}{'_' if suffix else ''}{suffix}.{kind}"
            # Without a date the same numbers give the same file.
            extra = {"metadata": {"CreationDate": None}} if kind == "pdf" else {}
            figure.savefig(file, dpi=160, **extra)
            files.append(file)
    return files


def _summary(claims: list[Claim]) -> str:
    found = Counter(claim.answer for claim in claims)
    words = {"holds": "hold", "partly": "hold in part", "fails": "do not hold"}
    counts = [
        f"{found[answer]} {words.get(answer, answer)}"
        for answer in _WORDS
        if found[answer]
    ]
    return f"of {len(claims)} claims: {', '.join(counts)}"


def _verdict(numbers: dict[str, Any], table: str, images: list[str]) -> str:
    """The Markdown page."""
    lines = [f"# {numbers['experiment']}: {numbers['title']}", ""]
    if numbers["settings"].get("quick"):
        lines += ["*A quick run: fewer or smaller data than the paper's.*", ""]
    for claim in numbers["claims"]:
        lines += [f"> {claim['quote']}", ">", f"> ({claim['where']})", ""]
        lines += [f"**{_WORDS[claim['answer']]}** {claim['measured']}", ""]
    for image in images:
        lines += [f"![{numbers['title']}]({image})", ""]
    lines += ["## Measured", "", table.strip(), ""]
    if numbers["notes"]:
        lines += ["## Choices", ""]
        lines += [f"- {note}" for note in numbers["notes"]] + [""]
    lines += ["## Settings", "", "| setting | value |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in numbers["settings"].items()]
    named = ", ".join(f"{key} {value}" for key, value in numbers["versions"].items())
    pieces = numbers["pieces"]
    lines += [
        "",
        f"{pieces['seconds']:.0f} s of computing in "
        f"{pieces['computed'] + pieces['found']} pieces, {pieces['found']} of which "
        f"were found from an earlier run. {named}.",
    ]
    return "\n".join(lines) + "\n"
