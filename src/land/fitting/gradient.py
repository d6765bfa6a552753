r"""The gradient of the objective in the mean, the covariance held fixed.

C is an integral of exp(-q(mu, x)) over all points x, and only q depends on the mean:
the gradient is a difference of expectations,

    grad phi = E_data[grad q] - E_model[grad q],    grad q = -R^T Gamma Log,

where -R is the derivative of Log(x) in the mean, which comes with the step of Newton's
method that finishes a log map. Data and quadrature points are treated alike; nothing is
mapped.

The second derivative is close to Rm^T Gamma Rm for the mean Rm of the data's R: a step
e shifts all tangents by -Rm e, and what it does to them beyond that, a change of their
spread, is the covariance's affair, which is profiled out. (The Fisher information, and
Gauss-Newton, which count that spread, are fifty times too large along a curve of data.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.density.nodes import cholesky, log_terms, model_shares
from land.fitting.estimate import Estimate
from land.fitting.problem import FitProblem
from land.geodesics import LogMap

Array = NDArray[np.float64]

# Step of derivatives by differences, in standard deviations of the distribution: of the
# paper's constant, and of log maps that Newton's method had no part in.
_DIFFERENCE = 0.01


def mean_gradients(
    problem: FitProblem, estimates: Sequence[Estimate], weights: Sequence[Array]
) -> list[tuple[Array, Array]]:
    """Gradients (D,) in coordinates, and approximate second derivatives (D, D)."""
    found = []
    for estimate, own in zip(estimates, weights, strict=True):
        pull, response = _mean_pull(problem, estimate, estimate.logs, problem.data, own)
        if estimate.nodes is None or estimate.cover is None:
            slope = np.zeros_like(pull)  # of log C
        elif problem.law == "paper":
            slope = _slope_by_differences(problem, estimate)
        else:
            shares = model_shares(estimate.nodes, estimate.precision)
            logs, points = estimate.cover.logs, estimate.cover.points
            slope, _ = _mean_pull(problem, estimate, logs, points, shares)
        curvature = response.T @ estimate.precision @ response
        found.append((slope - pull, curvature))
    return found


def _mean_pull(
    problem: FitProblem,
    estimate: Estimate,
    logs: LogMap,
    points: Array,
    weights: Array,
) -> tuple[Array, Array]:
    """Weighted means of R^T Gamma Log and of R."""
    responses = logs.responses
    if responses is None:
        pull = _pull_by_differences(problem, estimate, logs, points, weights)
        return pull, np.eye(len(estimate.mean))
    pulls = logs.tangents @ estimate.precision
    good = np.isfinite(responses).all(axis=(1, 2)) & np.isfinite(pulls).all(axis=1)
    weights = weights[good] / max(float(weights[good].sum()), 1e-300)
    pull = weights @ np.einsum("nki,nk->ni", responses[good], pulls[good])
    return pull, np.tensordot(weights, responses[good], 1)


def _slope_by_differences(problem: FitProblem, estimate: Estimate) -> Array:
    """Gradient of the paper's log C, whose volume element depends on the mean."""
    frame, cover = cholesky(estimate.covariance), estimate.cover
    assert cover is not None
    steps = _DIFFERENCE * np.concatenate([frame.T, -frame.T])
    means = list(estimate.mean + steps)
    count = len(means)
    values = []
    for mean, logs in zip(
        means,
        problem.map_points(means, count * [cover.points], count * [cover.logs]),
        strict=True,
    ):
        nodes = replace(cover, logs=logs).nodes(problem.metric, mean, problem.law)
        values.append(float(logsumexp(log_terms(nodes, estimate.precision))))
    ahead, behind = np.split(np.array(values), 2)
    slope = (ahead - behind) / (2.0 * _DIFFERENCE)
    return np.asarray(np.linalg.solve(frame.T, slope))


def _pull_by_differences(
    problem: FitProblem,
    estimate: Estimate,
    logs: LogMap,
    points: Array,
    weights: Array,
) -> Array:
    """Mean of R^T Gamma Log where Newton's method is not used: two log maps for each.

    Let p = M(mu) Log be the momentum, minus the gradient of half the squared distance:
    its derivative is symmetric. With q = 1/2 p^T B p and B = M^-1 Gamma M^-1,

        grad q = Dp[u] + 1/2 grad_mu (p^T B(mu) p),    u = B p = M^-1 Gamma Log,

    and Dp[u] is a derivative along a single direction.
    """
    metric, mean, precision = problem.metric, estimate.mean, estimate.precision
    frame = cholesky(estimate.covariance)
    tensor = metric.tensor(mean)
    directions = logs.tangents @ precision @ np.linalg.inv(tensor)
    sizes = np.linalg.norm(np.linalg.solve(frame, directions.T), axis=0)
    rows = np.flatnonzero(np.isfinite(sizes) & (sizes > 0.0) & problem.matter(weights))
    sizes, tangents = sizes[rows], logs.tangents[rows]
    steps = _DIFFERENCE * directions[rows] / sizes[:, None]
    momenta = []
    for sign in (1.0, -1.0):
        bases = mean + sign * steps
        moved = problem.map_pairs(bases, points[rows], logs.take(rows))
        momenta.append(np.einsum("nij,nj->ni", metric.tensor(bases), moved.tangents))
    slopes = (momenta[0] - momenta[1]) * (sizes / (2.0 * _DIFFERENCE))[:, None]
    good = np.all(np.isfinite(slopes), axis=1)
    weights = np.where(good, weights[rows], 0.0)
    weights /= max(float(weights.sum()), 1e-300)
    change = weights @ np.where(good[:, None], slopes, 0.0)
    # The derivative of B alone, in every direction.
    lowered = tangents @ tensor
    moment = (weights[:, None] * lowered).T @ lowered
    offsets = _DIFFERENCE * np.concatenate([frame.T, -frame.T])
    inverses = np.linalg.inv(metric.tensor(mean + offsets))
    forms = 0.5 * np.einsum("kij,ij->k", inverses @ precision @ inverses, moment)
    ahead, behind = np.split(forms, 2)
    explicit = np.linalg.solve(frame.T, (ahead - behind) / (2.0 * _DIFFERENCE))
    return -np.asarray(change + explicit)
