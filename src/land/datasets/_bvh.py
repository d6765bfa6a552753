"""Motion capture in the BVH format: a skeleton, its frames, and where its joints are.

A BVH file has two sections. HIERARCHY nests joints: each has an OFFSET from its parent
and CHANNELS, the coordinates that move it; an "End Site" is a joint without channels.
MOTION has one line for each frame: the values of all channels, in the order in which
the joints appear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from land.datasets._sampling import FloatArray

_AXES = {"X": 0, "Y": 1, "Z": 2}


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
    frame_time : float
        Seconds from one frame to the next.
    """

    joints: list[Joint]
    frames: FloatArray = field(repr=False)
    frame_time: float


def read_bvh(path: Path) -> Motion:
    """Read a BVH file."""
    try:
        return parse_bvh(path.read_text(encoding="ascii"))
    except (ValueError, IndexError) as error:
        raise ValueError(
            f"{path} is not a BVH file that land reads: {error}"
        ) from error


def parse_bvh(text: str) -> Motion:
    """Read the text of a BVH file."""
    hierarchy, found, motion = text.partition("MOTION")
    if not found:
        raise ValueError("it has no MOTION section.")
    joints = _parse_hierarchy(hierarchy.split())
    header = re.match(r"\s*Frames:\s*(\d+)\s+Frame Time:\s*(\S+)", motion)
    if header is None:
        raise ValueError("its MOTION section does not begin with Frames, Frame Time.")
    values = np.array(motion[header.end() :].split(), dtype=np.float64)
    n_frames, n_channels = int(header[1]), sum(len(j.channels) for j in joints)
    if values.size != n_frames * n_channels:
        raise ValueError(
            f"{n_frames} frames of {n_channels} channels need "
            f"{n_frames * n_channels} values, there are {values.size}."
        )
    return Motion(joints, values.reshape(n_frames, n_channels), float(header[2]))


def joint_positions(motion: Motion) -> FloatArray:
    """Compute where the joints are, relative to the root: forward kinematics.

    A joint turns by the product of its axis rotations in the order of its channels;
    its children are its offsets away, in its own, turned axes. The root's translation
    is left out, its rotation is not.

    Returns
    -------
    positions : ndarray of shape (T, n_joints, 3)
        Positions in the unit of the offsets; the root's are zero.
    """
    n_frames = len(motion.frames)
    positions = np.zeros((n_frames, len(motion.joints), 3))
    turns: list[FloatArray] = []
    column = 0
    for index, joint in enumerate(motion.joints):
        shift = np.tile(np.array(joint.offset, dtype=np.float64), (n_frames, 1))
        turn = np.broadcast_to(np.eye(3), (n_frames, 3, 3))
        for channel in joint.channels:
            axis, values = _AXES[channel[0]], motion.frames[:, column]
            if channel.endswith("position"):
                shift[:, axis] += values
            else:
                turn = turn @ _axis_rotation(axis, np.radians(values))
            column += 1
        if joint.parent >= 0:
            parent_turn = turns[joint.parent]
            positions[:, index] = positions[:, joint.parent]
            positions[:, index] += np.einsum("tij,tj->ti", parent_turn, shift)
            turn = parent_turn @ turn
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


def _axis_rotation(axis: int, angles: FloatArray) -> FloatArray:
    """Return the matrices (T, 3, 3) that turn by ``angles`` about a coordinate axis."""
    after, last = (axis + 1) % 3, (axis + 2) % 3
    matrices = np.zeros((len(angles), 3, 3))
    matrices[:, axis, axis] = 1.0
    matrices[:, after, after] = matrices[:, last, last] = np.cos(angles)
    matrices[:, last, after] = np.sin(angles)
    matrices[:, after, last] = -np.sin(angles)
    return matrices
