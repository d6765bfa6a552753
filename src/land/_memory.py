"""Memory that is freed and asked for again."""

from __future__ import annotations

import ctypes
import os

# Names of the settings in the C library's malloc.h, and the values that it works its
# way up to by itself on a machine of 64 bits.
_M_TRIM_THRESHOLD, _TRIM_THRESHOLD = -1, 2**26
_M_MMAP_THRESHOLD, _MMAP_THRESHOLD = -3, 2**25


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory, as it does by default.

    Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_=65536``. Blocks of more than
    128 KiB then go back to the system when they are freed and come as new pages, one
    page fault for each 4 KiB, when they are asked for again. That is every few hundred
    microseconds here, and more than doubled the time of a log map.

    Nothing is changed where ``MALLOC_MMAP_THRESHOLD_`` is set, or without glibc.
    """
    if (
        "MALLOC_TRIM_THRESHOLD_" not in os.environ
        or "MALLOC_MMAP_THRESHOLD_" in os.environ
    ):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # no glibc
        return
    mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD)
    mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
