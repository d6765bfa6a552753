"""What all benchmarks share: timing, tables, the machine, fresh processes."""

import datetime
import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def seconds(function: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_seconds(function: Callable[[], Any], times: int) -> float:
    """Median wall-clock time of several calls."""
    return float(np.median([seconds(function) for _ in range(times)]))


def by_turns(
    solvers: dict[str, Callable[[], Any]], rounds: int
) -> dict[str, list[float]]:
    """Times of several calls each, so that a noisy machine is noisy to all."""
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for _ in range(rounds):
        for name, solve in solvers.items():
            times[name].append(seconds(solve))
    return times


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
    """Markdown for the tables of one benchmark; accelerators have a section each."""
    device = run["machine"]["accelerator"]
    heading = f"## `{name}`" + (f" on {device}" if device else "")
    parts = [heading, *map(_render_table, run["tables"]), _provenance(run)]
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


def peak_gib() -> float:
    """Peak resident set of this process so far.

    The kernel's own counter where there is one: `getrusage` also remembers the peak of
    the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**20
    scale = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


class Compilations:
    """Counts what XLA is asked for in this process from now on, and its seconds.

    What is found in JAX's cache on disk is loaded, and not compiled.
    """

    def __init__(self) -> None:
        import jax

        self.asked, self.loaded, self.seconds = 0, 0, 0.0
        jax.monitoring.register_event_duration_secs_listener(self._took)
        jax.monitoring.register_event_listener(self._happened)

    @property
    def programs(self) -> int:
        """Programs that were compiled."""
        return self.asked - self.loaded

    def _took(self, event: str, duration: float, **_: object) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            self.asked += 1
            self.seconds += duration

    def _happened(self, event: str, **_: object) -> None:
        if event == "/jax/compilation_cache/cache_hits":
            self.loaded += 1


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
        "accelerator": _accelerator(),
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


def _accelerator() -> str:
    """What JAX computes on, if it is not the processor."""
    import jax

    device = jax.devices()[0]
    return "" if device.platform == "cpu" else device.device_kind


def _cpu_model() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def in_fresh_process(
    module: str, *arguments: object, limit: float = 150.0
) -> dict[str, Any]:
    """Run ``python -m benchmarks.MODULE ARGUMENTS`` and read the JSON it prints.

    Nothing if that takes longer than `limit` seconds. JAX's compilation cache on disk
    is off in it, whatever the user's settings.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        if key != "JAX_COMPILATION_CACHE_DIR"
    }
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    try:
        finished = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            check=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {}
    found: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return found
