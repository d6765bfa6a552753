"""Features of the EEG of a night: band powers, and the paper's spectral factors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import get_window, welch
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

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

PREPARED = "sleepedf_paper10_features30s.npz"
_WINDOW_S = 10
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
    signal: ArrayLike, sampling_rate: float, stages: ArrayLike
) -> tuple[FloatArray, Stages]:
    """Compute ``log(1 + |f|)`` of the short-time Fourier transform f, within stages.

    Windows of ten seconds that overlap by half, as in the paper (section 4.2). It
    leaves open the taper, a Hamming window here, and the scale of ``|f|``: divided by
    the sum of the taper, so that a sine of amplitude a gives a / 2. A window counts
    only if all of it lies in epochs of one stage, none of them without a score.

    Parameters
    ----------
    signal : array-like of shape (n_epochs * 30 * sampling_rate,)
        The signal in microvolt, finite.
    sampling_rate : float
        Samples per second.
    stages : array-like of shape (n_epochs,)
        Integer code of each 30 s epoch; negative where there is none.

    Returns
    -------
    spectra : ndarray of shape (n, n_frequencies)
        Log magnitudes, from frequency 0 to half the sampling rate.
    labels : ndarray of shape (n,)
        Stage of each window.

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
    values, codes = np.asarray(signal, dtype=np.float64), np.asarray(stages)
    epoch, length = round(EPOCH_S * sampling_rate), round(_WINDOW_S * sampling_rate)
    if not np.issubdtype(codes.dtype, np.integer) or codes.ndim != 1:
        raise ValueError("stages must be a one-dimensional array of integers.")
    if values.shape != (len(codes) * epoch,) or not np.isfinite(values).all():
        raise ValueError(
            f"signal must have {len(codes) * epoch} finite samples, {EPOCH_S} s at "
            f"{sampling_rate} Hz for each of {len(codes)} stages, got shape "
            f"{values.shape}."
        )
    starts = np.arange(0, len(values) - length + 1, length // 2)
    before, after = starts // epoch, (starts + length - 1) // epoch
    # A window is shorter than an epoch: it touches two of them at most.
    starts = starts[(codes[before] == codes[after]) & (codes[before] >= 0)]
    taper = get_window("hamming", length)
    windows = np.lib.stride_tricks.sliding_window_view(values, length)[starts]
    magnitudes = np.abs(np.fft.rfft(windows * taper, axis=1)) / taper.sum()
    return np.log1p(magnitudes), codes[starts // epoch].astype(np.int64)


def sleep_nmf_features(
    signal: ArrayLike,
    sampling_rate: float,
    stages: ArrayLike,
    *,
    n_factors: int = 5,
    n_starts: int = 10,
    max_iter: int = 2000,
    random_state: int | np.random.Generator | None = None,
) -> tuple[FloatArray, Stages]:
    """Compute the paper's features of sleep: factors of the short-time spectrum.

    The coefficients of a non-negative matrix factorisation of `sleep_spectrogram`, the
    best of several random starts (section 4.2 of the paper), each with mean zero and
    variance one. The paper does not say that it standardises; its bandwidth sigma = 1
    for every recording suggests it.

    Parameters
    ----------
    signal, sampling_rate, stages
        See `sleep_spectrogram`.
    n_factors : int
        Number of factors, the dimension of the features.
    n_starts : int
        Number of random starts; the factorisation with the least error is kept.
    max_iter : int
        Bound on the iterations of one start. A night needs about 1,300.
    random_state : None, int or Generator
        Source of randomness; the same seed gives the same features.

    Returns
    -------
    features : ndarray of shape (n, n_factors)
        Coefficients of the windows, ordered by the energy that their factors explain.
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
    spectra, labels = sleep_spectrogram(signal, sampling_rate, stages)
    if n_factors > min(spectra.shape):
        raise ValueError(
            f"n_factors must be at most {min(spectra.shape)}, the smaller side of the "
            f"{spectra.shape[0]} x {spectra.shape[1]} spectra, got {n_factors}."
        )
    seeds = generator.integers(2**32, size=n_starts)
    features, _, _ = factorize(spectra, n_factors, seeds, max_iter)
    return StandardScaler().fit_transform(features), labels


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
