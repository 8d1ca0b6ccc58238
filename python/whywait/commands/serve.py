"""Show the report of a result in a browser, from a server on this machine."""

from __future__ import annotations

import argparse
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from whywait.commands.common import add_verb, print_json
from whywait.commands.results import RESULT, load

if TYPE_CHECKING:
    from whywait.report.html.served import ServedPage

_HOST = "127.0.0.1"


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "serve",
        "show the report of a result in a browser, however large it is",
        "Serve the HTML report of a result on this machine (127.0.0.1) until Ctrl-C. The browser gets values when it "
        "needs them, so nothing is merged or rounded, whatever the size of the result. On another machine, forward the "
        "port: ssh -L 8000:127.0.0.1:8000 HOST.",
        "whywait serve results --port 8000",
        run,
        operands={"result": RESULT},
    )
    parser.add_argument(
        "--port", type=_port, default=8000, metavar="N", help="the port; 0 for any free one (default: %(default)s)"
    )


def _port(text: str) -> int:
    """Read the number of a port."""
    if not 0 <= (number := int(text)) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is no port")
    return number


class _Server(ThreadingHTTPServer):
    """Serves one page to this machine."""

    daemon_threads = True

    def __init__(self, port: int, page: ServedPage) -> None:
        super().__init__((_HOST, port), _Handler)
        self.page = page

    @property
    def names(self) -> set[str]:
        """What a browser on this machine calls the server; any other name comes from a page that was led astray."""
        return {f"{host}:{self.server_port}" for host in (_HOST, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with the page, or with a block of its data."""
        path = self.path.partition("?")[0]
        if self.headers.get("Host") not in self.server.names:
            self._answer(HTTPStatus.FORBIDDEN, b"this server answers to 127.0.0.1 only", "text/plain")
        elif path == "/":
            self._answer(HTTPStatus.OK, self.server.page.html(), "text/html; charset=utf-8")
        elif path.startswith("/data/") and (found := self.server.page.block(path.removeprefix("/data/"))) is not None:
            self._answer(HTTPStatus.OK, found, "text/plain; charset=utf-8")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there is nothing here", "text/plain")

    def _answer(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named so by its base class)
        """Say nothing of each request."""


def run(options: argparse.Namespace) -> int:
    """Serve the report until Ctrl-C."""
    from whywait.report.html.served import ServedPage

    result = load(options.result)
    page = ServedPage(result, result.summary(), result.timeline)
    with _Server(options.port, page) as server:
        url = f"http://{_HOST}:{server.server_port}/"
        if options.json:
            print_json({"url": url, "blocks": page.names})
        else:
            sys.stdout.write(f"Open {url} in a browser; Ctrl-C ends it\n")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
