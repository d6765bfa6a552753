"""land: the Locally Adaptive Normal Distribution and the geodesics below it."""

from importlib.metadata import version

from land import datasets, metrics
from land.density import LogConstant, log_constant
from land.estimators import (
    LAND,
    LANDMixture,
    RiemannianKMeans,
    Selection,
    f_measure,
    select,
)
from land.geodesics import (
    ExpJacobian,
    ExpMap,
    Geodesic,
    LogMap,
    exp_jacobian,
    exp_log_det,
    exp_map,
    geodesic,
    log_map,
)

__version__ = version("land")

__all__ = [
    "LAND",
    "ExpJacobian",
    "ExpMap",
    "Geodesic",
    "LANDMixture",
    "LogConstant",
    "LogMap",
    "RiemannianKMeans",
    "Selection",
    "__version__",
    "datasets",
    "exp_jacobian",
    "exp_log_det",
    "exp_map",
    "f_measure",
    "geodesic",
    "log_constant",
    "log_map",
    "metrics",
    "select",
]
