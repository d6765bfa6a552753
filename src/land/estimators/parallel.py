"""Independent jobs in other processes or on other machines, as joblib is told.

What all jobs share travels once and is unpacked once in each process, so that what is
learned about a metric on first use is there for all jobs of that process.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from joblib import (  # type: ignore[import-untyped]
    effective_n_jobs,
    parallel_config,
    wrap_non_picklable_objects,
)
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed

from land._memory import keep_freed_memory

# Workers that are lost take jobs with them: what is missing is given out again.
_ATTEMPTS = 2


def spread(
    function: Callable[[Any], Any], jobs: Sequence[Any], n_jobs: int | None
) -> Iterator[tuple[int, Any]]:
    """Positions and results ``function(job)`` of all jobs, whatever is ready first.

    One job, and jobs that joblib would run one after the other, are run right here.
    """
    check_n_jobs(n_jobs)
    if runs_here(jobs, n_jobs):
        for position, job in enumerate(jobs):
            yield position, function(job)
        return
    # Dask scatters arguments that are arrays, once. What is in a tuple stays with its
    # task, which can then start anew on another worker.
    portable = wrap_non_picklable_objects(function)  # metrics may hold a lambda
    packed = np.frombuffer(pickle.dumps(portable), dtype=np.uint8)
    waiting = dict(enumerate(jobs))
    for attempt in range(1, _ATTEMPTS + 1):
        # Not more processes than jobs: each is granted its share of the processors.
        n_workers = max(1, min(effective_n_jobs(n_jobs), len(waiting)))
        # No temporary files for large arrays: models that refer to them would not
        # outlive them.
        parallel = Parallel(n_workers, return_as="generator_unordered", max_nbytes=None)
        tasks = [delayed(_run)(packed, item) for item in waiting.items()]
        try:
            for position, result in parallel(tasks):
                del waiting[position]
                yield position, result
            return
        except Exception as error:
            if attempt == _ATTEMPTS:
                raise
            warnings.warn(
                f"{len(waiting)} of {len(jobs)} jobs were lost by their workers and "
                f"are given out again ({type(error).__name__}: {error})",
                RuntimeWarning,
                stacklevel=3,
            )


def runs_here(jobs: Sequence[Any], n_jobs: int | None) -> bool:
    """Whether `spread` runs these jobs in this process, one after the other."""
    return len(jobs) == 1 or effective_n_jobs(n_jobs) == 1


def check_n_jobs(n_jobs: Any) -> None:
    """Refuse what is no number of jobs."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0
    ):
        raise ValueError(
            f"n_jobs must be None or an integer other than 0, got {n_jobs!r}"
        )


def _run(packed: NDArray[np.uint8], item: tuple[int, Any]) -> tuple[int, Any]:
    """One job, in a worker; what it calls does not spread any further."""
    position, job = item
    with parallel_config(backend="sequential"):
        return position, _unpacked(packed.tobytes())(job)


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Callable[[Any], Any]:
    keep_freed_memory()
    _share_processors()
    return pickle.loads(packed)


def _share_processors() -> None:
    """Let JAX use as many threads as joblib grants to one of its own processes.

    Or as many as the environment says. It would use all processors in each of them,
    and they would wait for each other.
    """
    granted = os.environ.get("OMP_NUM_THREADS")
    if granted and multiprocessing.current_process().name.startswith("LokyProcess"):
        os.environ.setdefault("NPROC", granted)  # read when JAX first computes
