"""Where to start: central data points, by distances along the graph of the data.

On closed or branching curves the objective has several minima, so that every central
point far from the others is a candidate. Most data have one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import cholesky
from land.fitting.descent import Search
from land.geodesics.graph import graph_distances
from land.metrics import Metric

Array = NDArray[np.float64]

# Candidates have a variance of at most so many times the smallest, and are this far
# from each other, in units of its root. Around one centre, the variance has doubled at
# a distance of one.
_MOST_VARIANCE, _APART = 1.5, 0.7
# Means that are so near each other, in standard deviations, are the same.
_SAME = 0.3


def central_points(metric: Metric, points: Array, weights: Array, count: int) -> Array:
    """Points of small mean squared distance to the others, the most central first.

    At most so many, far from each other.
    """
    distances = graph_distances(metric, points)
    variances = distances**2 @ weights
    order = np.argsort(variances, kind="stable")
    best = variances[order[0]]
    chosen: list[int] = []
    for k in order[variances[order] <= _MOST_VARIANCE * best]:
        if np.all(distances[k, chosen] > _APART * np.sqrt(best)):
            chosen.append(int(k))
    return points[chosen[:count]]


def leaders(searches: Sequence[Search], count: int, margin: float) -> list[Search]:
    """The best searches, at most so many, one in each place, none far behind.

    A constant that is not known well may be too small: its error counts.
    """
    ranked = sorted(searches, key=cautious_objective)
    chosen: list[Search] = []
    for search in ranked:
        behind = cautious_objective(search) - cautious_objective(ranked[0])
        if behind <= margin and not any(_same_place(search, one) for one in chosen):
            chosen.append(search)
    return chosen[:count]


def cautious_objective(search: Search) -> float:
    """The objective if the constant were larger by its standard error."""
    return float(search.spot.objective + search.spot.log_constant.stderr)


def _same_place(one: Search, other: Search) -> bool:
    factor = cholesky(other.spot.covariance)
    shift = np.linalg.solve(factor, one.spot.mean - other.spot.mean)
    return bool(np.linalg.norm(shift) < _SAME)
