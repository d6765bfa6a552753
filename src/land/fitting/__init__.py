"""Estimating means and covariances: least squares and maximum likelihood."""

from land.fitting.problem import Estimate, FitProblem, Step
from land.fitting.single import FitSettings, fit_one

__all__ = ["Estimate", "FitProblem", "FitSettings", "Step", "fit_one"]
