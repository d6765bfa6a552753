"""Where the files of the real data are: a folder, else their public homes."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import uuid
import zipfile
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DataHome = str | os.PathLike[str] | None

ENVIRONMENT_VARIABLE = "LAND_DATA_DIR"
_TIMEOUT_S = 30.0


class DataUnavailableError(OSError):
    """A data file is neither in the folder nor could it be had from its public home.

    Examples
    --------
    >>> from land.datasets import load_mocap
    >>> load_mocap("22_16", data_home="no-such-folder", download=False)
    Traceback (most recent call last):
        ...
    land.datasets.DataUnavailableError: 22_16.bvh is not in no-such-folder, and
    download=False. Pass download=True while online, or name a folder that holds it
    with data_home= or the environment variable LAND_DATA_DIR.
    """

    # Tracebacks show the name under which users import and catch it.
    __module__ = "land.datasets"


@dataclass(frozen=True)
class DataFile:
    """A file, its public home, and the checksum its content must have there.

    Attributes
    ----------
    name : str
        Its name in the data folder.
    url : str
        Where it is downloaded from.
    checksum : str or None
        ``"algorithm:hexadecimal"``, the digest of the content; of a ``.gz`` file, the
        digest of what is compressed in it. None where its home publishes none.
    """

    name: str
    url: str
    checksum: str | None = None


def data_folder(data_home: DataHome) -> Path:
    """Return the folder of the data files, whether or not it exists.

    That is ``data_home``, else the environment variable LAND_DATA_DIR, else the
    user's cache folder for land.
    """
    named = data_home if data_home is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(named).expanduser() if named else _user_cache() / "land"


def find_file(file: DataFile, data_home: DataHome, *, download: bool) -> Path:
    """Return the path of ``file``, downloading it into the folder where it is missing.

    A file that is in the folder is used as it is; a download must match its checksum.

    Raises
    ------
    DataUnavailableError
        If the file is missing and cannot, or must not, be downloaded.
    """
    folder = data_folder(data_home)
    path = folder / file.name
    if path.is_file():
        return path
    elsewhere = (
        "name a folder that holds it with data_home= or the environment variable "
        f"{ENVIRONMENT_VARIABLE}."
    )
    missing = f"{file.name} is not in {folder}, and"
    if not download:
        raise DataUnavailableError(
            f"{missing} download=False. Pass download=True while online, or {elsewhere}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _download(file, path)
    except (OSError, HTTPException) as error:
        raise DataUnavailableError(
            f"{missing} getting it from {file.url} failed: {error}. Try again online, "
            f"or {elsewhere}"
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


def _download(file: DataFile, path: Path) -> None:
    """Fetch, check, and only then give the file its name: never half a file."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    request = Request(file.url, headers={"User-Agent": "land"})
    try:
        with (
            urlopen(request, timeout=_TIMEOUT_S) as response,
            part.open("xb") as target,
        ):
            shutil.copyfileobj(response, target)
            announced = response.headers.get("Content-Length")
        _check(file, part, announced)
        part.replace(path)
    except HTTPError as error:
        error.close()
        raise
    finally:
        part.unlink(missing_ok=True)


def _check(file: DataFile, part: Path, announced: str | None) -> None:
    """Raise OSError unless the download is complete and has the checksum."""
    size = part.stat().st_size
    if announced is not None and size != int(announced):
        raise OSError(f"the connection ended after {size} of {announced} bytes")
    if file.checksum is None:
        return
    algorithm, _, expected = file.checksum.partition(":")
    packed = file.name.endswith(".gz")
    try:
        with gzip.open(part) if packed else part.open("rb") as content:
            found = hashlib.file_digest(content, algorithm).hexdigest()
    except (EOFError, zlib.error) as error:
        raise OSError(f"it cannot be unpacked ({error})") from error
    if found != expected:
        raise OSError(f"its {algorithm} checksum is {found}, not {expected}")


def _user_cache() -> Path:
    """Return the folder that the platform sets aside for caches of this user."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"
