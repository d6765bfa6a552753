r"""The gradient of the objective in the mean, the covariance held fixed.

With the exact volume, C is an integral of exp(-q(mu, x)) over all points x, and only q
depends on the mean: the gradient is a difference of expectations,

    grad phi = E_data[grad q] - E_model[grad q],    grad q = -R^T Gamma Log,

where -R is the derivative of Log(x) in the mean. For the data, R comes with the step of
Newton's method that finishes a log map; on the nodes of the constant, from the Jacobi
fields along the rays. Nothing is mapped.

The second derivative is close to Rm^T Gamma Rm for the mean Rm of the data's R: a step
e shifts all tangents by -Rm e, and what it does to them beyond that, a change of their
spread, is the covariance's affair, which is profiled out. (The Fisher information, and
Gauss-Newton, which count that spread, are fifty times too large along a curve of data.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from land.density.constant import cholesky, model_shares
from land.fitting.estimate import Estimate
from land.fitting.problem import FitProblem
from land.geodesics import log_map
from land.geodesics.equation import christoffel_symbols
from land.metrics import Metric

Array = NDArray[np.float64]

# Step of derivatives by differences, in standard deviations of the distribution: of the
# paper's constant, and of log maps that Newton's method had no part in.
_DIFFERENCE = 0.01


def mean_gradients(
    problem: FitProblem, estimates: Sequence[Estimate], weights: Sequence[Array]
) -> list[tuple[Array, Array]]:
    """Gradients (D,) in coordinates, and approximate second derivatives (D, D)."""
    symbols = christoffel_symbols(
        problem.metric, np.stack([estimate.mean for estimate in estimates])
    )
    slopes: Sequence[Array | None] = len(estimates) * [None]
    if problem.law == "paper":
        slopes = _constant_slopes(problem, estimates)
    found = []
    for estimate, own, symbol, slope in zip(
        estimates, weights, symbols, slopes, strict=True
    ):
        data, curvature = _data_part(problem, estimate, own)
        if slope is None:
            slope = _model_part(problem.metric, estimate, symbol)
        found.append((slope - data, curvature))
    return found


def _data_part(
    problem: FitProblem, estimate: Estimate, weights: Array
) -> tuple[Array, Array]:
    """Mean of R^T Gamma Log over the data, and the second derivative."""
    logs, precision = estimate.logs, estimate.precision
    responses = logs.responses
    if responses is None:
        return _by_differences(problem, estimate, weights), precision
    pulls = logs.tangents @ precision
    good = np.isfinite(responses).all(axis=(1, 2)) & np.isfinite(pulls).all(axis=1)
    weights = weights[good] / max(float(weights[good].sum()), 1e-300)
    mean = weights @ np.einsum("nki,nk->ni", responses[good], pulls[good])
    response = np.tensordot(weights, responses[good], 1)
    return mean, response.T @ precision @ response


def _model_part(metric: Metric, estimate: Estimate, symbols: Array) -> Array:
    """Mean of R^T Gamma Log under the model."""
    nodes, precision = estimate.nodes, estimate.precision
    assert nodes.hessians is not None
    assert nodes.across is not None
    shares = model_shares(nodes, precision)
    used = shares > 0.0
    shares, tangents = shares[used], nodes.tangents[used]
    pulls = tangents @ precision
    # R is the Hessian H of half the squared distance, which is one along the ray, and a
    # term for the coordinates.
    changes = nodes.hessians[used] - np.eye(metric.dim - 1)
    across = nodes.across[nodes.rays[used]]
    bent = np.einsum("nrs,nds,nd->nr", changes, across, pulls, optimize=True)
    slope = shares @ pulls
    slope += metric.tensor(estimate.mean) @ np.einsum(
        "n,ndr,nr->d", shares, across, bent
    )
    moment = (shares[:, None] * tangents).T @ tangents
    return np.asarray(slope + np.einsum("kij,kj->i", symbols, precision @ moment))


def _constant_slopes(problem: FitProblem, estimates: Sequence[Estimate]) -> list[Array]:
    """Gradients of log C by differences, on the same quadrature directions."""
    dim = problem.metric.dim
    frames = [cholesky(estimate.covariance) for estimate in estimates]
    means, covariances = [], []
    for estimate, frame in zip(estimates, frames, strict=True):
        for sign in (1.0, -1.0):
            means += [estimate.mean + sign * _DIFFERENCE * way for way in frame.T]
            covariances += dim * [estimate.covariance]
    values = problem.log_constants(means, covariances).reshape(-1, 2, dim)
    slopes = (values[:, 0] - values[:, 1]) / (2.0 * _DIFFERENCE)
    return [
        np.linalg.solve(frame.T, slope)
        for frame, slope in zip(frames, slopes, strict=True)
    ]


def _by_differences(problem: FitProblem, estimate: Estimate, weights: Array) -> Array:
    """The data's part where Newton's method is not used: two log maps for each datum.

    Let p = M(mu) Log be the momentum, minus the gradient of half the squared distance:
    its derivative is symmetric. With q = 1/2 p^T B p and B = M^-1 Gamma M^-1,

        grad q = Dp[u] + 1/2 grad_mu (p^T B(mu) p),    u = B p = M^-1 Gamma Log,

    and Dp[u] is a derivative along a single direction.
    """
    metric, mean, precision = problem.metric, estimate.mean, estimate.precision
    frame = cholesky(estimate.covariance)
    tangents = estimate.logs.tangents
    tensor = metric.tensor(mean)
    directions = tangents @ precision @ np.linalg.inv(tensor)
    sizes = np.linalg.norm(np.linalg.solve(frame, directions.T), axis=0)
    rows = np.flatnonzero(np.isfinite(sizes) & (sizes > 0.0) & problem.matter(weights))
    sizes, tangents = sizes[rows], tangents[rows]
    steps = _DIFFERENCE * directions[rows] / sizes[:, None]
    curves = estimate.logs.take(rows)
    momenta = []
    for sign in (1.0, -1.0):
        bases = mean + sign * steps
        logs = log_map(
            metric, bases, problem.data[rows], curves=curves, tol=problem.tol
        )
        problem.work.log_maps += len(rows)
        momenta.append(np.einsum("nij,nj->ni", metric.tensor(bases), logs.tangents))
    slopes = (momenta[0] - momenta[1]) * (sizes / (2.0 * _DIFFERENCE))[:, None]
    good = np.all(np.isfinite(slopes), axis=1)
    weights = np.where(good, weights[rows], 0.0)
    weights /= max(float(weights.sum()), 1e-300)
    moved = weights @ np.where(good[:, None], slopes, 0.0)
    # The derivative of B alone, in every direction.
    lowered = tangents @ tensor
    moment = (weights[:, None] * lowered).T @ lowered
    offsets = _DIFFERENCE * np.concatenate([frame.T, -frame.T])
    inverses = np.linalg.inv(metric.tensor(mean + offsets))
    forms = 0.5 * np.einsum("kij,ij->k", inverses @ precision @ inverses, moment)
    ahead, behind = np.split(forms, 2)
    explicit = np.linalg.solve(frame.T, (ahead - behind) / (2.0 * _DIFFERENCE))
    return -np.asarray(moved + explicit)
