"""Callbacks of the estimators: functions of a step, given as ``callback=``.

A callback is called with a `Step` after every step of a fit. Raise `KeyboardInterrupt`
in it to end the fit with the model reached so far. Several are given as a list:
``callback=[print, Checkpoint("long.checkpoint")]``.
"""

from land.estimators.callbacks import Checkpoint
from land.fitting import Step

__all__ = ["Checkpoint", "Step"]
