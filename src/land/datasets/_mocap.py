"""Motion-capture clips: jumping jacks and runs, as joint positions."""

from __future__ import annotations

import numpy as np

from land.datasets._bvh import joint_positions, read_bvh
from land.datasets._fetch import DataFile, DataHome, find_file, read_prepared
from land.datasets._sampling import FloatArray

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
    >>> from land.datasets import load_mocap
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
    file = DataFile(f"{clip}.bvh", f"{HOME}/0{clip[:2]}/{clip}.bvh")
    path = find_file(file, data_home, download=download)
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
