"""The command line: parse arguments, show progress; no logic.

Nothing heavy is imported before a command needs it, so that `land --help` answers at
once.
"""

from land.cli.main import main

__all__ = ["main"]
