"""Spectra and their factors, on signals whose spectra are known."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from reproduction.data import load_sleep_eeg, sleep_nmf_features, sleep_spectrogram
from reproduction.data.sleep_features import factorize

RATE = 100


def sine(frequency, amplitude, n_epochs, phase=0.3):
    time = np.arange(n_epochs * 30 * RATE) / RATE
    return amplitude * np.sin(2 * np.pi * frequency * time + phase)


@pytest.fixture(scope="module")
def night():
    """Ten epochs each of slow, fast and mixed waves, with noise; codes 3, 0, 4."""
    rng = np.random.default_rng(0)
    parts = [
        sine(1.5, 60, 10) + sine(3.0, 20, 10),
        sine(10.0, 25, 10),
        sine(1.5, 20, 10) + sine(22.0, 12, 10),
    ]
    signal = np.concatenate(parts)
    signal += 4 * rng.standard_normal(len(signal))
    return signal, np.repeat([3, 0, 4], 10)


@pytest.mark.parametrize(
    ("scaling", "factor"),
    [("amplitude", 0.5), ("raw", 0.5 * 0.54 * 1000)],  # 0.54: the mean of a Hamming
)
def test_sine_is_a_peak_of_known_height(scaling, factor):
    spectra, labels = sleep_spectrogram(
        sine(7.3, 12.0, 2), RATE, [2, 2], scaling=scaling
    )
    assert spectra.shape == (11, 501)
    assert (labels == 2).all()
    assert (spectra.argmax(axis=1) == 73).all()
    np.testing.assert_allclose(np.expm1(spectra[:, 73]), factor * 12.0, rtol=1e-3)
    far = np.abs(np.arange(501) - 73) > 1
    assert np.expm1(spectra[:, far]).max() < 1e-3 * factor * 12.0


def test_spectrum_is_that_of_the_tapered_window():
    signal = np.random.default_rng(0).standard_normal(2 * 30 * RATE)
    spectra, _ = sleep_spectrogram(
        signal, RATE, [1, 1], window_s=4.0, overlap=0.25, taper="hann", scaling="raw"
    )
    starts = np.arange(0, 6000 - 400 + 1, 300)
    taper = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    expected = [
        np.log(1 + np.abs(np.fft.fft(taper * signal[start : start + 400])[:201]))
        for start in starts
    ]
    np.testing.assert_allclose(spectra, expected, atol=1e-12)


@given(
    stages=st.lists(st.integers(-1, 2), min_size=1, max_size=8),
    rate=st.sampled_from([4, 10]),
    window_s=st.sampled_from([3.0, 10.0, 30.0]),
    overlap=st.sampled_from([0.0, 0.5, 0.75]),
)
def test_windows_that_count_lie_within_one_stage(stages, rate, window_s, overlap):
    """Held against the definition, sample by sample."""
    per_sample = np.repeat(stages, 30 * rate)
    length = round(window_s * rate)
    expected = []
    for start in range(0, len(per_sample) - length + 1, round(length * (1 - overlap))):
        codes = set(per_sample[start : start + length].tolist())
        if len(codes) == 1 and codes != {-1}:
            expected += codes
    signal = np.arange(len(per_sample), dtype=float)
    spectra, labels = sleep_spectrogram(
        signal, rate, stages, window_s=window_s, overlap=overlap
    )
    assert labels.tolist() == expected
    assert spectra.shape == (len(expected), length // 2 + 1)


def test_windows_may_cross_epochs_of_the_same_stage():
    """Ten seconds by half: 11 windows in 60 s of one stage, 5 + 5 in two of 30 s."""
    signal = np.zeros(60 * RATE)
    assert len(sleep_spectrogram(signal, RATE, [2, 2])[1]) == 11
    assert sleep_spectrogram(signal, RATE, [2, 3])[1].tolist() == [2] * 5 + [3] * 5


def test_features_tell_the_stages_apart(night):
    features, labels = sleep_nmf_features(*args(night), n_factors=3, random_state=0)
    assert features.dtype == np.float64
    centers = np.stack([features[labels == code].mean(axis=0) for code in (3, 0, 4)])
    spread = max(features[labels == code].std(axis=0).max() for code in (3, 0, 4))
    gaps = np.linalg.norm(centers - np.roll(centers, 1, axis=0), axis=1)
    assert gaps.min() > 1.5 > spread


def test_standardized_features_are_the_plain_ones_standardized(night):
    options = {"n_factors": 3, "n_starts": 1, "random_state": 0}
    plain, _ = sleep_nmf_features(*args(night), standardize=False, **options)
    standard, _ = sleep_nmf_features(*args(night), standardize=True, **options)
    assert plain.min() >= 0
    energy = np.linalg.norm(plain, axis=0)
    assert (np.diff(energy) <= 0).all()
    np.testing.assert_allclose(
        standard, (plain - plain.mean(axis=0)) / plain.std(axis=0)
    )


def test_same_seed_same_features(night):
    def features(seed):
        options = {"n_factors": 3, "n_starts": 2}
        return sleep_nmf_features(*args(night), random_state=seed, **options)[0]

    first = features(0)
    np.testing.assert_array_equal(features(0), first)
    np.testing.assert_array_equal(features(np.random.default_rng(0)), first)
    assert not np.array_equal(features(1), first)


def test_best_start_is_kept():
    """On noise the starts end in different minima; the least error is returned."""
    matrix = np.random.default_rng(0).uniform(size=(40, 30))
    seeds = np.arange(6)
    errors = [factorize(matrix, 5, seeds[[i]], 2000)[2] for i in seeds]
    assert len(np.unique(np.round(errors, 6))) > 1
    assert np.argmin(errors) not in (0, 5)  # neither the first nor the last is the best
    coefficients, factors, error = factorize(matrix, 5, seeds, 2000)
    assert error == min(errors)
    # Rescaled and ordered, it is still that factorisation.
    assert np.linalg.norm(matrix - coefficients @ factors) == pytest.approx(error)
    np.testing.assert_allclose(np.linalg.norm(factors, axis=1), 1.0)


def test_exact_factors_are_found():
    """A product of separated factors is taken apart into these factors."""
    factors = np.zeros((3, 30))
    for index in range(3):
        factors[index, 10 * index : 10 * index + 10] = 1 / np.sqrt(10)
    weights = np.random.default_rng(0).uniform(size=(50, 3)) * [4.0, 2.0, 1.0]
    seeds = np.arange(5)
    coefficients, found, error = factorize(weights @ factors, 3, seeds, 5000)
    assert error < 0.02  # of a norm of 18; the solver stops at a tolerance
    np.testing.assert_allclose(found, factors, atol=0.03)
    np.testing.assert_allclose(coefficients, weights, atol=0.1)


def test_silence_gives_finite_features():
    """No factor is needed to explain it; none may become a division by zero."""
    features, labels = sleep_nmf_features(
        np.zeros(60 * RATE), RATE, [1, 1], n_factors=2, n_starts=1, random_state=0
    )
    np.testing.assert_array_equal(features, np.zeros((11, 2)))
    assert len(labels) == 11


def test_starts_that_do_not_converge_are_counted(night):
    with pytest.warns(ConvergenceWarning, match=r"2 of 2 .* 3 iterations; raise max_"):
        sleep_nmf_features(*args(night), n_starts=2, max_iter=3, random_state=0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"signal": np.zeros(2999)}, "signal must have 3000 samples"),
        (
            {"signal": np.full(3000, np.nan)},
            "signal must be one-dimensional and finite",
        ),
        ({"signal": np.zeros((3000, 1))}, "signal must be one-dimensional and finite"),
        ({"stages": [1.0]}, "stages must be .* integers"),
        ({"stages": [[1]]}, "stages must be a one-dimensional"),
        ({"sampling_rate": 0}, "sampling_rate must be"),
        ({"window_s": 31.0}, "window_s must span from 2 to 3000 samples"),
        ({"window_s": 0.01}, "window_s must span"),
        ({"overlap": 1.0}, "overlap must be .* less than 1"),
        ({"scaling": "power"}, 'scaling must be "amplitude" or "raw"'),
    ],
)
def test_bad_input_is_refused(change, reason):
    good = {"signal": np.zeros(3000), "sampling_rate": RATE, "stages": [1]}
    sleep_spectrogram(**good)
    with pytest.raises(ValueError, match=reason):
        sleep_spectrogram(**(good | change))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n_factors": 0}, "'n_components' parameter .* Got 0"),  # NMF's own words
        ({"n_factors": 6}, "n_factors must be at most 5"),
        ({"n_starts": 0}, "n_starts must be"),
        ({"max_iter": 0}, "'max_iter' parameter .* Got 0"),
        ({"random_state": -1}, "non-negative"),
    ],
)
def test_bad_options_are_refused(change, reason):
    with pytest.raises(ValueError, match=reason):
        sleep_nmf_features(np.zeros(3000), RATE, [1], **change)


def test_a_real_night_has_the_windows_of_the_paper(real):
    eeg = real(load_sleep_eeg, "SC4001")
    spectra, labels = sleep_spectrogram(eeg.signal, eeg.sampling_rate, eeg.stages_rk)
    assert spectra.shape == (4893, 501)
    # 50 Hz is half the rate; slow waves tell deep sleep from all else.
    slow = spectra[:, 5:20].mean(axis=1)
    by_stage = [slow[labels == code].mean() for code in range(6)]
    assert np.argmax(by_stage) == 4
    # Few iterations: that it runs and separates, not the factors themselves.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        features, again = sleep_nmf_features(
            *(eeg.signal, eeg.sampling_rate, eeg.stages_rk),
            n_starts=1,
            max_iter=100,
            random_state=0,
        )
    np.testing.assert_array_equal(again, labels)
    assert features.shape == (4893, 5)
    centers = [features[labels == code].mean(axis=0) for code in (0, 4, 5)]
    assert np.linalg.norm(centers[0] - centers[1]) > 1.5
    assert np.linalg.norm(centers[2] - centers[1]) > 1.5


def args(night):
    signal, stages = night
    return signal, RATE, stages
