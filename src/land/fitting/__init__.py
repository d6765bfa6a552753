"""Estimating means and covariances: least squares, maximum likelihood, mixtures."""

from land.fitting.covariance_types import COVARIANCE_TYPES, CovarianceType
from land.fitting.estimate import Estimate, Snapshot, Step
from land.fitting.kmeans import Clusters, fit_kmeans, spread_centers
from land.fitting.mixture import (
    MixtureEstimate,
    fit_mixture,
    least_squares_mixture,
)
from land.fitting.problem import FitProblem
from land.fitting.single import FitSettings, fit_one

__all__ = [
    "COVARIANCE_TYPES",
    "Clusters",
    "CovarianceType",
    "Estimate",
    "FitProblem",
    "FitSettings",
    "MixtureEstimate",
    "Snapshot",
    "Step",
    "fit_kmeans",
    "fit_mixture",
    "fit_one",
    "least_squares_mixture",
    "spread_centers",
]
