"""Tiny runs of the experiments on real data, where these are at hand."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from reproduction import mnist, mocap, scalability, sleep
from reproduction.data import load_mocap

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def digit(smoke):
    tiny = {"n_points": 50, "sigma": 1.0, "rho": 0.1, "n_samples": 100, "grid": 6}
    return smoke("mnist", data=True, **tiny, n_draws=500, n_fresh=200)


@pytest.mark.nightly
def test_digits(digit, data_folder):
    rows = {row["model"]: row for row in digit.rows}
    data, fresh = mnist.digits(digit.result.numbers["settings"], data_folder)
    assert data.shape == (50, 2)
    assert not set(map(tuple, data)) & set(map(tuple, fresh))
    normal = GaussianMixture(1).fit(data)
    assert rows["gmm"]["held_out"] == pytest.approx(normal.score(fresh))
    # The digit's tilt bends the cloud; samples of LAND follow it.
    assert rows["land"]["off_data"] < rows["gmm"]["off_data"]
    assert all(0.0 <= row["off_data"] <= 1.0 for row in rows.values())


@pytest.fixture(scope="module")
def poses(smoke):
    tiny = {"every": 10, "n_samples": 100, "dimensions": [2, 3]}
    return smoke("mocap", data=True, **tiny, clips=["22_16"], drawn=["22_16"])


@pytest.mark.nightly
def test_poses(poses, data_folder):
    assert len(poses.rows) == 4
    clip = load_mocap("22_16", data_home=data_folder)
    frames = PCA(3, random_state=0).fit_transform(clip)[::10]
    for row in poses.rows:
        own = frames[:, : row["dim"]]
        distances = np.linalg.norm(own[:, None] - np.array(row["means"]), axis=2)
        expected = distances.min(axis=0) / mocap.spacing(own)
        np.testing.assert_allclose(row["distances"], expected, rtol=1e-6)
        assert all(0.0 <= value <= 100.0 for value in row["percentiles"])


def test_spacing_leaves_out_neighbours_in_time():
    angles = np.linspace(0.0, 4.0 * np.pi, 101)[:-1]  # two turns of fifty frames
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turns[50:] *= 1.1
    assert mocap.spacing(turns) == pytest.approx(0.1)


@pytest.fixture(scope="module")
def night(smoke):
    tiny = {"n_fit": 30, "n_predict": 100, "seeds": [0], "sigmas": [1.0], "tol": 0.1}
    nmf = {"n_starts": 1, "nmf_iter": 20}
    return smoke("sleep", data=True, **tiny, **nmf, gmm_seeds=2, n_samples=100)


@pytest.mark.nightly
def test_nights(night):
    windows, epochs = night.rows
    assert (windows["features"], epochs["features"]) == ("NMF", "bands")
    assert epochs["stages"] == [188, 528, 125]
    assert windows["n_rows"] > 4500
    for row in night.rows:
        for kind in ("gmm", "land", "least_squares"):
            assert all(0.4 < value < 1.0 for value in row[kind])
        assert row["best"] == max(row["by_sigma"].values()) == row["land"][0]
    # One Gaussian per stage does better than all in one cluster.
    shares = np.array(epochs["stages"]) / epochs["n_rows"]
    chance = np.sum(2.0 * shares**2 / (1.0 + shares))
    assert np.mean(epochs["gmm"]) > chance


def test_three_stages():
    stages = np.array([0, 1, 2, 3, 4, 5])
    assert sleep.three_stages(stages).tolist() == [0, 1, 1, 1, 1, 2]


@pytest.fixture(scope="module")
def times(smoke):
    tiny = {"n_points": 60, "n_targets": 5, "dimensions": [2, 10, 30]}
    return smoke("scalability", data=True, **tiny, raw=[])


@pytest.mark.nightly
def test_times(times):
    assert [row["dim"] for row in times.rows] == [2, 10, 30]
    for row in times.rows:
        assert row["converged"] == row["n_targets"] == 5
        assert 0.0 < row["best"] < 60.0
        lengths, straight = np.array([row["lengths"], row["straight_lengths"]])
        assert np.all(lengths <= straight * (1.0 + 1e-6))
        assert np.all(lengths > 0.1 * straight)


def test_power_law():
    rows = [{"dim": d, "best": 3.0 * d**1.5} for d in (10, 20, 784)]
    assert scalability.power_law(rows) == pytest.approx((3.0, 1.5))
