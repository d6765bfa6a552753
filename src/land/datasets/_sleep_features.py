"""Band powers of the EEG, one point for each 30 s of sleep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from land.datasets._fetch import DataHome, read_prepared
from land.datasets._sampling import FloatArray
from land.datasets._sleep_eeg import SleepEEG, load_sleep_eeg
from land.datasets._sleep_stages import (
    EPOCH_S,
    NOT_SCORED,
    STAGE_NAMES,
    Stages,
    check_record,
)

PREPARED = "sleepedf_paper10_features30s.npz"
BANDS = {
    "delta": (0.5, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 12.0),
    "sigma": (12.0, 16.0),
    "beta": (16.0, 30.0),
}


@dataclass(frozen=True)
class SleepFeatures:
    """Five band powers and the sleep stage of every scored 30 s epoch of a night.

    Attributes
    ----------
    record : str
        Name of the recording.
    features : ndarray of shape (n, 5)
        log(1 + sqrt(band power)), band powers in microvolt squared.
    stages : ndarray of shape (n,)
        0 W, 1 N1, 2 N2, 3 N3, 4 REM.
    stages_rk : ndarray of shape (n,)
        As scored by Rechtschaffen and Kales: 0 W, 1 to 4 S1 to S4, 5 REM.
    feature_names, stage_names : tuple of str
        Names of the bands and of the codes in ``stages``.
    """

    record: str
    features: FloatArray = field(repr=False)
    stages: Stages = field(repr=False)
    stages_rk: Stages = field(repr=False)
    feature_names: ClassVar[tuple[str, ...]] = tuple(BANDS)
    stage_names: ClassVar[tuple[str, ...]] = STAGE_NAMES


def load_sleep_features(
    record: str, *, data_home: DataHome = None, download: bool = True
) -> SleepFeatures:
    """Load the band powers of one night of sleep: a small set of five dimensions.

    For each 30 s epoch of the frontal EEG the power in the delta, theta, alpha, sigma
    and beta bands, as log(1 + sqrt(power)). These are not the features of the paper,
    for which see `sleep_nmf_features`. The time from 30 minutes before the first to
    30 minutes after the last epoch of sleep is kept, epochs of movement and without a
    score are left out.

    Parameters
    ----------
    record : str
        One of ``SLEEP_RECORDS``, the ten recordings of the paper.
    data_home : path-like or None
        Folder that holds the files or receives them. None stands for the environment
        variable LAND_DATA_DIR, else the user's cache folder.
    download : bool
        Whether to download the recording (about 50 MB) and compute its band powers
        where the prepared file is missing.

    Returns
    -------
    SleepFeatures
        Features, stages and their names.

    Raises
    ------
    DataUnavailableError
        If the data are neither in the folder nor could be downloaded.

    Examples
    --------
    >>> from land.datasets import load_sleep_features
    >>> night = load_sleep_features("SC4001")  # doctest: +SKIP
    >>> night.features.shape, night.feature_names[0]  # doctest: +SKIP
    ((841, 5), 'delta')
    """
    check_record(record)
    keys = ["columns", f"{record}_X", f"{record}_stage", f"{record}_stage_rk"]
    prepared = read_prepared(PREPARED, keys, data_home)
    if prepared is None:
        return _from_eeg(load_sleep_eeg(record, data_home=data_home, download=download))
    columns, table, stages, stages_rk = (prepared[key] for key in keys)
    names = columns.tolist()
    powers = table[:, [names.index(f"{band}_pow_256") for band in BANDS]]
    return SleepFeatures(
        record=record,
        features=_scale(powers.astype(np.float64)),
        stages=stages.astype(np.int64),
        stages_rk=stages_rk.astype(np.int64),
    )


def _from_eeg(eeg: SleepEEG) -> SleepFeatures:
    """Compute the features as those of the prepared file were computed."""
    scored = eeg.stages != NOT_SCORED
    epochs = eeg.signal.reshape(len(scored), round(EPOCH_S * eeg.sampling_rate))
    return SleepFeatures(
        record=eeg.record,
        features=_scale(band_powers(epochs[scored], eeg.sampling_rate)),
        stages=eeg.stages[scored],
        stages_rk=eeg.stages_rk[scored],
    )


def band_powers(epochs: FloatArray, sampling_rate: float) -> FloatArray:
    """Compute the power in the five bands of each row, in the signal's unit squared.

    By Welch's method: Hann windows of 256 samples that overlap by half, each with its
    mean removed.
    """
    from scipy.signal import welch

    frequencies, density = welch(epochs, sampling_rate, nperseg=256)
    within = [
        (low <= frequencies) & (frequencies < high) for low, high in BANDS.values()
    ]
    return np.stack(
        [density[:, band].sum(axis=1) * frequencies[1] for band in within], axis=1
    )


def _scale(powers: FloatArray) -> FloatArray:
    return np.log1p(np.sqrt(powers))
