"""Geodesics: exponential and logarithm maps, their Jacobians, and curves."""

from land.geodesics.exponential import (
    ExpJacobian,
    ExpMap,
    exp_jacobian,
    exp_log_det,
    exp_map,
)
from land.geodesics.logarithm import Geodesic, LogMap, geodesic, log_map

__all__ = [
    "ExpJacobian",
    "ExpMap",
    "Geodesic",
    "LogMap",
    "exp_jacobian",
    "exp_log_det",
    "exp_map",
    "geodesic",
    "log_map",
]
