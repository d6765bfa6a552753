"""What all benchmarks share: timing, tables, the machine, fresh processes."""

import cProfile
import datetime
import importlib.metadata
import json
import os
import platform
import pstats
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ROOT = Path(__file__).resolve().parent.parent


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def best_and_median(times: ArrayLike) -> tuple[float, float]:
    """The two statistics that every timing is reported by."""
    return float(np.min(times)), float(np.median(times))


@dataclass
class Column:
    """How one entry of the rows is shown; `style` is a format specification."""

    key: str
    title: str
    style: str = ""

    def show(self, row: dict[str, Any]) -> str:
        """The cell's text; a dash where there is no number."""
        value = row.get(self.key)
        return "–" if value is None else format(value, self.style)


@dataclass
class Table:
    """Rows of raw numbers and how to show them."""

    title: str
    columns: list[Column]
    notes: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Plain data: the raw rows, and the cells as text."""
        return {
            "title": self.title,
            "notes": self.notes,
            "header": [column.title for column in self.columns],
            "numeric": [
                not isinstance(self.rows[0].get(column.key), str)
                for column in self.columns
            ],
            "cells": [
                [column.show(row) for column in self.columns] for row in self.rows
            ],
            "rows": self.rows,
        }


def render_run(name: str, run: dict[str, Any]) -> str:
    """Markdown for the tables of one benchmark."""
    parts = [f"## `{name}`", *map(_render_table, run["tables"]), _provenance(run)]
    return "\n\n".join(parts) + "\n"


def _render_table(table: dict[str, Any]) -> str:
    lines = [table["header"], *table["cells"]]
    columns = []
    for cells, numeric in zip(zip(*lines, strict=True), table["numeric"], strict=True):
        width = max(3, *map(len, cells))
        rule = "-" * (width - 1) + (":" if numeric else "-")
        header, *body = (
            cell.rjust(width) if numeric else cell.ljust(width) for cell in cells
        )
        columns.append([header, rule, *body])
    body = "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))
    return "\n\n".join(filter(None, [f"**{table['title']}**", body, table["notes"]]))


def _provenance(run: dict[str, Any]) -> str:
    where = run["machine"]
    kind = "Quick run" if run["quick"] else "Run"
    versions = ", ".join(f"{name} {value}" for name, value in where["versions"].items())
    return (
        f"*{kind} of {where['date']}, {run['seconds']:.0f} s, load {where['load']:.1f} "
        f"before it: {where['cpu']}, {where['cores']} cores, {where['memory_gib']:.0f} "
        f"GiB, {where['platform']}; {versions}, commit {where['commit']}.*"
    )


# Functions of a fit whose cumulative times add up to the whole, by file and name.
PARTS = {
    "log maps": ("logarithm.py", "log_map"),
    "covariances": ("precision.py", "solve_precision"),
}


def time_split(title: str, fit: Callable[[], Any]) -> Table:
    """Shares of a fit's time, by the profiler."""
    table = Table(
        title=title, columns=[Column("part", "part"), Column("share", "share", ".0%")]
    )
    profile = cProfile.Profile()
    profile.runcall(fit)
    stats = pstats.Stats(profile)
    left = 1.0
    for part, (file, name) in PARTS.items():
        spent = sum(
            cumulative
            for (path, _, function), (*_, cumulative, _) in stats.stats.items()
            if path.endswith(file) and function == name
        )
        share = spent / stats.total_tt
        left -= share
        table.rows.append({"part": part, "share": share})
    table.rows.append({"part": "all else", "share": left})
    return table


def machine() -> dict[str, Any]:
    """The machine and the software, for the record."""
    names = ("jax", "jaxlib", "numpy", "scipy", "land")
    versions = {"Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in names}
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": pages / 2**30,
        "platform": f"{platform.system()} {platform.machine()}",
        "load": os.getloadavg()[0],
        "versions": versions,
        "commit": _commit(),
    }


def _commit() -> str:
    """The commit that is measured, with a plus where the sources differ from it."""
    try:
        revision = _git("rev-parse", "--short", "HEAD")
        return revision + ("+" if _git("status", "--short", "src") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.strip()


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def in_fresh_process(
    module: str, *arguments: object, limit: float | None = None
) -> dict[str, Any]:
    """Run ``python -m benchmarks.MODULE ARGUMENTS`` and read the JSON it prints.

    It may take `limit` seconds, else subprocess.TimeoutExpired is raised. JAX's
    compilation cache on disk is off in it, whatever the user's settings.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        if key != "JAX_COMPILATION_CACHE_DIR"
    }
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    finished = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        timeout=limit,
    )
    return json.loads(finished.stdout)
