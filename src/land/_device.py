"""How much is computed at once, on the device that JAX computes on.

A processor wants blocks that stay in its cache. An accelerator spends the same time on
a small block as on a large one, and wants as much in every launch as its memory holds.
JAX chooses the device: an accelerator if it sees one, or what the environment variable
JAX_PLATFORMS names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

# A block is chosen if at least this share of it is used.
_USED = 0.75


@dataclass(frozen=True)
class Device:
    """Sizes of blocks; every one that is used means a compilation.

    Attributes
    ----------
    curve_points : tuple of int
        Gauss points of the curves that are relaxed together.
    rays : tuple of int
        Geodesics that are integrated together.
    points : tuple of int
        Points at which a metric is evaluated for the host.
    pairs : int
        Kernel weights, of points and data, in memory at once.
    few_data : int
        So many data are summed over in full: looking for neighbours does not pay.
    few_tabulated : int
        So many data in the plane are summed over without a table of the sums.
    newton : bool
        Whether Newton's method finishes all geodesics, and not only stragglers. It
        solves small linear systems on the host, and an accelerator would have to wait.
    coordinates : int
        Coordinates that a block may have, whatever the number of dimensions.
    """

    curve_points: tuple[int, ...]
    rays: tuple[int, ...]
    points: tuple[int, ...]
    pairs: int
    few_data: int
    few_tabulated: int
    newton: bool
    coordinates: int


# Curve points: nearly as efficient as blocks four times as large, and the last curves
# of a batch waste little. The small block of rays is nearly as efficient as the large
# one. Pairs: 32 MiB in float64, about one L3 cache.
_PROCESSOR = Device(
    curve_points=(2**8,),
    rays=(2**6, 2**10),
    points=(2**6, 2**10),
    pairs=2**22,
    few_data=2**12,
    few_tabulated=100,
    newton=True,
    coordinates=2**62,
)
_ACCELERATOR = Device(
    curve_points=(2**13, 2**16, 2**19, 2**21),
    rays=(2**10, 2**13, 2**16),
    points=(2**12, 2**16),
    pairs=2**28,
    few_data=2**17,
    few_tabulated=2**10,
    newton=False,
    coordinates=2**24,
)


class Rows(Protocol):
    """Something that has rows, to be taken by their indices."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[np.intp], /) -> Any: ...


def device() -> Device:
    """The device that JAX computes on."""
    return _PROCESSOR if jax.default_backend() == "cpu" else _ACCELERATOR


def block_size(sizes: tuple[int, ...], n: int, dim: int = 1) -> int:
    """The largest block that `n` items of `dim` coordinates would fill well enough."""
    most = device().coordinates // dim
    useful = [size for size in sizes if _USED * size <= n and size <= most]
    return max(useful, default=min(sizes))


def in_blocks(
    function: Callable[..., Any],
    sizes: tuple[int, ...],
    fixed: Any,
    *rows: Rows,
) -> list[NDArray[np.float64]]:
    """Arrays that a compiled function returns for `fixed` and any number of rows.

    It is called with blocks of these sizes, so that it is neither compiled for every
    number nor fills the memory. Rows are arrays, or objects that make arrays of them
    when they are taken.
    """
    n = len(rows[0])
    counts, parts = [], []
    for start in range(0, n, max(sizes)):
        count = min(max(sizes), n - start)
        size = next(size for size in sizes if count <= size)
        some: Any = slice(start, start + size)
        if count < size:
            some = np.minimum(np.arange(start, start + size), n - 1)
        found = function(fixed, *(each[some] for each in rows))
        counts.append(count)
        parts.append(jax.tree.leaves(found))
    # Blocks are computed side by side; only now does anybody wait for them.
    return [
        np.concatenate(
            [np.asarray(each)[:count] for each, count in zip(own, counts, strict=True)]
        )
        for own in zip(*parts, strict=True)
    ]


def run_in_batches(
    n_problems: int,
    n_slots: int,
    advance: Callable[[Indices, Mask, int], Mask],
    collect: Callable[[Indices, Indices], None],
) -> None:
    """Solve `n_problems` problems, `n_slots` at a time.

    Problems differ in length: a slot whose problem is finished takes the next one from
    the queue. The compiled shape never changes, and hardly any work is wasted.

    Parameters
    ----------
    n_problems, n_slots
        Problems in the queue, and how many are advanced together.
    advance
        ``advance(problems, fresh, leave_at)`` loads problem ``problems[s]`` into every
        slot s with ``fresh[s]``, advances all slots until at most `leave_at` of them
        are unfinished, and returns the mask of finished slots. Idle slots hold
        problem -1 and count as finished.
    collect
        ``collect(slots, problems)`` stores the answers of finished problems.
    """
    problems = np.full(n_slots, -1)
    following = 0
    busy = np.zeros(n_slots, dtype=bool)
    while following < n_problems or busy.any():
        free = np.flatnonzero(~busy)[: n_problems - following]
        problems[free] = np.arange(following, following + len(free))
        following += len(free)
        fresh = np.zeros(n_slots, dtype=bool)
        fresh[free] = True
        busy[free] = True
        waiting = following < n_problems
        finished = advance(problems, fresh, n_slots // 2 if waiting else 0) & busy
        slots = np.flatnonzero(finished)
        collect(slots, problems[slots])
        busy[slots] = False
        problems[slots] = -1


def select(mask: jax.Array, new: jax.Array, old: jax.Array | float) -> jax.Array:
    """`new` in the slots whose mask is set, `old` elsewhere."""
    return jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)
