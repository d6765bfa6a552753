"""What an interrupted fit needs to go on: small arrays, as plain data for a file.

Fits keep their progress where everything else is computed anew anyway: on a new rung of
the ladder, and every few steps. One that goes on from there takes the same steps, to
the last digit, as one that was never interrupted.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import numpy as np

from land.fitting.estimate import Step
from land.fitting.problem import FitProblem

Plain = dict[str, Any]


def keep(problem: FitProblem, **state: Any) -> None:
    """Tell whoever keeps the progress of a fit how it stands."""
    if problem.save_progress is None:
        return
    problem.save_progress(
        plain_data(
            {
                "history": [asdict(step) for step in problem.history],
                "work": asdict(problem.work),
                "seconds": time.perf_counter() - problem.started,
                **state,
            }
        )
    )


def restore(problem: FitProblem) -> Plain | None:
    """Put a problem back to where it was kept; return the state, if there is one."""
    kept = problem.progress
    if kept is None:
        return None
    problem.history[:] = [
        Step(**step | {"means": np.asarray(step["means"])}) for step in kept["history"]
    ]
    problem.work.log_maps = kept["work"]["log_maps"]
    problem.started = time.perf_counter() - kept["seconds"]
    return kept


def plain_data(value: Any) -> Any:
    """Lists and numbers; the digits of a float survive both this and JSON."""
    if isinstance(value, dict):
        return {name: plain_data(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value
