"""A night is the same from prepared files and from EDF files."""

import hashlib

import numpy as np
import pytest

from reproduction.data import (
    DataUnavailableError,
    load_sleep_eeg,
    load_sleep_features,
    sleep,
)
from reproduction.data.sleep_features import BANDS, band_powers

RATE = 20  # samples per second of the made-up recording
N_EPOCHS = 220
# Asleep from epoch 70 on; movement in 90, 91; the last sleep is epoch 130.
SCORED = [
    (0, 70, "Sleep stage W"),
    (70, 10, "Sleep stage 1"),
    (80, 10, "Sleep stage 4"),
    (90, 2, "Movement time"),
    (92, 8, "Sleep stage 3"),
    (100, 31, "Sleep stage R"),
    (131, 50, "Sleep stage W"),
    (181, 500, "Sleep stage ?"),  # on beyond the end of the signal
]
SAMPLES = np.random.default_rng(0).integers(-2048, 2048, (N_EPOCHS, 30 * RATE))


@pytest.fixture
def home(web, edf, hypnogram, monkeypatch):
    """A public home with one made-up recording."""
    notes = b"".join(
        f"+{30 * first}\x15{30 * count}\x14{stage}\x14\0".encode()
        for first, count, stage in SCORED
    )
    eeg = {"label": "EEG Fpz-Cz", "samples": SAMPLES, "physical": (-192, 192)}
    other = {"label": "EEG Pz-Oz", "samples": np.zeros((N_EPOCHS, 3))}
    recording = edf([other, eeg])
    scoring = hypnogram(b"+0\x14\x14\0" + notes)
    web.files = {
        "/SC4011E0-PSG.edf": recording,
        "/SC4011EH-Hypnogram.edf": scoring,
    }
    sums = [hashlib.sha1(content).hexdigest() for content in (recording, scoring)]
    monkeypatch.setitem(sleep._FILES, "SC4011", ("H", *sums))
    monkeypatch.setattr(sleep, "HOME", web.url)
    return web


def test_recording_is_downloaded_cut_and_scored(home, tmp_path):
    eeg = load_sleep_eeg("SC4011", data_home=tmp_path)
    assert eeg.record == "SC4011"
    assert eeg.sampling_rate == RATE
    assert eeg.first_epoch == 70 - 60
    # From 60 epochs before the first sleep to 60 after the last.
    expected = 384 / 4095 * (SAMPLES[10:191] + 2048.0) - 192
    np.testing.assert_allclose(eeg.signal, expected.ravel(), atol=1e-12)
    epochs = np.arange(10, 191)
    edges = [70, 80, 90, 92, 100, 131, 181]
    codes_rk = np.array([0, 1, 4, -1, 3, 5, 0, -1])
    where = np.searchsorted(edges, epochs, side="right")
    np.testing.assert_array_equal(eeg.stages_rk, codes_rk[where])
    codes = np.array([0, 1, 3, -1, 3, 4, 0, -1])
    np.testing.assert_array_equal(eeg.stages, codes[where])
    load_sleep_eeg("SC4011", data_home=tmp_path)
    assert len(home.requests) == 2


def test_features_are_computed_where_they_are_not_prepared(home, tmp_path):
    eeg = load_sleep_eeg("SC4011", data_home=tmp_path)
    found = load_sleep_features("SC4011", data_home=tmp_path)
    scored = eeg.stages >= 0
    assert not scored.all()
    np.testing.assert_array_equal(found.stages, eeg.stages[scored])
    np.testing.assert_array_equal(found.stages_rk, eeg.stages_rk[scored])
    powers = band_powers(eeg.signal.reshape(-1, 30 * RATE), RATE)
    np.testing.assert_allclose(found.features, np.log(1 + np.sqrt(powers[scored])))


@pytest.mark.parametrize("load", [load_sleep_eeg, load_sleep_features])
def test_offline_says_what_to_do(load, unreachable, monkeypatch, tmp_path):
    monkeypatch.setattr(sleep, "HOME", unreachable)
    with pytest.raises(DataUnavailableError, match=r"SC4001E0-PSG.*LAND_DATA_DIR"):
        load("SC4001", data_home=tmp_path)


def test_band_powers_of_sines_are_their_mean_squares():
    """A sine of amplitude a has the power a^2 / 2, all of it in the band it is in."""
    time = np.arange(3000) / 100.0
    amplitudes = np.array([20.0, 10.0, 8.0, 5.0, 3.0])
    centers = np.array([2.25, 6.0, 10.0, 14.0, 23.0])
    wave = amplitudes @ np.sin(2 * np.pi * centers[:, None] * time)
    powers = band_powers(wave[None], 100.0)
    assert powers.shape == (1, len(BANDS))
    np.testing.assert_allclose(powers[0], amplitudes**2 / 2, rtol=0.02)


def test_real_eeg_has_the_scores_of_its_source(real):
    eeg = real(load_sleep_eeg, "SC4001")
    assert eeg.signal.shape == (2_523_000,)
    assert eeg.signal.dtype == np.float64
    assert eeg.sampling_rate == 100.0
    assert eeg.first_epoch == 961
    assert np.bincount(eeg.stages_rk).tolist() == [188, 58, 250, 101, 119, 125]
    assert np.bincount(eeg.stages).tolist() == [188, 58, 250, 220, 125]
    assert 10 < eeg.signal.std() < 100  # microvolt
    # Slow waves: deep sleep is the strongest by far.
    strength = eeg.signal.reshape(841, 3000).std(axis=1)
    by_stage = [np.median(strength[eeg.stages == stage]) for stage in range(5)]
    assert np.argmax(by_stage) == eeg.stage_names.index("N3")
