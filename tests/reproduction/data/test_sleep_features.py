"""Spectra and their factors, on signals whose spectra are known."""

import numpy as np
import pytest

from reproduction.data import sleep_nmf_features, sleep_spectrogram

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


def test_sine_is_a_peak_of_known_height():
    spectra, labels = sleep_spectrogram(sine(7.3, 12.0, 2), RATE, [2, 2])
    assert spectra.shape == (11, 501)
    assert (labels == 2).all()
    assert (spectra.argmax(axis=1) == 73).all()
    np.testing.assert_allclose(np.expm1(spectra[:, 73]), 6.0, rtol=1e-3)
    far = np.abs(np.arange(501) - 73) > 1
    assert np.expm1(spectra[:, far]).max() < 6e-3


def test_features_tell_the_stages_apart(night):
    features, labels = sleep_nmf_features(*args(night), n_factors=3, random_state=0)
    assert features.dtype == np.float64
    centers = np.stack([features[labels == code].mean(axis=0) for code in (3, 0, 4)])
    spread = max(features[labels == code].std(axis=0).max() for code in (3, 0, 4))
    gaps = np.linalg.norm(centers - np.roll(centers, 1, axis=0), axis=1)
    assert gaps.min() > 1.5 > spread


def args(night):
    signal, stages = night
    return signal, RATE, stages
