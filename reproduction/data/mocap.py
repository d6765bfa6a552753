"""Motion-capture clips: jumping jacks and runs, as joint positions.

The clips come in the BVH format, which has two sections. HIERARCHY nests joints: each
has an OFFSET from its parent and CHANNELS, the coordinates that move it; an "End Site"
is a joint without channels. MOTION has one line for each frame: the values of all
channels, in the order in which the joints appear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from reproduction.data.files import DataHome, FloatArray, find_file, read_prepared

PREPARED = "cmu_mocap_bvh.npz"
HOME = (
    "https://raw.githubusercontent.com/una-dinosauria/cmu-mocap/"
    "09a07f54f3bbb58797325f009282d0b2048a2871/data"
)
# Frames of each clip. No checksums are published: the commit and this count pin it.
_N_FRAMES = {
    "22_16": 432,
    "09_01": 148,
    "09_02": 130,
    "09_03": 128,
    "09_04": 137,
    "09_05": 143,
    "09_06": 141,
    "09_07": 138,
    "09_08": 128,
    "09_09": 152,
    "09_10": 132,
    "09_11": 165,
}
MOCAP_CLIPS = tuple(_N_FRAMES)
N_JOINTS = 38


def load_mocap(
    clip: str, *, data_home: DataHome = None, download: bool = True
) -> FloatArray:
    """Load a clip of the CMU Graphics Lab Motion Capture Database.

    Jumping jacks (``"22_16"``) or one of the runs of subject 9 (``"09_01"`` to
    ``"09_11"``), recorded at 120 frames a second, in the conversion by B. Hahne.
    The paper fits mixtures of two components to both movements (supplement).

    Parameters
    ----------
    clip : str
        Subject and trial, one of ``MOCAP_CLIPS``.
    data_home : path-like or None
        Folder that holds the files or receives them. None stands for the environment
        variable LAND_DATA_DIR, else the user's cache folder.
    download : bool
        Whether to download what is missing (up to 0.4 MB).

    Returns
    -------
    positions : ndarray of shape (T, 114)
        In each frame the x, y, z of 38 joints, one joint after the other, relative to
        the hips: the walk through space is removed, the turn of the body is not. The
        unit is the conversion's, about 5.6 cm.

    Raises
    ------
    DataUnavailableError
        If the data are neither in the folder nor could be downloaded.

    Notes
    -----
    The first frame of a BVH file of this conversion is an artificial T pose; it is left
    out. So are frames in which nothing was recorded, all channels being zero: the first
    four of ``"09_10"`` after the T pose, none elsewhere.

    Examples
    --------
    >>> from reproduction.data import load_mocap
    >>> load_mocap("22_16").shape  # doctest: +SKIP
    (432, 114)
    """
    if clip not in _N_FRAMES:
        raise ValueError(f"clip must be one of {', '.join(MOCAP_CLIPS)}, got {clip!r}.")
    keys = [f"{clip}_channels", f"{clip}_joints"]
    prepared = read_prepared(PREPARED, keys, data_home)
    if prepared is not None:
        channels, joints = (prepared[key].astype(np.float64) for key in keys)
    else:
        channels, joints = _from_bvh(clip, data_home, download)
    recorded = channels.any(axis=1)
    return joints[recorded].reshape(-1, 3 * N_JOINTS)


def _from_bvh(
    clip: str, data_home: DataHome, download: bool
) -> tuple[FloatArray, FloatArray]:
    """Return channels and joint positions of a BVH file without its T pose."""
    url = f"{HOME}/0{clip[:2]}/{clip}.bvh"
    path = find_file(url, None, data_home, download=download)
    motion = read_bvh(path)
    expected = _N_FRAMES[clip] + 1, N_JOINTS
    found = len(motion.frames), len(motion.joints)
    if found != expected:
        raise ValueError(
            f"{path} has {found[0]} frames of {found[1]} joints, expected "
            f"{expected[0]} of {expected[1]}. Remove the file to have it downloaded "
            "again."
        )
    return motion.frames[1:], joint_positions(motion)[1:]


@dataclass(frozen=True)
class Joint:
    """A joint: its name, its parent's index (-1 at the root), offset and channels."""

    name: str
    parent: int
    offset: tuple[float, float, float]
    channels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Motion:
    """A skeleton and its movement.

    Attributes
    ----------
    joints : list of Joint
        Parents before their children; the root comes first.
    frames : ndarray of shape (T, C)
        Values of the channels, angles in degrees.
    """

    joints: list[Joint]
    frames: FloatArray = field(repr=False)


