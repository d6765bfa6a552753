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
from types import TracebackType
from typing import Any, Self

# Seconds between updates of a terminal's line; between lines of a log; and after which
# a log hears that work goes on.
_REDRAW, _PAUSE, _PATIENCE = 0.2, 0.5, 5.0
# Characters of a progress bar.
_BAR = 24
# Warnings of libraries about themselves are none of the user's business.
_SHOWN = (UserWarning, RuntimeWarning)


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
        self._status: tuple[str, float] | None = None
        self._state = ""
        self._written = 0.0
        self._filters = warnings.catch_warnings()

    def __enter__(self) -> Self:
        self._filters.__enter__()
        warnings.simplefilter("ignore")
        for category in _SHOWN:
            warnings.simplefilter("always", category)
        # A cache that cannot be used costs time, nothing else.
        warnings.filterwarnings("ignore", message=".*persistent compilation cache.*")
        warnings.showwarning = self._show_warning
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._filters.__exit__(kind, error, trace)

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
            print(json.dumps(_plain(data | {"warnings": self.warnings})))
        else:
            print(text)

    @contextlib.contextmanager
    def working(self, task: str) -> Iterator[None]:
        """Show that a task goes on until it ends."""
        if self.quiet:
            yield
            return
        self.say(f"{task} ...")
        self._status, self._state = (task, time.perf_counter()), ""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            with self._lock:
                self._clear()
                self._status = None

    def step(self, step: Any) -> None:
        """Hear of a step of a fit; a callback of the estimators."""
        search = "search: " if getattr(step, "stage", "fit") == "search" else ""
        self.progress(f"{search}step {step.iteration}  objective {step.objective:.6g}")

    def rows(self, done: int, total: int) -> None:
        """Show how many rows are done, as `land.estimators.scoring` reports it."""
        filled = _BAR * done // total
        bar = "#" * filled + "." * (_BAR - filled)
        self.progress(f"[{bar}] {done} of {total} rows")

    def progress(self, state: str) -> None:
        """Say how far the task has come."""
        self._state = state
        if not self._terminal and time.perf_counter() - self._written > _PAUSE:
            self._report()

    def _watch(self, done: threading.Event) -> None:
        """Keep the terminal's line up to date, or a log alive."""
        while not done.wait(_REDRAW):
            if self._terminal:
                with self._lock:
                    self._clear()
                    self._write(self._describe()[:79])
            elif time.perf_counter() - self._written > _PATIENCE:
                self._report()

    def _report(self) -> None:
        if self._status is not None and not self.quiet:
            self._line(f"  {self._describe()}")

    def _describe(self) -> str:
        if self._status is None:
            return ""
        task, started = self._status
        elapsed = f"{time.perf_counter() - started:.1f} s"
        return f"{self._state or task}  {elapsed}"

    def _line(self, text: str) -> None:
        with self._lock:
            self._clear()
            self._write(f"{text}\n")
            self._written = time.perf_counter()

    def _clear(self) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody listens any more
            self._stream.write(text)
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
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
