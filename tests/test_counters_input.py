"""Counters that are odd or wrong: one test for each row of the table of bad input in the specification of counters.

Rows that are not tested here:

| input | tests |
|---|---|
| a counter that has one sample; u64 near 2^64, negative INT64, NaN; ACCUMULATED that falls; flush | test_counters |
| measurement off | test_counters_command |
| message unmatched, cancelled, to oneself, MPI_PROC_NULL; d < s | queues/queues.md, test_queues |
| kernel without launch, launch without kernel; clock of the device | devices/devices.md, test_devices |
| several processes on one GPU | test_devices |
| several GPUs of a process; efficiency > 1 or < 0 | test_devices_matching |
| no GPU; no counters and no MPI | test_devices; test_counters_command |
| directory of SPC files | test_counters_import |
"""

from __future__ import annotations

from copy import copy
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import whywait
from otf2.enums import LocationType, MetricMode, MetricOccurrence, MetricType, Type
from whywait.cli import main

from tests.tracedsl import new_archive

DATA = Path(__file__).parent / "data"
ASYNC = MetricOccurrence.ASYNCHRONOUS


class Archive:
    """An archive with processes of one thread each, which all run main from 0 to 10 s, and calls to write samples."""

    def __init__(self, directory, processes=1):
        self.anchor = Path(directory) / "archive" / "traces.otf2"
        self.open = new_archive(str(self.anchor.parent), timer_resolution=10)
        self.trace = self.open.__enter__()
        self.definitions = self.trace.definitions
        self.node = self.definitions.system_tree_node("machine")
        self.groups = [
            self.definitions.location_group(f"process {number}", system_tree_parent=self.node)
            for number in range(processes)
        ]
        self.events = {}

    def stream(self, process=0, kind=LocationType.CPU_THREAD):
        location = self.definitions.location("location", type=kind, group=self.groups[process])
        self.events[location] = []
        if kind == LocationType.CPU_THREAD:
            main_ = self.definitions.region("main")
            self.events[location] += [(0, "enter", (main_,)), (100, "leave", (main_,))]
        return location

    def metric(self, *names, unit="#", mode=MetricMode.ACCUMULATED_START, value_type=Type.INT64, exponent=0):
        members = [
            self.definitions.metric_member(
                name, metric_type=MetricType.PAPI, metric_mode=mode, value_type=value_type, unit=unit, exponent=exponent
            )
            for name in names
        ]
        return self.definitions.metric_class(members, occurrence=ASYNC)

    def sample(self, location, time, metric, *values):
        self.events[location].append((time, "metric", (metric, values)))

    def analyze(self):
        for location, events in self.events.items():
            writer = self.trace.event_writer_from_location(location)
            # Samples stand before Leaves of the same time.
            for time, what, arguments in sorted(events, key=lambda event: (event[0], event[1] == "leave")):
                getattr(writer, what)(1000 + time, *arguments)
        self.open.__exit__(None, None, None)
        return whywait.analyze(self.anchor, causes=False)


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


def notes(result, kind):
    return sum(warning["count"] for warning in result.warnings if warning["kind"] == kind)


def test_a_record_of_an_unknown_class_is_left_out_and_noted(archive):
    thread, metric = archive.stream(), archive.metric("c")
    unknown = copy(metric)
    unknown._ref = 4711
    for time, value in ((10, 1), (20, 5)):
        archive.sample(thread, time, metric, value)
    archive.sample(thread, 15, unknown, 99)
    result = archive.analyze()
    assert (result.counters["c"].total, notes(result, "metric")) == (4, 1)


def test_a_record_with_the_wrong_number_of_values_is_left_out_and_noted(archive):
    thread, two, one = archive.stream(), archive.metric("a", "b"), archive.metric("c")
    wrong = copy(one)
    wrong._ref = two._ref
    archive.sample(thread, 10, two, 1, 2)
    archive.sample(thread, 15, wrong, 99)
    archive.sample(thread, 20, two, 3, 7)
    result = archive.analyze()
    assert (result.counters["a"].total, result.counters["b"].total, notes(result, "metric")) == (2, 5, 1)


def test_a_value_of_another_type_is_left_out_and_noted(archive):
    thread, whole, real = archive.stream(), archive.metric("c"), archive.metric("d", value_type=Type.DOUBLE)
    wrong = copy(real)
    wrong._ref = whole._ref
    archive.sample(thread, 10, whole, 1)
    archive.sample(thread, 15, wrong, 99.0)
    archive.sample(thread, 20, whole, 5)
    result = archive.analyze()
    assert (result.counters["c"].total, notes(result, "metric")) == (4, 1)


def test_a_class_that_each_process_defines_is_one_counter(tmp_path):
    archive = Archive(tmp_path, 2)
    for process in range(2):
        thread, metric = archive.stream(process), archive.metric("c")
        archive.sample(thread, 10, metric, 1)
        archive.sample(thread, 20, metric, 5 + process)
    result = archive.analyze()
    assert list(result.counters) == ["c"]
    assert result.counters["c"].by_location()["value"].to_pylist() == [4, 5]


