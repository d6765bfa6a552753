"""Figures: every function draws on a given `ax` and returns the artists."""

from land.plotting.geometry import plot_data, plot_geodesics, plot_metric

__all__ = ["plot_data", "plot_geodesics", "plot_metric"]
