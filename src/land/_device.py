"""The device that JAX computes on evaluates metrics, in float64 and in blocks.

Blocks have a fixed size. A processor wants those that stay in its cache, an accelerator
as much in every launch as its memory holds. JAX chooses the device: an accelerator if
it sees one, or what the environment variable JAX_PLATFORMS names.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
P = ParamSpec("P")
R = TypeVar("R")


# Numbers that an array may have, where work can be cut into pieces: 32 MiB, about one
# cache of a processor.
AT_ONCE = 2**22


@dataclass(frozen=True)
class Device:
    """How much is computed at once.

    Sizes of blocks of points, ascending; the kernel weights, of points and data, in
    memory at once; and the data in the plane that are summed over without a table.
    """

    points: tuple[int, ...]  # each means a compilation
    pairs: int
    few_tabulated: int


_PROCESSOR = Device(points=(2**7, 2**11), pairs=AT_ONCE, few_tabulated=100)
_ACCELERATOR = Device(points=(2**12, 2**16), pairs=2**28, few_tabulated=2**10)


def device() -> Device:
    """The device that JAX computes on."""
    return _PROCESSOR if jax.default_backend() == "cpu" else _ACCELERATOR


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Make every JAX operation inside `function` run in float64.

    Geodesics lose all their digits in float32 (the metric varies by several orders
    of magnitude over a few sigma), so the public functions are wrapped in this,
    whatever the caller's own JAX configuration is.
    """

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper


def in_blocks(
    function: Callable[..., Any],
    sizes: tuple[int, ...],
    fixed: Any,
    *rows: NDArray[np.float64],
) -> list[NDArray[np.float64]]:
    """Arrays that a compiled function returns for `fixed` and any number of rows.

    It is called with blocks of these sizes, so that it is neither compiled for every
    number nor fills the memory. The last block is filled up with its last row.
    """
    n = len(rows[0])
    counts, parts = [], []
    start = 0
    while start < n:
        left = n - start
        # The smallest block that holds the rest, unless that would be mostly empty.
        size = max((each for each in sizes if each <= left), default=sizes[0])
        if size < max(sizes) and 4 * left > max(sizes):
            size = max(sizes)
        count = min(size, left)
        some: Any = slice(start, start + size)
        if count < size:
            some = np.minimum(np.arange(start, start + size), n - 1)
        found = function(fixed, *(each[some] for each in rows))
        counts.append(count)
        parts.append(jax.tree.leaves(found))
        start += count
    # Blocks are computed side by side; only now does anybody wait for them.
    return [
        np.concatenate(
            [np.asarray(each)[:count] for each, count in zip(own, counts, strict=True)]
        )
        for own in zip(*parts, strict=True)
    ]


def take_rows(batch: Any, rows: Indices | Mask) -> Any:
    """Some rows of all arrays of a batch, a tuple of them or of such tuples."""
    return jax.tree.map(lambda each: each[rows], batch)


# What a solver asks for: points and vectors there; and what it is told.
Request = tuple[NDArray[np.float64], NDArray[np.float64]]
Solver = Generator[Request, Any, Any]


def in_lockstep(
    evaluate: Callable[[NDArray[np.float64], NDArray[np.float64]], Sequence[Any]],
    solvers: Sequence[Solver],
) -> list[Any]:
    """Run solvers side by side, so that they share evaluations; their answers.

    Each is a generator that yields points (n, D) with vectors, and is sent what
    `evaluate` returns for them: arrays of n rows. Arithmetic with what is not finite is
    theirs to notice.
    """
    answers: list[Any] = [None] * len(solvers)
    replies: dict[int, Any] = dict.fromkeys(range(len(solvers)))
    while replies:
        requests: dict[int, Request] = {}
        for k, reply in replies.items():
            try:
                with np.errstate(all="ignore"):
                    requests[k] = solvers[k].send(reply)
            except StopIteration as end:
                answers[k] = end.value
        if not requests:
            break
        points, vectors = zip(*requests.values(), strict=True)
        found = evaluate(np.concatenate(points), np.concatenate(vectors))
        ends = np.cumsum([len(each) for each in points])[:-1]
        parts = zip(*(np.split(each, ends) for each in found), strict=True)
        replies = dict(zip(requests, parts, strict=True))
    return answers
