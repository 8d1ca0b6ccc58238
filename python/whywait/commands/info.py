"""Show the contents of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb
from whywait.commands.results import TRACE, open_trace
from whywait.report.terminal import seconds
from whywait.report.values import quantity

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait import Run


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "info",
        "show what a trace contains",
        "Show the processes, threads, definitions, and size of a trace, and the memory an analysis needs.",
        "whywait info --events scorep_run/traces.otf2",
        run,
        operands={"trace": TRACE},
        analyzes=False,
    )
    parser.add_argument("--events", action="store_true", help="also count the events by kind (reads the whole trace)")


def run(options: argparse.Namespace) -> Answer:
    """Return the contents of the trace."""
    facts = gather(open_trace(options.trace), events=options.events)
    return Answer(facts, lambda _: ([(line, "")] for line in lines(facts)))


def gather(trace: Run, *, events: bool) -> dict[str, Any]:
    """Return the facts as data for JSON."""
    info = trace.info(events=events)
    types = info.pop("location_types")
    return {
        "name": trace.name,
        "path": str(trace.path),
        **info,
        "locations": types,
        "oddities": [dict(zip(("kind", "place", "text"), oddity, strict=True)) for oddity in trace.oddities],
    }


def lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the facts as text."""
    shown = dict(facts)
    definitions, oddities, locations = (shown.pop(name) for name in ("definitions", "oddities", "locations"))
    by_kind = {name: shown.pop(name) for name in list(shown) if isinstance(shown[name], dict)}
    shown["locations"] = ", ".join(f"{count:,} {kind}" for kind, count in locations.items()) or "none"
    for name, value in ((name, value) for name, value in shown.items() if value not in {"", None}):
        yield f"{name.replace('_', ' '):<22}{_value(name, value)}"
    for title, counts in {"definitions": definitions, **by_kind}.items():
        yield ""
        yield title.replace("_", " ")
        for kind, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"  {kind:<28}{count:>16,}"
    if oddities:
        yield ""
        yield f"oddities ({len(oddities)}; `whywait validate` says more)"
        for oddity in oddities:
            yield f"  {oddity['place']}: {oddity['text']}"


def _value(name: str, value: object) -> str:
    if isinstance(value, int) and ("bytes" in name or "memory" in name):
        return quantity(value, "bytes")
    if name == "length" and isinstance(value, float):
        return seconds(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
