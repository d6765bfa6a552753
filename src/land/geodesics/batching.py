"""Keep a fixed number of solver slots busy with any number of problems.

The solvers advance a block of problems in lockstep. Problems differ in length, so a
slot whose problem is finished takes the next one from the queue: the compiled shape
never changes, memory is bounded by the block, and hardly any work is wasted.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


def run_in_batches(
    n_problems: int,
    n_slots: int,
    advance: Callable[[Indices, Mask, int], Mask],
    collect: Callable[[Indices, Indices], None],
) -> None:
    """Solve `n_problems` problems, `n_slots` at a time.

    Parameters
    ----------
    n_problems
        Number of problems in the queue.
    n_slots
        Number of problems that are advanced together.
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
