"""As many components as the data ask for: from many to fewer, by BIC.

As Figueiredo and Jain (2002): a fit with many components, then the one that is missed
the least is removed, and the others are fitted on. Every number of components starts
from the one above, which leaves fewer bad optima than a start of its own, and takes a
few steps only.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from land.fitting.problem import FitProblem

Array = NDArray[np.float64]

# Steps end where one gains less than this share of what a component must gain. They go
# on, so many times at most, where all that is computed anew says something else, by
# more than the other share: constants of components that grow may become too small.
_SETTLED, _RENEWALS, _AGREE = 0.02, 2, 0.1


class Prunable(Protocol):
    """A mixture that can lose components."""

    weights: Array

    @property
    def objective(self) -> float:
        """Mean negative log likelihood."""

    @property
    def proportions(self) -> Array:
        """Shares of the components, (K,)."""

    @property
    def joint(self) -> Array:
        """Log of proportion times density of the data, (N, K)."""

    def descend(self, steps: int, tol: float) -> int:
        """Take at most so many steps."""

    def record(self) -> None:
        """Add a step to the problem's history."""

    def state(self) -> dict[str, Any]:
        """What it takes to go on."""

    def without(self, component: int) -> Self:
        """The same without a component."""

    def renewed(self) -> Self:
        """The same, with all but its parameters computed anew."""


def component_charge(problem: FitProblem, weights: Array) -> float:
    """What BIC asks a component to lower the mean negative log likelihood by."""
    n_rows = int(np.sum(weights > 0.0))
    return 0.5 * _n_parameters(problem) * float(np.log(n_rows)) / n_rows


def prune(
    model: Prunable, problem: FitProblem, max_iter: int, tol: float
) -> dict[str, Any]:
    """State of the best of this model and those with fewer components.

    Components with no more rows than parameters are not counted as good: BIC likes
    those that shrink to two rows.

    Parameters
    ----------
    model
        Where to start; it is moved.
    problem
        What it is a model of.
    max_iter, tol
        Largest number of steps with each number of components, and what ends them.
    """
    charge = component_charge(problem, model.weights)
    fewest = _n_parameters(problem) / int(np.sum(model.weights > 0.0))
    best, lowest = model, np.inf
    while True:
        for _ in range(1 + _RENEWALS):
            model.descend(max_iter, max(tol, _SETTLED * charge))
            before, model = model.objective, model.renewed()
            if abs(model.objective - before) < _AGREE * charge:
                break
        count = len(model.proportions)
        charged = model.objective + charge * count
        if charged < lowest and (count == 1 or model.proportions.min() > fewest):
            best, lowest = model, charged
        # Fewer components do not raise the likelihood.
        if count == 1 or model.objective + charge >= lowest:
            best.record()
            return best.state()
        model = model.without(_least_missed(model, fewest))


def _n_parameters(problem: FitProblem) -> int:
    """Parameters of a component, its proportion included."""
    dim = problem.metric.dim
    return 1 + dim + problem.covariance_type.n_entries(dim)


def _least_missed(model: Prunable, fewest: float) -> int:
    """The component without which the likelihood of the others is largest.

    If one has no more than the fewest data, the smallest.
    """
    if model.proportions.min() <= fewest:
        return int(np.argmin(model.proportions))
    joint, used = model.joint, model.weights > 0.0
    weights, components = model.weights[used], np.arange(joint.shape[1])
    likelihoods = []
    for k in components:
        rest = logsumexp(joint[np.ix_(used, components != k)], axis=1)
        likelihoods.append(weights @ rest - np.log1p(-model.proportions[k]))
    return int(np.argmax(likelihoods))
