"""Whole fits: cold and warm, against N, D and K; compilation, memory, and the parts.

Run as a module (``python -m benchmarks.fits JSON``) this is the fresh process that
measures one row; ``python -m benchmarks.fits command FILE`` is the command `land fit`,
which counts what it compiles.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import (
    ROOT,
    Column,
    Compilations,
    Table,
    in_fresh_process,
    peak_gib,
    seconds,
)

# A fit is repeated, warm, if the first one has taken less than this, in seconds; and
# given up after so many.
SHORT, LIMIT = 40.0, 90.0


@dataclass(frozen=True)
class Case:
    """A fit: of which data, to how many components."""

    data: str
    n: int
    k: int = 1
    dim: int = 2
    options: dict[str, Any] = field(default_factory=dict)


CONTRACT = (
    Case("half-ellipse", 300, options={"sigma": 0.3, "rho": 1e-3}),
    Case("half-ellipse", 300),
    Case("two moons", 600, 2),
    Case("two moons", 1200, 4),
    Case("iris", 150, 3, 4),
    Case("helix", 1000, 3, 5, {"sigma": "local"}),
)
CURVES = {
    "N": [Case("half-ellipse", n) for n in (100, 1000, 10_000)],
    "D": [Case("helix", 200, 1, dim, {"sigma": "local"}) for dim in (2, 3, 5, 10)],
    "K": [Case("two moons", 600, k) for k in (1, 4)],
}


def run(quick: bool) -> list[Table]:
    """A fresh process for every fit."""
    groups = {"Whole fits": CONTRACT[: 1 if quick else None]}
    if not quick:
        groups |= {f"Fits against {name}": own for name, own in CURVES.items()}
    found = {title: [_row(case) for case in cases] for title, cases in groups.items()}
    tables = [_table(title, rows) for title, rows in found.items()]
    rows = [row for own in found.values() for row in own if "search" in row]
    return [*tables, _parts(rows), _command(quick)]


def _row(case: Case) -> dict:
    return asdict(case) | in_fresh_process(
        "fits", json.dumps(asdict(case)), limit=LIMIT
    )


_CASE = [Column("data", "data"), Column("n", "N", ","), Column("dim", "D")]
_CASE += [Column("k", "K"), Column("sigma", "sigma", ".2g")]


def _table(title: str, rows: list[dict]) -> Table:
    return Table(
        title=title,
        columns=[
            *_CASE,
            Column("first_s", "first, s", ".1f"),
            Column("programs", "programs"),
            Column("compile_s", "compiling, s", ".1f"),
            Column("warm_s", "again, s", ".1f"),
            Column("log_maps", "log maps", ","),
            Column("failed", "failed"),
            Column("converged", "converged"),
            Column("peak_gib", "peak GiB", ".2f"),
        ],
        notes=(
            "Default settings but for a sigma of 0.3 with rho 0.001 in the first row, "
            "and one as wide as the neighbourhood of ten points for the helix. A dash "
            "for sigma: the flat metric was kept. Each row is a fresh process "
            "without a cache: the first fit compiles so many programs, imports not "
            f"counted; the same fit again, if that took less than {SHORT:.0f} s. Fits "
            f"are given up after {LIMIT:.0f} s."
        )
        if title == "Whole fits"
        else "",
        rows=rows,
    )


def _parts(rows: list[dict]) -> Table:
    return Table(
        title="Where the time of a warm fit goes",
        columns=[
            *_CASE,
            Column("constants", "log maps for constants", ".0%"),
            Column("data_maps", "log maps of data", ".0%"),
            Column("covariances", "covariances", ".0%"),
            Column("rest", "all else", ".0%"),
            Column("search", "in the search for a start", ".0%"),
        ],
        notes="The last column is a part of the others.",
        rows=rows,
    )


def main(case: Case) -> None:
    """The fresh process: one row."""
    import land
    from benchmarks import workload

    data, compilations = make(case), Compilations()
    kind = land.LAND if case.k == 1 else land.LANDMixture
    size = {} if case.k == 1 else {"n_components": case.k}
    options = dict(case.options)
    if options.get("sigma") == "local":
        options["sigma"] = workload.local_metric(data).sigma
    model = kind(**size, **options, random_state=0)
    warnings.simplefilter("ignore")  # of what the columns say
    row = {"first_s": seconds(lambda: model.fit(data))}
    row |= {"programs": compilations.programs, "compile_s": compilations.seconds}
    if row["first_s"] < SHORT:
        watch = Stopwatch()
        row["warm_s"] = seconds(lambda: model.fit(data))
        row |= {name: spent / row["warm_s"] for name, spent in watch.spent.items()}
        row["rest"] = 1.0 - sum(row[name] for name in watch.spent if name != "search")
    row |= {
        "sigma": getattr(model.metric_, "sigma", None),
        "log_maps": model.n_log_maps_,
        "failed": model.n_failed_log_maps_,
        "converged": "yes" if model.converged_ else "no",
        "peak_gib": peak_gib(),
    }
    print(json.dumps(row))


def make(case: Case) -> np.ndarray:
    """The data of a fit."""
    import land
    from benchmarks import workload

    if case.data == "half-ellipse":
        return workload.half_ellipse(case.n)
    if case.data == "two moons":
        return land.datasets.make_two_moons(case.n, random_state=0)[0]
    if case.data == "helix":
        return workload.helix(case.dim, case.n)
    from sklearn.datasets import load_iris

    return load_iris().data


class Stopwatch:
    """Seconds that parts of a fit take in this process from now on.

    Parts do not overlap: of functions that call each other the outermost counts. The
    search for a start is made of the others.
    """

    def __init__(self) -> None:
        from land.fitting import climb, likelihood, maximum_likelihood, mixture, profile

        parts = ("constants", "data_maps", "covariances", "search")
        self.spent = dict.fromkeys(parts, 0.0)
        self._inside = False
        self._watch(profile, "place_covers", "constants")
        self._watch(profile, "extend_covers", "constants")
        self._watch(profile, "solve_precision", "covariances")
        self._watch(likelihood, "solve_precision", "covariances")
        self._watch(climb, "renewed", "data_maps")
        self._watch(likelihood, "move", "move")
        for module in (maximum_likelihood, mixture):
            self._watch(module, "components_at", "data_maps")
            self._watch(module, "_search", "search")

    def _watch(self, module: Any, name: str, part: str) -> None:
        function = getattr(module, name)

        def timed(*arguments: Any, **options: Any) -> Any:
            if part != "search":
                if self._inside:
                    return function(*arguments, **options)
                self._inside = True
            start, found = time.perf_counter(), None
            try:
                found = function(*arguments, **options)
            finally:
                took = time.perf_counter() - start
                self._inside &= part == "search"
                self._add(part, took, found)
            return found

        setattr(module, name, timed)

    def _add(self, part: str, took: float, found: Any) -> None:
        if part != "move":
            self.spent[part] += took
            return
        # Data and the points of constants are mapped together.
        points = sum(len(each.cover.points) for each in found or () if each.cover)
        data = sum(int((each.weights > 0.0).sum()) for each in found or ())
        share = points / max(points + data, 1)
        self.spent["constants"] += share * took
        self.spent["data_maps"] += (1.0 - share) * took


def _command(quick: bool) -> Table:
    """`land fit` in fresh processes, with and without a cache."""
    table = Table(
        title="`land fit`, 300 rows of the half-ellipse, from start to end",
        columns=[
            Column("cache", "compiled code"),
            Column("total_s", "s", ".1f"),
            Column("programs", "programs compiled"),
            Column("loaded", "programs loaded"),
        ],
        notes="Imports included, default settings, each in a fresh process.",
    )
    from benchmarks import workload

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.csv"
        np.savetxt(file, workload.half_ellipse(), delimiter=",", header="x,y")
        cases = {
            "not kept": {"LAND_NO_CACHE": "1"},
            "kept, first time": {"XDG_CACHE_HOME": folder},
            "kept, second time": {"XDG_CACHE_HOME": folder},
        }
        for name, settings in cases.items():
            environment = {
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("JAX_", "XDG_", "LAND_")) or "PLATFORM" in key
            }
            command = [sys.executable, "-m", "benchmarks.fits", "command", str(file)]
            start = time.perf_counter()
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment | settings,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=True,
            )
            total = time.perf_counter() - start
            counts = json.loads(done.stdout.splitlines()[-1])
            table.rows.append({"cache": name, "total_s": total} | counts)
            if quick:
                break
    return table


def command(file: Path) -> None:
    """The command, and what it has compiled."""
    from land import cli

    cli._keep_compiled_code()  # JAX reads the settings when it is imported
    compilations = Compilations()
    model = file.with_name("model.land")
    code = cli.main(["fit", str(file), "-o", str(model), "--quiet"])
    model.unlink()
    print(
        json.dumps({"programs": compilations.programs, "loaded": compilations.loaded})
    )
    sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "command":
        command(Path(sys.argv[2]))
    else:
        main(Case(**json.loads(sys.argv[1])))
