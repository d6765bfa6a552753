"""One file with a JSON header and plain arrays, read without trusting it.

The file is an archive of arrays as `numpy.savez` writes it, with a ``header.json``.
Nothing is compressed, so no member is larger than the file; nothing is pickled, so
nothing is executed; nothing is extracted, so names of members lead nowhere.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

PathLike = str | os.PathLike[str]
Arrays = dict[str, np.ndarray]

_HEADER = "header.json"


class ModelFileError(ValueError):
    """A model file cannot be used; the message says why, in one line."""


def require(good: Any, otherwise: str) -> None:
    """Refuse the file with the message `otherwise` unless it is good."""
    if not good:
        raise ModelFileError(otherwise)


def write_archive(
    path: PathLike, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write header and arrays to `path`, all of them or nothing.

    Equal contents give equal bytes: members have the date that zipfile begins with.
    """
    text = json.dumps(header, indent=1, default=_as_list).encode()
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
            np.lib.format.write_array(buffer, plain, (1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), buffer.getbuffer())


def read_archive(path: PathLike) -> tuple[dict[str, Any], Arrays]:
    """Read what `write_archive` wrote; anything else is a `ModelFileError`."""
    name = os.fspath(path)
    with Path(path).open("rb") as stream:
        status = os.fstat(stream.fileno())
        require(stat.S_ISREG(status.st_mode), f"{name} is not a regular file")
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_members(archive, status.st_size)
                header = json.loads(archive.read(_HEADER))
            require(isinstance(header, dict), "the header is not a JSON object")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as members:
                names = [each for each in members.files if each != _HEADER]
                arrays = {each: members[each] for each in names}
        except Exception as error:  # whatever a crafted file makes the parsers raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise ModelFileError(
                f"{name} is not a land model file, or it is damaged: {reason}"
            ) from None
    return header, arrays


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """A stream whose contents take the place of `path` once all is written.

    Until then they are in a file of another name in the same folder, which is removed
    if anything goes wrong. Links are followed; devices and pipes are written directly.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        buffer = io.BytesIO()  # a zip archive needs a stream that can seek
        yield buffer
        with target.open("wb") as stream:
            stream.write(buffer.getbuffer())
        return
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _as_list(value: Any) -> Any:
    """NumPy's and JAX's arrays and numbers as JSON has them."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} cannot be stored as JSON")
    return value.tolist()


def _check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive, in a file of that size, that `write_archive` did not write."""
    members = archive.infolist()
    names = [member.filename for member in members]
    require(len(set(names)) == len(names), "it has two members of the same name")
    require(_HEADER in names, f"it has no {_HEADER}")
    for member in members:
        name = member.filename
        known = name == _HEADER or (name.endswith(".npy") and "/" not in name)
        require(known, f"unexpected member {name[:60]!r}")
        plain = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
        require(plain, f"member {name[:60]!r} is compressed or encrypted")
    total = sum(member.file_size for member in members)
    require(total <= size, "members are larger than the file")
    # NumPy reads no further than an array's shape says, and would miss a checksum.
    require(archive.testzip() is None, "a checksum is wrong")
