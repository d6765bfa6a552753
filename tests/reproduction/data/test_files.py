"""Files come from the folder or their address: whole and checked, or not at all."""

import hashlib

import numpy as np
import pytest

from reproduction.data import DataUnavailableError, files
from reproduction.data.files import find_file, read_prepared

CONTENT = b"thirty seconds of sleep" * 1000
SHA1 = "sha1:" + hashlib.sha1(CONTENT).hexdigest()


@pytest.fixture
def url(web):
    web.files["/night.edf"] = CONTENT
    return f"{web.url}/night.edf"


def assert_refused(url, folder, reason, checksum=SHA1):
    """The error names the reason and every remedy; nothing is left behind."""
    with pytest.raises(DataUnavailableError, match=reason) as caught:
        find_file(url, checksum, folder, download=True)
    message = str(caught.value)
    for word in ("night.edf", str(folder), url, "online", "data_home=", "LAND_DATA"):
        assert word in message
    assert list(folder.iterdir()) == []


def test_file_in_the_folder_is_used_as_it_is(web, url, tmp_path):
    (tmp_path / "night.edf").write_bytes(b"my own copy")
    path = find_file(url, SHA1, tmp_path, download=True)
    assert path.read_bytes() == b"my own copy"
    assert web.requests == []


@pytest.mark.parametrize("checksum", [SHA1, None])
def test_missing_file_is_downloaded_once(web, url, tmp_path, checksum):
    folder = tmp_path / "new" / "folder"
    path = find_file(url, checksum, folder, download=True)
    assert path == folder / "night.edf"
    assert path.read_bytes() == CONTENT
    assert find_file(url, checksum, folder, download=True) == path
    assert web.requests == ["/night.edf"]
    assert list(folder.iterdir()) == [path]


def test_without_download_nothing_is_asked_for(web, url, tmp_path):
    with pytest.raises(DataUnavailableError, match=r"download=False.*data_home="):
        find_file(url, SHA1, tmp_path, download=False)
    assert web.requests == []


def test_wrong_checksum_is_refused(web, url, tmp_path):
    web.files["/night.edf"] = CONTENT[:-1] + b"!"
    assert_refused(url, tmp_path, f"expected {SHA1} but got")


@pytest.mark.parametrize("checksum", [SHA1, None])
def test_half_a_file_is_refused(web, url, tmp_path, checksum):
    web.cut = 10
    assert_refused(url, tmp_path, f"{len(CONTENT) - 10} bytes read", checksum)


def test_silent_host_is_given_up(web, url, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_TIMEOUT_S", 0.1)
    web.silent = True
    assert_refused(url, tmp_path, "timed out")


def test_prepared_file_runs_no_code(tmp_path):
    np.savez(tmp_path / "prepared.npz", a=np.array([{"any": "object"}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        read_prepared("prepared.npz", ["a"], tmp_path)
