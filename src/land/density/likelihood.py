"""Log densities of the locally adaptive normal distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from land.density.nodes import Volume
from land.geodesics import exp_jacobian
from land.metrics import Metric

Array = NDArray[np.float64]
Measure = Literal["lebesgue", "riemannian"]


def log_density(
    metric: Metric,
    mean: Array,
    precision: Array,
    log_constant: float,
    points: Array,
    tangents: Array,
    volume: Volume,
    measure: Measure,
) -> tuple[Array, NDArray[np.bool_]]:
    """Log densities at points whose tangents Log(x) at the mean are known.

    Parameters
    ----------
    metric, mean, precision, log_constant
        The model.
    points, tangents : ndarray of shape (n, D)
        The points x and Log(x).
    volume
        The model's volume element.
    measure
        ``"riemannian"`` is the paper's density, with respect to the metric's volume.
        ``"lebesgue"`` is the density with respect to dx, which integrates to one over
        R^D where Exp is one-to-one and can be compared between metrics and models.

    Returns
    -------
    log densities (n,), and a mask of those whose Jacobian could not be computed
    """
    squares = np.einsum("ni,ij,nj->n", tangents, precision, tangents)
    values = -0.5 * squares - log_constant
    failed = np.zeros(len(points), dtype=bool)
    if measure == "riemannian":
        return values, failed
    values = values + metric.log_volume(points)
    if volume == "paper":
        # The paper's measure on the tangent space lacks |det DExp|; dx does not.
        jacobian = exp_jacobian(metric, mean, tangents, tol=1e-6)
        values = values - jacobian.log_dets
        failed = ~jacobian.converged
    return values, failed
