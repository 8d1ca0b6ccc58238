"""Calls that look for a message before it is received: probes, and those that have found a partition of one."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from otf2 import events as ev

if TYPE_CHECKING:
    from tests.naive import Instance, Message, Result, Trace


def received(messages: dict[int, list[Message]], thread: int) -> list[Message]:
    return [m for m in messages[thread] if isinstance(m.event, (ev.MpiRecv, ev.MpiIrecv))]


def probes(trace: Trace, messages: dict[int, list[Message]], result: Result) -> None:
    """A call that probes waits for the message of the next receive of its caller (inferred-synchronization.md)."""
    for thread in trace.threads.values():
        probed: dict[int, tuple[Instance, Message]] = {}
        for call in (i for i in thread.instances if i.is_mpi and i.name == "MPI_Probe"):
            posted = [m for m in received(messages, thread.ref) if m.start.enter >= call.leave]
            first = min(posted, key=lambda m: m.start.enter, default=None)
            if first is not None and first.start.callpath[:-1] == call.callpath[:-1]:
                probed[id(first)] = call, first
        for call, m in probed.values():
            if m.partner is not None:
                # What is sent after the probe was not probed.
                sent = m.partner.start
                waiting = sent.enter - call.enter
                if 0 < waiting <= call.leave - call.enter:
                    result.wait("mpi_probe_latesender", call, waiting, sent)


class Part(NamedTuple):
    """The part of a message between two fractions of it, and the call that makes it ready or has found it."""

    begin: Fraction
    end: Fraction
    call: Instance


def value(event: Any, name: str) -> int | None:
    return {attribute.name: value for attribute, value in (event.attributes or {}).items()}.get(name)


def parts(trace: Trace) -> dict[int, list[Part]]:
    """Return the parts of each message by its send or receive record (the `id` of it), in the order of their calls."""
    found: dict[int, list[Part]] = defaultdict(list)
    for threads in trace.processes.values():
        records = [(event, call) for thread in threads for event, call in thread.records]
        begun = [event for event, _ in records if isinstance(event, (ev.MpiIsend, ev.MpiIrecvRequest))]
        ended = [event for event, _ in records if isinstance(event, ev.MpiIrecv)]
        for event, call in records:
            first = value(event, "first partition") if isinstance(event, ev.MpiRequestTest) else None
            if first is None:
                continue
            same = [one for one in begun if one.request_id == event.request_id and one.time <= event.time]
            message = max(same, key=lambda one: one.time)
            count = value(message, "partitions")
            part = Part(Fraction(first, count), Fraction(value(event, "last partition") + 1, count), call)
            if isinstance(message, ev.MpiIrecvRequest):
                after = [one for one in ended if one.request_id == event.request_id and one.time >= event.time]
                message = min(after, key=lambda one: one.time, default=message)
            found[id(message)].append(part)
    for of_message in found.values():
        of_message.sort(key=lambda part: part.call.enter)
    return dict(found)


class Found(NamedTuple):
    """A call that has found a part of a message, and the calls of the sender that it needed: by records, and all."""

    call: Instance
    recorded: list[Instance]
    needed: list[Instance]


def found_parts(parts: dict[int, list[Part]], receive: Message) -> list[Found]:
    """Return what has found a part of a message; it needed all of it if it ended only when all was ready."""
    ready = parts.get(id(receive.partner.event), [])
    found = []
    for one in parts.get(id(receive.event), []) if ready else ():
        recorded = [p.call for p in ready if p.begin < one.end and one.begin < p.end]
        is_whole = ready[-1].call.enter <= one.call.leave
        found.append(Found(one.call, recorded, [p.call for p in ready] if is_whole else recorded))
    return found


def partitions(trace: Trace, messages: dict[int, list[Message]], result: Result) -> None:
    """Add the waits of calls that stand for many which asked for a partition (partitions.md)."""
    all_parts = parts(trace)
    for thread in messages:
        for m in received(messages, thread):
            for call, recorded, needed in found_parts(all_parts, m) if m.partner else ():
                waiting = min(needed[-1].enter, call.leave) - call.enter if needed else 0
                if waiting > 0 and call.name == "MPI_Parrived (polling)":
                    result.wait("mpi_latesender", call, waiting, needed[-1], inferred=needed[-1] not in recorded)
