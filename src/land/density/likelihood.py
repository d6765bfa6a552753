"""Log densities of the locally adaptive normal distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import Law, squared_lengths
from land.geodesics import LogMap
from land.metrics import Metric

Array = NDArray[np.float64]
Measure = Literal["lebesgue", "riemannian"]


def log_density(
    metric: Metric,
    mean: Array,
    precision: Array,
    log_constant: float,
    points: Array,
    logs: LogMap,
    law: Law,
    measure: Measure,
) -> Array:
    """Log densities at points whose log maps at the mean are known.

    Parameters
    ----------
    metric, mean, precision, log_constant
        The model.
    points : ndarray of shape (n, D)
        The points x.
    logs
        Their log maps.
    law
        What the model is a density of.
    measure
        ``"riemannian"`` is the paper's density, with respect to the metric's volume.
        ``"lebesgue"`` is the density with respect to dx, which integrates to one over
        R^D where Exp is one-to-one and can be compared between metrics and models.

    Returns
    -------
    log densities (n,), NaN where a geodesic or its Jacobian could not be computed
    """
    squares = squared_lengths(logs.tangents, precision)
    values = np.where(logs.converged, -0.5 * squares - log_constant, np.nan)
    if (law == "lebesgue") != (measure == "lebesgue"):
        sign = 1.0 if measure == "lebesgue" else -1.0
        values = values + sign * metric.log_volume(points)
    if law == "paper" and measure == "lebesgue":
        # Eq. 7 measures tangents by their normal coordinates and lacks |det DExp|.
        values = values + metric.log_volume(mean) - logs.log_dets
    return values
