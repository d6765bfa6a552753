"""Compiled code kept from one command to the next.

Only the command line does this: a library has no business in the user's folders.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path


def enable() -> Path | None:
    """Make JAX keep what it compiles; returns where, or None if it cannot.

    LAND_NO_CACHE switches it off. A folder that cannot be made or written is no error.
    """
    if os.environ.get("LAND_NO_CACHE"):
        return None
    import jax

    chosen = jax.config.values.get("jax_compilation_cache_dir")
    if chosen:  # by the user, who knows better
        return Path(str(chosen))
    try:
        folder = cache_folder() / f"jax-{_machine()}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK) or _is_shared(folder.stat()):
            return None
    except (OSError, RuntimeError):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Seconds of a compilation that is worth a file.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    return folder


def cache_folder() -> Path:
    """The user's cache folder for this program."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "land"


def _is_shared(status: os.stat_result) -> bool:
    """Whether others may write here, from where code is loaded."""
    if os.name != "posix":
        return False
    return bool(status.st_mode & 0o022) or status.st_uid != os.getuid()


def _machine() -> str:
    """A name for this kind of machine and JAX: code of another one may not run here."""
    parts = [version("jax"), version("jaxlib"), platform.machine()]
    with suppress(OSError):  # Linux only
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        parts += sorted({line for line in lines if line.startswith(("flags", "model"))})
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
