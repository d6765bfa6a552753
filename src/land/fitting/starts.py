"""Where to start: rival means among the data, ranked on a rough version of the problem.

The objective has many local minima on long or closed curves, so a descent from one
start is not enough. A few data points that lie far apart are tried with a sample of the
data and few rays, all in one batch; only the best are worth descending from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky, model_shares
from land.fitting.estimate import Estimate, usable_tangents
from land.fitting.least_squares import intrinsic_mean
from land.fitting.problem import FitProblem
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]

_CANDIDATES = 15
# Share of the candidates that is worth a second look.
_SURVIVORS = 0.5
# Longer steps, in standard deviations, would leave a basin for another one.
_LONGEST_STEP = 0.3
# Means that are so near each other, in standard deviations, are the same.
_SAME = 0.3
# Parts of a step that are tried until one ends where a mean may be.
_FRACTIONS = (1.0, 0.5, 0.25, 0.125)
_LEAST_SQUARES_STEPS, _LEAST_SQUARES_TOL = 5, 0.1


def rank_starts(
    rough: FitProblem,
    weights: Array,
    rng: np.random.Generator,
    candidates: int = _CANDIDATES,
) -> list[Estimate]:
    """Starting points for descents, the most promising one first.

    The intrinsic mean competes with data points that lie far apart. The better ones
    take a few steps towards the point where the model's mean tangent is the data's: it
    is near the optimum, and the direction to it comes for free.
    """
    means = list(_spread_points(rough.data, weights, candidates, rng))
    estimates = rough.profile(means, len(means) * [weights])
    central = min(estimates, key=lambda estimate: _variance(estimate.logs, weights))
    mean, _, _ = intrinsic_mean(
        rough, weights, central.mean, _LEAST_SQUARES_STEPS, _LEAST_SQUARES_TOL
    )
    estimates += rough.profile([mean], [weights])
    estimates = _improve(rough, estimates, weights)
    survivors = int(np.ceil(_SURVIVORS * len(estimates)))
    best = leaders(rough, estimates, survivors)
    return leaders(rough, _improve(rough, best, weights), survivors)


def leaders(
    problem: FitProblem, estimates: list[Estimate], count: int
) -> list[Estimate]:
    """The best estimates, at most so many, and only one in each place.

    Means that were on their way out of the data come last.
    """
    ranked = sorted(
        estimates,
        key=lambda each: (problem.enclosure.stopped(each.mean), each.objective),
    )
    chosen: list[Estimate] = []
    for estimate in ranked:
        if not any(_same_place(estimate, other) for other in chosen):
            chosen.append(estimate)
    return chosen[:count]


def _same_place(one: Estimate, other: Estimate) -> bool:
    shift = np.linalg.solve(cholesky(other.covariance), one.mean - other.mean)
    return bool(np.linalg.norm(shift) < _SAME)


def central_start(
    problem: FitProblem, weights: Array, rng: np.random.Generator
) -> Array:
    """The most central of a few data points."""
    rough, own, _ = problem.sample(weights, rng, covariances=False)
    means = _spread_points(problem.data, weights, _CANDIDATES, rng)
    logs = rough.log_maps(list(means))
    return np.asarray(means[int(np.argmin([_variance(log, own) for log in logs]))])


def _improve(
    rough: FitProblem, estimates: list[Estimate], weights: Array
) -> list[Estimate]:
    """Move every mean by the paper's direction, where that helps."""
    tangents = np.stack([_mismatch(estimate, weights) for estimate in estimates])
    bases = np.stack([estimate.mean for estimate in estimates])
    arrivals = exp_map(rough.metric, bases, tangents, times=_FRACTIONS)
    rough.work.exp_maps += len(bases)
    assert arrivals.rays is not None
    means = [
        next((point for point in ray if rough.enclosure.holds(point)), base)
        for ray, base in zip(arrivals.rays, bases, strict=True)
    ]
    same = len(means) * [weights]
    logs = rough.update_log_maps(
        means, [estimate.logs for estimate in estimates], same, near=True
    )
    moved = rough.profile_covariances(
        means, same, logs, [estimate.covariance for estimate in estimates]
    )
    return [
        new if new.objective < old.objective else old
        for new, old in zip(moved, estimates, strict=True)
    ]


def _mismatch(estimate: Estimate, weights: Array) -> Array:
    """The data's mean tangent less the model's (Eq. 11), shortened if it is long."""
    tangents, usable = usable_tangents(estimate.logs, weights)
    shares = model_shares(estimate.nodes, estimate.precision)
    step = usable @ tangents - shares @ estimate.nodes.tangents
    size = float(np.sqrt(step @ estimate.precision @ step))
    return np.asarray(step / max(size / _LONGEST_STEP, 1.0))


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
