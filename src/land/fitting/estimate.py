"""What fits hand on: estimates, the steps they took, the work they did."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from land.density.cover import Cover
from land.density.nodes import LogConstant, Nodes, invert
from land.geodesics import LogMap

Array = NDArray[np.float64]

# Data with less than this share of the largest weight need no new geodesics.
_NEGLIGIBLE = 1e-6


@dataclass
class Work:
    """Geodesics computed so far."""

    log_maps: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.log_maps + other.log_maps)


@dataclass(frozen=True)
class Step:
    """One entry of a fit's history.

    Attributes
    ----------
    iteration : int
        Number of the step in its stage, from zero.
    objective : float
        Mean negative log likelihood of the fit so far.
    means : ndarray of shape (K, D)
        The mean, or the means of a mixture.
    n_log_maps : int
        Geodesics computed so far.
    seconds : float
        Time since the fit began.
    stage : {"search", "fit"}
        Whether the step belongs to the search for a start, on a sample of the data with
        rough constants, or to the fit itself. A history has steps of the latter only.
    """

    iteration: int
    objective: float
    means: Array
    n_log_maps: int
    seconds: float
    stage: str = "fit"


@dataclass(frozen=True, kw_only=True)
class Component:
    """A mean and covariance for weighted data, with the geodesics that are known.

    Attributes
    ----------
    mean : ndarray of shape (D,)
    covariance : ndarray of shape (D, D)
    weights : ndarray of shape (N,)
        Weights of the data, which sum to one.
    logs : LogMap
        Log maps of the data.
    cover : Cover or None
        Quadrature points of the constant, with their log maps. In flat space the
        constant is known, and there are none.
    """

    mean: Array
    covariance: Array
    weights: Array
    logs: LogMap
    cover: Cover | None = None

    @cached_property
    def precision(self) -> Array:
        """Inverse of the covariance."""
        return invert(self.covariance)

    @property
    def n_failed(self) -> int:
        """Log maps of the data that did not converge."""
        return int(np.sum(~self.logs.converged))


@dataclass(frozen=True, kw_only=True)
class Estimate(Component):
    """A component with its objective; `nodes` are those of its cover, as a rule."""

    objective: float
    log_constant: LogConstant
    nodes: Nodes | None = None


@dataclass(frozen=True)
class Snapshot:
    """The components of a model, their shares of it, and its objective."""

    estimates: list[Estimate]
    proportions: Array
    objective: float

    def charged(self, charge: float) -> float:
        """The objective and what is asked for the components."""
        return self.objective + charge * len(self.estimates)


def matters(weights: Array) -> NDArray[np.bool_]:
    """Which weights are not negligible."""
    return np.asarray(weights > _NEGLIGIBLE * weights.max())


def usable_tangents(logs: LogMap, weights: Array) -> tuple[Array, Array]:
    """Tangents with their weights; what could not be computed has no weight."""
    finite = np.all(np.isfinite(logs.tangents), axis=1)
    weights = np.where(finite, weights, 0.0)
    total = float(weights.sum())
    if total <= 0.0:
        raise RuntimeError(
            "no log map of the data succeeded; try a larger sigma or rho"
        )
    return np.where(finite[:, None], logs.tangents, 0.0), weights / total