@pytest.mark.parametrize("other", [{"unit": "s"}, {"exponent": 3}])
def test_a_name_with_another_unit_or_exponent_is_another_counter(archive, other):
    thread, first, second = archive.stream(), archive.metric("c"), archive.metric("c", **other)
    for time, metric, value in ((10, first, 1), (20, first, 5), (10, second, 1), (20, second, 8)):
        archive.sample(thread, time, metric, value)
    result = archive.analyze()
    assert [found.total for found in result.counters.values()] == [4, 7 * 10 ** other.get("exponent", 0)]
    assert notes(result, "metric_definition") == 1


def test_samples_around_all_regions_are_outside(tmp_path):
    archive = Archive(tmp_path)
    thread, metric = archive.stream(), archive.metric("c")
    for time, value in ((-20, 0), (0, 20), (100, 30), (120, 70)):
        archive.sample(thread, time, metric, value)
    found = archive.analyze().counters["c"]
    assert (found.total, found.outside) == (70, 60)


def test_of_two_samples_at_one_time_the_later_counts(archive):
    thread, metric = archive.stream(), archive.metric("c", mode=MetricMode.ABSOLUTE_NEXT)
    for time, value in ((0, 1), (50, 900), (50, 3), (100, 0)):
        archive.sample(thread, time, metric, value)
    found = archive.analyze().counters["c"]
    assert (found.total, found.maximum) == (1 * 5 + 3 * 5, 3)


def test_a_counter_that_never_changes_has_its_value_and_no_correlation(tmp_path):
    archive = Archive(tmp_path, 3)
    metric = archive.metric("clock")
    for process in range(3):
        thread = archive.stream(process)
        for time in (10, 20):
            archive.sample(thread, time, metric, 1_300_000_000)
    result = archive.analyze()
    found = result.counters["clock"]
    assert (found.total, found.minimum, found.maximum) == (0, 1.3e9, 1.3e9)
    assert result.correlate("clock", "time").r is None


@pytest.mark.parametrize("scope", ["group", "node", "location"])
def test_a_scope_that_does_not_exist_is_the_process_of_the_recorder(archive, scope):
    archive.stream()
    recorder, metric = archive.stream(kind=LocationType.METRIC), archive.metric("c")
    missing = copy({"group": archive.groups[0], "node": archive.node, "location": recorder}[scope])
    missing._ref = 4711
    instance = archive.definitions.metric_instance(metric, recorder, scope=missing)
    archive.sample(recorder, 0, instance, 1)
    archive.sample(recorder, 100, instance, 5)
    result = archive.analyze()
    found = result.counters["c"]
    assert (found.total, found.outside, notes(result, "metric_definition")) == (4, 0, 1)


@pytest.mark.parametrize("exponent", [400, -400])
def test_an_exponent_that_no_number_has_leaves_values_as_they_are(archive, exponent):
    thread, metric = archive.stream(), archive.metric("c", exponent=exponent)
    archive.sample(thread, 10, metric, 1)
    archive.sample(thread, 20, metric, 5)
    result = archive.analyze()
    assert (result.counters["c"].total, notes(result, "metric_definition")) == (4, 1)


def test_a_member_of_an_unknown_type_is_left_out_and_noted(archive):
    thread, metric = archive.stream(), archive.metric("c")
    odd = archive.metric("d", mode=MetricMode.ABSOLUTE_LAST, value_type=Type.DOUBLE)
    for time, value in ((10, 1), (20, 5)):
        archive.sample(thread, time, metric, value)
    archive.sample(thread, 15, odd, 2.5)
    assert list(archive.analyze().counters) == ["c", "d"]
    # A library refuses to write it: mode, type of the values and base stand side by side.
    definitions = archive.anchor.with_suffix(".def")
    content = definitions.read_bytes()
    known = bytes((MetricMode.ABSOLUTE_LAST.value, Type.DOUBLE.value, 1))
    assert content.count(known) == 1
    definitions.write_bytes(content.replace(known, bytes((known[0], 99, 1))))
    result = whywait.analyze(archive.anchor, causes=False)
    assert (list(result.counters), result.counters["c"].total, notes(result, "metric")) == (["c"], 4, 1)


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_an_infinite_value_is_a_missing_sample(archive, value):
    thread, metric = archive.stream(), archive.metric("c", value_type=Type.DOUBLE)
    for time, sample in ((10, 1.0), (20, value), (30, 5.0)):
        archive.sample(thread, time, metric, sample)
    result = archive.analyze()
    assert (result.counters["c"].total, notes(result, "metric_not_a_number")) == (4, 1)


def test_without_counters_there_is_nothing_to_say(tmp_path, capsys):
    anchor = DATA / "p2p"
    result = whywait.analyze(anchor, causes=False)
    assert not result.counters
    assert result.counters.instructions_per_cycle is None
    assert main(["analyze", str(anchor), "-o", str(tmp_path), "--counters", "--quiet"]) == 0
    assert not any(name.startswith("counter:") for name in pq.read_schema(tmp_path / "wait_states.parquet").names)
    assert main(["counters", str(anchor)]) == 0
    assert "Counter  " not in capsys.readouterr().out


