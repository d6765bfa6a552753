"""Files come from the folder or their home: whole and checked, or not at all."""

import gzip
import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest

from land.datasets import DataUnavailableError, _fetch
from land.datasets._fetch import DataFile, data_folder, find_file, read_prepared

CONTENT = b"thirty seconds of sleep" * 1000
SHA1 = "sha1:" + hashlib.sha1(CONTENT).hexdigest()


@pytest.fixture
def file(web):
    web.files["/night.edf"] = CONTENT
    return DataFile("night.edf", f"{web.url}/night.edf", SHA1)


def assert_refused(file, folder, reason):
    """The error names the reason and every remedy; nothing is left behind."""
    with pytest.raises(DataUnavailableError, match=reason) as caught:
        find_file(file, folder, download=True)
    message = str(caught.value)
    for word in (file.name, str(folder), file.url, "online", "data_home=", "LAND_DATA"):
        assert word in message
    assert list(folder.iterdir()) == []


def test_folder_is_the_argument_else_the_variable_else_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LAND_DATA_DIR", str(tmp_path / "variable"))
    assert data_folder(tmp_path / "argument") == tmp_path / "argument"
    assert data_folder("~/argument") == tmp_path / "argument"
    assert data_folder(None) == tmp_path / "variable"
    monkeypatch.delenv("LAND_DATA_DIR")
    assert data_folder(None) == tmp_path / "xdg" / "land"
    monkeypatch.setenv("LAND_DATA_DIR", "")  # set but empty is as good as unset
    assert data_folder(None) == tmp_path / "xdg" / "land"


@pytest.mark.parametrize(
    ("platform", "cache"),
    [
        ("linux", Path(".cache")),
        ("darwin", Path("Library", "Caches")),
        ("win32", Path("AppData", "Local")),
    ],
)
def test_cache_is_where_the_platform_has_it(monkeypatch, tmp_path, platform, cache):
    for name in ("XDG_CACHE_HOME", "LAND_DATA_DIR", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder(None) == tmp_path / cache / "land"


def test_file_in_the_folder_is_used_as_it_is(web, file, tmp_path):
    (tmp_path / file.name).write_bytes(b"my own copy")
    path = find_file(file, tmp_path, download=True)
    assert path.read_bytes() == b"my own copy"
    assert web.requests == []


def test_missing_file_is_downloaded_once(web, file, tmp_path):
    folder = tmp_path / "new" / "folder"
    path = find_file(file, folder, download=True)
    assert path == folder / file.name
    assert path.read_bytes() == CONTENT
    assert find_file(file, folder, download=True) == path
    assert web.requests == ["/night.edf"]
    assert list(folder.iterdir()) == [path]


def test_without_download_nothing_is_asked_for(web, file, tmp_path):
    with pytest.raises(DataUnavailableError, match=r"download=False.*data_home="):
        find_file(file, tmp_path, download=False)
    assert web.requests == []


def test_wrong_checksum_is_refused(web, file, tmp_path):
    web.files["/night.edf"] = CONTENT[:-1] + b"!"
    assert_refused(file, tmp_path, "sha1 checksum is .* not " + SHA1[5:])


@pytest.mark.parametrize("checksum", [SHA1, None])
def test_half_a_file_is_refused(web, file, tmp_path, checksum):
    web.cut = 10
    file = DataFile(file.name, file.url, checksum)
    size = len(CONTENT)
    assert_refused(file, tmp_path, f"after {size - 10} of {size} bytes")


def test_file_without_checksum_is_taken(file, tmp_path):
    path = find_file(DataFile(file.name, file.url), tmp_path, download=True)
    assert path.read_bytes() == CONTENT


def test_unknown_address_is_refused(web, file, tmp_path):
    web.files.clear()
    assert_refused(file, tmp_path, "404")


def test_unreachable_host_is_refused(unreachable, tmp_path):
    assert_refused(
        DataFile("night.edf", f"{unreachable}/night.edf"), tmp_path, "failed"
    )


def test_unknown_host_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "*")
    file = DataFile("night.edf", "http://no-such-host.invalid/night.edf")
    assert_refused(file, tmp_path, "failed")


def test_silent_host_is_given_up(web, file, tmp_path, monkeypatch):
    monkeypatch.setattr(_fetch, "_TIMEOUT_S", 0.1)
    web.silent = True
    assert_refused(file, tmp_path, "timed out")


def test_folder_that_cannot_be_made_is_named(web, file, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(DataUnavailableError, match="taken"):
        find_file(file, tmp_path / "taken", download=True)
    assert web.requests == []


@pytest.mark.parametrize("level", [1, 9])
def test_checksum_of_packed_file_is_that_of_its_content(web, tmp_path, level):
    web.files["/night.gz"] = gzip.compress(CONTENT, level)
    file = DataFile("night.gz", f"{web.url}/night.gz", SHA1)
    path = find_file(file, tmp_path, download=True)
    assert path.read_bytes() == web.files["/night.gz"]


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (b"not compressed at all", "Not a gzipped file"),
        (gzip.compress(CONTENT)[:-20], "unpacked"),
        (gzip.compress(CONTENT)[:30] + b"\xff" * 60, "unpacked|CRC"),
        (gzip.compress(CONTENT + b"!"), "checksum"),
    ],
    ids=["plain", "cut", "scrambled", "another"],
)
def test_damaged_packed_file_is_refused(web, tmp_path, packed, reason):
    web.files["/night.gz"] = packed
    file = DataFile("night.gz", f"{web.url}/night.gz", SHA1)
    assert_refused(file, tmp_path, reason)


def test_prepared_arrays_are_read_by_name(tmp_path):
    np.savez(tmp_path / "prepared.npz", a=np.arange(3), b=np.ones(2))
    found = read_prepared("prepared.npz", ["b"], tmp_path)
    assert list(found) == ["b"]
    np.testing.assert_array_equal(found["b"], [1.0, 1.0])
    assert read_prepared("absent.npz", ["b"], tmp_path) is None


def test_unusable_prepared_file_is_named(tmp_path):
    path = tmp_path / "prepared.npz"
    np.savez(path, a=np.arange(3))
    with pytest.raises(ValueError, match=r"prepared\.npz .*b is not a file"):
        read_prepared(path.name, ["b"], tmp_path)
    for content in (path.read_bytes()[:100], b"", b"neither zip nor npy"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"prepared\.npz .*Remove it"):
            read_prepared(path.name, ["a"], tmp_path)


def test_prepared_file_runs_no_code(tmp_path):
    np.savez(tmp_path / "prepared.npz", a=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_prepared("prepared.npz", ["a"], tmp_path)
