"""Estimating means and covariances: least squares, maximum likelihood, mixtures."""

from land.fitting.covariance import COVARIANCE_TYPES, CovarianceType
from land.fitting.estimate import Estimate, Snapshot, Step
from land.fitting.kmeans import Clusters, fit_kmeans, spread_centers
from land.fitting.mixture import (
    MixtureEstimate,
    fit_mixture,
    fit_single,
    least_squares_mixture,
    log_densities,
)
from land.fitting.principal import Principal, fit_principal, normal_frame
from land.fitting.problem import FitProblem, NotWorthwhileError
from land.fitting.single import FitSettings, fit_one

__all__ = [
    "COVARIANCE_TYPES",
    "Clusters",
    "CovarianceType",
    "Estimate",
    "FitProblem",
    "FitSettings",
    "MixtureEstimate",
    "NotWorthwhileError",
    "Principal",
    "Snapshot",
    "Step",
    "fit_kmeans",
    "fit_mixture",
    "fit_one",
    "fit_principal",
    "fit_single",
    "least_squares_mixture",
    "log_densities",
    "normal_frame",
    "spread_centers",
]
