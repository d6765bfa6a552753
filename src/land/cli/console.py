"""Progress, warnings and errors on standard error, results on standard output."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any, Self

# As shells have them: 128 and the number of the signal.
FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

# Seconds between two lines of a log.
_PAUSE = 0.5

_NEEDED_FOR = {
    "matplotlib": "figures need it: pip install 'land[plot]'",
    "pandas": "tables need it: pip install 'land[cli]'",
    "pooch": "the data need it: pip install 'land[reproduction]'",
}


class CommandError(Exception):
    """A command cannot do what was asked; the message says why and what to try."""

    code = FAILURE


class UsageError(CommandError):
    """The arguments make no sense together."""

    code = USAGE


class Console:
    """Shows progress unless `quiet`, and prints results, as JSON if asked for.

    While it is entered, warnings of Python become lines without file names.
    """

    def __init__(
        self, quiet: bool = False, json: bool = False, verbose: bool = False
    ) -> None:
        self.quiet, self.json, self.verbose = quiet, json, verbose
        self.warnings: list[str] = []
        self._stream = sys.stderr
        self._started = self._written = 0.0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._filters.__enter__()
        warnings.simplefilter("ignore")
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        # A cache that cannot be used costs time, nothing else.
        warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
        warnings.showwarning = lambda message, *_, **__: self.warn(str(message))
        return self

    def __exit__(self, *error: Any) -> None:
        self._filters.__exit__(*error)

    def say(self, text: str) -> None:
        """A line of progress."""
        if not self.quiet:
            self._write(f"{text}\n")

    def warn(self, text: str) -> None:
        """A line of warning; the same one is shown once."""
        text = " ".join(text.split())
        if text not in self.warnings:
            self.warnings.append(text)
            self._write(f"land: warning: {text}\n")

    def error(self, text: str) -> None:
        """The line that says why the command failed."""
        self._write(f"land: {text}\n")

    def result(self, text: str, data: dict[str, Any]) -> None:
        """The result, for people or, if they asked for JSON, for programs."""
        if self.json:
            text = json.dumps(plain(data | {"warnings": self.warnings}), default=str)
        print(text)

    @contextlib.contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Announce a task; the rows that it has done are shown."""
        from land.estimators.scoring import reporting_to

        self.say(f"{task} ...")
        self._started = time.perf_counter()
        with reporting_to(self.rows):
            yield
        if not self.quiet:
            self._write("")  # clears a terminal's line

    def step(self, step: Any) -> None:
        """Show a step of a fit."""
        task = "looking for a start" if step.stage == "search" else "fitting"
        self.progress(
            f"{task}: step {step.iteration}, log density {-step.objective:.6g}"
        )

    def rows(self, done: int, total: int) -> None:
        """Show how many rows are done, as `land.estimators.scoring` reports it."""
        left = (time.perf_counter() - self._started) * (total - done) / done
        if done < total:
            self.progress(f"{done} of {total} rows, about {left:.0f} s left")

    def progress(self, state: str) -> None:
        """Show how far the task has come: in a terminal's line, or now and then."""
        if self.quiet:
            return
        now = time.perf_counter()
        state = f"{state}  {now - self._started:.1f} s"
        if self._stream.isatty():
            self._write(state[: shutil.get_terminal_size().columns - 1])
        elif now - self._written > _PAUSE:
            self._written = now
            self.say(f"  {state}")

    def _write(self, text: str) -> None:
        """Write in the place of the terminal's line."""
        with contextlib.suppress(OSError, ValueError):  # nobody listens
            self._stream.write("\r\x1b[K" * self._stream.isatty() + text)
            self._stream.flush()


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}"
    if isinstance(error, ModuleNotFoundError):
        missing = (error.name or "").split(".")[0]
        return f"{text}; {_NEEDED_FOR.get(missing, 'install it, or land again')}"
    expected = (CommandError, ValueError, RuntimeError, OSError, ImportError)
    if isinstance(error, expected):
        return text or type(error).__name__
    return f"unexpected {type(error).__name__}: {text}; --traceback shows more"


def plain(value: Any) -> Any:
    """Anything a command reports, as JSON has it; NaN and infinity are null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
