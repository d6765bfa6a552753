"""Intrinsic least squares: the mean of smallest variance, the empirical covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from land.fitting.descent import LocalModel, Search, descend, first_radius
from land.fitting.estimate import Component, Estimate, usable_tangents
from land.fitting.fidelity import ladder
from land.fitting.problem import FitProblem
from land.fitting.profile import evaluate, second_moment
from land.geodesics import LogMap
from land.geodesics.equation import christoffel_symbols

Array = NDArray[np.float64]


def fit_least_squares(
    problem: FitProblem,
    weights: Array,
    start: Array,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Estimate, bool]:
    """Intrinsic mean, and the covariance of the tangents; and whether it converged."""
    mean, logs, converged = intrinsic_mean(problem, weights, start, max_iter, tol, rng)
    (estimate,) = evaluate(problem, [empirical(problem, mean, weights, logs)])
    problem.record(estimate.objective, [estimate])
    return estimate, converged


def intrinsic_mean(
    problem: FitProblem,
    weights: Array,
    start: Array,
    max_iter: int,
    tol: float,
    rng: np.random.Generator,
) -> tuple[Array, LogMap, bool]:
    """Karcher mean by descent along geodesics, with the log maps of the data there.

    Of many data samples bring the mean near. Also returns whether the mean tangent is
    shorter than `tol`, relative to the spread of the data.
    """
    mean, converged = start, False
    n_rows = int(np.sum(weights > 0.0))
    rungs = ladder(n_rows, 1, problem.metric.dim, problem.points_on_the_way, tol)
    for rung in rungs[1:] if max_iter else rungs[-1:]:
        # The mean tangent is to be short: its errors must be smaller.
        exact = replace(rung, map_tol=problem.tol)
        part, own, _ = problem.at(exact, weights, rng)
        variance = Variance(part, own)
        (spot,) = variance.evaluate([mean], [])
        search = Search(spot, first_radius(problem.metric))
        descend(variance, [search], max_iter, tol, lambda spot: None)
        mean, converged = search.spot.mean, search.converged
    return mean, search.spot.logs, converged


@dataclass(frozen=True)
class VarianceSpot:
    """Half the logarithm of the mean squared distance at a mean."""

    mean: Array
    objective: float
    logs: LogMap


class Variance:
    """Half the logarithm of the mean squared distance, as an objective.

    The logarithm makes it free of units: its gradient is the mean tangent relative to
    the spread of the data.
    """

    def __init__(self, problem: FitProblem, weights: Array) -> None:
        self.problem, self.metric = problem, problem.metric
        self.weights = weights

    def evaluate(
        self, means: Sequence[Array], searches: Sequence[Search]
    ) -> list[VarianceSpot]:
        """Values at means; far from all data there is none."""
        near = [search.spot.logs for search in searches] if searches else None
        targets = len(means) * [self.problem.data]
        spots = []
        for mean, logs in zip(
            means, self.problem.map_points(means, targets, near), strict=True
        ):
            finite = np.isfinite(logs.lengths)
            squares = np.where(finite, logs.lengths, 0.0) ** 2
            reached = max(float(self.weights @ finite), 1e-300)
            variance = float(self.weights @ squares) / reached
            # Data that are lost must not make a mean better.
            value = np.log(max(variance, 1e-300)) - 2.0 * np.log(reached)
            spots.append(VarianceSpot(mean, 0.5 * value, logs))
        return spots

    def local_model(self, search: Search) -> LocalModel:
        """The quadratic of gradient and Hessian.

        The gradient is minus the mean tangent as a covector.
        """
        mean, logs = search.spot.mean, search.spot.logs
        tangents, weights = usable_tangents(logs, self.weights)
        scale = np.exp(-2.0 * search.spot.objective)
        tensor = self.metric.tensor(mean)
        hessian = scale * tensor @ self._mean_hessian(mean, logs, weights)
        hessian = _positive(0.5 * (hessian + hessian.T), self.unit(search.spot))
        gradient = -scale * tensor @ (weights @ tangents)

        def model(step: Array) -> tuple[float, Array]:
            rise = hessian @ step
            return float(step @ (gradient + 0.5 * rise)), gradient + rise

        return model

    def _mean_hessian(self, mean: Array, logs: LogMap, weights: Array) -> Array:
        """Of half the squared distances, (D, D) from vectors to vectors."""
        responses = logs.responses
        if responses is None:
            return np.eye(len(mean))
        known = np.asarray(np.isfinite(responses).all(axis=(1, 2)))
        weights = np.where(known, weights, 0.0)
        weights = weights / max(float(weights.sum()), 1e-300)
        tangents = np.where(known[:, None], logs.tangents, 0.0)
        response = np.tensordot(
            weights, np.where(known[:, None, None], responses, 0), 1
        )
        symbols = christoffel_symbols(self.metric, mean[None])[0]
        return np.asarray(response - symbols @ (weights @ tangents))

    def unit(self, spot: VarianceSpot) -> Array:
        """The inverse metric, times the variance of the data."""
        variance = np.exp(2.0 * spot.objective)
        return np.asarray(variance * np.linalg.inv(self.metric.tensor(spot.mean)))

    def negligible(self, spot: VarianceSpot, tol: float) -> float:
        """What a mean tangent costs that is short, relative to the spread."""
        return 0.5 * tol**2

    def reliable(self, spot: VarianceSpot, before: VarianceSpot) -> bool:
        """Always."""
        return True


def _positive(hessian: Array, unit: Array) -> Array:
    """A Hessian with eigenvalues of at least a tenth of those in flat space."""
    factor = np.linalg.cholesky(unit)
    values, vectors = np.linalg.eigh(factor.T @ hessian @ factor)
    root = np.linalg.solve(factor.T, vectors * np.sqrt(np.maximum(values, 0.1)))
    return np.asarray(root @ root.T)


def empirical(
    problem: FitProblem, mean: Array, weights: Array, logs: LogMap
) -> Component:
    """A mean with the second moment of the tangents, with the paper's 1 / (N - 1)."""
    effective = 1.0 / float(np.sum(weights**2))
    correction = effective / max(effective - 1.0, 1.0)
    covariance = correction * second_moment(problem, logs, weights)
    return Component(mean=mean, covariance=covariance, weights=weights, logs=logs)
