"""Estimating mean and covariance: least squares and maximum likelihood."""

from land.fitting.estimate import Estimate, FitProblem, Step
from land.fitting.least_squares import fit_least_squares
from land.fitting.maximum_likelihood import fit_maximum_likelihood
from land.fitting.paper import fit_as_in_paper

__all__ = [
    "Estimate",
    "FitProblem",
    "Step",
    "fit_as_in_paper",
    "fit_least_squares",
    "fit_maximum_likelihood",
]
