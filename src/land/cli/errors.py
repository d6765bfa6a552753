"""Exit codes, and errors in one line."""

from __future__ import annotations

FAILURE, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

_REMEDIES: dict[type[BaseException], str] = {
    FileNotFoundError: "; check the path",
    PermissionError: "; choose a place that you may use",
    IsADirectoryError: "; name a file, not a folder",
}
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


def describe(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror}{_REMEDIES.get(type(error), '')}"
    if isinstance(error, ModuleNotFoundError):
        missing = (error.name or "").split(".")[0]
        return f"{text}; {_NEEDED_FOR.get(missing, 'install it, or land again')}"
    if isinstance(error, MemoryError):
        return "out of memory; try fewer rows"
    if isinstance(error, (CommandError, ValueError, RuntimeError, OSError)):
        return text or type(error).__name__
    return f"unexpected {type(error).__name__}: {text}; --traceback shows more"
