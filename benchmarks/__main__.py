"""Command line: run benchmarks, print their tables, store them on request."""

import argparse
import importlib
import json
import re
import time
from pathlib import Path

from benchmarks import NAMES
from benchmarks.common import machine, render_run

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
OWN_PAGES = {
    "comparison": ROOT / "docs" / "comparison.md",
    **dict.fromkeys(
        ("classifiers", "components", "inference"), ROOT / "docs" / "methods.md"
    ),
}
# Tables begin after this line of a page, each benchmark under a heading.
BELOW = "<!-- Below: written by `python -m benchmarks --store`; edits are lost. -->\n"
_SECTION = re.compile(r"^## `(\w+)`\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run what the command line asks for."""
    options = parse()
    runs = {}
    for name in options.names:
        runs[name] = measure(name, options.quick)
        print(render_run(name, runs[name]), flush=True)
    if options.output:
        write_json(options.output, runs)
    if options.store:
        store(runs)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        default=NAMES,
        help=f"which to run, of: {', '.join(NAMES)} (all of them)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few repetitions"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write the raw numbers as JSON"
    )
    parser.add_argument(
        "--store",
        action="store_true",
        help="replace these benchmarks' tables in the documentation",
    )
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    if options.store and options.quick:
        parser.error("a quick run is not worth storing: leave out --quick")
    return options


def measure(name: str, quick: bool) -> dict:
    """Run one benchmark; its tables as plain data with where they came from."""
    run = importlib.import_module(f"benchmarks.{name}").run
    where = machine()
    start = time.perf_counter()
    tables = run(quick)
    return {
        "machine": where,
        "quick": quick,
        "seconds": round(time.perf_counter() - start, 1),
        "tables": [table.as_data() for table in tables],
    }


def store(runs: dict) -> None:
    """Put new tables in the place of the old ones, beside those of other benchmarks."""
    for name, run in runs.items():
        page = OWN_PAGES.get(name, PAGE)
        text, mark, below = page.read_text().partition(BELOW)
        if not mark:
            raise SystemExit(f"{page} has no line {BELOW.strip()!r} to write below")
        sections = {found[1]: found[0].strip() for found in _SECTION.finditer(below)}
        sections[name] = render_run(name, run).strip()
        ordered = [sections[each] for each in NAMES if each in sections]
        page.write_text(text + mark + "".join(f"\n{each}\n" for each in ordered))


def write_json(path: Path, runs: dict) -> None:
    """Write raw numbers."""
    path.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
