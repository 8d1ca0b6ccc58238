"""Counters that are odd or wrong: one test for each row of the table of bad input in the specification of counters."""

from __future__ import annotations

from copy import copy
from pathlib import Path

import otf2
import pytest
import whywait
from otf2.enums import LocationType, MetricMode, MetricOccurrence, MetricType, Type
from whywait.cli import main

DATA = Path(__file__).parent / "data"
ASYNC = MetricOccurrence.ASYNCHRONOUS


class Archive:
    """An archive with processes of one thread each, which all run main from 0 to 10 s, and calls to write samples."""

    def __init__(self, directory, processes=1):
        self.anchor = Path(directory) / "archive" / "traces.otf2"
        self.open = otf2.writer.open(str(self.anchor.parent), timer_resolution=10)
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


def test_an_exponent_that_no_number_has_leaves_values_as_they_are(archive):
    thread, metric = archive.stream(), archive.metric("c", exponent=400)
    archive.sample(thread, 10, metric, 1)
    archive.sample(thread, 20, metric, 5)
    result = archive.analyze()
    assert (result.counters["c"].total, notes(result, "metric_definition")) == (4, 1)


def test_without_counters_there_is_nothing_to_say(tmp_path, capsys):
    anchor = DATA / "p2p"
    result = whywait.analyze(anchor, causes=False)
    assert not result.counters
    assert result.counters.instructions_per_cycle is None
    assert main(["analyze", str(anchor), "-o", str(tmp_path), "--counters", "--quiet"]) == 0
    assert not any(name.startswith("counter:") for name in whywait.load(tmp_path).wait_states().column_names)
    assert main(["counters", str(anchor)]) == 0
    assert "Counter  " not in capsys.readouterr().out
