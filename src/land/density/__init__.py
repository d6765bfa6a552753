"""Densities on tangent spaces: volume, normalisation constant, likelihood."""

from land.density.constant import log_constant
from land.density.nodes import LogConstant

__all__ = ["LogConstant", "log_constant"]