def read_bvh(path: Path) -> Motion:
    """Read a BVH file."""
    try:
        return parse_bvh(path.read_text(encoding="ascii"))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{path} is not a BVH file that can be read: {error}"
        ) from error


def parse_bvh(text: str) -> Motion:
    """Read the text of a BVH file."""
    hierarchy, found, motion = text.partition("MOTION")
    if not found:
        raise ValueError("it has no MOTION section.")
    joints = _parse_hierarchy(hierarchy.split())
    header = re.match(r"\s*Frames:\s*(\d+)\s+Frame Time:\s*\S+", motion)
    if header is None:
        raise ValueError("its MOTION section does not begin with Frames, Frame Time.")
    values = np.array(motion[header.end() :].split(), dtype=np.float64)
    n_frames, n_channels = int(header[1]), sum(len(j.channels) for j in joints)
    if values.size != n_frames * n_channels:
        raise ValueError(
            f"{n_frames} frames of {n_channels} channels need "
            f"{n_frames * n_channels} values, there are {values.size}."
        )
    return Motion(joints, values.reshape(n_frames, n_channels))


def joint_positions(motion: Motion) -> FloatArray:
    """Compute where the joints are relative to the root, (T, n_joints, 3).

    A joint turns by its axis rotations in the order of its channels; its children are
    their offsets away, in its own, turned axes. The root's translation is left out,
    its rotation is not.
    """
    n_frames = len(motion.frames)
    positions = np.zeros((n_frames, len(motion.joints), 3))
    turns: list[Rotation] = []
    column = 0
    for index, joint in enumerate(motion.joints):
        values = motion.frames[:, column : column + len(joint.channels)]
        column += len(joint.channels)
        turned = [k for k, name in enumerate(joint.channels) if "rotation" in name]
        axes = "".join(joint.channels[k][0] for k in turned)
        turn = Rotation.identity(n_frames)
        if axes:
            turn = Rotation.from_euler(axes, values[:, turned], degrees=True)
        if joint.parent >= 0:
            above = turns[joint.parent]
            positions[:, index] = positions[:, joint.parent] + above.apply(joint.offset)
            turn = above * turn
        turns.append(turn)
    return positions


def _parse_hierarchy(words: list[str]) -> list[Joint]:
    """Return the joints of the HIERARCHY section in the order of the file."""
    joints: list[Joint] = []
    above = [-1]  # the joints whose braces are open
    name = ""
    position = 0
    while position < len(words):
        word = words[position]
        if word in ("ROOT", "JOINT"):
            name = words[position + 1]
            position += 1
        elif word == "End":
            name = f"{joints[above[-1]].name}_End"
            position += 1
        elif word == "OFFSET":
            x, y, z = (float(value) for value in words[position + 1 : position + 4])
            joints.append(Joint(name, above[-1], (x, y, z)))
            above.append(len(joints) - 1)
            position += 3
        elif word == "CHANNELS":
            joints[-1] = _with_channels(joints[-1], words[position + 1 :])
            position += 1 + len(joints[-1].channels)
        elif word == "}":
            above.pop()
        elif word not in ("HIERARCHY", "{"):
            raise ValueError(f"unexpected {word!r} in its HIERARCHY section.")
        position += 1
    if len(above) != 1 or not joints:
        raise ValueError("its HIERARCHY section is incomplete.")
    return joints


def _with_channels(joint: Joint, words: list[str]) -> Joint:
    """Return the joint with the channels that ``words`` count and name."""
    channels = tuple(words[1 : 1 + int(words[0])])
    for channel in channels:
        if re.fullmatch("[XYZ](position|rotation)", channel) is None:
            raise ValueError(f"unknown channel {channel!r}.")
    return Joint(joint.name, joint.parent, joint.offset, channels)
