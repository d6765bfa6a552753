"""Automatic sigma and rho, which scale with the data."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from land._device import AT_ONCE
from land.metrics.base import Metric
from land.metrics.learned import DensityMetric, LocalDiagonalMetric

Array = NDArray[np.float64]

# Factors of sigma for one component and for several, in general and for a sharp metric,
# and the latter's share of the local variance on the data. Sharp values are near the
# best held-out densities of 13 sets of 300 rows for one component. For several, 0.45
# and a share of 0.01 are better in six fits to moons, waves and arcs: held-out
# densities by 0.1, the adjusted Rand index 0.84 on average, not 0.68. But they take
# twice as long there, and six times as long on sleep stages and motion capture.
_SMOOTH_FACTORS, _SHARP_FACTORS, _SHARP_SHARES = (2.0, 1.0), (1.0, 0.6), (0.1, 0.03)
# The rho under which an open curve guides geodesics, in units of the sharp one of a
# single component: of 10 to 80, 20 to 40 are best for a half-ellipse and a helix.
SMOOTHER = 30.0
# Rows that are enough for a median.
_SAMPLE = 2000


def automatic_sigma(
    data: Array, n_components: int = 1, *, sharp: bool = False
) -> float:
    """Median distance of a point to its k-th neighbour, k = ceil(sqrt(N) / 2).

    Twice that for a single component, whose geodesics span all the data: with a narrow
    kernel they would follow noise. A wide one would close gaps between several. A
    `sharp` metric has half as much, and 0.6 times as much for several components.

    Such neighbourhoods shrink as data accumulate and still hold ever more points.
    Multiplying the data by c multiplies sigma by c. Repeated rows count once.
    """
    points = np.unique(data, axis=0)
    if len(points) < 2:
        raise ValueError("sigma='auto' needs at least 2 different rows of data")
    k = min(int(np.ceil(0.5 * np.sqrt(len(points)))), len(points) - 1)
    distances, _ = KDTree(points).query(_some(points, _SAMPLE), k + 1)
    factors = _SHARP_FACTORS if sharp else _SMOOTH_FACTORS
    return factors[n_components > 1] * float(np.median(distances[:, -1]))


def automatic_rho(
    data: Array,
    sigma: float,
    n_components: int = 1,
    *,
    kind: type[Metric] = LocalDiagonalMetric,
    sharp: bool = False,
) -> float:
    """The local variance h on the data, averaged over directions; less if sharp.

    The median over the data. Leaving them then makes a way longer by at most sqrt(2).
    Sharp metrics have a tenth of it, and geodesics follow curves all the way round; for
    several components 0.03 of it, so that gaps between clusters are wide. Multiplying
    data and sigma by c multiplies rho by c^2.
    """
    points = _some(data, max(1, min(_SAMPLE, AT_ONCE // len(data))))
    squares = cdist(points, data, "sqeuclidean") / sigma**2
    weights = np.exp(-0.5 * squares)
    if kind is not DensityMetric:
        weights *= squares / data.shape[1]
    typical = sigma**2 * float(np.median(weights.sum(axis=1)))
    typical *= _SHARP_SHARES[n_components > 1] if sharp else 1.0
    # Without neighbours within reach, no rho makes a difference.
    return max(typical, (0.1 * sigma) ** 2)


def _some(points: Array, count: int) -> Array:
    """At most `count` of the points, always the same ones."""
    if len(points) <= count:
        return points
    rows = np.random.default_rng(0).permutation(len(points))[:count]
    return points[np.sort(rows)]
