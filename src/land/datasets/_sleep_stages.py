"""Sleep stages of the Sleep-EDF recordings: their codes, and the night around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from land.datasets._edf import Annotation

Stages = NDArray[np.int64]

# The ten recordings of the paper's table: s001, s011, s042 and so on.
SLEEP_RECORDS = (
    "SC4001",
    "SC4011",
    "SC4042",
    "SC4062",
    "SC4081",
    "SC4141",
    "SC4151",
    "SC4161",
    "SC4162",
    "SC4191",
)
STAGE_NAMES = ("W", "N1", "N2", "N3", "REM")
NOT_SCORED = -1
EPOCH_S = 30
_MARGIN_EPOCHS = 30 * 60 // EPOCH_S

_RK_CODES = {
    "Sleep stage W": 0,
    "Sleep stage 1": 1,
    "Sleep stage 2": 2,
    "Sleep stage 3": 3,
    "Sleep stage 4": 4,
    "Sleep stage R": 5,
    "Sleep stage ?": NOT_SCORED,
    "Movement time": NOT_SCORED,
}


def check_record(record: str) -> None:
    """Raise ValueError unless it is one of the ten recordings."""
    if record not in SLEEP_RECORDS:
        raise ValueError(
            f"record must be one of {', '.join(SLEEP_RECORDS)}, got {record!r}."
        )


def merge_stages(stages_rk: Stages) -> Stages:
    """Turn Rechtschaffen-Kales codes into 0 W, 1 N1, 2 N2, 3 N3, 4 REM.

    N3 is S3 and S4 together; what is not scored (-1) stays so.
    """
    merged = np.array([0, 1, 2, 3, 3, 4, NOT_SCORED])
    return merged[stages_rk]


def stages_from_annotations(annotations: list[Annotation], n_epochs: int) -> Stages:
    """Return the Rechtschaffen-Kales code of every 30 s epoch of a recording.

    0 W, 1 to 4 S1 to S4, 5 REM, -1 for movement time and what is not scored.
    """
    stages = np.full(n_epochs, NOT_SCORED, dtype=np.int64)
    for note in annotations:
        if note.text not in _RK_CODES:
            raise ValueError(f"unknown sleep stage {note.text!r} at {note.onset} s.")
        if note.onset % EPOCH_S or note.duration % EPOCH_S:
            raise ValueError(
                f"{note.text!r} at {note.onset} s lasts {note.duration} s: not whole "
                f"epochs of {EPOCH_S} s."
            )
        first = int(note.onset) // EPOCH_S
        # Scoring may run on beyond the end of the signal.
        stages[first : first + int(note.duration) // EPOCH_S] = _RK_CODES[note.text]
    return stages


def night(stages_rk: Stages) -> slice:
    """Return the epochs from 30 min before the first sleep to 30 min after the last.

    The recordings last about 20 hours, most of it awake.
    """
    asleep = np.flatnonzero(stages_rk > 0)
    if len(asleep) == 0:
        raise ValueError("No epoch is scored as sleep.")
    first = max(int(asleep[0]) - _MARGIN_EPOCHS, 0)
    return slice(first, min(int(asleep[-1]) + 1 + _MARGIN_EPOCHS, len(stages_rk)))
