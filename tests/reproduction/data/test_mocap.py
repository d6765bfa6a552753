"""Clips are the same from the prepared file and from BVH files."""

import numpy as np
import pytest

from reproduction.data import MOCAP_CLIPS, load_mocap, mocap
from reproduction.data.mocap import Joint, Motion, joint_positions


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


@pytest.fixture
def bvh(prepared_file):
    """Write the BVH file of a real clip again, from its channels and positions.

    The prepared file has no offsets, but they follow: the offset of a joint is its
    bone seen in the turned axes of its parent, in any frame.
    """
    archive = np.load(prepared_file("cmu_mocap_bvh.npz"))

    def offsets(clip, names, parents, channels):
        # Unit offsets on fresh children show every joint's axes in every frame.
        joints = [
            Joint(name, parent, (0, 0, 0), channels.get(name, ()))
            for name, parent in zip(names, parents, strict=True)
        ]
        axes = [
            Joint("axis", joint, tuple(row))
            for joint in range(len(joints))
            for row in np.eye(3)
        ]
        frames = archive[f"{clip}_channels"].astype(np.float64)
        motion = Motion([*joints, *axes], frames)
        turned = joint_positions(motion)[:, len(joints) :].reshape(-1, 38, 3, 3)
        positions = archive[f"{clip}_joints"].astype(np.float64)
        bones = positions[:, 1:] - positions[:, parents[1:]]
        own = np.einsum("tjai,tji->tja", turned[:, parents[1:]], bones)
        np.testing.assert_allclose(own, np.broadcast_to(own[0], own.shape), atol=5e-5)
        return np.vstack([np.zeros(3), own.mean(axis=0)])

    def write(clip):
        names, parents = archive["joint_names"].tolist(), archive["joint_parent"]
        channels: dict[str, tuple[str, ...]] = {}
        for channel in archive["channel_names"].tolist():
            joint, _, kind = channel.partition(".")
            channels[joint] = (*channels.get(joint, ()), kind)
        bones = offsets(clip, names, parents, channels)

        def block(index):
            name = names[index]
            word = "ROOT" if index == 0 else "JOINT" if name in channels else "End"
            head = "End Site" if word == "End" else f"{word} {name}"
            inner = ["OFFSET " + " ".join(f"{value:.5f}" for value in bones[index])]
            if name in channels:
                kinds = channels[name]
                inner += [f"CHANNELS {len(kinds)} {' '.join(kinds)}"]
            inner += [block(child) for child in np.flatnonzero(parents == index)]
            return "\n".join([head, "{", *inner, "}"])

        frames = archive[f"{clip}_channels"]
        pose = np.zeros((1, frames.shape[1]))
        rows = [
            " ".join(f"{value:.4f}" for value in row)
            for row in np.vstack([pose, frames])
        ]
        head = f"MOTION\nFrames: {len(rows)}\nFrame Time: .0083333"
        return "\n".join(["HIERARCHY", block(0), head, *rows, ""])

    return write


@pytest.mark.parametrize("clip", ["22_16", "09_10"])
def test_converted_download_agrees_with_the_prepared_file(
    web, bvh, real, monkeypatch, tmp_path, clip
):
    monkeypatch.setattr(mocap, "HOME", web.url)
    web.files[f"/0{clip[:2]}/{clip}.bvh"] = bvh(clip).encode()
    converted = load_mocap(clip, data_home=tmp_path)
    assert converted.dtype == np.float64
    np.testing.assert_allclose(converted, real(load_mocap, clip), atol=1e-4)
    load_mocap(clip, data_home=tmp_path)
    assert len(web.requests) == 1


def test_clip_of_another_length_is_refused(tmp_path):
    path = tmp_path / "22_16.bvh"
    path.write_text(
        "HIERARCHY ROOT a { OFFSET 0 0 0 CHANNELS 1 Xrotation }\n"
        "MOTION\nFrames: 2\nFrame Time: 1\n0\n90\n"
    )
    with pytest.raises(ValueError, match=r"22_16\.bvh has 2 frames of 1 joints"):
        load_mocap("22_16", data_home=tmp_path, download=False)


def test_unknown_clip_is_refused():
    with pytest.raises(ValueError, match="clip must be one of 22_16, 09_01"):
        load_mocap("01_01", download=False)
