"""Checks on what users hand in; every message names the argument and the remedy."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def check_points(
    name: str,
    value: Any,
    dim: int | None = None,
    *,
    ndim: int | None = None,
    allow_empty: bool = False,
) -> Array:
    """Return `value` as a finite float64 array whose last axis holds coordinates.

    Parameters
    ----------
    name
        The argument's name, for the error message.
    value
        Anything NumPy or JAX can turn into an array.
    dim
        Required length of the last axis; ``None`` accepts any positive length.
    ndim
        Required number of axes; ``None`` accepts one or more.
    allow_empty
        Whether an array without points is acceptable.
    """
    try:
        array = np.asarray(value)
        if np.iscomplexobj(array):
            raise ValueError("got complex ones")
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None
    if array.ndim == 0 or (ndim is not None and array.ndim != ndim):
        expected = "at least one axis" if ndim is None else f"{ndim} axes"
        raise ValueError(
            f"{name} must have {expected} (the last one holds the coordinates), "
            f"got shape {array.shape}"
        )
    if array.shape[-1] == 0 or (dim is not None and array.shape[-1] != dim):
        expected = "at least 1" if dim is None else str(dim)
        raise ValueError(
            f"{name} must have {expected} coordinates on its last axis, "
            f"got {array.shape[-1]} (shape {array.shape})"
        )
    if array.size == 0 and not allow_empty:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        bad = int(np.sum(~np.isfinite(array)))
        raise ValueError(
            f"{name} must be finite, got {bad} NaN or infinite values; "
            "drop or impute them first"
        )
    return array


def check_positive(name: str, value: Any) -> float:
    """Return `value` as a positive finite float."""
    if isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    if not isinstance(value, Real):
        try:  # zero-dimensional NumPy and JAX arrays are fine
            value = float(np.asarray(value, dtype=np.float64).reshape(()))
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must be a positive number, got {value!r}"
            ) from None
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive and finite, got {number!r}")
    return number


def check_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an integer of at least `minimum`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    return number


def check_covariance(name: str, value: Any, dim: int) -> Array:
    """Return `value` as a symmetric positive definite matrix."""
    matrix = check_points(name, value, dim, ndim=2)
    if matrix.shape != (dim, dim):
        raise ValueError(f"{name} must have shape {(dim, dim)}, got {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max()):
        raise ValueError(f"{name} must be symmetric")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest <= 0.0:
        raise ValueError(
            f"{name} must be positive definite, its smallest eigenvalue is {smallest:g}"
        )
    return matrix
