"""Riemannian k-means: clusters of smallest squared geodesic distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from land.fitting.problem import FitProblem
from land.geodesics import LogMap, exp_map

Array = NDArray[np.float64]
Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Clusters:
    """Centres with the log maps of all data at each of them."""

    centers: Array
    logs: list[LogMap]
    labels: Labels
    inertia: float
    n_iter: int
    converged: bool


def fit_kmeans(
    problem: FitProblem, weights: Array, centers: Array, max_iter: int, tol: float
) -> Clusters:
    """Move centres to the intrinsic means of their clusters until nothing changes.

    Parameters
    ----------
    problem
        Data and metric.
    weights : ndarray of shape (N,)
        Weights of the data.
    centers : ndarray of shape (K, D)
        First centres.
    max_iter
        Largest number of steps.
    tol
        Stop when no centre moves by more than this share of the clusters' spread.
    """
    logs = problem.log_maps(list(centers))
    labels, inertia = _assign(logs, weights)
    step = 1.0
    for iteration in range(1, max_iter + 1):
        directions = _directions(logs, labels, weights)
        lengths = np.sqrt(problem.metric.inner(centers, directions, directions))
        if lengths.max() <= tol * np.sqrt(inertia / weights.sum()) or step < 1e-3:
            settled = bool(step >= 1e-3)
            return Clusters(centers, logs, labels, inertia, iteration, settled)
        trial = exp_map(problem.metric, centers, step * directions).points
        trial_logs = problem.map_points(
            list(trial), len(trial) * [problem.data], logs if step < 1.0 else None
        )
        trial_labels, trial_inertia = _assign(trial_logs, weights)
        if trial_inertia <= inertia:
            centers, logs, labels = trial, trial_logs, trial_labels
            inertia, step = trial_inertia, min(1.0, 1.5 * step)
        else:
            step *= 0.4
    return Clusters(centers, logs, labels, inertia, max_iter, False)


def spread_centers(
    problem: FitProblem, weights: Array, count: int, rng: np.random.Generator
) -> Array:
    """Data points as first centres, chosen as k-means++ does, by geodesic distance."""
    chosen = [int(rng.choice(len(weights), p=weights / weights.sum()))]
    squares = np.full(len(weights), np.inf)
    while len(chosen) < count:
        (logs,) = problem.log_maps([problem.data[chosen[-1]]])
        lengths = np.nan_to_num(logs.lengths, nan=0.0)
        squares = np.minimum(squares, lengths**2)
        chances = weights * squares
        if chances.sum() <= 0.0:  # no different points are left
            chances = weights
        chosen.append(int(rng.choice(len(weights), p=chances / chances.sum())))
    return problem.data[chosen]


def _assign(logs: list[LogMap], weights: Array) -> tuple[Labels, float]:
    """Nearest centres, and the weighted sum of squared distances to them."""
    lengths = np.stack([np.nan_to_num(log.lengths, nan=np.inf) for log in logs])
    labels = np.argmin(lengths, axis=0)
    nearest = lengths.min(axis=0)
    return labels, float(weights @ np.where(np.isfinite(nearest), nearest, 0.0) ** 2)


def _directions(logs: list[LogMap], labels: Labels, weights: Array) -> Array:
    """Mean tangents of the clusters; an empty cluster stays where it is."""
    directions = []
    for k, log in enumerate(logs):
        usable = (labels == k) & np.all(np.isfinite(log.tangents), axis=1)
        own = np.where(usable, weights, 0.0)
        total = max(float(own.sum()), 1e-300)
        tangents = np.where(usable[:, None], log.tangents, 0.0)
        directions.append(own @ tangents / total)
    return np.stack(directions)
