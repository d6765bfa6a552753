"""A web server on this machine, tiny EDF files, and the real data where they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from reproduction.data import DataUnavailableError


class WebServer:
    """Serves `files` by path; `cut` bytes are withheld, `silent` never answers."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.cut = 0
        self.silent = False
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        # The default looks for the end every half second; a test need not wait.
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        if self.silent:
            self.closing.wait()
            return
        content = self.files.get(handler.path)
        if content is None:
            handler.send_error(404)
            return
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: len(content) - self.cut])

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def web(monkeypatch) -> Iterator[WebServer]:
    """A web server on the loopback interface, past any proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = WebServer()
    yield server
    server.close()


@pytest.fixture
def unreachable(monkeypatch) -> str:
    """An address where nobody listens."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.server_close()
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def real(data_folder) -> Callable[..., Any]:
    """Load real data from the data folder; skip where it does not hold them."""

    def load(loader: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return loader(*args, data_home=data_folder, download=False, **kwargs)
        except DataUnavailableError as error:
            pytest.skip(str(error))

    return load


@pytest.fixture(scope="session")
def edf() -> Callable[..., bytes]:
    """Make the bytes of an EDF file from digital samples and header fields.

    Each signal is a dict with `label`, `samples` (n_records, n) and, where they differ
    from the defaults, `unit`, `digital` and `physical` ranges.
    """

    def make(
        signals: list[dict[str, Any]],
        *,
        record_s: str = "30",
        kind: str = "",
        n_records: int | None = None,
    ) -> bytes:
        if n_records is None:
            n_records = len(signals[0]["samples"])
        n_signals = len(signals)
        fixed = [
            ("0", 8),
            ("X X X X", 80),
            ("Startdate X X X X", 80),
            ("24.04.89", 8),
            ("16.13.00", 8),
            (256 * (n_signals + 1), 8),
            (kind, 44),
            (n_records, 8),
            (record_s, 8),
            (n_signals, 4),
        ]
        own = [
            [
                (signal["label"], 16),
                ("electrode", 80),
                (signal.get("unit", "uV"), 8),
                (signal.get("physical", (-100, 100))[0], 8),
                (signal.get("physical", (-100, 100))[1], 8),
                (signal.get("digital", (-2048, 2047))[0], 8),
                (signal.get("digital", (-2048, 2047))[1], 8),
                ("HP:0.5Hz", 80),
                (np.shape(signal["samples"])[1], 8),
                ("", 32),
            ]
            for signal in signals
        ]
        # All labels come first, then all transducers, and so on.
        fields = fixed + [
            field for fields in zip(*own, strict=True) for field in fields
        ]
        header = "".join(str(value).ljust(width) for value, width in fields)
        records = np.hstack([np.asarray(signal["samples"]) for signal in signals])
        return header.encode("ascii") + records.astype("<i2").tobytes()

    return make


@pytest.fixture(scope="session")
def hypnogram(edf) -> Callable[..., bytes]:
    """Make the bytes of an EDF+ file whose records are these bytes of annotations."""

    def make(*records: bytes, kind: str = "EDF+C") -> bytes:
        width = max(len(record) for record in records) + 3
        padded = [record.ljust(width + width % 2, b"\0") for record in records]
        samples = np.stack([np.frombuffer(record, "<i2") for record in padded])
        note = {"label": "EDF Annotations", "samples": samples, "unit": ""}
        return edf([note], record_s="0", kind=kind)

    return make
