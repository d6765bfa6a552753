"""Many rows in chunks: memory is bounded, work is shared, progress can be heard of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from land.estimators.parallel import spread

Array = NDArray[np.float64]
RowFunction = Callable[[Array], Array]
Listener = Callable[[int, int], None]

# Rows of a chunk: work for a few seconds, and enough neighbours for geodesics to keep
# each other short; fewer in many dimensions, where each takes more memory.
_MOST_ROWS, _MOST_VALUES = 4096, 2**18

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """While this is entered, `listener(done, total)` hears of rows that are done."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def in_chunks(function: RowFunction, rows: Array, n_jobs: int | None = None) -> Array:
    """Values of a function of rows, (n, ...), computed chunk by chunk.

    Chunks are runs of rows of about equal size, which depends on the number of rows and
    dimensions only: values do not depend on `n_jobs`.
    """
    size = max(1, min(_MOST_ROWS, _MOST_VALUES // rows.shape[1]))
    chunks = np.array_split(rows, -(-len(rows) // size))
    starts = np.cumsum([0, *(len(chunk) for chunk in chunks)])
    listener = _listener.get()
    values: Array | None = None
    done = 0
    for position, found in spread(function, chunks, n_jobs):
        if values is None:
            values = np.empty((len(rows), *found.shape[1:]))
        values[starts[position] : starts[position + 1]] = found
        done += len(found)
        if listener is not None:
            listener(done, len(rows))
    assert values is not None
    return values
