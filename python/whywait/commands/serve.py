"""Show the report of a result in a browser, from a local server."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from whywait.commands.answers import Answer, tell
from whywait.commands.common import Progress, add_verb
from whywait.commands.results import RESULT, add_analysis, analysis_choices, load


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "serve",
        "serve the HTML report of a result of any size",
        "Serve the HTML report of a result on this machine (127.0.0.1) until Ctrl-C. The browser requests values on "
        "demand, so nothing is merged or rounded, regardless of the size of the result. The address has a random "
        "token; requests without it are refused. To serve from another machine, forward the port: "
        "ssh -L 8000:127.0.0.1:8000 HOST.",
        "whywait serve results --port 8000",
        run,
        operands={"result": RESULT},
    )
    add_analysis(parser)
    parser.add_argument(
        "--port", type=_port, default=8000, metavar="N", help="the port, or 0 for any free port (default: %(default)s)"
    )


def _port(text: str) -> int:
    """Parse a port number."""
    if not 0 <= (number := int(text)) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text} is not a port number")
    return number


def run(options: argparse.Namespace) -> int:
    """Serve the report until Ctrl-C."""
    import whywait
    from whywait.report.html.served import ServedPage
    from whywait.report.html.server import Server

    choices = analysis_choices(options)
    result = load(options.result, choices=choices)
    has_events = result.tables.analysis is not None or result.run.path.exists()

    def events() -> Any:
        if result.tables.analysis is not None:
            return result.tables.analysis
        return whywait.analyze(result.run, **{**result.options, **choices, "causes": False}).tables.analysis

    with Progress() as progress:
        progress("summary", 0.0)
        summary = result.summary()
        progress("timeline", 0.3)
        timeline = result.timeline
        progress("page", 0.6)
        page = ServedPage(result, summary, timeline, events if has_events else None)
    with Server(options.port, page) as server:
        answer = Answer(
            {"url": server.url, "blocks": page.names},
            lambda _: [[(f"Open {server.url} in a browser; Ctrl-C ends it", "")]],
            results=[result],
        )
        tell(answer, as_json=options.json)
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
