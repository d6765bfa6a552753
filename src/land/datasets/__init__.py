"""Synthetic data along curves and sheets.

Every maker returns float64 data ``X`` of shape (n_samples, D), drawn along a curve or a
sheet with isotropic Gaussian noise of standard deviation ``noise`` added. Makers of
several classes return ``(X, y)`` with integer labels ``y``; all others return ``X``
alone. Randomness enters through ``random_state`` only.
"""

from land.datasets._clusters import make_two_moons, make_wave_and_arc
from land.datasets._curves import make_circle, make_s_curve, make_spiral
from land.datasets._half_ellipse import half_ellipse_log_density, make_half_ellipse

__all__ = [
    "half_ellipse_log_density",
    "make_circle",
    "make_half_ellipse",
    "make_s_curve",
    "make_spiral",
    "make_two_moons",
    "make_wave_and_arc",
]
