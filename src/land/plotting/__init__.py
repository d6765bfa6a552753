"""Figures: every function draws on a given `ax` and returns the artists."""

from land.plotting.components import plot_covariance, plot_means
from land.plotting.density import plot_density
from land.plotting.geometry import plot_data, plot_geodesics, plot_metric
from land.plotting.history import plot_history
from land.plotting.responsibilities import plot_responsibilities

__all__ = [
    "plot_covariance",
    "plot_data",
    "plot_density",
    "plot_geodesics",
    "plot_history",
    "plot_means",
    "plot_metric",
    "plot_responsibilities",
]
