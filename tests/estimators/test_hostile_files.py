"""Model files that are damaged, or made with bad intentions: none is believed."""

import io
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

import land
from land.estimators.files import read_archive, write_archive


def rewrite(file, change):
    """Change header and arrays of a file, as someone with bad intentions would."""
    header, arrays = read_archive(file)
    change(header, arrays)
    write_archive(file, header, arrays)


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def replace_member(file, name, content, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(file) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members[name] = content
    with zipfile.ZipFile(file, "w", compression) as archive:
        for each, value in members.items():
            archive.writestr(each, value)


METRIC = {"kind": "LocalDiagonalMetric", "learned": True, "table": False}
HEADERS = {
    "format": ({"format": "other"}, "not a land model file"),
    "older": ({"version": 2}, "version 2 of the format.*fit the model again"),
    "newer": ({"version": 4}, "version 4 of the format"),
    "version": ({"version": "3"}, "version '3' of the format"),
    "class": ({"class": "os.system"}, "unknown class, 'os.system'"),
    "list": ({"class": []}, "malformed header"),
    "parameters": ({"parameters": {"evil": 1}}, "malformed header.*'evil'"),
    "history": ({"history": [1]}, "malformed header"),
    "step": ({"history": [{"iteration": 1}]}, "malformed header"),
    "metric": ({"metric": METRIC | {"kind": "x"}}, "unknown metric, 'x'"),
    "flat": (
        {"metric": METRIC | {"kind": "EuclideanMetric"}},
        r"unexpected arrays: \['metric.data', 'metric.rho', 'metric.sigma'\]",
    ),
    "extra": ({"extra": [1]}, "malformed header"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_unexpected_headers_are_refused(file, case):
    entries, message = HEADERS[case]
    rewrite(file, lambda header, arrays: header.update(entries))
    with pytest.raises(land.ModelFileError, match=message) as caught:
        land.load(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_missing_part_is_refused(file):
    content = file.read_bytes()
    header, arrays = read_archive(file)
    for part in [*header, *arrays]:
        if part in ("land", "health"):  # earlier files lack the latter
            continue
        rewrite(file, lambda *parts, name=part: [each.pop(name, 0) for each in parts])
        with pytest.raises(land.ModelFileError):
            land.load(file)
        file.write_bytes(content)


ARRAYS = {
    "infinite": (
        "metric.data",
        np.full((5, 2), np.inf),
        "malformed header.*data must be finite",
    ),
    "more": ("other", np.zeros(2), r"unexpected arrays: \['other'\]"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_unexpected_arrays_are_refused(file, case):
    name, array, message = ARRAYS[case]
    rewrite(file, lambda header, arrays: arrays.update({name: array}))
    with pytest.raises(land.ModelFileError, match=message):
        land.load(file)


class Bomb:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_are_not_opened(file, tmp_path):
    trace = str(tmp_path / "exploded")
    objects = np.array([Bomb(trace)], dtype=object)
    replace_member(file, "mean_.npy", npy(objects, allow_pickle=True))
    with pytest.raises(land.ModelFileError, match="Object arrays cannot be loaded"):
        land.load(file)
    file.write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(land.ModelFileError, match="not a land model file"):
        land.load(file)
    assert not os.path.exists(trace)  # noqa: PTH110


def declare(content, shape, kind="<f8"):
    """The same bytes, which now declare another shape and type."""
    content = content.replace(b"(2,)", repr(shape).encode())
    content = content.replace(b"<f8", kind.encode())
    header = content[10:].split(b"\n")[0]
    return content[:8] + (len(header) + 1).to_bytes(2, "little") + content[10:]


@pytest.mark.parametrize("member", ["mean_.npy", "metric.data.npy"])
@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((10**15,), "<f8"),
        ((2**40, 2**40), "<f8"),
        ((2**27,), "<f8"),
        ((-2,), "<f8"),
        # These take no bytes, and much memory once they are made numbers.
        ((2**27,), "<U0"),
        ((2**27,), "|V0"),
    ],
)
def test_shapes_larger_than_the_file_are_refused(file, member, shape, kind):
    replace_member(file, member, declare(npy(np.zeros(2)), shape, kind))
    tracemalloc.start()
    try:
        with pytest.raises(land.ModelFileError, match="is damaged"):
            land.load(file)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_compressed_members_are_refused(file):
    """A few kilobytes could grow to terabytes."""
    replace_member(file, "mean_.npy", npy(np.zeros(10**5)), zipfile.ZIP_DEFLATED)
    with pytest.raises(land.ModelFileError, match="is compressed"):
        land.load(file)


@pytest.mark.parametrize("name", ["../evil.npy", "/etc/evil.npy", "evil.py", "a/b.npy"])
def test_members_with_other_names_are_refused(file, name):
    before = sorted(file.parent.parent.rglob("*"))
    replace_member(file, name, npy(np.zeros(2)))
    with pytest.raises(land.ModelFileError, match="unexpected"):
        land.load(file)
    assert sorted(file.parent.parent.rglob("*")) == before


def test_two_members_of_one_name_are_refused(file):
    with (
        zipfile.ZipFile(file, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("mean_.npy", npy(np.zeros(2)))
    with pytest.raises(land.ModelFileError, match="two members of the same name"):
        land.load(file)


@pytest.mark.parametrize("content", [b"", b"PK", b"text\n", b"{}", npy(np.zeros(3))])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(land.ModelFileError, match="not a land model file"):
        land.load(tmp_path / "model")


def test_deeply_nested_headers_are_refused(file):
    replace_member(file, "header.json", b'{"a":' * 100_000)
    with pytest.raises(land.ModelFileError):
        land.load(file)


def test_missing_files_and_folders_are_the_systems_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        land.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        land.load(tmp_path)
    with pytest.raises(land.ModelFileError, match="not a regular file"):
        land.load("/dev/null")
