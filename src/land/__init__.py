"""land: the Locally Adaptive Normal Distribution and the geodesics below it.

Names are imported when they are first used, so that the command line answers at once
where no mathematics is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from land import callbacks, datasets, metrics
    from land.density import LogConstant, log_constant
    from land.estimators import (
        LAND,
        GeodesicPCA,
        LANDClassifier,
        LANDMixture,
        ModelFileError,
        RiemannianKMeans,
        Selection,
        Standardized,
        f_measure,
        load,
        pairwise_distances,
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
    from land.plotting.page import report as report

    __version__: str

__all__ = [
    "LAND",
    "ExpJacobian",
    "ExpMap",
    "Geodesic",
    "GeodesicPCA",
    "LANDClassifier",
    "LANDMixture",
    "LogConstant",
    "LogMap",
    "ModelFileError",
    "RiemannianKMeans",
    "Selection",
    "Standardized",
    "__version__",
    "callbacks",
    "datasets",
    "exp_jacobian",
    "exp_log_det",
    "exp_map",
    "f_measure",
    "geodesic",
    "load",
    "log_constant",
    "log_map",
    "metrics",
    "pairwise_distances",
    "select",
]

_MODULES = (
    "callbacks",
    "datasets",
    "density",
    "estimators",
    "fitting",
    "geodesics",
    "metrics",
    "plotting",
)
_SOURCES = {
    "land.density": ("LogConstant", "log_constant"),
    "land.estimators": (
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
    ),
    "land.geodesics": (
        "ExpJacobian",
        "ExpMap",
        "Geodesic",
        "LogMap",
        "exp_jacobian",
        "exp_log_det",
        "exp_map",
        "geodesic",
        "log_map",
    ),
    "land.plotting.page": ("report",),
}
# Not in __all__: they need matplotlib, which is optional.
_FIGURES = ("plotting", "report")
_SOURCE_OF = {name: source for source, names in _SOURCES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import `name` on first use."""
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("land")
    elif name in _SOURCE_OF:
        value = getattr(import_module(_SOURCE_OF[name]), name)
    elif name in _MODULES:
        value = import_module(f"land.{name}")
    else:
        raise AttributeError(f"module 'land' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_FIGURES])
