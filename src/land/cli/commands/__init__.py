"""One module for each command, with `HELP`, `add_arguments` and `run`.

The module's docstring is the command's description, its name the command's name.
"""

from land.cli.commands import (
    demo,
    fit,
    info,
    plot,
    predict,
    reproduce,
    sample,
    score,
    select,
)

COMMANDS = (demo, fit, score, predict, sample, plot, select, info, reproduce)

__all__ = ["COMMANDS"]
