"""scikit-learn estimators: validate, call, store."""

from land.estimators.clustering import RiemannianKMeans
from land.estimators.distribution import LAND
from land.estimators.mixture import LANDMixture

__all__ = ["LAND", "LANDMixture", "RiemannianKMeans"]
