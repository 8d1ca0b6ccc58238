"""Look for what is wrong with a trace."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from whywait.commands.common import Progress, add_verb, print_json

if TYPE_CHECKING:
    import argparse

# Findings that mean that a part of the trace could not be read; all others are odd, and the analysis copes.
_BROKEN = frozenset({"truncated", "unreadable"})


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    add_verb(
        verbs,
        "validate",
        "look for what is wrong with a trace",
        "Read a trace completely and list every inconsistency with its place. The exit code is 3 if the trace is "
        "broken, and 0 if it is only odd or all is well.",
        "whywait validate scorep_run/traces.otf2",
        run,
    )


def run(options: argparse.Namespace) -> int:
    """Do it."""
    findings = inspect(options.trace)
    broken = any(finding["broken"] for finding in findings)
    if options.json:
        print_json({"trace": options.trace, "broken": broken, "findings": findings})
    else:
        for finding in findings:
            place = f" [{finding['place']}]" if finding["place"] else ""
            count = f" ({finding['count']:,} times)" if finding["count"] > 1 else ""
            sys.stdout.write(f"{'broken' if finding['broken'] else 'odd'}: {finding['text']}{count}{place}\n")
        verdict = "broken" if broken else "readable, with oddities" if findings else "clean"
        sys.stdout.write(f"{options.trace}: {verdict}\n")
    return 3 if broken else 0


def inspect(path: str) -> list[dict[str, Any]]:
    """Read everything.

    Returns
    -------
    list of dict
        ``kind``, ``place`` (or None), ``text``, ``count`` and ``broken`` of each finding.
    """
    import whywait

    findings: list[dict[str, Any]] = []
    try:
        trace = whywait.open(path)
        for kind, place, text in trace.oddities:
            findings.append({"kind": kind, "place": place, "text": text, "count": 1, "broken": kind in _BROKEN})
        with Progress() as progress:
            result = whywait.analyze(trace, progress=progress)
        findings += [{**warning, "broken": warning["kind"] in _BROKEN} for warning in result.warnings]
    except (whywait.ArchiveError, whywait.TraceError) as error:
        findings.append({"kind": "error", "place": None, "text": str(error), "count": 1, "broken": True})
    return findings
