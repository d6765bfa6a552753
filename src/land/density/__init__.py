"""Densities on tangent spaces: volume, normalisation constant, likelihood."""

from land.density.constant import LogConstant, log_constant

__all__ = ["LogConstant", "log_constant"]
