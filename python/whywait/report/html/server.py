"""A local server for one report."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from whywait.report.html.served import WINDOW

if TYPE_CHECKING:
    from whywait.report.html.served import ServedPage

HOST = "127.0.0.1"


class Server(ThreadingHTTPServer):
    """Serves one page to this machine.

    Parameters
    ----------
    port
        The port; 0 for any free one.
    page
        The page.
    """

    daemon_threads = True

    def __init__(self, port: int, page: ServedPage) -> None:
        super().__init__((HOST, port), _Handler)
        self.page = page

    @property
    def names(self) -> set[str]:
        """The valid host names of the server; a request with any other one may come from DNS rebinding."""
        return {f"{host}:{self.server_port}" for host in (HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the page, or with a block of its data."""
        path, _, query = self.path.partition("?")
        if self.headers.get("Host") not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN, b"this server answers to 127.0.0.1 only", "text/plain")
        elif path == "/":
            self._answer(HTTPStatus.OK, self.server.page.html(), "text/html; charset=utf-8")
        elif path.startswith("/data/") and (found := self._block(path.removeprefix("/data/"), query)) is not None:
            self._answer(HTTPStatus.OK, found, "text/plain; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")

    def _block(self, name: str, query: str) -> bytes | None:
        if name != WINDOW:
            return self.server.page.block(name)
        try:
            asked = {key: float(value) for key, value in parse_qsl(query, strict_parsing=True)}
            return self.server.page.calls(
                asked["from"], asked["to"], range(int(asked["first"]), int(asked["last"])), int(asked["rows"])
            )
        except (KeyError, ValueError, OverflowError):
            return None

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named so by its base class)
        """Log nothing."""
