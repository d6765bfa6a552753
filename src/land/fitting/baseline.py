"""The simpler model that a fit must beat to be worth its while."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Baseline:
    """A simpler model, which a fit must beat by a margin or is given up.

    Attributes
    ----------
    log_densities : ndarray of shape (N,)
        Of the data, with respect to the reference.
    margin : float
        In the mean log density.
    """

    log_densities: Array
    margin: float


class NotWorthwhileError(Exception):
    """The search for a start has not beaten the baseline; `gain` says by how much."""

    def __init__(self, gain: float) -> None:
        super().__init__(f"ahead of the simpler model by {gain:.3g} only")
        self.gain = gain
