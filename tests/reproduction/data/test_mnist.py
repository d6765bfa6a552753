"""Digits are the same from the prepared file and from the idx files."""

import gzip
import struct

import numpy as np
import pytest

from reproduction.data import load_mnist
from reproduction.data.mnist import read_idx

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 28, 28), dtype=np.uint8)
DIGITS = np.array([1, 7, 1, 0, 9, 1], dtype=np.uint8)


def idx(array):
    """The bytes of an array in idx format."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


FILES = {
    "train-images-idx3-ubyte": idx(PIXELS[:4]),
    "train-labels-idx1-ubyte": idx(DIGITS[:4]),
    "t10k-images-idx3-ubyte": idx(PIXELS[4:]),
    "t10k-labels-idx1-ubyte": idx(DIGITS[4:]),
}


def put_packed(folder):
    for name, content in FILES.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))


def put_prepared(folder):
    np.savez(
        folder / "mnist_70k.npz",
        x_train=PIXELS[:4],
        y_train=DIGITS[:4],
        x_test=PIXELS[4:],
        y_test=DIGITS[4:],
    )


@pytest.mark.parametrize("put", [put_packed, put_prepared])
@pytest.mark.parametrize(
    ("subset", "rows"),
    [("train", slice(0, 4)), ("test", slice(4, 6)), ("all", slice(0, 6))],
)
def test_every_form_gives_the_same_images(put, subset, rows, tmp_path):
    put(tmp_path)
    images, labels = load_mnist(subset=subset, data_home=tmp_path, download=False)
    assert images.dtype == np.float64
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(images, PIXELS[rows].reshape(-1, 784) / 255)
    np.testing.assert_array_equal(labels, DIGITS[rows])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04 a zip file",
        FILES["t10k-images-idx3-ubyte"][:-1],
        FILES["t10k-images-idx3-ubyte"] + b"\0",
        FILES["t10k-images-idx3-ubyte"][:7],
        b"\0\0\x0d" + FILES["t10k-images-idx3-ubyte"][3:],  # floats
    ],
    ids=["empty", "zip", "cut", "long", "header", "floats"],
)
def test_file_that_is_not_idx_is_named(tmp_path, content):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match="images"):
        read_idx(path)


@pytest.mark.parametrize("digit", [10, -1, 1.5, "1"])
def test_unknown_choices_are_refused(digit):
    with pytest.raises(ValueError, match="digit must be"):
        load_mnist(digit, download=False)
    with pytest.raises(ValueError, match="subset must be"):
        load_mnist(subset=str(digit), download=False)
