"""tests/patterns/clocks.md is a test: what each trace violates, and how corrections move its calls."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import otf2
import pytest
import whywait

from tests import naive_clocks
from tests.test_patterns import NANOSECOND, PATTERNS
from tests.tracedsl import ORIGIN, RESOLUTION, trace_from_text

BLOCK = re.compile(r"^#+ ([^\n]+)$|^```(trace|census|correct \w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The document has times to a microsecond.
SHOWN = 2e-6


def examples(wanted):
    """Yield the blocks of a kind, each with its trace."""
    heading, trace = "", None
    for block in BLOCK.finditer((PATTERNS / "clocks.md").read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[3]
        elif (kind := block[2].split())[0] == wanted:
            yield pytest.param(trace, *kind[1:], block[3], id=": ".join([heading, *kind[1:]]))


@pytest.mark.parametrize(("trace", "expected"), list(examples("census")))
def test_the_document_says_what_is_violated(trace, expected, tmp_path):
    anchor = trace_from_text(trace, tmp_path)
    wanted = {}
    for kind, violated, worst, checked in re.findall(r"^(\w+) (\d+) ([\d.]+) of (\d+)$", expected, re.MULTILINE):
        wanted[kind] = int(checked), int(violated), pytest.approx(float(worst), abs=NANOSECOND)
    found = whywait.analyze(anchor, clocks="measured", census=True).clocks
    assert {
        one["kind"]: (one["checked"], one["violated"], one["worst"]) for one in found["kinds"] if one["violated"]
    } == wanted
    oracle = naive_clocks.census(anchor)
    assert {
        kind: (one.checked, one.violated, one.worst / RESOLUTION) for kind, one in oracle.items() if one.violated
    } == wanted


def calls(anchor):
    """Return the Enters and Leaves of the calls of each location, in seconds, as the document names them."""
    found, open_calls = defaultdict(list), defaultdict(list)
    with otf2.reader.open(str(anchor)) as reader:
        groups = list(reader.definitions.location_groups)
        names = {}
        for location in reader.definitions.locations:
            owner = location.group.creating_location_group or location.group
            rank = groups.index(owner)
            stream = re.fullmatch(r"HIP\[\d+:(\d+)\]", location.name)
            thread = re.fullmatch(r"OMP thread (\d+)", location.name)
            names[location] = f"{rank}/{stream[1]}" if stream else f"{rank}.{thread[1]}" if thread else str(rank)
        for location, event in reader.events:
            if isinstance(event, otf2.events.Enter):
                open_calls[location].append(event.time)
            elif isinstance(event, otf2.events.Leave):
                times = [(time - ORIGIN) / RESOLUTION for time in (open_calls[location].pop(), event.time)]
                found[f"{names[location]} {event.region.name}"].append(times)
    return found


@pytest.mark.parametrize(("trace", "how", "expected"), list(examples("correct")))
def test_the_document_says_how_times_move(trace, how, expected, tmp_path):
    found = whywait.correct(trace_from_text(trace, tmp_path / "trace"), tmp_path / "corrected", clocks=how)
    times, left = calls(found["written"]), 0
    for line in expected.splitlines():
        if m := re.fullmatch(r"verdict (.+)", line):
            assert found["verdict"] == m[1]
        elif m := re.fullmatch(r"left (\d+)", line):
            left = int(m[1])
        else:
            name, enter, leave = re.fullmatch(r"(.+) \[([\d.]+), ([\d.]+)\]", line).groups()
            assert pytest.approx([float(enter), float(leave)], abs=SHOWN) in times[name], (name, times[name])
    assert found["left"] == left
    assert sum(one.violated for one in naive_clocks.census(Path(found["written"])).values()) == left
