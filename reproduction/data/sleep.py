"""The EEG of a night with its sleep stages, from PhysioNet's Sleep-EDF database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reproduction.data.edf import Annotation, read_annotations, read_signal
from reproduction.data.files import DataHome, FloatArray, find_file, read_prepared

Stages = NDArray[np.int64]

HOME = "https://physionet.org/files/sleep-edfx/1.0.0/sleep-cassette"
CHANNEL = "EEG Fpz-Cz"
# The ten recordings of the paper's table, s001, s011, s042 and so on: the scorer's
# letter in the hypnogram's name, PhysioNet's SHA-1 of the PSG and of the hypnogram.
_FILES = {
    "SC4001": (
        "C",
        "adabd3b01fc7bb75c523a974f38ee3ae4e57b40f",
        "21c998eadc8b1e3ea6727d3585186b8f76e7e70b",
    ),
    "SC4011": (
        "H",
        "4d17451f7847355bcab17584de05e7e1df58c660",
        "d582a3cbe2db481a362af890bc5a2f5ca7c878dc",
    ),
    "SC4042": (
        "C",
        "76253d964d7797540ffd791e6e136023ed67a485",
        "9873df429f971f8a4b720a454f6c0472b8a25ebb",
    ),
    "SC4062": (
        "C",
        "763c7ac059f1771a0165e5cb351b176afb1cfe15",
        "14f07411cd04d3b4b522d37c129334955287ff5f",
    ),
    "SC4081": (
        "C",
        "0e1cc2c4e1da14ab94515e3e7e75e8ad30ec99cb",
        "9ec663ffa5c17afcaca59d7829d77b9165102237",
    ),
    "SC4141": (
        "U",
        "83493e1c32d441c9e5ee3de6a024bfb5e7ab9f5f",
        "511d398f22b9b2b304de27c40740a41584ff6af2",
    ),
    "SC4151": (
        "C",
        "5a92d49699d4de369d66d9462e91b0dcb3312649",
        "37dcbd339c95322d028b3a5466812697041cc373",
    ),
    "SC4161": (
        "C",
        "e56ff3aa366fe9a04a0fdfdd4cd862e77e8ac807",
        "56711b1bfed292032491f5cce57494629286a131",
    ),
    "SC4162": (
        "C",
        "722692f9940f3a1bccb9b4488c4477edf7fb128f",
        "c85647fb4bc1f382fe46bf9aaf579dc483115885",
    ),
    "SC4191": (
        "P",
        "d6da621dbb20dec3494a38c7d2a0363793ac5ebe",
        "defc7b9368c2d3c4ab4a294757843825a83cdb5d",
    ),
}
SLEEP_RECORDS = tuple(_FILES)
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


@dataclass(frozen=True)
class SleepEEG:
    """The frontal EEG of one night and how it was scored.

    Attributes
    ----------
    record : str
        Name of the recording.
    signal : ndarray of shape (n_epochs * 30 * sampling_rate,)
        Channel Fpz-Cz in microvolt.
    sampling_rate : float
        Samples per second.
    stages : ndarray of shape (n_epochs,)
        Stage of each 30 s epoch: 0 W, 1 N1, 2 N2, 3 N3, 4 REM; -1 for movement time
        and what is not scored.
    stages_rk : ndarray of shape (n_epochs,)
        The same as scored by Rechtschaffen and Kales: 0 W, 1 to 4 S1 to S4, 5 REM, -1.
    first_epoch : int
        Number of epochs of the recording before the first one here.
    stage_names : tuple of str
        Names of the codes in ``stages``.
    """

    record: str
    signal: FloatArray = field(repr=False)
    sampling_rate: float
    stages: Stages = field(repr=False)
    stages_rk: Stages = field(repr=False)
    first_epoch: int
    stage_names: ClassVar[tuple[str, ...]] = STAGE_NAMES


def load_sleep_eeg(
    record: str = "SC4001", *, data_home: DataHome = None, download: bool = True
) -> SleepEEG:
    """Load the frontal EEG of one night with its sleep stages.

    A recording of the Sleep Cassette study in PhysioNet's Sleep-EDF Expanded, cut to
    the time from 30 minutes before the first to 30 minutes after the last epoch of
    sleep.

    Parameters
    ----------
    record : str
        One of ``SLEEP_RECORDS``, the ten recordings of the paper.
    data_home : path-like or None
        Folder that holds the files or receives them. None stands for the environment
        variable LAND_DATA_DIR, else the user's cache folder.
    download : bool
        Whether to download what is missing (about 50 MB).

    Returns
    -------
    SleepEEG
        Signal in microvolt, sampling rate and stages.

    Raises
    ------
    DataUnavailableError
        If the data are neither in the folder nor could be downloaded.

    Examples
    --------
    >>> from reproduction.data import load_sleep_eeg
    >>> eeg = load_sleep_eeg("SC4001")  # doctest: +SKIP
    >>> eeg.sampling_rate, len(eeg.signal), len(eeg.stages)  # doctest: +SKIP
    (100.0, 2523000, 841)
    """
    check_record(record)
    keys = [
        "fpz_cz",
        "fpz_cz_gain_uv",
        "fpz_cz_offset_uv",
        "fs",
        "stage",
        "first_epoch",
    ]
    prepared = read_prepared(f"sleepedf_{record}_eeg.npz", keys, data_home)
    if prepared is None:
        return _from_edf(record, data_home, download)
    gain, offset = float(prepared[keys[1]]), float(prepared[keys[2]])
    stages_rk = prepared["stage"].astype(np.int64)
    return SleepEEG(
        record=record,
        signal=prepared["fpz_cz"] * gain + offset,
        sampling_rate=float(prepared["fs"]),
        stages=merge_stages(stages_rk),
        stages_rk=stages_rk,
        first_epoch=int(prepared["first_epoch"]),
    )


def _from_edf(record: str, data_home: DataHome, download: bool) -> SleepEEG:
    """Read the recording and its hypnogram as PhysioNet publishes them."""
    scorer, *sha1 = _FILES[record]
    names = [f"{record}E0-PSG.edf", f"{record}E{scorer}-Hypnogram.edf"]
    recording, hypnogram = (
        find_file(f"{HOME}/{name}", f"sha1:{digest}", data_home, download=download)
        for name, digest in zip(names, sha1, strict=True)
    )
    eeg = read_signal(recording, CHANNEL)
    if eeg.unit != "uV":
        raise ValueError(f"{recording}: {CHANNEL} is in {eeg.unit!r}, expected 'uV'.")
    length = round(EPOCH_S * eeg.sampling_rate)
    stages_rk = stages_from_annotations(
        read_annotations(hypnogram), len(eeg.values) // length
    )
    kept = night(stages_rk)
    return SleepEEG(
        record=record,
        signal=eeg.values[kept.start * length : kept.stop * length].copy(),
        sampling_rate=eeg.sampling_rate,
        stages=merge_stages(stages_rk[kept]),
        stages_rk=stages_rk[kept],
        first_epoch=kept.start,
    )


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
