"""Features of the EEG of a night: band powers, and the paper's spectral factors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import get_window, welch
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from reproduction.data.files import DataHome, FloatArray, read_prepared
from reproduction.data.sleep import (
    EPOCH_S,
    NOT_SCORED,
    STAGE_NAMES,
    SleepEEG,
    Stages,
    check_record,
    load_sleep_eeg,
)

Scaling = Literal["amplitude", "raw"]

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
    >>> from reproduction.data import load_sleep_features
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
    frequencies, density = welch(epochs, sampling_rate, nperseg=256)
    within = [
        (low <= frequencies) & (frequencies < high) for low, high in BANDS.values()
    ]
    return np.stack(
        [density[:, band].sum(axis=1) * frequencies[1] for band in within], axis=1
    )


def _scale(powers: FloatArray) -> FloatArray:
    return np.log1p(np.sqrt(powers))


def sleep_spectrogram(
    signal: ArrayLike,
    sampling_rate: float,
    stages: ArrayLike,
    *,
    window_s: float = 10.0,
    overlap: float = 0.5,
    taper: str = "hamming",
    scaling: Scaling = "amplitude",
) -> tuple[FloatArray, Stages]:
    """Compute ``log(1 + |f|)`` of the short-time Fourier transform f, within stages.

    A window counts only if all of it lies in epochs of one stage: windows at a change
    of stage, and those that touch an epoch without a score, are dropped.

    Parameters
    ----------
    signal : array-like of shape (n_epochs * 30 * sampling_rate,)
        The signal, finite.
    sampling_rate : float
        Samples per second.
    stages : array-like of shape (n_epochs,)
        Integer code of each 30 s epoch; negative where there is none.
    window_s : float
        Length of a window in seconds.
    overlap : float
        Fraction of a window that it shares with the next, in [0, 1).
    taper : str
        Shape of a window, a name that `scipy.signal.get_window` knows.
    scaling : {"amplitude", "raw"}
        Whether ``|f|`` is divided by the sum of the taper, so that a sine of amplitude
        a gives a / 2 whatever the length of the window, or left as the sum that the
        transform is. The logarithm makes this more than a factor.

    Returns
    -------
    spectra : ndarray of shape (n, n_frequencies)
        Log magnitudes, from frequency 0 to half the sampling rate.
    labels : ndarray of shape (n,)
        Stage of each window.

    Notes
    -----
    The paper (section 4.2) says ten seconds and half of it as overlap. It leaves the
    taper and the scaling open: the defaults are ours.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.data import sleep_spectrogram
    >>> time = np.arange(9000) / 100.0  # three epochs at 100 Hz
    >>> wave = 20.0 * np.sin(2 * np.pi * 3.0 * time)
    >>> spectra, labels = sleep_spectrogram(wave, 100.0, [2, 2, 4])
    >>> labels  # of 17 windows one lies across the change
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4])
    >>> spectra.argmax(axis=1)[0] / 10.0  # ten seconds resolve a tenth of a hertz
    np.float64(3.0)
    """
    values, codes, epoch = _check_recording(signal, sampling_rate, stages)
    if not 0.0 <= overlap < 1.0:
        raise ValueError(f"overlap must be at least 0 and less than 1, got {overlap}.")
    if scaling not in ("amplitude", "raw"):
        raise ValueError(f'scaling must be "amplitude" or "raw", got {scaling!r}.')
    length = round(window_s * sampling_rate)
    step = max(round(length * (1.0 - overlap)), 1)
    if not 1 < length <= len(values):
        raise ValueError(
            f"window_s must span from 2 to {len(values)} samples, the whole signal; "
            f"{window_s} s are {length}."
        )
    starts = np.arange(0, len(values) - length + 1, step)
    kept = _within_one_stage(starts, starts + length - 1, codes, epoch)
    weights = get_window(taper, length)
    windows = np.lib.stride_tricks.sliding_window_view(values, length)[starts[kept]]
    magnitudes = np.abs(np.fft.rfft(windows * weights, axis=1))
    if scaling == "amplitude":
        magnitudes /= weights.sum()
    return np.log1p(magnitudes), codes[starts[kept] // epoch]


def sleep_nmf_features(
    signal: ArrayLike,
    sampling_rate: float,
    stages: ArrayLike,
    *,
    n_factors: int = 5,
    n_starts: int = 10,
    scaling: Scaling = "amplitude",
    standardize: bool = True,
    max_iter: int = 2000,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, Stages]:
    """Compute the paper's features of sleep: factors of the short-time spectrum.

    Windows of ten seconds that overlap by half, ``log(1 + |f|)`` of their Fourier
    transforms, and the coefficients of a non-negative matrix factorisation of the
    result, the best of several random starts (section 4.2 of the paper).

    Parameters
    ----------
    signal : array-like of shape (n_epochs * 30 * sampling_rate,)
        The signal in microvolt, finite.
    sampling_rate : float
        Samples per second.
    stages : array-like of shape (n_epochs,)
        Integer code of each 30 s epoch; negative where there is none. A window at a
        change of code is dropped.
    n_factors : int
        Number of factors, the dimension of the features.
    n_starts : int
        Number of random starts; the factorisation with the least error is kept.
    scaling : {"amplitude", "raw"}
        How ``|f|`` is scaled, see `sleep_spectrogram`.
    standardize : bool
        Whether every feature is brought to mean zero and variance one. The paper does
        not say; its bandwidth sigma = 1 for every recording suggests such a scale.
    max_iter : int
        Bound on the iterations of one start. A night needs about 1,300.
    random_state : None, int or Generator
        Source of randomness; the same seed gives the same features.

    Returns
    -------
    features : ndarray of shape (n, n_factors)
        Coefficients of the windows. The factors have Euclidean norm one, which fixes
        the coefficients' scale, and are ordered by the energy they explain.
    labels : ndarray of shape (n,)
        Stage of each window.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.data import sleep_nmf_features
    >>> noise = np.random.default_rng(0).standard_normal(12000)
    >>> features, labels = sleep_nmf_features(
    ...     noise, 100.0, [0, 0, 2, 2], n_factors=2, random_state=0
    ... )
    >>> features.shape, labels.shape
    ((22, 2), (22,))
    """
    if n_starts < 1:
        raise ValueError(f"n_starts must be at least 1, got {n_starts}.")
    generator = np.random.default_rng(random_state)
    spectra, labels = sleep_spectrogram(signal, sampling_rate, stages, scaling=scaling)
    if n_factors > min(spectra.shape):
        raise ValueError(
            f"n_factors must be at most {min(spectra.shape)}, the smaller side of the "
            f"{spectra.shape[0]} x {spectra.shape[1]} spectra, got {n_factors}."
        )
    seeds = generator.integers(2**32, size=n_starts)
    features, _, _ = factorize(spectra, n_factors, seeds, max_iter)
    if standardize:
        features = (features - features.mean(axis=0)) / _or_one(features.std(axis=0))
    return features, labels


def factorize(
    matrix: FloatArray, n_factors: int, seeds: NDArray[np.int64], max_iter: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return coefficients, factors and error of the best of one start for each seed."""
    best: tuple[FloatArray, FloatArray, float] | None = None
    n_stopped = 0
    for seed in seeds:
        model = NMF(n_factors, init="random", random_state=int(seed), max_iter=max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            coefficients = model.fit_transform(matrix)
        n_stopped += model.n_iter_ >= max_iter
        error = float(model.reconstruction_err_)
        if best is None or error < best[2]:
            best = coefficients, model.components_, error
    if n_stopped:
        warnings.warn(
            f"{n_stopped} of {len(seeds)} factorisations did not converge in "
            f"{max_iter} iterations; raise max_iter.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if best is None:
        raise ValueError("seeds must not be empty.")
    coefficients, factors, error = best
    norms = _or_one(np.linalg.norm(factors, axis=1))
    coefficients, factors = coefficients * norms, factors / norms[:, None]
    order = np.argsort(-np.linalg.norm(coefficients, axis=0))
    return coefficients[:, order], factors[order], error


def _or_one(scales: FloatArray) -> FloatArray:
    """Return the scales with 1 for 0: a factor may vanish where fewer explain all."""
    return np.where(scales > 0.0, scales, 1.0)


def _check_recording(
    signal: ArrayLike, sampling_rate: float, stages: ArrayLike
) -> tuple[FloatArray, Stages, int]:
    """Return signal, stages and samples of one epoch, or raise ValueError."""
    if not sampling_rate > 0:
        raise ValueError(f"sampling_rate must be positive, got {sampling_rate}.")
    values = np.asarray(signal, dtype=np.float64)
    codes = np.asarray(stages)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("signal must be one-dimensional and finite.")
    if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError("stages must be a one-dimensional array of integers.")
    epoch = round(EPOCH_S * sampling_rate)
    if len(values) != len(codes) * epoch:
        raise ValueError(
            f"signal must have {len(codes) * epoch} samples, {EPOCH_S} s at "
            f"{sampling_rate} Hz for each of {len(codes)} stages, got {len(values)}."
        )
    return values, codes.astype(np.int64), epoch


def _within_one_stage(
    first: NDArray[np.int64], last: NDArray[np.int64], stages: Stages, epoch: int
) -> NDArray[np.bool_]:
    """Say of each window, from sample ``first`` to ``last``, if one stage holds it."""
    n_changes = np.concatenate([[0], np.cumsum(stages[1:] != stages[:-1])])
    before, after = first // epoch, last // epoch
    return (n_changes[before] == n_changes[after]) & (stages[before] >= 0)
