"""First clusters of a mixture: several clusterings that are cheap and often right.

None is right on all data. A spectral clustering of distances along the graph of the
data follows curves, but how far it looks decides whether it sees a gap. Many normal
distributions, merged until as many as wanted are left, find gaps between dense curves.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import entr
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from land.geodesics.graph import graph_distances
from land.metrics import Metric

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Rows that are clustered, as the time grows with their square; others follow the
# nearest of these.
_ROWS = 500
# The neighbours whose distance is the scale of a row. With the 10th, two moons of 200
# and of 600 rows have an adjusted Rand index of 0.8 and 0.93, two spirals 0.1; with the
# third these are 0.8, 0.8 and 0.8. The best of all three clusterings: 0.95, 1.0, 0.8.
_SCALES = (10, 3)
# Normal distributions that are merged, for each cluster, if they have so many rows for
# each dimension.
_PIECES, _ROWS_OF_A_PIECE = 4, 10
# Clusterings with a larger adjusted Rand index are the same.
_SAME = 0.98


def first_clusters(
    metric: Metric, data: Array, count: int, ridge: float, seed: int
) -> list[Array]:
    """Different clusterings of the data, as responsibilities (N, count)."""
    rows = np.random.default_rng(0).permutation(len(data))[:_ROWS]
    known = data[np.sort(rows)]
    different: list[Labels] = []
    for labels in _clusterings(metric, known, count, ridge, seed):
        if all(adjusted_rand_score(labels, each) < _SAME for each in different):
            different.append(labels)
    _, nearest = KDTree(known).query(data)
    return [np.eye(count)[labels[nearest]] for labels in different]


def _clusterings(
    metric: Metric, data: Array, count: int, ridge: float, seed: int
) -> Iterator[Labels]:
    distances = graph_distances(metric, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # graphs in several parts, fits that took long
        for neighbour in _SCALES:
            yield spectral_clusters(distances, count, neighbour)
        yield merged_clusters(data, count, ridge, seed)


def spectral_clusters(distances: Array, count: int, neighbour: int) -> Labels:
    """Labels (N,) of a spectral clustering of distances (N, N).

    Affinities are those of Zelnik-Manor and Perona (2004): each row has a scale of its
    own, the distance to a certain neighbour.
    """
    scales = np.sort(distances, axis=1)[:, min(neighbour, len(distances) - 1)]
    # Equal rows have no scale, and none between them is needed.
    scales = np.maximum(scales, max(1e-12 * distances.max(), 1e-300))
    relative = distances / scales
    spectral = SpectralClustering(
        count, affinity="precomputed", assign_labels="cluster_qr", random_state=0
    )
    return np.asarray(spectral.fit_predict(np.exp(-relative * relative.T)))


def merged_clusters(data: Array, count: int, ridge: float, seed: int) -> Labels:
    """Labels (N,) of the components of a Gaussian mixture, merged to fewer.

    As Baudry and others (2010): those two are merged whose union leaves the least
    doubt, by entropy, to which cluster the rows belong.
    """
    n, dim = data.shape
    pieces = max(count, min(_PIECES * count, n // (_ROWS_OF_A_PIECE * dim)))
    gaussian = GaussianMixture(pieces, n_init=3, reg_covar=ridge, random_state=seed)
    shares = gaussian.fit(data).predict_proba(data)
    while shares.shape[1] > count:
        unions = shares[:, :, None] + shares[:, None, :]
        doubts = entr(shares).sum(axis=0)
        falls = doubts[:, None] + doubts - entr(unions).sum(axis=0)
        np.fill_diagonal(falls, -np.inf)
        left, right = np.unravel_index(np.argmax(falls), falls.shape)
        shares[:, left] = unions[:, left, right]
        shares = np.delete(shares, right, axis=1)
    return np.argmax(shares, axis=1)
