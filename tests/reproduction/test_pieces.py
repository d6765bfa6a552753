"""The store of finished pieces: what is used again, and what is not."""

import json

import numpy as np
import pytest

from reproduction import pieces as module
from reproduction.pieces import Pieces, plain, write_json


@pytest.fixture
def store(tmp_path):
    return Pieces(tmp_path / "pieces", lambda line: None)


class Work:
    """Counts how often it is done."""

    def __init__(self, **result):
        self.count, self.result = 0, result

    def __call__(self):
        self.count += 1
        return self.result


def test_a_piece_is_computed_once(store):
    work = Work(values=np.arange(3.0), lost=np.nan, count=np.int64(2))
    first = store.get("a fit", {"sigma": 0.1}, work)
    again = store.get("a fit", {"sigma": 0.1}, work)
    assert work.count == 1
    assert first == again
    assert first["values"] == [0.0, 1.0, 2.0]
    assert first["lost"] is None
    seconds = pytest.approx(2 * first["seconds"])
    assert store.counts == {"computed": 1, "found": 1, "seconds": seconds}


def test_another_key_or_other_settings_are_another_piece(store):
    work = Work(value=1)
    store.get("a fit", {"sigma": 0.1}, work)
    store.get("a fit", {"sigma": 0.2}, work)
    store.get("another fit", {"sigma": 0.1}, work)
    assert work.count == 3
    store.get("a fit", {"sigma": 0.1}, work)
    assert work.count == 3


def test_another_state_of_land_is_not_used(store, monkeypatch):
    work = Work(value=1)
    store.get("a fit", {}, work)
    monkeypatch.setattr(module, "state_of_land", lambda: "9.9 abc")
    store.get("a fit", {}, work)
    assert work.count == 2


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", '{"result": 1}', "\x00\x01", '{"key": "a fit", "result": {}}'],
)
def test_a_broken_file_is_computed_anew(store, broken):
    work = Work(value=1)
    store.get("a fit", {}, work)
    (file,) = store.folder.iterdir()
    file.write_text(broken)
    assert store.get("a fit", {}, work)["value"] == 1
    assert work.count == 2
    assert json.loads(file.read_text())["result"]["value"] == 1


def test_an_interrupt_while_writing_leaves_no_file(store, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.get("a fit", {}, Work(value=1))
    assert list(store.folder.iterdir()) == []


def test_plain_keeps_numbers(tmp_path):
    content = {"a": np.float64(1.5), "b": (1, [True, None]), "c": np.array([[np.inf]])}
    write_json(tmp_path / "file.json", content)
    found = json.loads((tmp_path / "file.json").read_text())
    assert found == {"a": 1.5, "b": [1, [True, None]], "c": [[None]]} == plain(content)
