"""Where to start: central data points, by distances along the graph of the data.

On closed or branching curves the objective has several minima, so that every central
point far from the others is a candidate. Most data have one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from land.fitting.fidelity import ladder
from land.fitting.problem import FitProblem
from land.geodesics.graph import graph_distances

Array = NDArray[np.float64]
Init = Literal["least_squares", "random"]

# Candidates have a variance of at most so many times the smallest, and are this far
# from each other, in units of its root. Around one centre, the variance has doubled at
# a distance of one.
_MOST_VARIANCE, _APART = 1.5, 0.7


def central_rows(distances: Array, weights: Array, count: int) -> list[int]:
    """Rows of small mean squared distance to the others, the most central first.

    At most so many, far from each other.
    """
    variances = distances**2 @ weights
    order = np.argsort(variances, kind="stable")
    best = variances[order[0]]
    chosen: list[int] = []
    for k in order[variances[order] <= _MOST_VARIANCE * best]:
        if np.all(distances[k, chosen] > _APART * np.sqrt(best)):
            chosen.append(int(k))
    return chosen[:count]


def first_mean(
    problem: FitProblem, weights: Array, init: Init | Array, rng: np.random.Generator
) -> Array:
    """Where to start: the mean given, a random datum, or a central one."""
    if not isinstance(init, str):
        return init
    if init == "random":
        chances = weights / weights.sum()
        return np.asarray(problem.data[rng.choice(len(problem.data), p=chances)])
    n_rows = int(np.sum(weights > 0.0))
    ranking = ladder(n_rows, 1, problem.metric.dim, problem.points_on_the_way, 1.0)[0]
    part, own, _ = problem.at(ranking, weights, rng)
    (row,) = central_rows(graph_distances(part.metric, part.data), own, 1)
    return np.asarray(part.data[row])
