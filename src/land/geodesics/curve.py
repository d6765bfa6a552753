"""One geodesic between two points, as a function of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land._precision import in_float64
from land._validation import check_count, check_points, check_positive
from land.geodesics.logarithm import MAX_ITER
from land.geodesics.problem import check_metric
from land.geodesics.shortest import shortest_connections
from land.geodesics.solution import Connections
from land.metrics import Metric

Array = NDArray[np.float64]


class Geodesic:
    """A geodesic on [0, 1]; call it with times to get points.

    Attributes
    ----------
    start, end : ndarray of shape (D,)
    start_velocity, end_velocity : ndarray of shape (D,)
    length : float
    converged : bool
        Whether length and velocities meet the tolerance that was asked for.
    """

    def __init__(
        self, start: Array, end: Array, center: Array, solution: Connections
    ) -> None:
        self._center = center
        self._solution = solution
        self.start = start
        self.end = end
        self.start_velocity = solution.tangents[0]
        self.end_velocity = solution.end_velocities[0]
        self.length = float(solution.lengths[0])
        self.converged = bool(solution.converged[0])

    def __call__(self, times: ArrayLike) -> Array:
        """Points at `times` in [0, 1]: (...) -> (..., D)."""
        moments = np.asarray(times, dtype=np.float64)
        if not np.all((moments >= 0.0) & (moments <= 1.0)):
            raise ValueError("times must lie in [0, 1]")
        points = self._center + self._solution.sample(moments.reshape(-1))[0]
        return points.reshape(*moments.shape, len(self.start))

    def __repr__(self) -> str:
        verdict = "converged" if self.converged else "not converged"
        return f"Geodesic(length={self.length:.6g}, {verdict})"


@in_float64
def geodesic(
    metric: Metric,
    start: ArrayLike,
    end: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = MAX_ITER,
) -> Geodesic:
    """The shortest curve from `start` to `end` that could be found.

    Parameters
    ----------
    metric : Metric
        The metric.
    start, end : array_like of shape (D,)
        The ends.
    tol : float
        Relative error allowed in length and velocities.
    max_iter : int
        Iterations allowed on each mesh.

    Returns
    -------
    Geodesic
        A callable with `length` and `converged`.

    Examples
    --------
    >>> import land
    >>> curve = land.geodesic(land.metrics.EuclideanMetric(2), [0, 0], [3, 4])
    >>> round(curve.length, 9), curve(0.5).round(9).tolist()
    (5.0, [1.5, 2.0])
    """
    first = check_points("start", start, metric.dim, ndim=1)
    last = check_points("end", end, metric.dim, ndim=1)
    tol = check_positive("tol", tol)
    max_iter = check_count("max_iter", max_iter)
    check_metric(metric, start=first, end=last)
    metric, center = metric.centred()
    bases, targets = (first - center)[None], (last - center)[None]
    solution = shortest_connections(metric, bases, targets, tol, max_iter)
    return Geodesic(first, last, center, solution)
