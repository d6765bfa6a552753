"""The command line: parse arguments, show progress; no logic."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from land import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `land`; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="land", description="The Locally Adaptive Normal Distribution."
    )
    parser.add_argument("--version", action="version", version=f"land {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="compute geodesics on built-in data and write a figure"
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("land-demo"),
        help="folder for the figure (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        return _demo(options.output)
    except OSError as error:
        print(f"land: cannot write to {options.output}: {error}", file=sys.stderr)
        return 1


def _demo(folder: Path) -> int:
    try:
        from land.experiments import geodesics
    except ModuleNotFoundError as error:
        print(f"land: {error}; install the figures' needs: land[plot]", file=sys.stderr)
        return 1
    print("Geodesics on the half-ellipse (300 points, rho=1e-3) ...")
    start = time.perf_counter()
    report = geodesics.run(folder)
    seconds = time.perf_counter() - start
    pairs = zip(report["geodesic_lengths"], report["straight_lengths"], strict=True)
    print("  target            geodesic   straight line   (lengths in the metric)")
    for target, (geodesic, straight) in zip(report["targets"], pairs, strict=True):
        print(
            f"  ({target[0]:6.2f}, {target[1]:5.2f})  {geodesic:8.3f}   {straight:8.3f}"
        )
    n = len(report["targets"])
    print(
        f"  {report['log_maps_converged']} of {n} log maps converged, {seconds:.1f} s"
    )
    for file in report["files"]:
        print(f"Figure: {file}")
    return 0
