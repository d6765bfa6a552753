r"""The likelihood as an objective: values, and a model of it near a mean.

C is an integral of exp(-q(mu, x)) over points x, and only q depends on the mean. So the
gradient of the objective is a difference of expectations,

    grad phi = E_data[grad q] - E_model[grad q],    grad q = -R^T Gamma Log,

where -R is the derivative of Log(x) in the mean, which comes with the step of Newton's
method that finishes a log map. Data and quadrature points are treated alike; nothing is
mapped.

The same derivatives say where all tangents will be after a step e, Log(x) - R e. The
objective at these tangents, minimised over the covariance, is the model: its gradient
is the one above, and beyond it only the second derivative of Log is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.density.nodes import cholesky, invert, log_terms, model_shares
from land.fitting.covariance import solve_precision
from land.fitting.descent import LocalModel, Search, first_radius
from land.fitting.estimate import Component, Estimate, matters
from land.fitting.problem import FitProblem
from land.fitting.profile import move, profile
from land.geodesics import LogMap

Array = NDArray[np.float64]

# Step of derivatives by differences, in standard deviations of the distribution: of the
# paper's constant, and of log maps that Newton's method had no part in.
_DIFFERENCE = 0.01
# Standard error of log C beyond which no step leads; where it is larger already, a step
# may raise it by this factor.
_WORST_ERROR, _WORSE = 0.1, 1.25
# Falls of the objective below this share of the standard error of log C say nothing.
_SHARE_OF_ERROR = 0.1


class Likelihood:
    """The mean negative log likelihood, the covariance profiled out."""

    def __init__(self, problem: FitProblem) -> None:
        self.problem, self.metric = problem, problem.metric

    def searches(
        self, components: Sequence[Component], radii: Sequence[float] | None = None
    ) -> list[Search]:
        """Searches that start from components."""
        radii = radii or len(components) * [first_radius(self.metric)]
        estimates = profile(self.problem, components)
        return [Search(*part) for part in zip(estimates, radii, strict=True)]

    def evaluate(
        self, means: Sequence[Array], searches: Sequence[Search]
    ) -> list[Estimate]:
        """Values at means near those of the searches."""
        old = [search.spot for search in searches]
        return profile(self.problem, move(self.problem, means, old))

    def local_model(self, search: Search) -> LocalModel:
        """The objective at tangents that are linear in the step."""
        return local_model(self.problem, search.spot)

    def unit(self, spot: Estimate) -> Array:
        """The covariance."""
        return spot.covariance

    def negligible(self, spot: Estimate, tol: float) -> float:
        """The tolerance, or what the constant's error leaves open."""
        return max(tol, _SHARE_OF_ERROR * spot.log_constant.stderr)

    def reliable(self, spot: Estimate, before: Estimate) -> bool:
        """Not where quadrature misses so much of the constant that it looks small."""
        worst = max(_WORST_ERROR, _WORSE * before.log_constant.stderr)
        return spot.log_constant.stderr <= worst


def local_model(problem: FitProblem, estimate: Estimate) -> LocalModel:
    """The change of the objective near an estimate, as a function of the step."""
    data = _Tangents(estimate.logs, estimate.weights)
    nodes = estimate.nodes
    around = None
    if estimate.cover is not None:
        around = _Tangents(estimate.cover.logs, weights=np.zeros(1)).responses

    def model(step: Array) -> tuple[float, Array]:
        moved = data.tangents - data.responses @ step
        moment = problem.regularised((data.weights[:, None] * moved).T @ moved)
        if nodes is None or around is None:
            precision, slope = invert(moment), np.zeros(len(step))
            value = 0.5 * float(np.linalg.slogdet(moment)[1])
        else:
            after = replace(nodes, tangents=nodes.tangents - around @ step)
            precision = solve_precision(
                moment, after, estimate.precision, problem.covariance_type
            )
            value = 0.5 * float(np.sum(precision * moment))
            value += float(logsumexp(log_terms(after, precision)))
            shares = model_shares(after, precision)
            slope = _mean_pull(shares, around, after.tangents, precision)
        pull = _mean_pull(data.weights, data.responses, moved, precision)
        return value, slope - pull

    # A covariance that is kept within bounds is not the optimum, and has a gradient of
    # its own.
    origin, gradient = model(np.zeros(len(estimate.mean)))
    error = mean_gradient(problem, estimate) - gradient

    def relative(step: Array) -> tuple[float, Array]:
        value, slope = model(step)
        return value - origin + float(error @ step), slope + error

    return relative


class _Tangents:
    """Tangents and minus their derivatives in the mean.

    Those that are not known stay where they are and have no weight. In many dimensions
    derivatives are not computed: there those of flat space take their place.
    """

    def __init__(self, logs: LogMap, weights: Array) -> None:
        dim = logs.tangents.shape[1]
        responses = np.eye(dim) if logs.responses is None else logs.responses
        responses = np.broadcast_to(responses, (*logs.tangents.shape, dim))
        entries = np.isfinite(responses).all(axis=2) & np.isfinite(logs.tangents)
        known = np.asarray(entries.all(axis=1))
        self.tangents = np.where(known[:, None], logs.tangents, 0.0)
        self.responses = np.where(known[:, None, None], responses, 0.0)
        weights = np.where(known, weights, 0.0)
        self.weights = weights / max(float(weights.sum()), 1e-300)


def _mean_pull(
    weights: Array, responses: Array, tangents: Array, precision: Array
) -> Array:
    """Weighted mean of R^T Gamma Log."""
    pulls = weights[:, None] * (tangents @ precision)
    return np.asarray(pulls.reshape(-1) @ responses.reshape(-1, responses.shape[2]))


def mean_gradient(problem: FitProblem, estimate: Estimate) -> Array:
    """The gradient in the mean, the covariance held fixed, in coordinates.

    What derivatives of tangents do not tell comes from differences: in many dimensions,
    and for the paper's constant.
    """
    cover, nodes = estimate.cover, estimate.nodes
    pull = _pull(problem, estimate, estimate.logs, problem.data, estimate.weights)
    if cover is None or nodes is None:
        return -pull
    if problem.law == "paper":
        return _slope_by_differences(problem, estimate) - pull
    shares = model_shares(nodes, estimate.precision)
    return _pull(problem, estimate, cover.logs, cover.points, shares) - pull


def _pull(
    problem: FitProblem, estimate: Estimate, logs: LogMap, points: Array, weights: Array
) -> Array:
    if logs.responses is None:
        return _pull_by_differences(problem, estimate, logs, points, weights)
    own = _Tangents(logs, weights)
    return _mean_pull(own.weights, own.responses, own.tangents, estimate.precision)


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
    rows = np.flatnonzero(np.isfinite(sizes) & (sizes > 0.0) & matters(weights))
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
