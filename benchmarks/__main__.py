"""Command line: run benchmarks, print their tables, store them on request."""

import argparse
import importlib
import json
import re
import time
from pathlib import Path

from benchmarks import PAGES, SPEED
from benchmarks.common import machine, render_run

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Tables begin after this line of a page, each benchmark under a heading.
BELOW = "<!-- Below: written by `python -m benchmarks --store`; edits are lost. -->\n"
_SECTION = re.compile(r"^## (`(\w+)`.*?)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def main() -> None:
    """Run what the command line asks for."""
    options = parse()
    runs = {}
    for name in options.names:
        runs[name] = measure(name, options.quick)
        print(render_run(name, runs[name]), flush=True)
        if options.store:
            store(name, runs[name])
    if options.output:
        write_json(options.output, runs)


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        default=SPEED,
        help=f"which to run, of: {', '.join(PAGES)} ({', '.join(SPEED)})",
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
    unknown = sorted(set(options.names) - set(PAGES))
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


def store(name: str, run: dict) -> None:
    """Put new tables in the place of the old ones, beside those of other benchmarks."""
    page = DOCS / f"{PAGES[name]}.md"
    text, mark, below = page.read_text().partition(BELOW)
    if not mark:
        raise SystemExit(f"{page} has no line {BELOW.strip()!r} to write below")
    both = f"{below}\n{render_run(name, run)}"
    sections = {found[1]: found for found in _SECTION.finditer(both)}
    order = list(PAGES)
    ordered = sorted(sections.values(), key=lambda found: order.index(found[2]))
    parts = [f"\n{each[0].strip()}\n" for each in ordered]
    page.write_text(text + mark + "".join(parts))


def write_json(path: Path, runs: dict) -> None:
    """Write raw numbers."""
    path.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
