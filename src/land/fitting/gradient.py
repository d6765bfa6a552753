r"""The gradient of the objective in the mean, the covariance held fixed.

Let W(mu) be half the squared distance from mu to a datum. Its gradient is -p for the
momentum p = M(mu) Log, so the derivative of p is the Hessian of -W and symmetric. The
datum's part of the objective is q = 1/2 p^T B p with B = M^-1 Gamma M^-1, hence

    grad q = Dp[u] + 1/2 grad_mu (p^T B(mu) p),    u = B p = M^-1 Gamma Log,

and Dp[u], a derivative along a single direction, is had from two log maps for each
datum in any dimension. The constant is differentiated by differences in each
direction, on the same quadrature directions. (One-sided differences were tried: their
error is large enough to defeat the line search.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky
from land.fitting.estimate import Estimate
from land.fitting.problem import FitProblem
from land.geodesics import LogMap, log_map
from land.metrics import Metric
from land.metrics.host_tensors import lower

Array = NDArray[np.float64]

# Data with less than this share of the largest weight do not move a mean.
_NEGLIGIBLE = 1e-4
# Curves to displaced means that are in memory at a time.
_AT_ONCE = 2**17


def mean_gradients(
    problem: FitProblem, estimates: Sequence[Estimate], weights: Sequence[Array]
) -> tuple[list[Array], list[Array]]:
    """Gradients in the frames of the covariances, and those frames.

    A frame is the Cholesky factor L of a covariance; its columns are the directions of
    the derivatives, so that steps are measured in standard deviations.
    """
    frames = [cholesky(estimate.covariance) for estimate in estimates]
    parts = zip(
        _data_gradients(problem, estimates, weights, frames),
        _constant_gradients(problem, estimates, frames),
        strict=True,
    )
    return [data + constant for data, constant in parts], frames


def _constant_gradients(
    problem: FitProblem, estimates: Sequence[Estimate], frames: Sequence[Array]
) -> list[Array]:
    dim, size = problem.metric.dim, problem.difference
    means, covariances = [], []
    for estimate, frame in zip(estimates, frames, strict=True):
        for sign in (1.0, -1.0):
            means += [estimate.mean + sign * size * column for column in frame.T]
            covariances += dim * [estimate.covariance]
    values = problem.log_constants(means, covariances).reshape(len(estimates), 2, dim)
    return list((values[:, 0] - values[:, 1]) / (2.0 * size))


def _data_gradients(
    problem: FitProblem,
    estimates: Sequence[Estimate],
    weights: Sequence[Array],
    frames: Sequence[Array],
) -> list[Array]:
    metric = problem.metric
    parts = [
        _Displacements(metric, *part, problem.difference)
        for part in zip(estimates, weights, frames, strict=True)
    ]
    moved = np.concatenate([part.bases() for part in parts])
    if not len(moved):  # all data lie at the means
        return [np.zeros(metric.dim) for _ in parts]
    curves = LogMap.concatenate([part.curves for part in parts for _ in "+-"])
    targets = np.concatenate([problem.data[part.rows] for part in parts for _ in "+-"])
    problem.work.log_maps += len(moved)
    tangents, converged = [], []
    for start in range(0, len(moved), _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, len(moved)))
        guesses = curves.take(rows)
        logs = log_map(
            metric, moved[rows], targets[rows], curves=guesses, tol=problem.tol
        )
        tangents.append(logs.tangents)
        converged.append(logs.converged)
    momenta = lower(metric.host_tensors(moved), np.concatenate(tangents))
    momenta[~np.concatenate(converged)] = np.nan
    ends = np.cumsum([2 * len(part.rows) for part in parts])[:-1]
    return [
        part.gradient(own)
        for part, own in zip(parts, np.split(momenta, ends), strict=True)
    ]


class _Displacements:
    """For each datum, the mean displaced back and forth along the datum's own u."""

    def __init__(
        self,
        metric: Metric,
        estimate: Estimate,
        weights: Array,
        frame: Array,
        difference: float,
    ) -> None:
        self.metric, self.estimate, self.frame = metric, estimate, frame
        self.difference = difference
        usable = np.all(np.isfinite(estimate.logs.tangents), axis=1)
        tangents = np.where(usable[:, None], estimate.logs.tangents, 0.0)
        inverse = np.linalg.inv(metric.tensor(estimate.mean))
        directions = tangents @ estimate.precision @ inverse
        sizes = np.linalg.norm(np.linalg.solve(frame, directions.T).T, axis=1)
        usable &= (weights > _NEGLIGIBLE * weights.max()) & (sizes > 0.0)
        self.rows = np.flatnonzero(usable)
        self.sizes = sizes[self.rows]
        self.weights = weights[self.rows]
        self.tangents = tangents[self.rows]
        self.steps = difference * directions[self.rows] / self.sizes[:, None]
        self.curves = estimate.logs.take(self.rows)

    def bases(self) -> Array:
        mean = self.estimate.mean
        return np.concatenate([mean + self.steps, mean - self.steps])

    def gradient(self, momenta: Array) -> Array:
        """Weighted gradient in the frame, from the momenta at the displaced means."""
        ahead, behind = np.split(momenta, 2)
        slopes = (ahead - behind) * (self.sizes / (2.0 * self.difference))[:, None]
        good = np.all(np.isfinite(slopes), axis=1)
        weights = np.where(good, self.weights, 0.0)
        weights *= self.weights.sum() / max(weights.sum(), 1e-300)
        moved = weights @ np.where(good[:, None], slopes, 0.0) @ self.frame
        return np.asarray(moved + self._explicit(weights))

    def _explicit(self, weights: Array) -> Array:
        """Derivative of 1/2 p^T M^-1 Gamma M^-1 p in the metric alone."""
        momenta = self.tangents @ self.metric.tensor(self.estimate.mean)
        moment = (weights[:, None] * momenta).T @ momenta
        offsets = self.difference * np.concatenate([self.frame.T, -self.frame.T])
        inverses = np.linalg.inv(self.metric.tensor(self.estimate.mean + offsets))
        forms = inverses @ self.estimate.precision @ inverses
        values = 0.5 * np.einsum("kij,ij->k", forms, moment)
        ahead, behind = np.split(values, 2)
        return (ahead - behind) / (2.0 * self.difference)
