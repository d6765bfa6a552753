"""Data: synthetic points along curves and sheets, and loaders of the paper's real data.

Every maker returns float64 data ``X`` of shape (n_samples, D), drawn along a curve or a
sheet with isotropic Gaussian noise of standard deviation ``noise`` added. Makers of
several classes return ``(X, y)`` with integer labels ``y``; all others return ``X``
alone. Randomness enters through ``random_state`` only.

Every loader looks for its files in the folder ``data_home``, else in the one that the
environment variable LAND_DATA_DIR names, else in the user's cache folder, and downloads
what is missing there; `DataUnavailableError` says what to do where that fails.
"""

from land.datasets._clusters import make_two_moons, make_wave_and_arc
from land.datasets._curves import make_circle, make_s_curve, make_spiral
from land.datasets._fetch import DataUnavailableError
from land.datasets._half_ellipse import half_ellipse_log_density, make_half_ellipse
from land.datasets._mnist import load_mnist
from land.datasets._mocap import MOCAP_CLIPS, load_mocap
from land.datasets._sleep_eeg import SleepEEG, load_sleep_eeg
from land.datasets._sleep_features import SleepFeatures, load_sleep_features
from land.datasets._sleep_stages import SLEEP_RECORDS
from land.datasets._spectral import sleep_nmf_features, sleep_spectrogram

__all__ = [
    "MOCAP_CLIPS",
    "SLEEP_RECORDS",
    "DataUnavailableError",
    "SleepEEG",
    "SleepFeatures",
    "half_ellipse_log_density",
    "load_mnist",
    "load_mocap",
    "load_sleep_eeg",
    "load_sleep_features",
    "make_circle",
    "make_half_ellipse",
    "make_s_curve",
    "make_spiral",
    "make_two_moons",
    "make_wave_and_arc",
    "sleep_nmf_features",
    "sleep_spectrogram",
]
