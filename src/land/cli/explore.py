"""`land explore`: a live page about a model, for this machine only.

The address holds a random word, without which nothing is answered: other users of the
machine and pages of other sites do not know it. Requests must be addressed to this
machine by name, so that a site that gives itself its address is refused too.
"""

from __future__ import annotations

import argparse
import json
import math
import secrets
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from land.cli.console import CommandError, Console, describe, plain
from land.cli.models import StoredModel, load_model, need_density
from land.plotting.explore import QUESTIONS, Explorer, SupersededError

_HERE = "127.0.0.1"
# Seconds that a connection may be silent: it has a thread of its own.
_PATIENCE = 60.0
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def explore(options: argparse.Namespace, console: Console) -> int:
    """Serve the page until Ctrl-C, which is how it ends."""
    stored = load_model(options.model, console)
    need_density(stored)
    try:
        with console.working("compiling, then computing densities"):
            server = Server(stored, options.port)
        with server:
            console.result(server.address, {"address": server.address})
            sys.stdout.flush()
            console.say("open this address in a browser; Ctrl-C ends it")
            server.serve_forever()
    except KeyboardInterrupt:
        console.say("ended")
    except (OSError, OverflowError) as error:
        raise CommandError(f"port {options.port}: {describe(error)}") from None
    return 0


class Server(ThreadingHTTPServer):
    """Serves the page of a model, and answers its questions."""

    def __init__(self, stored: StoredModel, port: int = 0) -> None:
        self.explorer = Explorer(stored.scaled, stored.columns)
        state = self.explorer.answer("state", {})
        for settled in (1.0, 0.0):  # compiles what dragging needs
            place = dict(zip("xy", state["means"][0], strict=True)) | state["fitted"]
            self.explorer.geodesics(**place, settled=settled)
        self.state = encoded(state)
        self.page = files("land.cli").joinpath("explore.html").read_bytes()
        self.token = secrets.token_urlsafe()
        super().__init__((_HERE, port), Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in (_HERE, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{_HERE}:{self.server_port}/{self.token}/"

    def server_close(self) -> None:
        """Answer nothing more."""
        self.explorer.stop()
        self.explorer.wait()
        super().server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no news."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request after the other on a connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """The page, or the answer to a question about the model."""
        status, content = self._answer()
        kind = "text/html" if content is self.server.page else "application/json"
        self._send(status, content, kind)

    def _answer(self) -> tuple[HTTPStatus, bytes]:
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            return _refused(HTTPStatus.FORBIDDEN, "this is for another host")
        try:
            url = urlsplit(self.path)
            _, token, *rest = url.path.split("/")
        except ValueError:
            return _refused(HTTPStatus.BAD_REQUEST, "the address makes no sense")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return _refused(HTTPStatus.FORBIDDEN, "the address has the wrong token")
        if rest == [""]:
            return HTTPStatus.OK, self.server.page
        if len(rest) != 1 or rest[0] not in QUESTIONS:
            return _refused(HTTPStatus.NOT_FOUND, "there is nothing at this address")
        try:
            numbers, (question,) = _numbers(url.query), rest
            if question == "state" and not numbers:
                return HTTPStatus.OK, self.server.state
            found = self.server.explorer.answer(question, numbers)
            return HTTPStatus.OK, encoded(found)
        except ValueError as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        except SupersededError:
            return HTTPStatus.OK, encoded({"superseded": True})
        except Exception as error:  # the server goes on
            return _refused(HTTPStatus.INTERNAL_SERVER_ERROR, describe(error))

    def send_error(
        self, code: int, message: str | None = None, explain: str | None = None
    ) -> None:
        """Requests that are no HTTP, or not GET."""
        self.close_connection = True
        self._send(*_refused(HTTPStatus(code), message or "this makes no sense"))

    def _send(
        self, status: HTTPStatus, content: bytes, kind: str = "application/json"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header(
            "Referrer-Policy", "no-referrer"
        )  # the token is in the address
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are no news."""


def encoded(value: Any) -> bytes:
    """JSON; null where a number is not finite."""
    return json.dumps(plain(value), allow_nan=False).encode()


def _refused(status: HTTPStatus, reason: str) -> tuple[HTTPStatus, bytes]:
    return status, encoded({"error": reason})


def _numbers(query: str) -> dict[str, float]:
    """The numbers of a question; a ValueError where there is something else."""
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    numbers: dict[str, float] = {}
    for name, text in pairs:
        value = float(text)
        if not math.isfinite(value) or name in numbers:
            raise ValueError(f"{name} must be one finite number, got {text[:40]!r}")
        numbers[name] = value
    return numbers
