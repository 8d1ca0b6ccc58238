"""Show the contents of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import add_verb
from whywait.commands.results import TRACE, add_analysis, add_reading, open_trace, reading_choices
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
        "Show the processes, threads, definitions, and size of a trace, and the memory an analysis needs. With "
        "--check, read all of it and list every inconsistency with its position instead; the exit code is 3 if the "
        "trace is broken, and minor inconsistencies do not change it.",
        "whywait info --events scorep_run/traces.otf2",
        run,
        operands={"trace": TRACE},
        analyzes=False,
    )
    parser.add_argument("--events", action="store_true", help="also count the events by kind (reads the whole trace)")
    parser.add_argument(
        "--check", action="store_true", help="check the trace for errors instead (reads the whole trace)"
    )
    add_reading(parser)
    add_analysis(parser, title="how a trace is checked")


def run(options: argparse.Namespace) -> Answer:
    """Return the contents of the trace, or its errors."""
    if options.check:
        from whywait.commands.info_check import check

        return check(options)
    facts = gather(open_trace(options.trace, **reading_choices(options)), events=options.events)
    return Answer(facts, lambda _: ([(line, "")] for line in lines(facts)))


# Event files up to this size (bytes) are counted in the time that the program takes to start.
_QUICK = 1 << 24
# So many ranks of a group are listed.
_SHOWN = 8


def gather(trace: Run, *, events: bool) -> dict[str, Any]:
    """Return the facts as data for JSON.

    ``events`` is what the definitions declare, ``events_counted`` what the event files have; None if they are large.
    """
    from whywait import Error

    info = trace.info(events=events)
    counts = info.get("events_by_type")
    if counts is None and info["event_bytes"] <= _QUICK:
        try:
            counts = trace.info(events=True)["events_by_type"]
        except Error:
            counts = None  # `info --check` says what is wrong with them
    info["events_counted"] = None if counts is None else sum(counts.values())
    types = info.pop("location_types")
    known = {"traces": trace.traces, "nsight": trace.nsight, "paraver": trace.paraver}
    others = {name: value for name, value in known.items() if value is not None}
    return {
        "name": trace.name,
        "path": str(trace.path),
        **info,
        **others,
        "locations": types,
        "oddities": [dict(zip(("kind", "place", "text"), oddity, strict=True)) for oddity in trace.oddities],
    }


_OF_ARCHIVES = {"trace_format", "written_with", "event_bytes"}


def lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the facts as text."""
    shown = dict(facts)
    traces, nsight, paraver = (shown.pop(name, None) for name in ("traces", "nsight", "paraver"))
    definitions, oddities, locations = (shown.pop(name) for name in ("definitions", "oddities", "locations"))
    by_kind = {name: shown.pop(name) for name in list(shown) if isinstance(shown[name], dict)}
    declared, counted = shown.pop("events"), shown.pop("events_counted")
    said = f"{declared:,} declared" + ("" if counted is None else f", {counted:,} counted")
    shown["events"] = said if counted != declared else f"{counted:,}"
    shown["locations"] = ", ".join(f"{count:,} {kind}" for kind, count in locations.items()) or "none"
    if traces is not None or paraver is not None:
        # They are of archives.
        shown = {name: value for name, value in shown.items() if name not in _OF_ARCHIVES}
    for name, value in ((name, value) for name, value in shown.items() if value not in {"", None}):
        yield f"{name.replace('_', ' '):<22}{_value(name, value)}"
    if traces is not None:
        yield ""
        yield "Nsight Systems" if nsight else "PyTorch's profiler"
        yield from _of_profiler(traces, _RECORDABLE if nsight is None else {})
        if nsight is not None:
            yield from _of_nsight(nsight, traces["groups"])
    if paraver is not None:
        yield from _of_paraver(paraver, facts)
    for title, counts in {"definitions": definitions, **by_kind}.items():
        yield ""
        yield title.replace("_", " ")
        for kind, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"  {kind:<28}{count:>16,}"
    if oddities:
        yield ""
        yield f"oddities ({len(oddities)}; `whywait info --check` says more)"
        for oddity in oddities:
            yield f"  {oddity['place']}: {oddity['text']}"


