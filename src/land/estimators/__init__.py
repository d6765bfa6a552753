"""scikit-learn estimators: validate, call, store."""

from land.estimators.classification import LANDClassifier
from land.estimators.clustering import RiemannianKMeans, f_measure
from land.estimators.decomposition import GeodesicPCA
from land.estimators.density import LAND
from land.estimators.files import ModelFileError, load
from land.estimators.mixture import LANDMixture
from land.estimators.scoring import pairwise_distances
from land.estimators.selection import Selection, select
from land.estimators.standardized import Standardized

__all__ = [
    "LAND",
    "GeodesicPCA",
    "LANDClassifier",
    "LANDMixture",
    "ModelFileError",
    "RiemannianKMeans",
    "Selection",
    "Standardized",
    "f_measure",
    "load",
    "pairwise_distances",
    "select",
]
