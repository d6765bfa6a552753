"""Where a mean may be: inside the data.

In flat space the mean of any distribution on the data lies in their convex hull. Along
geodesics that is not guaranteed, and from far outside the paper's volume element makes
thin distributions cheap: the likelihood improves and improves on the way out, towards
optima that nobody wants, much as that of a Gaussian mixture does where a component
collapses on a datum. So means stay inside, and one that was stopped at the border on
its way out is not taken for an optimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

Array = NDArray[np.float64]

# Hulls have too many faces in more dimensions: an ellipsoid takes their place.
_MOST_DIMENSIONS = 5
_BORDER = 0.97


class Enclosure:
    """The convex hull of the data, or in many dimensions an ellipsoid around them.

    Parameters
    ----------
    data : ndarray of shape (N, D)
        The data.
    ridge : float
        Variance added to every direction, for data without extent in some.
    """

    def __init__(self, data: Array, ridge: float) -> None:
        self.center = data.mean(axis=0)
        offsets = data - self.center
        dim = data.shape[1]
        scatter = offsets.T @ offsets / len(data)
        self._factor = np.linalg.cholesky(scatter + ridge * np.eye(dim))
        self._radius = max(float(np.max(self._radii(offsets))), 1e-300)
        self._faces = _faces(offsets) if dim <= _MOST_DIMENSIONS else None

    def remoteness(self, point: Array) -> float:
        """Distance from the data's centre, in units of the border's in that direction.

        It is 1 on the border, and less inside.
        """
        offset = point - self.center
        if self._faces is None:
            return float(self._radii(offset[None])[0] / self._radius)
        return float(np.max(self._faces @ offset))

    def holds(self, point: Array) -> bool:
        """Whether a mean may be there."""
        return self.remoteness(point) <= 1.0

    def stopped(self, point: Array) -> bool:
        """Whether a mean is where those are stopped that would leave."""
        return self.remoteness(point) > _BORDER

    def _radii(self, offsets: Array) -> Array:
        return np.linalg.norm(np.linalg.solve(self._factor, offsets.T), axis=0)


def _faces(offsets: Array) -> Array | None:
    """Vectors a of the hull's faces a . x = 1, none if the data do not span space."""
    if offsets.shape[1] == 1:
        ends = np.array([[offsets.max()], [offsets.min()]])
        return 1.0 / ends if np.all(ends != 0.0) else None
    try:
        equations = ConvexHull(offsets).equations
    except QhullError:  # too few data, or all on a line
        return None
    distances = -equations[:, -1:]
    return np.asarray(equations[:, :-1] / distances) if distances.min() > 0.0 else None