def _of_paraver(known: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Yield what is known of a Paraver trace."""
    resolution = facts["timer_resolution"]
    tasks = known["tasks"]
    yield ""
    cut = "no"
    if known["cut"]:
        begin, _, whole = (seconds(ticks / resolution) for ticks in known["cut"])
        cut = f"yes, from {begin} on, of {whole}"
    elif known["history"]:
        cut = ", ".join(known["history"])
    several = "s" * (len(tasks) > 1)
    levels, counters = known["callers"], known["counters"]
    said = [
        "Paraver trace of Extrae",
        f"{len(tasks):,} application{several}",
        f"{' + '.join(f'{count:,}' for count in tasks)} tasks",
        seconds(facts["length"]),
        f"cut: {cut}",
        f"MPI {'yes' if known['has_mpi'] else 'no'}",
        f"callers {levels} levels" if levels else "no callers: calls are below main",
        f"counters {len(counters)}",
        "clocks as merged",
    ]
    yield ", ".join(said)
    if known["has_mpi"]:
        yield f"  {'MPI':<20}{known['messages']:,} messages, {known['operations']:,} collective operations"
    if not known["has_functions"]:
        yield f"  {'functions':<20}none: the computation between calls is that of main"
    if counters:
        yield f"  {'counters':<20}{', '.join(counters)}"
    if known["inferred"]:
        yield f"  {'inferred':<20}{known['inferred']:,} calls complete non-blocking sends, which is not recorded"


# What the profiler can be asked for, and what it is good for.
_RECORDABLE = {
    "stacks": "with_stack=True: modules and functions of Python",
    "shapes": "record_shapes=True: shapes of kernels; roots and peers of operations on CPUs",
}


def _of_profiler(traces: dict[str, Any], recordable: dict[str, str]) -> Iterator[str]:
    """Yield what is known of the ranks of a profiler's traces."""
    ranks, missing = traces["ranks"], traces["missing"]
    yield f"  {'ranks':<20}{len(ranks):,} of {traces['world_size']:,}" + (
        f"; no trace of {_some(list(map(str, missing)))}" if missing else ""
    )
    if steps := traces["steps"]:
        first, last = steps[0], steps[-1]
        gaps = f", {len(steps):,} of them" * (len(steps) <= last - first)
        yield f"  {'steps of all ranks':<20}{first} to {last}{gaps}"
    elif any(rank["steps"] for rank in ranks):
        yield f"  {'steps':<20}none of all ranks"
    if traces["cycles"] > 1:
        yield f"  {'window':<20}{traces['cycle']} of {traces['cycles']} (--cycle)"
    for name, version in traces["versions"]:
        yield f"  {name:<20}{version}"
    if absent := [how for what, how in recordable.items() if what not in traces["recorded"]]:
        yield f"  {'not recorded':<20}{'; '.join(absent)}"
    for file, reason in traces["left_out"]:
        yield f"  {'left out':<20}{file}: {reason}"
    if not traces["groups"] and len(ranks) > 1 and recordable:
        yield f"  {'groups':<20}none: no kernel or operation was found that communicates (--comm-kernels)"
    for group in traces["groups"]:
        members = group["ranks"]
        names = _some(list(map(str, members)))
        yield f"  group {group['name']} (ranks {names}): " + _of_group(group)


def _of_nsight(known: dict[str, Any], groups: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what is known of reports of Nsight Systems besides their ranks."""
    reports = known["reports"]
    yield f"  {'reports':<20}{len(reports):,}: {_some([report['file'] for report in reports])}"
    yield f"  {'clocks':<20}{known['clocks']}" + "; those of a node may differ" * known["separate_clocks"]
    yield f"  {'tables':<20}" + ", ".join(f"{name} {rows:,}" for name, rows in known["tables"])
    if known["unread"]:
        yield f"  {'not analyzed':<20}{', '.join(known['unread'])}"
    if "MPI" not in known["untested"] and not groups:
        yield f"  {'communication':<20}none is recorded: nsys profile --trace=mpi,cuda,nvtx"
    for model in known["untested"]:
        yield f"  {model:<20}read by NVIDIA's published schema, not yet tested with a recorded file"
    for what, count in known["notes"]:
        yield f"  {'inferred':<20}{count:,} {what}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + ", ..." * (len(names) > _SHOWN)


def _of_group(group: dict[str, Any]) -> str:
    parts = [f"{group['instances']:,} operations", f"{group['messages']:,} messages"]
    known = [part for part in parts if not part.startswith("0 ")] or ["nothing"]
    words = f"{' and '.join(known)} matched by {group['method']}"
    if group["partial"]:
        words += f"; only {group['known']} of {group['size']} ranks are known"
    if group["unmatched"]:
        words += f"; {group['unmatched']:,} parts of operations without all members"
    return words


def _value(name: str, value: object) -> str:
    if isinstance(value, int) and ("bytes" in name or "memory" in name):
        return quantity(value, "bytes")
    if name == "length" and isinstance(value, float):
        return seconds(value)
    return f"{value:,}" if isinstance(value, int) else str(value)
