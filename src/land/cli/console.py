"""What the user sees: progress and warnings on stderr, the result on stdout."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, Self

# Seconds between updates of a terminal's line; between lines of a log; and after which
# a log hears that work goes on.
_REDRAW, _PAUSE, _PATIENCE = 0.2, 0.5, 5.0
# Characters of a progress bar.
_BAR = 24


class Console:
    """Shows progress, collects warnings, prints results.

    While it is entered, warnings become lines, without file names.

    Parameters
    ----------
    quiet : bool
        Whether to leave out progress. Warnings and errors are always shown.
    json : bool
        Whether results are JSON.
    """

    def __init__(self, quiet: bool = False, json: bool = False) -> None:
        self.quiet, self.json = quiet, json
        self.warnings: list[str] = []
        self._stream = sys.stderr
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._state, self._started, self._written = "", 0.0, 0.0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._filters.__enter__()
        # Warnings of libraries about themselves are none of the user's business.
        warnings.simplefilter("ignore")
        for category in (UserWarning, RuntimeWarning):
            warnings.simplefilter("always", category)
        # A cache that cannot be used costs time, nothing else.
        warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
        warnings.showwarning = self._show_warning
        return self

    def __exit__(self, *error: Any) -> None:
        self._filters.__exit__(*error)

    def say(self, text: str) -> None:
        """A line of progress."""
        if not self.quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """A line of warning; the same one is shown once."""
        if text not in self.warnings:
            self.warnings.append(text)
            self._line(f"land: warning: {text}")

    def error(self, text: str) -> None:
        """The line that says why the command failed."""
        self._line(f"land: {text}")

    def result(self, text: str, data: dict[str, Any]) -> None:
        """The result, for people or, if they asked for JSON, for programs."""
        if self.json:
            text = json.dumps(_plain(data | {"warnings": self.warnings}))
        print(text)

    @contextlib.contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Show that a task goes on until it ends."""
        if self.quiet:
            yield
            return
        self._line(f"{task} ...")
        self._state, self._started = task, time.perf_counter()
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            self._write()

    @contextlib.contextmanager
    def counting(self, task: str) -> Iterator[None]:
        """Show how many rows are done of a task that takes them in chunks."""
        from land.estimators.scoring import reporting_to

        with self.working(task), reporting_to(self.rows):
            yield

    def step(self, step: Any) -> None:
        """Hear of a step of a fit; a callback of the estimators."""
        searching = getattr(step, "stage", "fit") == "search"
        lead = "looking for a start: " if searching else ""
        self.progress(f"{lead}step {step.iteration}  objective {step.objective:.6g}")

    def rows(self, done: int, total: int) -> None:
        """Show how many rows are done, as `land.estimators.scoring` reports it."""
        bar = "#" * (_BAR * done // total)
        left = (time.perf_counter() - self._started) * (total - done) / done
        rest = f", about {left:.0f} s left" * (done < total)
        self.progress(f"[{bar:.<{_BAR}}] {done} of {total} rows{rest}")

    def progress(self, state: str) -> None:
        """Say how far the task has come."""
        self._state = state
        if not self._terminal and time.perf_counter() - self._written > _PAUSE:
            self.say(self._described())

    def _watch(self, done: threading.Event) -> None:
        """Keep the terminal's line up to date, or a log alive."""
        while not done.wait(_REDRAW):
            if self._terminal:
                self._write(self._described()[2:81])
            elif time.perf_counter() - self._written > _PATIENCE:
                self._line(self._described())

    def _described(self) -> str:
        return f"  {self._state}  {time.perf_counter() - self._started:.1f} s"

    def _line(self, text: str) -> None:
        self._write(f"{text}\n")
        self._written = time.perf_counter()

    def _write(self, text: str = "") -> None:
        """Write in the place of the terminal's line."""
        with self._lock, contextlib.suppress(OSError, ValueError):  # nobody listens
            self._stream.write("\r\x1b[K" * self._terminal + text)
            self._stream.flush()

    def _show_warning(self, message: Warning | str, *args: Any, **kwargs: Any) -> None:
        self.warn(" ".join(str(message).split()))


def _plain(value: Any) -> Any:
    """Anything a command reports, as JSON has it; what is no number is null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    known = value is None or isinstance(value, (bool, int, float, str))
    return value if known else str(value)
