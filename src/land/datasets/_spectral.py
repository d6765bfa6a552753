"""The paper's features of sleep: factors of the short-time spectrum of the EEG."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from land.datasets._sampling import (
    FloatArray,
    RandomState,
    as_generator,
    check_count,
    check_scale,
)
from land.datasets._sleep_stages import EPOCH_S, Stages

Scaling = Literal["amplitude", "raw"]


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
    >>> from land.datasets import sleep_spectrogram
    >>> time = np.arange(9000) / 100.0  # three epochs at 100 Hz
    >>> wave = 20.0 * np.sin(2 * np.pi * 3.0 * time)
    >>> spectra, labels = sleep_spectrogram(wave, 100.0, [2, 2, 4])
    >>> labels  # of 17 windows one lies across the change
    array([2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4])
    >>> spectra.argmax(axis=1)[0] / 10.0  # ten seconds resolve a tenth of a hertz
    np.float64(3.0)
    """
    from scipy.signal import get_window

    values, codes, epoch = _check_recording(signal, sampling_rate, stages)
    window_s = check_scale(window_s, "window_s", positive=True)
    overlap = check_scale(overlap, "overlap")
    if overlap >= 1.0:
        raise ValueError(f"overlap must be less than 1, got {overlap!r}.")
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
    random_state: RandomState = None,
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
    random_state : None, int, RandomState or Generator
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
    >>> from land.datasets import sleep_nmf_features
    >>> noise = np.random.default_rng(0).standard_normal(12000)
    >>> features, labels = sleep_nmf_features(
    ...     noise, 100.0, [0, 0, 2, 2], n_factors=2, random_state=0
    ... )
    >>> features.shape, labels.shape
    ((22, 2), (22,))
    """
    n_factors = check_count(n_factors, "n_factors")
    n_starts = check_count(n_starts, "n_starts")
    max_iter = check_count(max_iter, "max_iter")
    generator = as_generator(random_state)
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
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

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
    sampling_rate = check_scale(sampling_rate, "sampling_rate", positive=True)
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
