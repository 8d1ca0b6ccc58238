"""Check a trace for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress
from whywait.commands.results import analysis_choices

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import whywait
    from whywait.report.terminal import Line

# Findings that mean that a part of the trace could not be read; the analysis tolerates all others.
_BROKEN = frozenset({"error", "truncated", "unreadable"})


def check(options: argparse.Namespace) -> Answer:
    """Return the errors in the trace; the exit code is 3 if it is broken."""
    findings, clocks = inspect(options.trace, **analysis_choices(options))
    broken = any(finding["broken"] for finding in findings)
    data = {"trace": options.trace, "broken": broken, "findings": findings, "clocks": clocks}
    return Answer(data, lambda _: _lines(data), 3 if broken else 0)


def _lines(found: dict[str, Any]) -> Iterator[Line]:
    from whywait.analysis.clocks import census_lines

    for finding in found["findings"]:
        count = f" ({finding['count']:,} times)" if finding["count"] > 1 else ""
        yield [(f"{'broken' if finding['broken'] else 'odd'}: {finding['text']}{count}", "")]
        yield from ([(f"   {place}", "")] for place in finding["places"])
    if found["clocks"]:
        yield from ([(line, "")] for line in census_lines(found["clocks"]))
    verdict = "broken" if found["broken"] else "readable, with oddities" if found["findings"] else "clean"
    yield [(f"{found['trace']}: {verdict}", "")]


def inspect(path: str, **clocks: Any) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Read the complete trace, with arguments about clocks for `whywait.analyze`.

    Returns
    -------
    list of dict
        ``kind``, ``text``, ``count``, ``places`` (all of them, at most 10,000) and ``broken`` of each finding.
    dict, optional
        What is known about the clocks, as `whywait.Result.clocks`; None if the trace cannot be analyzed.
    """
    import whywait

    findings: list[dict[str, Any]] = []
    census = None

    def find(kind: str, text: str, count: int, places: list[str]) -> None:
        findings.append({"kind": kind, "text": text, "count": count, "places": places, "broken": kind in _BROKEN})

    try:
        trace = whywait.open(path)
        for kind, place, text in trace.oddities:
            find(kind, text, 1, [place])
        if trace.nsight:
            for kind, at in trace.nsight["findings"]:
                text, count = trace.nsight["notes"][at]
                find(kind, text, count, [])
        with Progress() as progress:
            result = whywait.analyze(trace, progress=progress, census=True, **clocks)
        places, census = _places(result), result.clocks
        for warning in result.warnings:
            find(warning["kind"], warning["text"], warning["count"], places.get(warning["kind"], []))
    except (whywait.ArchiveError, whywait.TraceError) as error:
        find("error", str(error), 1, [])
    return findings, census


def _places(result: whywait.Result) -> dict[str, list[str]]:
    """Return all places of each kind of warning as text."""
    ids = result.locations["id"].to_pylist()
    places: dict[str, list[str]] = {}
    for row in result.inconsistencies().to_pylist():
        detail = f": {row['detail']}" if row["detail"] else ""
        at = "" if row["time"] is None else f" at {row['time']:.6f} s"
        place = f"location {ids[row['location']]}{at}{detail}"
        places.setdefault(row["kind"], []).append(place)
    return places
