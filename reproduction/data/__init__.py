"""Loaders of the paper's real data.

Every loader looks for its files in the folder ``data_home``, else in the one that the
environment variable LAND_DATA_DIR names, else in the user's cache folder, and downloads
what is missing there; `DataUnavailableError` says what to do where that fails.
"""

from reproduction.data.files import DataUnavailableError
from reproduction.data.mnist import load_mnist
from reproduction.data.mocap import MOCAP_CLIPS, load_mocap
from reproduction.data.sleep import SLEEP_RECORDS, SleepEEG, load_sleep_eeg
from reproduction.data.sleep_features import (
    SleepFeatures,
    load_sleep_features,
    sleep_nmf_features,
    sleep_spectrogram,
)

__all__ = [
    "MOCAP_CLIPS",
    "SLEEP_RECORDS",
    "DataUnavailableError",
    "SleepEEG",
    "SleepFeatures",
    "load_mnist",
    "load_mocap",
    "load_sleep_eeg",
    "load_sleep_features",
    "sleep_nmf_features",
    "sleep_spectrogram",
]