def nested(archive, occurrence, lacking=()):
    """Run foo from 20 to 50 in main, with a sample before each Enter and Leave, but not at the times `lacking`."""
    thread = archive.stream()
    foo = archive.definitions.region("foo")
    archive.events[thread][1:1] = [(20, "enter", (foo,)), (50, "leave", (foo,))]
    member = archive.definitions.metric_member(
        "c", metric_type=MetricType.PAPI, metric_mode=MetricMode.ACCUMULATED_START, value_type=Type.INT64, unit="#"
    )
    metric = archive.definitions.metric_class([member], occurrence=occurrence)
    archive.events[thread] = [
        entry
        for event in archive.events[thread]
        for entry in ([] if event[0] in lacking else [(event[0], "metric", (metric, event[0] * 10))]) + [event]
    ]
    return archive


def in_order(archive):
    """Analyze the events as they stand."""
    for location, events in archive.events.items():
        writer = archive.trace.event_writer_from_location(location)
        for time, what, arguments in events:
            getattr(writer, what)(1000 + time, *arguments)
    archive.open.__exit__(None, None, None)
    return whywait.analyze(archive.anchor, causes=False)


@pytest.mark.parametrize(("lacking", "count"), [((), 0), ((20,), 1), ((20, 50), 1)])
def test_a_missing_sample_of_a_strict_class_is_counted(archive, lacking, count):
    result = in_order(nested(archive, MetricOccurrence.SYNCHRONOUS_STRICT, lacking))
    found = {row["callpath"][-1]: row["value"] for row in result.counters["c"].by_callpath().to_pylist()}
    # The growth is steady, so that shares by time are right.
    assert (found, notes(result, "metric_missing")) == ({"main": 700, "foo": 300}, count)


def test_other_classes_may_lack_samples(archive):
    result = in_order(nested(archive, MetricOccurrence.SYNCHRONOUS, (20,)))
    assert (result.counters["c"].total, notes(result, "metric_missing")) == (1000, 0)


def stamp(time):
    """Return a record of a time."""
    return b"\x05" + (1000 + time).to_bytes(8, "little")


def test_times_of_a_metric_location_that_run_backwards_are_set_to_the_latest(archive):
    archive.stream()
    recorder, metric = archive.stream(kind=LocationType.METRIC), archive.metric("c", mode=MetricMode.ABSOLUTE_NEXT)
    instance = archive.definitions.metric_instance(metric, recorder, scope=archive.groups[0])
    for time, value in ((0, 1), (40, 5), (60, 7), (80, 0)):
        archive.events[recorder].append((time, "metric", (instance, value)))
    in_order(archive)
    # A library refuses to write it: the two times change places in the file.
    (file,) = (file for file in archive.anchor.parent.glob("traces/*.evt") if stamp(60) in file.read_bytes())
    before, _, rest = file.read_bytes().partition(stamp(40))
    file.write_bytes(before + stamp(60) + rest.replace(stamp(60), stamp(40), 1))
    result = whywait.analyze(archive.anchor, causes=False)
    found = result.counters["c"]
    # 1 from 0 to 6 s; 5 is replaced at 6 s by 7, which holds until 8 s.
    assert found.total == pytest.approx(1 * 6 + 7 * 2)
    assert (notes(result, "time_backwards"), found.maximum) == (1, 7)


@pytest.mark.parametrize(
    ("mode", "kind", "used", "total"),
    [
        (None, "total", "ACCUMULATED_START", 4 + 0 + 5),
        ("absolute", "level", "ABSOLUTE_POINT", 7 + 8 + 9.5),
        ("absolute_next", "level", "ABSOLUTE_NEXT", 5 + 9 + 7),
        ("relative_last", "total", "RELATIVE_LAST", 9 + 7 + 12),
    ],
)
def test_a_caller_may_know_the_mode_better(archive, mode, kind, used, total):
    thread, metric = archive.stream(), archive.metric("c")
    for time, value in ((0, 5), (10, 9), (20, 7), (30, 12)):
        archive.sample(thread, time, metric, value)
    archive.analyze()
    modes = {} if mode is None else {"c": mode}
    found = whywait.analyze(archive.anchor, causes=False, counter_modes=modes).counters["c"]
    tail = 12 * 7 if mode == "absolute_next" else 0  # The last value holds until the end.
    assert (found.kind, found.used_mode, found.mode) == (kind, used, "ACCUMULATED_START")
    assert found.total == pytest.approx(total + tail)


def test_a_mode_is_of_a_counter_that_there_is(archive):
    thread, metric = archive.stream(), archive.metric("c")
    archive.sample(thread, 0, metric, 5)
    archive.analyze()
    with pytest.raises(whywait.UsageError, match="defines no counter d"):
        whywait.analyze(archive.anchor, counter_modes={"d": "absolute"})
    with pytest.raises(whywait.UsageError, match="STEEP is not a metric mode"):
        whywait.analyze(archive.anchor, counter_modes={"c": "steep"})
