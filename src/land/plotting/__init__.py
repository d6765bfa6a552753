"""Figures: every function draws on a given `ax` and returns the artists."""

from land.plotting.components import plot_covariance, plot_means
from land.plotting.density import DensityGrid, density_grid, plot_density, plot_grid
from land.plotting.geometry import plot_data, plot_geodesics, plot_metric
from land.plotting.history import plot_history
from land.plotting.responsibilities import plot_responsibilities
from land.plotting.selection import plot_selection
from land.plotting.space import plot_pairs, plot_view3d

__all__ = [
    "DensityGrid",
    "density_grid",
    "plot_covariance",
    "plot_data",
    "plot_density",
    "plot_geodesics",
    "plot_grid",
    "plot_history",
    "plot_means",
    "plot_metric",
    "plot_pairs",
    "plot_responsibilities",
    "plot_selection",
    "plot_view3d",
]
