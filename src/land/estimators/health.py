"""What a fit has come to, and what a user should know before its model is used."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from land.fitting import FitProblem, NotWorthwhileError, Snapshot, Step, log_densities
from land.fitting.estimate import Work, usable_tangents
from land.metrics import EuclideanMetric

Array = NDArray[np.float64]

# What a fit says about itself; with a category it is also a warning.
Finding = tuple[str, type[Warning] | None]

# Nats of the log density of a row by which models must differ to tell them apart: what
# a curved metric must gain over the flat one. On clouds it gained up to 0.04 by chance,
# and on curves at least 0.07.
WORTHWHILE = 0.05


@dataclass(frozen=True)
class Outcome:
    """What one run of a fit has come to.

    `starved` are components that have lost their data to others in the course of EM.
    `gain` is that over the baseline, if the run was given up because it is too small.
    """

    snapshot: Snapshot
    converged: bool = False
    starved: list[int] = field(default_factory=list)
    interrupted: bool = False
    history: list[Step] = field(default_factory=list)
    work: Work = field(default_factory=Work)
    gain: float | None = None

    @property
    def n_failed(self) -> int:
        """Log maps of the data, from all means, that did not converge."""
        return sum(each.n_failed for each in self.snapshot.estimates)


def attempt(problem: FitProblem, fit: Callable[[FitProblem], Outcome]) -> Outcome:
    """Run a fit; an interrupt ends it with what it has reached, if anything."""
    own = replace(problem, work=Work(), history=[], latest=None)
    try:
        return replace(fit(own), history=own.history, work=own.work)
    except NotWorthwhileError as error:
        assert own.latest is not None  # the search has recorded it
        return Outcome(own.latest, work=own.work, gain=error.gain)
    except KeyboardInterrupt:
        if own.latest is None:
            raise
        stopped = Outcome(own.latest, interrupted=True)
        return replace(stopped, history=own.history, work=own.work)


def findings(
    outcome: Outcome, problem: FitProblem, weights: Array, model: Any
) -> Iterator[Finding]:
    """What did not go well, each with its remedy."""
    yield from _end(outcome, model.max_iter)
    estimates = outcome.snapshot.estimates
    if outcome.n_failed:
        yield (
            f"{outcome.n_failed} of {len(estimates) * len(problem.data)} log maps did "
            "not converge in the fit; try a larger sigma or rho",
            RuntimeWarning,
        )
    if outcome.interrupted:
        return
    yield from _components(outcome, problem, weights)
    stderr = max(each.log_constant.stderr for each in estimates)
    if stderr > WORTHWHILE:
        yield (
            f"log densities are uncertain by {stderr:.2g}, the standard error of "
            "the constant; raise n_samples",
            None,
        )
    flat = isinstance(model.metric_, EuclideanMetric)
    compared = flat or not math.isnan(model.geometry_gain_)
    if not compared and model.method == "ml" and np.ptp(weights) == 0.0:
        loss = _behind_a_gaussian(outcome.snapshot, problem)
        if loss > WORTHWHILE:
            yield (
                f"an ordinary Gaussian mixture is better, by {loss:.2g} in mean log "
                "density; leave sigma, rho and metric at their defaults",
                None,
            )


def _end(outcome: Outcome, max_iter: int) -> Iterator[Finding]:
    """How the fit has ended."""
    if outcome.starved:
        yield (
            f"component(s) {outcome.starved} have lost their data; use fewer "
            "components, or another init or random_state",
            RuntimeWarning,
        )
    if outcome.interrupted:
        steps = len(outcome.history)
        where = f"after {steps} steps" if steps else "while it searched for a start"
        yield (
            f"the fit was interrupted {where}; the model reached so far is kept",
            UserWarning,
        )
    elif not outcome.converged:
        yield (
            f"the fit did not converge within {max_iter} steps; raise max_iter or tol",
            ConvergenceWarning,
        )


def _components(
    outcome: Outcome, problem: FitProblem, weights: Array
) -> Iterator[Finding]:
    """Components with few data, or with a mean that is not among its data."""
    rows = int(np.sum(weights > 0.0)) * outcome.snapshot.proportions
    dim = problem.metric.dim
    parameters = dim + problem.covariance_type.n_entries(dim)
    for k, estimate in enumerate(outcome.snapshot.estimates):
        if k in outcome.starved:
            continue
        if rows[k] <= parameters:
            yield (
                f"component {k} has {rows[k]:.0f} rows for {parameters} parameters; "
                "use fewer components, or a simpler covariance_type",
                None,
            )
            continue
        distance = _off_centre(*usable_tangents(estimate.logs, estimate.weights))
        if distance > 1.0:  # most of the data lie to one side
            yield (
                f"the mean of component {k} is {distance:.1f} standard deviations off "
                "the centre of its data; try a larger sigma or rho, or more components",
                None,
            )


def _off_centre(tangents: Array, weights: Array) -> float:
    """Length of the mean tangent in standard deviations of the tangents."""
    centre = weights @ tangents
    covariance = np.atleast_2d(np.cov(tangents.T, aweights=weights, ddof=0))
    return float(np.sqrt(centre @ np.linalg.pinv(covariance) @ centre))


def _behind_a_gaussian(snapshot: Snapshot, problem: FitProblem) -> float:
    """By how much the mean log density is below that of a Gaussian mixture."""
    densities = log_densities(snapshot)
    if problem.law != "lebesgue":
        densities = densities + problem.metric.log_volume(problem.data)
    gaussian = GaussianMixture(
        len(snapshot.estimates), reg_covar=problem.ridge, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough one will do
        values = gaussian.fit(problem.data).score_samples(problem.data)
    known = np.isfinite(densities)
    return float(np.mean((values - densities)[known])) if known.any() else 0.0
