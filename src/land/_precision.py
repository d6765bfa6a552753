"""Run geometry in double precision without touching global JAX settings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Make every JAX operation inside `function` run in float64.

    Geodesics lose all their digits in float32 (the metric varies by several orders
    of magnitude over a few sigma), so the public functions are wrapped in this,
    whatever the caller's own JAX configuration is.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapper
