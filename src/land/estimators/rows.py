"""Rows of data as scikit-learn takes them, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from land._validation import check_kind, check_points, real_numbers

Array = NDArray[np.float64]


def check_rows(estimator: BaseEstimator, X: Any, **options: Any) -> Array:
    """The rows of X, if they are numbers; options are those of `validate_data`."""
    return _validated(estimator, X, **options)[0]


def check_rows_and_classes(
    estimator: BaseEstimator, X: Any, y: Any
) -> tuple[Array, NDArray[Any]]:
    """The rows of X with a label for each."""
    rows, labels = _validated(estimator, X, y=y)
    return rows, labels


def _validated(estimator: BaseEstimator, X: Any, **options: Any) -> tuple[Any, ...]:
    check_kind("X", X)
    options |= {"dtype": np.float64, "order": "C"}
    try:
        found = validate_data(estimator, X, **options)
    except (OverflowError, np.exceptions.DTypePromotionError) as error:
        raise real_numbers("X", error) from None
    rows, *others = found if isinstance(found, tuple) else (found,)
    return check_points("X", rows), *others
