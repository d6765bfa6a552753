"""Fitting one distribution: which method, from where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from land.fitting.estimate import Estimate
from land.fitting.least_squares import fit_least_squares
from land.fitting.maximum_likelihood import fit_maximum_likelihood
from land.fitting.paper import fit_as_in_paper
from land.fitting.problem import FitProblem
from land.fitting.starts import Init, first_mean

Array = NDArray[np.float64]
Method = Literal["ml", "least_squares"]
Optimizer = Literal["auto", "paper"]


@dataclass(frozen=True)
class FitSettings:
    """How to fit."""

    method: Method = "ml"
    optimizer: Optimizer = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    prune: bool = False


def fit_one(
    problem: FitProblem,
    weights: Array,
    init: Init | Array,
    settings: FitSettings,
    rng: np.random.Generator,
) -> tuple[Estimate, bool]:
    """Fit one distribution to weighted data.

    Parameters
    ----------
    problem
        Data, metric and numerical settings.
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    init
        Where to start: a mean, or the name of a rule.
    settings
        How to fit.
    rng
        Randomness of the starting points.

    Returns
    -------
    The estimate, and whether the stopping rule was met.
    """
    by_rule = isinstance(init, str) and init == "least_squares"
    if settings.method == "ml" and settings.optimizer == "auto":
        return fit_maximum_likelihood(
            problem,
            weights,
            None if by_rule else first_mean(problem, weights, init, rng),
            settings.max_iter,
            settings.tol,
            rng,
        )
    start = first_mean(problem, weights, init, rng)
    if settings.method == "least_squares":
        return fit_least_squares(
            problem, weights, start, settings.max_iter, settings.tol, rng
        )
    steps = settings.max_iter if by_rule else 0
    estimate, _ = fit_least_squares(problem, weights, start, steps, settings.tol, rng)
    return fit_as_in_paper(problem, weights, estimate, settings.max_iter, settings.tol)
