"""A local server for one report."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from whywait.report.html.served import WINDOW

if TYPE_CHECKING:
    from whywait.report.html.served import ServedPage

HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves one page to this machine, to whoever knows its address.

    Every user of the machine can connect, so the address has a secret.

    Parameters
    ----------
    port
        The port; 0 for any free one.
    page
        The page.

    Attributes
    ----------
    token
        The secret, which each request has to have as ``token`` in its query.
    """

    daemon_threads = True

    def __init__(self, port: int, page: ServedPage) -> None:
        super().__init__((HOST, port), _Handler)
        self.page = page
        self.token = secrets.token_hex(16)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def names(self) -> set[str]:
        """The valid host names of the server; a request with any other one may come from DNS rebinding."""
        return {f"{host}:{self.server_port}" for host in (HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the page, or with a block of its data."""
        path, _, text = self.path.partition("?")
        query = dict(parse_qsl(text))
        if self.headers.get("Host") not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN, b"this server answers to 127.0.0.1 only", "text/plain")
        elif not secrets.compare_digest(query.get("token", "").encode(), self.server.token.encode()):
            missing = b"the address lacks the token: open the one that `whywait serve` printed"
            self._answer(HTTPStatus.FORBIDDEN, missing, "text/plain")
        elif path == "/":
            self._answer(HTTPStatus.OK, self.server.page.html(), "text/html; charset=utf-8")
        elif path.startswith("/data/") and (found := self._block(path.removeprefix("/data/"), query)) is not None:
            self._answer(HTTPStatus.OK, found, "text/plain; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")

    def _block(self, name: str, query: dict[str, str]) -> bytes | None:
        if name != WINDOW:
            return self.server.page.block(name)
        try:
            begin, end = float(query["from"]), float(query["to"])
            first, last, rows = (int(query[key]) for key in ("first", "last", "rows"))
            return self.server.page.calls(begin, end, range(first, last), rows)
        except (KeyError, ValueError, OverflowError):
            return None

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named so by its base class)
        """Log nothing."""
