"""land: the Locally Adaptive Normal Distribution and the geodesics below it.

Names are imported when they are first used, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from land import callbacks, datasets, inference, metrics
    from land.density import *
    from land.estimators import *
    from land.geodesics import *
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
    "inference",
    "load",
    "log_constant",
    "log_map",
    "metrics",
    "pairwise_distances",
    "select",
]

# Not in __all__: they need matplotlib, which is optional.
_FIGURES = ("plotting", "report")
_MODULES = ("callbacks", "datasets", "inference", "metrics", "plotting")
# Where the functions and classes are, what is quickest to import first.
_PACKAGES = ("geodesics", "density", "estimators")


def __getattr__(name: str) -> Any:
    """Import `name` on first use."""
    if name == "__version__":
        value: Any = import_module("importlib.metadata").version("land")
    elif name == "report":
        value = import_module("land.plotting.page").report
    elif name in (*_MODULES, *_PACKAGES):
        value = import_module(f"land.{name}")
    elif name in __all__:
        packages = (import_module(f"land.{each}") for each in _PACKAGES)
        value = next(getattr(each, name) for each in packages if name in each.__all__)
    else:
        raise AttributeError(f"module 'land' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_FIGURES])
