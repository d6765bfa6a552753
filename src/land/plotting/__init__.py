"""Figures: every function draws on a given `ax` and returns what it drew.

Without `ax` they draw on the current axes of pyplot. Further keyword arguments, the
`style`, are passed on to matplotlib and take the place of the defaults here. Models are
fitted ones of this package, or of scikit-learn, such as GaussianMixture; for the latter
space is flat, and ellipses and straight lines are drawn.
"""

from land.plotting.components import (
    plot_covariance,
    plot_mean_region,
    plot_means,
    plot_pairs,
    plot_responsibilities,
    plot_view3d,
)
from land.plotting.fits import plot_history, plot_learning, plot_selection
from land.plotting.plane import (
    DensityGrid,
    density_grid,
    plot_data,
    plot_density,
    plot_geodesics,
    plot_grid,
    plot_metric,
)

__all__ = [
    "DensityGrid",
    "density_grid",
    "plot_covariance",
    "plot_data",
    "plot_density",
    "plot_geodesics",
    "plot_grid",
    "plot_history",
    "plot_learning",
    "plot_mean_region",
    "plot_means",
    "plot_metric",
    "plot_pairs",
    "plot_responsibilities",
    "plot_selection",
    "plot_view3d",
]
