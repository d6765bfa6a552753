"""Clips are the same from the prepared file and from BVH files."""

import numpy as np
import pytest

from reproduction.data import MOCAP_CLIPS, load_mocap, mocap


@pytest.mark.parametrize("clip", MOCAP_CLIPS)
def test_real_clips_are_bodies_that_move(real, clip):
    positions = real(load_mocap, clip)
    n_empty = 4 if clip == "09_10" else 0
    assert positions.shape == (mocap._N_FRAMES[clip] - n_empty, 114)
    assert positions.dtype == np.float64
    joints = positions.reshape(-1, 38, 3)
    np.testing.assert_array_equal(joints[:, 0], 0.0)
    assert joints.std(axis=0).max() > 1.0
    # Frames are 1/120 s apart, so they are close. Artificial and empty ones are not.
    steps = np.linalg.norm(np.diff(joints, axis=0), axis=2)
    assert steps.max() < 1.5
    thigh = np.linalg.norm(joints[:, 3] - joints[:, 2], axis=1)
    np.testing.assert_allclose(thigh, thigh[0], rtol=1e-5)
    assert 5 < thigh[0] < 10


def test_unknown_clip_is_refused():
    with pytest.raises(ValueError, match="clip must be one of 22_16, 09_01"):
        load_mocap("01_01", download=False)
