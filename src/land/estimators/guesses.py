"""First guesses of a mixture: responsibilities and means to start from."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.cluster import SpectralClustering
from sklearn.mixture import GaussianMixture

from land._validation import check_points
from land.fitting import FitProblem, fit_kmeans, spread_centers

Array = NDArray[np.float64]

_INITS = ("gmm", "least_squares", "random")
_MOST_SPECTRAL, _NEIGHBOURS = 2000, 10
# Steps and tolerance of a k-means that is only a start.
_KMEANS_STEPS, _KMEANS_TOL = 30, 1e-2


@dataclass(frozen=True)
class FirstGuesses:
    """How to begin, see the parameters of `land.LANDMixture`."""

    init: Any
    n_components: int
    covariance_type: str

    def responsibilities(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> list[Array]:
        """First guesses of the responsibilities (N, K), which compete."""
        if isinstance(self.init, str) and self.init == "gmm":
            gaussian = self._gaussian_mixture(problem, rng)
            guesses = [gaussian.predict_proba(problem.data)]
            if 1 < self.n_components < len(problem.data):
                guesses.append(neighbour_clusters(problem.data, self.n_components))
            return guesses
        centers = self.means(problem, weights, rng)
        if isinstance(self.init, str) and self.init == "least_squares":
            clusters = fit_kmeans(problem, weights, centers, _KMEANS_STEPS, _KMEANS_TOL)
            return [np.eye(len(centers))[clusters.labels]]
        logs = problem.log_maps(list(centers))
        lengths = np.stack([np.nan_to_num(log.lengths, nan=np.inf) for log in logs])
        return [np.eye(len(centers))[np.argmin(lengths, axis=0)]]

    def single(self, dim: int) -> Any:
        """How a single component begins: see the parameters of `land.LAND`."""
        if not isinstance(self.init, str):
            return self._given(dim)[0]
        self._check_word()
        return "random" if self.init == "random" else "least_squares"

    def means(
        self, problem: FitProblem, weights: Array, rng: np.random.Generator
    ) -> Array:
        """First means, (K, D)."""
        count, dim = self.n_components, problem.data.shape[1]
        if not isinstance(self.init, str):
            return self._given(dim)
        self._check_word()
        if self.init == "gmm":
            labels = self._gaussian_mixture(problem, rng).predict(problem.data)
            return np.stack(
                [
                    _medoid(problem.data[labels == k], problem.data, rng)
                    for k in range(count)
                ]
            )
        if self.init == "random":
            rows = rng.choice(len(problem.data), size=count, replace=False)
            return problem.data[rows]
        return spread_centers(problem, weights, count, rng)

    def _given(self, dim: int) -> Array:
        means = check_points("init", self.init, dim, ndim=2)
        if len(means) != self.n_components:
            raise ValueError(
                f"init must have {self.n_components} rows, one for each component, "
                f"got {len(means)}"
            )
        return means

    def _check_word(self) -> None:
        if self.init not in _INITS:
            words = ", ".join(repr(word) for word in _INITS)
            raise ValueError(f"init must be {words} or means, got {self.init!r}")

    def _gaussian_mixture(
        self, problem: FitProblem, rng: np.random.Generator
    ) -> GaussianMixture:
        gaussian = GaussianMixture(
            self.n_components,
            covariance_type=self.covariance_type,
            reg_covar=problem.ridge,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is only a start
            return gaussian.fit(problem.data)


def neighbour_clusters(data: Array, count: int) -> Array:
    """Responsibilities (N, count), zero or one, of a spectral clustering.

    Clusters are parts of the graph of nearest neighbours that few edges connect.
    """
    rng = np.random.default_rng(0)
    n = len(data)
    rows = np.sort(rng.permutation(n)[:_MOST_SPECTRAL])
    spectral = SpectralClustering(
        count,
        affinity="nearest_neighbors",
        n_neighbors=min(_NEIGHBOURS, len(rows) - 1),
        assign_labels="cluster_qr",
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph in several parts is fine
        labels = spectral.fit_predict(data[rows])
    _, nearest = KDTree(data[rows]).query(data)
    return np.asarray(np.eye(count)[labels[nearest]])


def _medoid(members: Array, data: Array, rng: np.random.Generator) -> Array:
    """The member closest to the members' mean; any row if there are none."""
    if not len(members):
        return np.asarray(data[rng.integers(len(data))])
    distances = np.linalg.norm(members - members.mean(axis=0), axis=1)
    return np.asarray(members[int(np.argmin(distances))])
