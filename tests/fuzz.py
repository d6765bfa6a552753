"""Fuzzers of model files and of tables: `make fuzz MINUTES=60`.

A damaged model file is refused with `ModelFileError`, or read as it was. A table is
read exactly as it was written, in whatever form; a damaged one gives a `CommandError`
or a frame. Anything else, or an answer that takes more than ten seconds of processor
time, is a failure: it ends the run, and the file is kept.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

import land
from land.cli.console import CommandError
from land.cli.tables import read_table

LONGEST = 10.0
OPTIONS = {"delimiter": None, "decimal": ".", "thousands": None, "header": None}
Trial = Callable[[np.random.Generator, Path], str]


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, lost, doubled, inserted or swapped, at one to four places."""
    for _ in range(rng.integers(1, 5)):
        size = len(content)
        start = int(rng.integers(size + 1))
        if rng.random() < 0.3:  # what describes a file is at its ends
            start = int(rng.choice([start % 300, max(size - 1 - start % 2500, 0)]))
        stop = min(start + int(2 ** rng.uniform(0, 12)), size)
        part = content[start:stop]
        noise = rng.bytes(max(stop - start, 1))
        odd = [b"\0", b'"', b"\r", b"\xff\xfe", b"\xc3", b",", b"1e999", 70_000 * b"x"]
        part = [
            b"",
            noise,
            part + part,
            part[::-1],
            odd[rng.integers(len(odd))],
            bytes(value ^ 1 << int(rng.integers(8)) for value in part[:1]) + part[1:],
        ][rng.integers(6)]
        content = content[:start] + part + content[stop:]
        if rng.random() < 0.1:
            content = content[: int(rng.integers(len(content) + 1))]
    return content


def model_files() -> Trial:
    """Damage files of fitted models."""
    data, _ = land.datasets.make_two_moons(60, random_state=0)
    settings = {"sigma": 0.3, "rho": 0.1, "n_samples": 300, "random_state": 0}
    models = [
        land.LAND(**settings).fit(data),
        land.LANDMixture(2, **settings).fit(data),
        land.RiemannianKMeans(2, sigma=0.3, rho=0.1, random_state=0).fit(data),
    ]
    contents = []
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            model.save(Path(folder) / "model")
            contents.append((Path(folder) / "model").read_bytes())

    def trial(rng: np.random.Generator, file: Path) -> str:
        k = int(rng.integers(len(models)))
        content = damaged(contents[k], rng)
        file.write_bytes(content)
        try:
            loaded = land.load(file)
        except land.ModelFileError:
            return "refused"
        assert type(loaded) is type(models[k])
        assert repr(loaded.get_params()) == repr(models[k].get_params())
        for name, value in vars(models[k]).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(loaded, name), value)
        return "as it was"

    return trial


def tables() -> Trial:
    """Write tables in many forms, and damage half of them."""

    def trial(rng: np.random.Generator, file: Path) -> str:
        values, content, options = written(rng)
        harm = bool(rng.random() < 0.5)
        if harm:
            content = damaged(content, rng)
        file.write_bytes(content)
        try:
            frame = read_table(file, SimpleNamespace(**OPTIONS | options))
        except CommandError:
            assert harm, "a good table was refused"
            return "refused"
        assert isinstance(frame, pd.DataFrame)
        assert len(frame)
        if not harm:
            np.testing.assert_array_equal(frame.to_numpy(dtype=float), values)
        return "damaged and read" if harm else "read exactly"

    return trial


def written(rng: np.random.Generator) -> tuple[np.ndarray, bytes, dict]:
    """Numbers, the same as text in one of many forms, and how to read that."""
    shape = int(rng.integers(2, 40)), int(rng.integers(1, 8))
    values = rng.normal(size=shape) * 10.0 ** rng.integers(-8, 9)
    if rng.random() < 0.3:
        values = np.rint(values)
    decimal = "," if rng.random() < 0.2 else "."
    delimiter = str(rng.choice([";", "\t", "|"] + [","] * (decimal == ".")))
    quoting = int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    encoding = str(rng.choice(["utf-8-sig", "utf-16", "latin-1"]))
    text = io.StringIO()
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quoting=quoting,
        lineterminator=str(rng.choice(["\n", "\r\n"])),
    )
    names = bool(rng.random() < 0.7)
    if names:
        writer.writerow([f"größe {k}" for k in range(shape[1])])
    for row in values:
        writer.writerow([repr(float(value)).replace(".", decimal) for value in row])
    options = {"decimal": decimal, "header": names, "encoding": encoding}
    if shape[1] == 1 or rng.random() < 0.5:
        options["delimiter"] = delimiter
    return values, text.getvalue().encode(encoding), options


def main() -> None:
    """Run one fuzzer and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["files", "tables"])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    trial = model_files() if options.what == "files" else tables()
    end = time.monotonic() + 60.0 * options.minutes
    counts: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp())
    file = folder / ("model.land" if options.what == "files" else "table.csv")
    number, slowest = 0, 0.0
    while time.monotonic() < end:
        start = time.process_time()
        try:
            counts[trial(np.random.default_rng([options.seed, number]), file)] += 1
        except Exception as error:
            error.add_note(f"trial {number} of seed {options.seed}: see {file}")
            raise
        slowest = max(slowest, time.process_time() - start)
        if slowest > LONGEST:
            raise SystemExit(f"trial {number} took {slowest:.0f} s: see {file}")
        number += 1
    words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    took = f"the slowest took {slowest:.2f} s"
    sys.stdout.write(f"{options.what}: {number} trials, {words}; {took}\n")


if __name__ == "__main__":
    main()
