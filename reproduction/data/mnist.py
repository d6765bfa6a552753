"""The MNIST digits, from a prepared file or from the published idx files."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reproduction.data.files import (
    DataHome,
    FloatArray,
    find_file,
    read_prepared,
)

PREPARED = "mnist_70k.npz"
HOME = "https://ossci-datasets.s3.amazonaws.com/mnist"
MD5 = {
    "train-images-idx3-ubyte": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte": "ec29112dd5afa0611ce80d1b7f02629c",
}
_PREFIX = {"train": "train", "test": "t10k"}
_UNSIGNED_BYTE = 8


def load_mnist(
    digit: int | None = None,
    *,
    subset: Literal["train", "test", "all"] = "train",
    data_home: DataHome = None,
    download: bool = True,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Load images of handwritten digits (LeCun, Cortes and Burges).

    Parameters
    ----------
    digit : int or None
        Return the images of this digit only, 0 to 9; None for all.
    subset : {"train", "test", "all"}
        The 60,000 training images, the 10,000 test images, or both in that order.
    data_home : path-like or None
        Folder that holds the files or receives them. None stands for the environment
        variable LAND_DATA_DIR, else the user's cache folder.
    download : bool
        Whether to download what is missing (about 11 MB).

    Returns
    -------
    images : ndarray of shape (n, 784)
        Grey values from 0 (background) to 1, rows of 28 pixels one after the other.
    labels : ndarray of shape (n,)
        The digit that each image shows.

    Raises
    ------
    DataUnavailableError
        If the data are neither in the folder nor could be downloaded.

    Examples
    --------
    >>> from reproduction.data import load_mnist
    >>> images, labels = load_mnist(1)  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (6742, 784)
    """
    if digit is not None and digit not in range(10):
        raise ValueError(
            f"digit must be an integer from 0 to 9 or None, got {digit!r}."
        )
    if subset not in ("train", "test", "all"):
        raise ValueError(f'subset must be "train", "test" or "all", got {subset!r}.')
    parts = ["train", "test"] if subset == "all" else [subset]
    loaded = [_load_part(part, data_home, download) for part in parts]
    images = np.concatenate([pixels for pixels, _ in loaded])
    labels = np.concatenate([digits for _, digits in loaded]).astype(np.int64)
    if digit is not None:
        wanted = labels == digit
        images, labels = images[wanted], labels[wanted]
    return images.reshape(len(images), -1) / 255.0, labels


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes in idx format, gzip-compressed.

    The format: two zero bytes, the type (8 for unsigned bytes), the number of axes;
    the length of each axis as a big-endian 32-bit integer; then the values.
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}.") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE:
        raise ValueError(f"{path} is not an idx file of unsigned bytes.")
    n_axes = content[3]
    header = 4 + 4 * n_axes
    whole_header = content[4:header].ljust(4 * n_axes, b"\0")
    shape = np.frombuffer(whole_header, dtype=">u4").tolist()
    if len(content) != header + math.prod(shape):
        raise ValueError(
            f"{path} has {len(content)} bytes, which do not fit its idx header."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)


def _load_part(
    part: str, data_home: DataHome, download: bool
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images and labels of one half, as bytes."""
    keys = [f"x_{part}", f"y_{part}"]
    prepared = read_prepared(PREPARED, keys, data_home)
    if prepared is not None:
        return prepared[keys[0]], prepared[keys[1]]
    images, labels = (
        read_idx(
            find_file(
                f"{HOME}/{name}.gz", f"md5:{MD5[name]}", data_home, download=download
            )
        )
        for name in MD5
        if name.startswith(_PREFIX[part])
    )
    return images, labels
