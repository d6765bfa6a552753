"""Where the files of the real data are: in a folder, else at a public address."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from numpy.typing import NDArray

DataHome = str | os.PathLike[str] | None
FloatArray = NDArray[np.float64]

ENVIRONMENT_VARIABLE = "LAND_DATA_DIR"
_TIMEOUT_S = 30.0


class DataUnavailableError(OSError):
    """A data file is not in the folder, and could not be downloaded.

    Examples
    --------
    >>> from reproduction.data import load_mocap
    >>> load_mocap("22_16", data_home="no-such-folder", download=False)
    Traceback (most recent call last):
        ...
    reproduction.data.DataUnavailableError: 22_16.bvh is not in no-such-folder, and
    download=False. Pass download=True while online, or name a folder that holds it
    with data_home= or the environment variable LAND_DATA_DIR.
    """

    # Tracebacks show the name under which users import and catch it.
    __module__ = "reproduction.data"


def data_folder(data_home: DataHome) -> Path:
    """Return the folder of the data files, whether or not it exists.

    That is ``data_home``, else the environment variable LAND_DATA_DIR, else the
    user's cache folder for land.
    """
    named = data_home or os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(named).expanduser() if named else pooch.os_cache("land")


def find_file(
    url: str, checksum: str | None, data_home: DataHome, *, download: bool
) -> Path:
    """Return the path of a file, downloading it into the folder where it is missing.

    A file that is in the folder is used as it is. A download must be complete and
    match its checksum before it gets its name.

    Parameters
    ----------
    url : str
        Where the file is downloaded from; the last part is its name.
    checksum : str or None
        ``"algorithm:hexadecimal"`` of the download, None where none is published.
    data_home : path-like or None
        See `data_folder`.
    download : bool
        Whether to download the file.

    Raises
    ------
    DataUnavailableError
        If the file is missing and cannot, or must not, be downloaded.
    """
    folder = data_folder(data_home)
    base, _, name = url.rpartition("/")
    path = folder / name
    if path.is_file():
        return path
    elsewhere = (
        "name a folder that holds it with data_home= or the environment variable "
        f"{ENVIRONMENT_VARIABLE}."
    )
    missing = f"{name} is not in {folder}, and"
    if not download:
        raise DataUnavailableError(
            f"{missing} download=False. Pass download=True while online, or {elsewhere}"
        )
    store = pooch.create(folder, f"{base}/", registry={name: checksum})
    try:
        store.fetch(name, downloader=pooch.HTTPDownloader(timeout=_TIMEOUT_S))
    except (OSError, ValueError) as error:  # no connection; another checksum
        reason = str(error).rstrip(".")
        raise DataUnavailableError(
            f"{missing} getting it from {url} failed: {reason}. Try again online, or "
            f"{elsewhere}"
        ) from error
    return path


def read_prepared(
    name: str, keys: list[str], data_home: DataHome
) -> dict[str, NDArray[Any]] | None:
    """Return arrays of the prepared ``.npz`` file in the folder, or None without it."""
    path = data_folder(data_home) / name
    if not path.is_file():
        return None
    try:
        # Given a path, np.load would leave the file open where it is no archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in keys}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is not the prepared file that was expected: {error}. Remove it to "
            "have the original data downloaded and converted."
        ) from error
