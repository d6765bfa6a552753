"""Many rows in chunks: memory is bounded, and progress can be heard of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RowFunction = Callable[[Array], Array]
Listener = Callable[[int, int], None]

# Rows of a chunk: work for a few seconds, and enough neighbours for geodesics to keep
# each other short; fewer in many dimensions, where each takes more memory.
_MOST_ROWS, _MOST_VALUES = 1024, 2**18

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """While this is entered, `listener(done, total)` hears of rows that are done."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def in_chunks(function: RowFunction, rows: Array) -> Array:
    """Values of a function of rows, (n, ...), computed for one chunk after the other.

    Chunks are runs of rows of about equal size, which depends on the number of rows and
    dimensions only.
    """
    listener = _listener.get()
    values: Array | None = None
    done = 0
    for chunk in _chunks(rows):
        found = function(chunk)
        if values is None:
            values = np.empty((len(rows), *found.shape[1:]))
        values[done : done + len(chunk)] = found
        done += len(chunk)
        if listener is not None:
            listener(done, len(rows))
    assert values is not None
    return values


def _chunks(rows: Array) -> list[Array]:
    size = max(1, min(_MOST_ROWS, _MOST_VALUES // rows.shape[1]))
    return np.array_split(rows, -(-len(rows) // size))
