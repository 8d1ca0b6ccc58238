"""Counters of any scope add up: over cells, call paths, windows, and what lies outside of all regions."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from otf2.enums import GroupFlag, GroupType, LocationType, MetricMode, MetricOccurrence, MetricType, Type

from tests.tracedsl import new_archive

#: Two nodes; the first has a process with two threads, and one with a single thread; the second one process.
PLACES = ((0, 0), (0, 0), (0, 1), (1, 2))
SCOPES = {
    "own": None,
    "location": {1},
    "process": {0, 1},
    "node": {0, 1, 2},
    "machine": {0, 1, 2, 3},
    "members": {0, 3},
}


@st.composite
def programs(draw):
    """Draw nested regions of each thread, which may begin late and end early, and samples of counters by scope."""
    threads = []
    for _ in PLACES:
        stream, stack, time = [], [], draw(st.integers(0, 20))
        for _ in range(draw(st.integers(0, 12))):
            time += draw(st.sampled_from((0, 1, 3, 7)))
            if stack and draw(st.booleans()):
                stream.append((time, "leave", stack.pop()))
            else:
                stack.append(draw(st.sampled_from("fgh")))
                stream.append((time, "enter", stack[-1]))
        stream += [(time, "leave", region) for region in reversed(stack)]
        threads.append(stream)
    samples = {}
    for scope in draw(st.lists(st.sampled_from(sorted(SCOPES)), min_size=1, max_size=3, unique=True)):
        times = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=5)))
        steps = draw(st.lists(st.integers(0, 1000), min_size=len(times), max_size=len(times)))
        samples[scope] = [(time, sum(steps[: i + 1])) for i, time in enumerate(times)]
    return threads, samples


def write(directory, threads, samples):
    """Write a program of 6 s; counters of other scopes than a thread's own are recorded by metric locations."""
    with new_archive(str(Path(directory) / "archive"), timer_resolution=10) as trace:
        define = trace.definitions
        machine = define.system_tree_node("machine")
        nodes = [define.system_tree_node(f"node {number}", "node", machine) for number in range(2)]
        processes = {number: define.location_group(f"process {number}", system_tree_parent=nodes[node])
                     for node, number in sorted(set(PLACES))}  # fmt: skip
        locations = [define.location(f"thread {i}", type=LocationType.CPU_THREAD, group=processes[process])
                     for i, (_, process) in enumerate(PLACES)]  # fmt: skip
        writers = [trace.event_writer_from_location(location) for location in locations]
        members = [locations[i] for i in sorted(SCOPES["members"])]
        group = define.group("members", group_type=GroupType.LOCATIONS, group_flags=GroupFlag.NONE, members=members)
        place_of = {"location": locations[1], "process": processes[0], "node": nodes[0], "machine": machine,
                    "members": group}  # fmt: skip
        streams = [[(time, what, define.region(region)) for time, what, region in stream] for stream in threads]
        begin = define.region("begin")
        for scope, values in samples.items():
            member = define.metric_member(scope, metric_mode=MetricMode.ACCUMULATED_START, unit="#",
                                          metric_type=MetricType.PAPI, value_type=Type.INT64)  # fmt: skip
            metric = define.metric_class((member,), occurrence=MetricOccurrence.ASYNCHRONOUS)
            if scope == "own":
                streams[2] += [(time, "sample", (metric, value)) for time, value in values]
                continue
            recorder = define.location(f"metrics {scope}", type=LocationType.METRIC, group=processes[2])
            instance = define.metric_instance(metric, recorder, scope=place_of[scope])
            writer = trace.event_writer_from_location(recorder)
            for time, value in values:
                writer.metric(time, instance, (value,))
        for writer, stream in zip(writers, streams, strict=True):
            writer.enter(0, begin)
            writer.leave(0, begin)
            for time, what, value in sorted(stream, key=lambda row: row[0]):
                if what == "sample":
                    writer.metric(time, value[0], (value[1],))
                else:
                    getattr(writer, what)(time, value)
            writer.enter(70, begin)
            writer.leave(70, begin)
    return Path(directory) / "archive" / "traces.otf2"


def cells(counter):
    found = Counter()
    for row in counter.cells().to_pylist():
        found[tuple(row["callpath"] or ()), row["location"]] += row["value"]
    return found


@settings(max_examples=60, deadline=None)
@given(program=programs(), cuts=st.lists(st.integers(1, 69), max_size=4))
def test_counters_of_all_scopes_add_up(program, cuts):
    threads, samples = program
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(write(directory, threads, samples), causes=False)
        length = result.facts["length"]
        bounds = [0.0, *sorted({cut / 10 for cut in cuts}), length]
        windows = [result.counters.window(begin, end) for begin, end in pairwise(bounds)]
        changes = {name: result.counters[name].series(1) for name in samples}
    assert set(result.counters) == set(samples)
    for scope, values in samples.items():
        counter = result.counters[scope]
        whole, growth = cells(counter), values[-1][1] - values[0][1]
        # All cells and what is outside: last value less first value, along the call tree and over locations.
        assert counter.total == sum(whole.values()) == growth
        tree = counter.by_callpath().to_pylist()
        roots = [row["inclusive"] for row in tree if len(row["callpath"]) == 1]
        assert sum(roots) + counter.outside == sum(row["value"] for row in tree) + counter.outside == growth
        assert sum(counter.by_location()["value"].to_pylist()) == sum(counter.by_rank()["value"].to_pylist()) == growth
        # Windows that tile the run, cell by cell.
        tiled = sum((cells(window[scope]) for window in windows if scope in window), Counter())
        assert tiled == +whole
        # Each thread in the scope has an integer part.
        of_location = defaultdict(int)
        for (_, location), value in whole.items():
            of_location[location] += value
        carriers = SCOPES[scope] or {2}
        assert {location for location, value in of_location.items() if value} <= carriers
        parts = [of_location[location] for location in carriers]
        assert max(parts) - min(parts) <= 1
        assert sum(changes[scope]["value"].to_pylist()) == growth
