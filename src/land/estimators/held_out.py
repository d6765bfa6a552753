"""Models judged by rows: fitted to some, scored on others, compared row by row."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Trial(NamedTuple):
    """A model fitted to some rows, the log densities of others, the time of the fit."""

    model: Any
    values: Array
    seconds: float


def try_out(model: Any, train: Any, test: Any) -> Trial:
    """Fit a model to rows and score others.

    An interrupt, which a fit answers with what it has reached so far, is passed on.
    """
    started = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - started
    if getattr(getattr(model, "estimator_", model), "interrupted_", False):
        raise KeyboardInterrupt
    return Trial(model, model.score_samples(test), seconds)


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean of the known values, and its standard error."""
    known = values[~np.isnan(values)]
    return float(np.mean(known)), float(np.std(known, ddof=1) / math.sqrt(len(known)))
