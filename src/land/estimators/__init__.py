"""scikit-learn estimators: validate, call, store."""

from land.estimators.agreement import f_measure
from land.estimators.clustering import RiemannianKMeans
from land.estimators.distribution import LAND
from land.estimators.mixture import LANDMixture
from land.estimators.selection import Selection, select

__all__ = [
    "LAND",
    "LANDMixture",
    "RiemannianKMeans",
    "Selection",
    "f_measure",
    "select",
]
