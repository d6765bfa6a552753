"""scikit-learn estimators: validate, call, store."""

from land.estimators.distribution import LAND

__all__ = ["LAND"]
