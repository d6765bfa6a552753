"""The command `land reproduce`: which experiments run, and what is shown of them."""

from __future__ import annotations

import argparse
from typing import Any

import pooch

from land.cli.console import FAILURE, INTERRUPTED, Console, UsageError, describe
from reproduction import runner


def reproduce(options: argparse.Namespace, console: Console) -> int:
    """Run the experiments that the options name."""
    experiments = runner.EXPERIMENTS
    if options.list:
        width = max(len(name) for name in experiments)
        lines = [f"{name:<{width}}  {about}" for name, about in experiments.items()]
        console.result("\n".join(lines), {"experiments": experiments})
        return 0
    if options.name is None:
        raise UsageError("name an experiment, or all; 'land reproduce --list' has them")
    if options.name != "all" and options.name not in experiments:
        raise UsageError(
            f"no experiment {options.name!r}; choose one of {', '.join(experiments)}, "
            "or all"
        )
    if console.quiet:
        pooch.get_logger().setLevel("WARNING")  # no lines about downloads
    names = list(experiments) if options.name == "all" else [options.name]
    results, failures = [], {}
    for name in names:
        try:
            results.append(_reproduce(name, options, console))
        except KeyboardInterrupt:
            console.error("interrupted; the same command goes on where this one ended")
            return INTERRUPTED
        except Exception as error:
            if len(names) == 1:
                raise
            failures[name] = describe(error)
            console.error(f"{name}: {failures[name]}")
    text = "\n".join(f"{each['name']}: {each['summary']}" for each in results)
    files = "\n".join(str(file) for each in results for file in each["files"])
    console.result(f"{text}\n{files}", {"experiments": results, "failures": failures})
    return FAILURE if failures else 0


def _reproduce(
    name: str, options: argparse.Namespace, console: Console
) -> dict[str, Any]:
    with console.working(f"reproducing {name}"):
        result = runner.reproduce(
            name,
            options.output,
            quick=options.quick,
            data_home=options.data,
            report=console.progress,
        )
    return {
        "name": name,
        "summary": result.summary,
        "verdict_file": str(result.verdict_file),
        "files": [str(file) for file in result.files],
    }
