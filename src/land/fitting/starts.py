"""Where to start: rival means among the data, ranked on a rough version of the problem.

The objective has many local minima on long or closed curves, so a descent from one
start is not enough. A few data points that lie far apart are tried with a sample of the
data and few rays, all in one batch; only the best are worth descending from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.density.constant import model_shares
from land.fitting.least_squares import intrinsic_mean
from land.fitting.problem import Estimate, FitProblem, usable_tangents
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]

_CANDIDATES = 8
_ROUGH_DATA, _ROUGH_SAMPLES = 100, 400
_STEPS = 2
_LEAST_SQUARES_STEPS, _LEAST_SQUARES_TOL = 10, 0.05


def rank_starts(
    problem: FitProblem, weights: Array, rng: np.random.Generator
) -> list[Array]:
    """Starting means, the most promising one first.

    The intrinsic mean competes with data points that lie far apart. All take a few
    steps towards the point where the model's mean tangent is the data's: it is near the
    optimum, and the direction to it comes for free.
    """
    rough, own = _rough_problem(problem, weights, rng)
    means = list(_spread_points(problem.data, weights, _CANDIDATES, rng))
    estimates = rough.profile(means, len(means) * [own])
    central = min(estimates, key=lambda estimate: _variance(estimate.logs, own))
    mean, _, _ = intrinsic_mean(
        rough, own, central.mean, _LEAST_SQUARES_STEPS, _LEAST_SQUARES_TOL
    )
    estimates += rough.profile([mean], [own])
    for _ in range(_STEPS):
        estimates = _improve(rough, estimates, own)
    problem.count(rough)
    outside = np.array([not problem.encloses(each.mean) for each in estimates])
    objectives = np.array([each.objective for each in estimates])
    order = np.lexsort([objectives, outside])
    return [estimates[k].mean for k in order]


def central_start(
    problem: FitProblem, weights: Array, rng: np.random.Generator
) -> Array:
    """The most central of a few data points."""
    rough, own = _rough_problem(problem, weights, rng)
    means = _spread_points(problem.data, weights, _CANDIDATES, rng)
    logs = rough.log_maps(list(means))
    problem.count(rough)
    return np.asarray(means[int(np.argmin([_variance(log, own) for log in logs]))])


def _rough_problem(
    problem: FitProblem, weights: Array, rng: np.random.Generator
) -> tuple[FitProblem, Array]:
    """A sample of the data with few rays, and the weights of the sample."""
    rows = sample_rows(weights, _ROUGH_DATA, rng)
    own = weights[rows] if len(rows) == np.sum(weights > 0.0) else np.ones(len(rows))
    return problem.subset(rows, _ROUGH_SAMPLES), own / own.sum()


def sample_rows(
    weights: Array, most: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """At most so many rows, drawn with the chances of their weights."""
    rows = np.flatnonzero(weights > 0.0)
    if len(rows) <= most:
        return rows
    chances = weights[rows] / weights[rows].sum()
    return np.sort(rng.choice(rows, size=most, replace=False, p=chances))


def _improve(
    rough: FitProblem, estimates: list[Estimate], weights: Array
) -> list[Estimate]:
    """Move every mean by the paper's direction, where that helps."""
    tangents = np.stack([_mismatch(estimate, weights) for estimate in estimates])
    bases = np.stack([estimate.mean for estimate in estimates])
    arrivals = exp_map(rough.metric, bases, tangents)
    rough.n_exp_maps += len(bases)
    means = np.where(arrivals.converged[:, None], arrivals.points, bases)
    moved = rough.profile(
        list(means),
        len(means) * [weights],
        [estimate.covariance for estimate in estimates],
    )
    return [
        new if new.objective < old.objective else old
        for new, old in zip(moved, estimates, strict=True)
    ]


def _mismatch(estimate: Estimate, weights: Array) -> Array:
    """The data's mean tangent less the model's (Eq. 11), at most one deviation long."""
    tangents, usable = usable_tangents(estimate.logs, weights)
    shares = model_shares(estimate.nodes, estimate.precision)
    step = usable @ tangents - shares @ estimate.nodes.tangents
    size = float(np.sqrt(step @ estimate.precision @ step))
    return np.asarray(step / max(size, 1.0))


def _variance(logs: LogMap, weights: Array) -> float:
    return float(weights @ np.nan_to_num(logs.lengths, nan=np.inf) ** 2)


def _spread_points(
    data: Array, weights: Array, count: int, rng: np.random.Generator
) -> Array:
    """Data points far from each other, as k-means++ chooses them."""
    chosen = [int(rng.choice(len(data), p=weights / weights.sum()))]
    squares = np.full(len(data), np.inf)
    for _ in range(count - 1):
        squares = np.minimum(squares, np.sum((data - data[chosen[-1]]) ** 2, axis=1))
        chances = weights * squares
        total = chances.sum()
        if total <= 0.0:  # no different points are left
            break
        chosen.append(int(rng.choice(len(data), p=chances / total)))
    return data[chosen]
