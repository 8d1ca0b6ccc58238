"""Counters recorded in a trace: worked examples, random samples against a naive division, Score-P's profiles."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import otf2
import pyarrow.parquet as pq
import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from otf2.enums import LocationType, MeasurementMode, MetricMode, MetricOccurrence, MetricType, Type
from whywait.report.explanation import differences, explanation_lines, rates

from tests.results import SHARED, UNRECORDED
from tests.test_mpi import JOB, mpiexec
from tests.tracedsl import new_archive, trace_from_text

STRICT, ASYNC = MetricOccurrence.SYNCHRONOUS_STRICT, MetricOccurrence.ASYNCHRONOUS


def archive(directory, counters, streams, processes=None):
    """Write an archive.

    `processes` is the number of the process of each stream, by default 0.

    `counters` is a list of options of metric members, each in a class of its own. Each stream is a list of
    (time, "enter"/"leave"/"flush"/"on"/"off"/number of a counter, region, end or value); a stream without regions is a
    metric location. An option `scope` of a counter, "group" or "node", makes an instance of its class for the process
    of the first stream.
    """
    place = Path(directory) / "archive"
    with new_archive(str(place), timer_resolution=10) as trace:
        definitions = trace.definitions
        node = definitions.system_tree_node("machine")
        processes = processes or [0] * len(streams)
        groups = [
            definitions.location_group(f"process {number}", system_tree_parent=node)
            for number in range(max(processes) + 1)
        ]
        regions = {}
        classes = []
        scopes = []
        for options in counters:
            occurrence = options.pop("occurrence", ASYNC)
            scopes.append(options.pop("scope", None))
            member = definitions.metric_member(**options)
            classes.append(definitions.metric_class((member,), occurrence=occurrence))
        instances = {}
        for number, stream in enumerate(streams):
            kinds = {what for _, what, _ in stream}
            kind = LocationType.CPU_THREAD if kinds & {"enter", "leave"} else LocationType.METRIC
            location = definitions.location(f"location {number}", type=kind, group=groups[processes[number]])
            writer = trace.event_writer_from_location(location)
            for what, scope in enumerate(scopes):
                if scope is not None and what in kinds:
                    place_of = {"group": groups[0], "node": node}[scope]
                    instances[what] = definitions.metric_instance(classes[what], location, scope=place_of)
            for time, what, value in stream:
                if what in {"enter", "leave"}:
                    if value not in regions:
                        regions[value] = definitions.region(value)
                    getattr(writer, what)(1000 + time, regions[value])
                elif what in {"on", "off"}:
                    writer.measurement_on_off(1000 + time, getattr(MeasurementMode, what.upper()))
                elif what == "flush":
                    writer.buffer_flush(1000 + time, 1000 + value)
                else:
                    writer.metric(1000 + time, instances.get(what, classes[what]), value)
    return place / "traces.otf2"


def counter(name="c", mode=MetricMode.ACCUMULATED_START, kind=MetricType.PAPI, value_type=Type.INT64, **options):
    return {"name": name, "metric_mode": mode, "metric_type": kind, "value_type": value_type, "unit": "#", **options}


# Rank 1 works three times as long: the same instructions, three times the misses. Rank 0 waits for it, and spins.
TWO_RANKS = """
    counters INS MISS
    *: MPI_Barrier [0, 0.1]
    0: work(INS=1000, MISS=100) [0.1, 1.1]
    1: work(INS=1000, MISS=300) [0.1, 3.1]
    0: MPI_Recv(1, INS=500, MISS=1) [1.1, 3.3]
    1: MPI_Send(0, INS=7) [3.1, 3.2]
    *: MPI_Barrier [4, 4.1]
"""


# A worker of rank 1 sends late because of what its master did before the fork.
TWO_TEAMS = """
    ranks 2
    threads 2
    counters INS
    *: MPI_Init [0, 1]
    0: work(INS=300) [1, 2]
    0: fork [3, 11]
    0: !$omp parallel [3, 11]
    0.1: !$omp parallel [3, 11]
    0.1: MPI_Recv(1) [3, 6]
    1: work(INS=900) [1, 5]
    1: fork [6, 11]
    1: !$omp parallel [6, 11]
    1.1: !$omp parallel [6, 11]
    1.1: MPI_Send(0) [6, 6]
    *: MPI_Finalize [11, 12]
"""


def analyze(anchor):
    return whywait.analyze(anchor, causes=False)


def values(counter, column="value"):
    """Exclusive values by the last name of the call path."""
    found = defaultdict(float)
    for row in counter.cells().to_pylist():
        found[row["callpath"][-1] if row["callpath"] else None] += row[column]
    return {name: value for name, value in found.items() if value}


def test_a_strict_counter_belongs_to_what_ran_between_its_samples(tmp_path):
    """100 at main's Enter, 300 and 900 at foo's, 1000 at main's Leave."""
    stream = [(0, 0, (100,)), (0, "enter", "main"), (20, 0, (300,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, "leave", "foo"), (100, 0, (1000,)), (100, "leave", "main")]  # fmt: skip
    found = analyze(archive(tmp_path, [counter(occurrence=STRICT)], [stream])).counters["c"]
    assert values(found) == {"foo": 600, "main": 300}
    assert (found.kind, found.total, found.outside, found.samples) == ("total", 900, 0, 4)
    (main,) = (row for row in found.by_callpath().to_pylist() if row["callpath"] == ["main"])
    assert main["inclusive"] == 900


def test_a_missing_sample_is_made_up_by_time(tmp_path):
    """No samples at foo's Enter and Leave: 1000 over 10 s, of which foo has 3."""
    stream = [(0, 0, (0,)), (0, "enter", "main"), (20, "enter", "foo"), (50, "leave", "foo"),
              (100, 0, (1000,)), (100, "leave", "main")]  # fmt: skip
    found = analyze(archive(tmp_path, [counter(occurrence=STRICT)], [stream])).counters["c"]
    assert values(found) == {"foo": 300, "main": 700}


def test_a_level_is_integrated(tmp_path):
    """100, 300, 0 from 1, 3, 6 s on; main [0, 8] calls foo [2, 4]: before the first sample nothing is known."""
    stream = [(0, "enter", "main"), (10, 0, (100,)), (20, "enter", "foo"), (30, 0, (300,)), (40, "leave", "foo"),
              (60, 0, (0,)), (80, "leave", "main")]  # fmt: skip
    found = analyze(archive(tmp_path, [counter(mode=MetricMode.ABSOLUTE_NEXT)], [stream])).counters["c"]
    assert values(found) == pytest.approx({"foo": 400, "main": 700})
    assert values(found, "seconds") == pytest.approx({"foo": 2, "main": 5})
    assert (found.kind, found.maximum, found.mean) == ("level", 300, pytest.approx(1100 / 7))


def test_stretches_of_time_have_the_mean_of_a_level(tmp_path):
    """100, 300, 0 from 1, 3, 6 s on; in [0, 4] known for 3 s."""
    stream = [(0, "enter", "main"), (10, 0, (100,)), (30, 0, (300,)), (60, 0, (0,)), (80, "leave", "main")]
    counters = analyze(archive(tmp_path, [counter(mode=MetricMode.ABSOLUTE_NEXT)], [stream])).counters
    asked = {"location": [0, 0], "begin": [0, 0], "end": [4, 0.5], "callpath": [None, None]}
    assert counters.during(asked)["c"].to_pylist() == [500, None]
    assert counters.during(asked, means=True)["c"].to_pylist() == [pytest.approx(500 / 3), None]


def test_a_level_has_a_mean_at_each_call_path_and_rank(tmp_path):
    """100 from 1 to 3 s, 300 to 6 s, then 0; main [0, 8] calls foo [2, 4]; on rank 1, 50 for 4 s."""
    stream = [(0, "enter", "main"), (10, 0, (100,)), (20, "enter", "foo"), (30, 0, (300,)), (40, "leave", "foo"),
              (60, 0, (0,)), (80, "leave", "main")]  # fmt: skip
    other = [(0, "enter", "main"), (40, 0, (50,)), (80, "leave", "main")]
    options = counter(mode=MetricMode.ABSOLUTE_NEXT)
    found = analyze(archive(tmp_path, [options], [stream, other], [0, 1])).counters["c"]
    rows = {row["callpath"][-1]: row for row in found.by_callpath().to_pylist()}
    assert rows["foo"]["mean"] == rows["foo"]["inclusive_mean"] == pytest.approx(400 / 2)
    assert rows["main"]["mean"] == pytest.approx((700 + 200) / (5 + 4))
    assert rows["main"]["inclusive_mean"] == pytest.approx((700 + 200 + 400) / (5 + 4 + 2))
    assert [rows[name]["maximum"] for name in ("foo", "main")] == [300, 300]
    assert [rows[name]["minimum"] for name in ("foo", "main")] == [100, 0]
    assert [row["mean"] for row in found.by_rank().to_pylist()] == pytest.approx([1100 / 7, 50])
    assert [row["mean"] for row in found.by_location().to_pylist()] == pytest.approx([1100 / 7, 50])


def test_a_total_has_no_mean(tmp_path):
    stream = [(0, "enter", "main"), (10, 0, (100,)), (80, 0, (170,)), (80, "leave", "main")]
    found = analyze(archive(tmp_path, [counter()], [stream])).counters["c"]
    for table in (found.by_callpath(), found.by_rank(), found.by_location()):
        assert table["mean"].to_pylist() == [None]


def test_a_plugins_total_that_falls_is_a_level(tmp_path):
    stream = [(0, "enter", "main"), *((10 * i, 0, (v,)) for i, v in enumerate((5, 9, 7, 12))), (40, "leave", "main")]
    result = analyze(archive(tmp_path, [counter(kind=MetricType.OTHER)], [stream]))
    found = result.counters["c"]
    assert (found.mode, found.kind, found.mean) == ("ACCUMULATED_START", "level", pytest.approx((7 + 8 + 9.5) / 3))
    (note,) = (warning for warning in result.warnings if warning["kind"] == "metric_mode")
    assert note["text"].endswith("first: c")


def test_a_trusted_total_that_falls_was_reset(tmp_path):
    stream = [(0, "enter", "main"), *((10 * i, 0, (v,)) for i, v in enumerate((5, 9, 7, 12))), (40, "leave", "main")]
    result = analyze(archive(tmp_path, [counter()], [stream]))
    assert (result.counters["c"].kind, result.counters["c"].total) == ("total", 9)
    assert [warning["count"] for warning in result.warnings if warning["kind"] == "metric_reset"] == [1]


def test_large_negative_and_real_values(tmp_path):
    counters = [
        counter("large", value_type=Type.UINT64),
        counter("negative", MetricMode.ABSOLUTE_POINT),
        counter("real", MetricMode.RELATIVE_POINT, value_type=Type.DOUBLE, exponent=-3),
    ]
    stream = [(0, "enter", "main"), (1, 0, (2**64 - 10,)), (2, 0, (2**64 - 3,)), (3, 1, (-7,)), (4, 1, (-9,)),
              (5, 2, (1.5,)), (6, 2, (float("nan"),)), (7, 2, (2.5,)), (8, "leave", "main")]  # fmt: skip
    result = analyze(archive(tmp_path, counters, [stream]))
    assert result.counters["large"].total == 7
    assert (result.counters["negative"].mean, result.counters["negative"].minimum) == (-8, -9)
    assert result.counters["real"].total == pytest.approx(0.004)
    assert [warning["count"] for warning in result.warnings if warning["kind"] == "metric_not_a_number"] == [1]


@pytest.mark.parametrize("scope", [None, "group", "node"])
def test_a_counter_of_a_process_is_divided_over_time_and_threads(tmp_path, scope):
    """0, 40, 120 at 0, 4, 8 s; the master calls foo [2, 6] in main [0, 8]; a second thread runs bar [0, 8]."""
    master = [(0, "enter", "main"), (20, "enter", "foo"), (60, "leave", "foo"), (80, "leave", "main")]
    samples = [(0, 0, (0,)), (40, 0, (40,)), (80, 0, (120,))]

    def analyzed(name, *streams):
        anchor = archive(tmp_path / name, [counter(scope=scope)], [*streams, samples])
        return analyze(anchor).counters["c"]

    one = analyzed("one", master)
    assert values(one) == {"foo": 60, "main": 60}
    assert (one.total, one.outside, one.samples) == (120, 0, 3)
    two = analyzed("two", master, [(0, "enter", "bar"), (80, "leave", "bar")])
    assert values(two) == {"foo": 30, "main": 30, "bar": 60}
    assert two.by_location()["value"].to_pylist() == [60, 60]
    # A thread that runs half of the time only: the other half of its part is outside.
    half = analyzed("half", master, [(0, "enter", "bar"), (40, "leave", "bar")])
    assert (values(half)["bar"], half.outside, half.total) == (20, 40, 120)


@pytest.mark.parametrize("scope", [None, "group"])
def test_a_flush_gets_nothing_of_a_counter(tmp_path, scope):
    """0, 600, 610 at 0, 10, 11 s; main [0, 12] calls foo [2, 4]; the buffer is written in [5, 9] and [10, 11]."""
    stream = [(0, "enter", "main"), (20, "enter", "foo"), (40, "leave", "foo"), (50, "flush", 90),
              (100, "flush", 110), (120, "leave", "main")]  # fmt: skip
    samples = [(0, 0, (0,)), (0, 1, (100,)), (100, 0, (600,)), (110, 0, (610,)), (110, 1, (300,))]
    options = counter(scope=scope), counter("level", MetricMode.ABSOLUTE_NEXT, scope=scope)
    streams = [sorted(stream + samples, key=lambda row: row[0])] if scope is None else [stream, samples]
    result = analyze(archive(tmp_path, list(options), streams))
    found, level = result.counters["c"], result.counters["level"]
    assert (values(found), found.total) == ({"foo": 200, "main": 410}, 610)
    assert values(level) == pytest.approx({"foo": 200, "main": 400 + 300})
    assert values(level, "seconds") == pytest.approx({"foo": 2, "main": 5})
    (of_windows,) = {
        tuple(sum(values(result.counters.window(*window)[name]).get(path, 0) for window in tiling)
              for name in ("c", "level") for path in ("foo", "main"))
        for tiling in ([(0, 12)], [(0, 3), (3, 7), (7, 12)])
    }  # fmt: skip
    assert of_windows == pytest.approx((200, 410, 200, 700))


def test_a_counter_of_a_node_is_divided_over_its_processes(tmp_path):
    stream = [(0, "enter", "main"), (80, "leave", "main")]
    streams = [stream, [(0, 0, (0,)), (80, 0, (11,))], stream, stream]
    anchor = archive(tmp_path, [counter(scope="node")], streams, [0, 0, 1, 2])
    found = analyze(anchor).counters["c"]
    # Whole parts that add up.
    assert sorted(found.by_location()["value"].to_pylist()) == [3, 4, 4]
    done = mpiexec(3, JOB, "compare", anchor.parent)
    assert done.returncode == 0, done.stderr


def test_a_level_of_a_process_has_its_mean_whatever_the_number_of_threads(tmp_path):
    stream = [(0, "enter", "main"), (80, "leave", "main")]
    samples = [(0, 0, (100,)), (40, 0, (300,)), (80, 0, (0,))]
    options = counter(mode=MetricMode.ABSOLUTE_NEXT, scope="group")
    for threads in (1, 2, 3):
        place = tmp_path / str(threads)
        found = analyze(archive(place, [dict(options)], [*threads * [stream], samples])).counters["c"]
        assert (found.mean, found.maximum, found.total) == (pytest.approx(200), 300, pytest.approx(1600))


def test_a_counter_without_a_thread_in_its_process_is_outside(tmp_path):
    streams = [[(0, "enter", "main"), (80, "leave", "main")], [(0, 0, (0,)), (40, 0, (40,)), (80, 0, (120,))]]
    found = analyze(archive(tmp_path, [counter()], streams, [0, 1])).counters["c"]
    assert (found.total, found.outside) == (120, 120)
    assert not found.by_callpath().num_rows


def test_windows_cut_a_counter_by_time(tmp_path):
    """0 at 0 s, 100 at 10 s."""
    stream = [(0, 0, (0,)), (0, "enter", "main"), (100, 0, (100,)), (100, "leave", "main")]
    for scope in (None, "group"):
        result = analyze(archive(tmp_path / str(scope), [counter(scope=scope)], [stream]))
        for begin, end, amount in ((2.5, 5, 25), (0, 0.1, 1), (0.1, 0.4, 3), (0.4, 10, 96)):
            assert result.counters.window(begin, end)["c"].total == amount


def test_a_counter_with_one_sample_has_a_value_and_no_growth(tmp_path):
    stream = [(0, "enter", "main"), (10, 0, (42,)), (20, "leave", "main")]
    found = analyze(archive(tmp_path, [counter()], [stream])).counters["c"]
    assert (found.total, found.minimum, found.maximum, found.samples) == (0, 42, 42, 1)


def test_two_counters_of_one_name_stay_two(tmp_path):
    stream = [(0, "enter", "main"), (1, 0, (1,)), (2, 0, (3,)), (3, 1, (5,)), (4, 1, (9,)), (5, "leave", "main")]
    counters = analyze(archive(tmp_path, [counter(), counter(unit="s")], [stream])).counters
    assert {name: found.total for name, found in counters.items()} == {"c": 2, "c (2)": 4}


def test_a_written_result_has_its_counters(tmp_path):
    stream = [(0, 0, (100,)), (0, "enter", "main"), (20, 0, (300,)), (20, 1, (7,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, "leave", "foo"), (100, 0, (1000,)), (100, "leave", "main")]  # fmt: skip
    counters = [counter(occurrence=STRICT), counter("level", MetricMode.ABSOLUTE_NEXT)]
    result = analyze(archive(tmp_path, counters, [stream]))
    result.write(tmp_path / "results")
    back = whywait.load(tmp_path / "results")
    assert list(back.counters) == ["c", "level"]
    for name, found in back.counters.items():
        assert found.as_dict() == result.counters[name].as_dict()
        assert found.cells() == result.counters[name].cells()
    # What was read can be written again, and read again.
    back.write(tmp_path / "again")
    assert whywait.load(tmp_path / "again").counters["c"].total == 900


def test_a_result_without_counters_has_none(tmp_path):
    result = analyze(archive(tmp_path, [], [[(0, "enter", "main"), (10, "leave", "main")]]))
    assert not result.counters
    result.write(tmp_path / "results")
    assert not (tmp_path / "results" / "counters.parquet").exists()
    assert not whywait.load(tmp_path / "results").counters


def test_only_locations_with_samples_have_cells(tmp_path):
    plain = [(0, "enter", "main"), (100, "leave", "main")]
    stream = [(0, 0, (1,)), *plain, (100, 0, (5,))]
    result = analyze(archive(tmp_path, [counter()], [stream, *63 * [plain]], range(64)))
    assert set(result.tables.counter_cells["location"].to_pylist()) == {0}
    assert result.counters["c"].by_location()["location"].to_pylist() == [0]


def test_counters_do_not_depend_on_a_memory_limit(tmp_path):
    stream = [(0, 0, (100,)), (0, "enter", "main"), (50, 0, (900,)), (100, "leave", "main")]
    anchor = archive(tmp_path, [counter(), counter("level", MetricMode.ABSOLUTE_POINT)], [stream])
    limited = whywait.analyze(anchor, causes=False, memory_limit=2 << 30, spill_directory=tmp_path)
    assert limited.tables.counter_cells == analyze(anchor).tables.counter_cells


def test_processes_share_the_work(tmp_path):
    stream = [(0, 0, (100,)), (0, "enter", "main"), (20, 0, (300,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, "leave", "foo"), (100, 0, (1000,)), (100, "leave", "main")]  # fmt: skip
    anchor = archive(tmp_path, [counter(occurrence=STRICT)], 4 * [stream], range(4))
    assert analyze(anchor).counters["c"].by_location()["value"].to_pylist() == [900] * 4
    done = mpiexec(3, JOB, "compare", anchor.parent)
    assert done.returncode == 0, done.stderr


@st.composite
def streams(draw):
    """Draw a stream of nested regions with samples of a total in between, many at one time."""
    stream, stack, time, value = [], [], 0, 0
    for _ in range(draw(st.integers(2, 30))):
        time += draw(st.sampled_from((0, 0, 1, 3)))
        what = draw(st.sampled_from(("enter", "leave", "sample", "sample")))
        if what == "enter":
            stack.append(draw(st.sampled_from("fgh")))
            stream.append((time, "enter", stack[-1]))
        elif what == "leave" and stack:
            stream.append((time, "leave", stack.pop()))
        else:
            value += draw(st.integers(0, 50))
            stream.append((time, 0, (value,)))
    while stack:
        stream.append((time, "leave", stack.pop()))
    return [(0, "enter", "begin"), (0, "leave", "begin"), *stream]


def divided(stream):
    """Divide the growth between two samples over the names of innermost regions, tick by tick."""
    sums, stack, before = defaultdict(int), [], None
    ticks = []  # what ran in each tick since the sample before
    now = 0
    for time, what, value in stream:
        ticks += [tuple(stack)] * (time - now)
        now = time
        if what == "enter":
            stack.append(value)
        elif what == "leave":
            stack.pop()
        else:
            if before is not None:
                growth = value[0] - before
                given = 0
                for i, where in enumerate(ticks):
                    upto = growth * (i + 1) // len(ticks)
                    sums[where] += upto - given
                    given = upto
                if not ticks:
                    sums[tuple(stack)] += growth
            before, ticks = value[0], []
    return {where: value for where, value in sums.items() if value}


@settings(max_examples=60, deadline=None)
@given(stream=streams())
def test_program_agrees_with_naive_division(stream):
    with tempfile.TemporaryDirectory() as directory:
        result = analyze(archive(directory, [counter()], [stream]))
        samples = [value for _, what, (value, *_) in stream if what == 0]
        if not samples:
            assert not result.counters
            return
        found = result.counters["c"]
    cells = {tuple(row["callpath"] or ()): row["value"] for row in found.cells().to_pylist() if row["value"]}
    assert cells == divided(stream)
    assert found.total == samples[-1] - samples[0]
    assert found.total == sum(values(found).values())


@settings(max_examples=40, deadline=None)
@given(stream=streams(), own=st.booleans(), cuts=st.lists(st.integers(1, 60), max_size=4))
def test_windows_that_tile_a_run_add_up(stream, own, cuts):
    with tempfile.TemporaryDirectory() as directory:
        result = analyze(archive(directory, [counter(scope=None if own else "group")], [stream]))
        if not result.counters:
            return
        whole = result.counters["c"]
        length = result.facts["length"]
        bounds = [0.0, *sorted({cut / 10 for cut in cuts if cut / 10 < length}), length]
        windows = [result.counters.window(a, b).get("c") for a, b in pairwise(bounds)]
    assert sum(window.total for window in windows if window) == whole.total


@settings(max_examples=40, deadline=None)
@given(stream=streams(), spans=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5))
def test_changes_in_stretches_agree_with_lines_between_samples(stream, spans):
    samples = {}
    for time, what, value in stream:
        if what == 0:
            samples[time] = value[0]
    if not samples:
        return
    first, last = min(samples), max(samples)

    def upto(time):
        time = min(max(time, first), last)
        before, behind = max(t for t in samples if t <= time), min(t for t in samples if t >= time)
        if before == behind:
            return samples[before]
        # What was sampled first at a time is what lines lead to: only its last value is known here.
        return None

    with tempfile.TemporaryDirectory() as directory:
        result = analyze(archive(directory, [counter()], [stream]))
        asked = {"location": [0] * len(spans), "begin": [min(s) / 10 for s in spans],
                 "end": [max(s) / 10 for s in spans], "callpath": [None] * len(spans)}  # fmt: skip
        found = result.counters.during(asked).to_pydict().get("c", [None] * len(spans))
    for (a, b), amount in zip((sorted(span) for span in spans), found, strict=True):
        if a > last or b < first:
            assert amount is None
        elif (begin := upto(a)) is not None and (end := upto(b)) is not None:
            assert amount == end - begin


@pytest.mark.parametrize("case", ["counters_perf", "counters_user"])
def test_score_ps_profile_has_the_same_sums(case):
    place = SHARED / "cases" / case
    if not place.exists():
        pytest.skip(UNRECORDED)
    with gzip.open(place / "profile.json.gz") as file:
        profile = json.load(file)["data"]
    result = analyze(place / "archive")
    assert result.counters
    for name, found in result.counters.items():
        # Score-P's profile has microseconds where the unit is a second.
        scale = 1e-6 if found.unit == "s" else 1
        theirs = defaultdict(float)
        for row in profile[name.replace("-", "_")]:
            if isinstance(row.get("exclusive"), (int, float)):
                theirs[tuple(row["callpath"]), row["rank"], row["thread"]] += row["exclusive"] * scale
        # The profile also has changes before the first and after the last sample, at the program.
        theirs = {cell: value for cell, value in theirs.items() if value and len(cell[0]) > 1}
        # Of a level it has the sum of the samples.
        column = "value" if found.kind == "total" else "sampled"
        ours = {
            (tuple(row["callpath"]), row["rank"], row["thread"]): row[column]
            for row in found.cells().to_pylist() if row[column] and row["callpath"]
        }  # fmt: skip
        assert ours.keys() == theirs.keys(), name
        for cell, value in theirs.items():
            assert ours[cell] == pytest.approx(value, rel=1e-12), (name, cell)


@pytest.mark.parametrize(
    "case", ["cases/counters_perf/archive", "cases/counters_user/archive", "samples/ping-pong-papi"]
)
def test_cells_of_real_traces_add_up_to_what_was_recorded(case):
    place = SHARED / case
    if not place.exists():
        pytest.skip(UNRECORDED)
    anchor = next(place.glob("*.otf2"))
    first, last = {}, {}
    with otf2.reader.open(str(anchor)) as trace:
        for location, event in trace.events:
            if isinstance(event, otf2.events.Metric):
                metric = getattr(event.metric, "metric_class", event.metric)
                for member, value in zip(metric.members, event.values, strict=True):
                    if member.metric_mode == MetricMode.ACCUMULATED_START:
                        scaled = value * (10 if member.base == otf2.Base.DECIMAL else 2) ** member.exponent
                        first.setdefault((member.name, location.name, location.group.name), scaled)
                        last[member.name, location.name, location.group.name] = scaled
    assert first
    growth = defaultdict(float)
    for (name, *_), value in last.items():
        growth[name] += value
    for (name, *_), value in first.items():
        growth[name] -= value
    result = analyze(anchor)
    assert {name: result.counters[name].total for name in growth} == pytest.approx(growth, rel=1e-12)
    length = result.facts["length"]
    bounds = [0.0, 0.1 * length, 0.37 * length, 0.9 * length, length]
    windows = [result.counters.window(begin, end) for begin, end in pairwise(bounds)]
    for name, counter in result.counters.items():
        parts = sum(window[name].total for window in windows if name in window)
        assert parts == pytest.approx(counter.total, rel=1e-12, abs=1e-12), name


def test_a_real_trace_with_devices():
    """Counters of a plugin that claims they are all totals."""
    place = SHARED / "samples" / "mi300"
    if not place.exists():
        pytest.skip(UNRECORDED)
    result = analyze(place)
    power, energy = (
        result.counters[f"A2rocm_smi:::{name}:device=0"] for name in ("current_socket_power", "energy_count")
    )
    assert (power.kind, energy.kind) == ("level", "total")
    assert (power.minimum, power.maximum, power.samples) == (148e6, 502e6, 1740)
    # Two ways to measure the same: microjoules that are counted, and microwatts that are sampled.
    assert power.total == pytest.approx(energy.total, rel=3e-3)
    assert (energy.outside, power.outside) == (0, 0)
    clock = result.counters["A2coretemp:::hwmon5:freq2_input"]
    assert (clock.total, clock.minimum, clock.maximum) == (0, 1.3e9, 1.3e9)
    # Energy of device 0 while its kernel runs, linear at the ends.
    origin, resolution = result.facts["origin"], result.facts["resolution"]
    begin, end = ((tick - origin) / resolution for tick in (6127386368557734, 6127403889281692))
    in_kernel = result.counters.window(begin, end)
    assert in_kernel["A2rocm_smi:::energy_count:device=0"].total == pytest.approx(1842.5e6, abs=0.05e6)
    assert in_kernel["A2rocm_smi:::current_socket_power:device=0"].total == pytest.approx(1809.8e6, rel=1e-3)
    assert result.metrics["hip_sync"].total == pytest.approx(4.735376 + 61.9e-6 + 1.628328 + 12.5e-6, abs=2e-6)
    assert result.metrics["hip_kernel_executions"].total == pytest.approx(4.7354 + 1.6283, abs=1e-4)


def test_instructions_cycles_and_frequency_split_the_scaling_of_computation(tmp_path):
    """Twice the instructions in twice the time, at the same IPC and frequency."""

    def run(name, factor):
        counters = [counter("PAPI_TOT_INS", occurrence=STRICT), counter("PAPI_TOT_CYC", occurrence=STRICT)]
        end = 10 * factor
        stream = [(0, 0, (0,)), (0, 1, (0,)), (0, "enter", "main"),
                  (end, 0, (600 * factor,)), (end, 1, (300 * factor,)), (end, "leave", "main")]  # fmt: skip
        return analyze(archive(tmp_path / name, counters, [stream]))

    from whywait.analysis.efficiency.efficiency import scaling

    first, second = scaling([run("a", 1), run("b", 2)])
    assert first["ipc"].value == second["ipc"].value == 2
    assert second["instruction_scaling"].value == 0.5
    assert second["ipc_scaling"].value == 1
    assert second["frequency_scaling"].value == 1
    assert second["computation_scaling"].value == pytest.approx(0.5)


def test_the_course_of_a_counter_adds_up(tmp_path, capsys):
    from whywait.cli import main

    stream = [(0, 0, (0,)), (0, "enter", "main"), (40, 0, (40,)), (80, 0, (120,)), (80, "leave", "main")]
    anchor = archive(tmp_path / "own", [counter()], [stream, stream], [0, 1])
    found = analyze(anchor).counters["c"].series(4).to_pylist()
    assert [row["value"] for row in found] == 2 * [20, 20, 40, 40]
    assert [(row["rank"], row["bin"], row["begin"]) for row in found[3:5]] == [(0, 3, 6), (1, 0, 0)]
    assert main(["counters", str(anchor), "--metric", "c", "--bins", "2", "--json"]) == 0
    assert [row["value"] for row in json.loads(capsys.readouterr().out)["rows"]] == [40, 80, 40, 80]
    master = [(0, "enter", "main"), (80, "leave", "main")]
    shared = archive(tmp_path / "shared", [counter(scope="group")], [master, [(0, 0, (0,)), (80, 0, (9,))]])
    found = analyze(shared).counters["c"].series(4).to_pylist()
    assert [(row["rank"], row["bin"], row["value"]) for row in found] == [(0, 0, 2), (0, 1, 2), (0, 2, 2), (0, 3, 3)]


def test_the_course_of_a_level_has_means_and_maxima(tmp_path):
    """4 from 1 s, 6 from 3 s on, until 8 s; known at samples: 0 at 0 and 8 at 8 s, in between the mean of both."""
    counters = [counter("held", mode=MetricMode.ABSOLUTE_NEXT), counter("line", mode=MetricMode.ABSOLUTE_POINT)]
    stream = [(0, "enter", "main"), (0, 1, (0,)), (10, 0, (4,)), (30, 0, (6,)), (80, 1, (8,)), (80, "leave", "main")]
    found = analyze(archive(tmp_path, counters, [stream])).counters
    held, line = (found[name].series(4).to_pylist() for name in ("held", "line"))
    assert [row["value"] for row in held] == [4, 10, 12, 12]
    assert [(row["mean"], row["maximum"]) for row in held] == [(4, 4), (5, 6), (6, 6), (6, 6)]
    assert [(row["mean"], row["maximum"]) for row in line] == [(4, 4), (4, 4), (4, 4), (4, 8)]
    growth = analyze(
        archive(
            tmp_path / "growth", [counter()], [[(0, 0, (0,)), (0, "enter", "main"), (8, 0, (9,)), (8, "leave", "main")]]
        )
    )
    assert growth.counters["c"].series(1).select(["value", "mean", "maximum"]).to_pylist() == [
        {"value": 9, "mean": None, "maximum": None}
    ]


def test_a_counter_by_iteration(tmp_path, capsys):
    """The k-th instance of a call path at each rank: rank 0 has two steps, rank 1 three."""
    from whywait.cli import main

    def stream(*steps):
        value, time = 0, 0
        yield from [(0, 0, (0,)), (0, "enter", "main")]
        for growth, length in steps:
            yield from [(time, 0, (value,)), (time, "enter", "step")]
            time, value = time + length, value + growth
            yield from [(time, 0, (value,)), (time, "leave", "step")]
        yield (100, "leave", "main")

    counters = [counter(occurrence=STRICT), counter("shared", scope="group")]
    streams = [list(stream((5, 10), (7, 20))), list(stream((1, 10), (2, 10), (3, 30))), [(0, 1, (0,)), (40, 1, (80,))]]
    anchor = archive(tmp_path, counters, streams, [0, 1, 0])
    result = analyze(anchor)
    rows = result.counters["c"].by_iteration("main/step").to_pylist()
    assert [(row["iteration"], row["rank"], row["value"]) for row in rows] == [
        (0, 0, 5), (1, 0, 7), (0, 1, 1), (1, 1, 2), (2, 1, 3),
    ]  # fmt: skip
    assert [(row["begin"], row["time"]) for row in rows[:2]] == [(0, 1), (1, 2)]
    with pytest.raises(whywait.UsageError, match="no call path ends in nothing"):
        result.counters["c"].by_iteration("nothing")
    # The process of rank 0 alone: 2 in 0.1 s.
    shared = result.counters["shared"].by_iteration("step")
    assert shared["value"].to_pylist() == [20, 40, None, None, None]
    assert main(["counters", str(anchor), "--metric", "c", "--iterations", "step", "--json"]) == 0
    assert [row["value"] for row in json.loads(capsys.readouterr().out)["rows"]] == [5, 7, 1, 2, 3]
    assert main(["counters", str(anchor), "--iterations", "step"]) == 2
    assert main(["counters", str(anchor), "--metric", "mpi_unexpected_queue", "--iterations", "step"]) == 2
    result.write(tmp_path / "results")
    with pytest.raises(whywait.UsageError, match="has no events"):
        whywait.load(tmp_path / "results").counters["c"].by_iteration("step")


def test_totals_are_metrics_of_every_report(tmp_path):
    stream = [(0, 0, (100,)), (0, 1, (7,)), (0, "enter", "main"), (20, 0, (300,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, "leave", "foo"), (100, 0, (1000,)), (100, 1, (9,)),
              (100, "leave", "main")]  # fmt: skip
    counters = [counter("PAPI_L1_DCM", occurrence=STRICT), counter("time", value_type=Type.INT64)]
    result = analyze(archive(tmp_path, counters, [stream]))
    assert result.metrics["PAPI_L1_DCM"].total == 900
    assert (result.metrics["PAPI_L1_DCM"].unit, result.metrics["time"].total) == ("#", 10)
    # A name that another metric has.
    assert result.metrics["counter:time"].total == result.counters["counter:time"].total == 2
    rows = {row["callpath"][-1]: row["value"] for row in result.severities("PAPI_L1_DCM").to_pylist()}
    assert rows == {"main": 300, "foo": 600}
    result.write(tmp_path / "results", html=True)
    back = whywait.load(tmp_path / "results")
    assert back.severities("PAPI_L1_DCM") == result.severities("PAPI_L1_DCM")
    pycubexr = pytest.importorskip("pycubexr")
    with pycubexr.CubexParser(str(tmp_path / "results" / "report.cubex")) as cube:
        metric = cube.get_metric_by_name("PAPI_L1_DCM")
        assert (metric.units, metric.data_type) == ("#", "UINT64")
        values = cube.get_metric_values(metric)
        found = {cube.get_region(node).name: values.cnode_values(node).sum() for node in cube.all_cnodes()}
    assert (found["foo"], found["main"]) == (600, 300)


def test_waits_and_the_critical_path_have_counters(tmp_path):
    result = whywait.analyze(trace_from_text(TWO_RANKS, tmp_path / "trace"))
    (wait,) = (row for row in result.wait_states(counters=True).to_pylist() if row["kind"] == "mpi_latesender")
    assert (wait["counter:INS"], wait["counter:MISS"]) == (500, 1)
    path = result.critical_path(counters=True).to_pylist()
    assert sum(row["counter:MISS"] for row in path if row["rank"] == 1) == 300
    (work,) = result.explain(whywait.Choice("mpi_latesender"))["work"]
    assert work["counters"] == {
        "INS": {"cause": 1000, "waiter": 1000}, "MISS": {"cause": 300, "waiter": 100},
    }  # fmt: skip
    assert differences(work["counters"]) == "the same INS, 3 times the MISS"
    assert work["rates"] == {
        "INS": {"cause": pytest.approx(1000 / 3), "waiter": 1000}, "MISS": {"cause": pytest.approx(100), "waiter": 100},
    }  # fmt: skip
    assert rates(work["rates"], "rank 0") == ["INS per second: 333, rank 0: 1,000"]
    lines = explanation_lines(result.explain(), {"mpi_latesender": "Late Sender"}, 80, unicode=False)
    shown = ["".join(text for text, _ in line).strip() for line in lines]
    assert shown[-2:] == ["the same INS, 3 times the MISS", "INS per second: 333, rank 0: 1,000"]
    result.write(tmp_path / "results", counters=True)
    waits = pq.read_table(tmp_path / "results" / "wait_states.parquet")
    assert 1 in waits["counter:MISS"].to_pylist()
    back = whywait.load(tmp_path / "results")
    assert back.wait_states() == result.wait_states()
    with pytest.raises(whywait.UsageError, match="has no events"):
        back.wait_states(counters=True)


def test_the_past_of_a_worker_has_the_counters_of_its_master(tmp_path):
    result = whywait.analyze(trace_from_text(TWO_TEAMS, tmp_path))
    (work,) = result.explain(whywait.Choice("mpi_latesender"))["work"]
    assert (work["thread"], work["time"], work["waiter_thread"], work["waiter_time"]) == (0, 4, 0, 1)
    assert work["counters"] == {"INS": {"cause": 900, "waiter": 300}}
    lines = explanation_lines(result.explain(), {"mpi_latesender": "Late Sender"}, 80, unicode=False)
    shown = "".join(text for line in lines for text, _ in line)
    assert "rank 1 spent 4.00 s here, rank 0 1.00 s" in shown


def test_differences_say_what_is_alike_first():
    assert differences({}) == ""
    assert differences({"A": {"cause": 0, "waiter": 3}}) == ""
    sides = {"A": {"cause": 10, "waiter": 5}, "B": {"cause": 1, "waiter": 4}, "C": {"cause": 21, "waiter": 20}}
    assert differences(sides) == "the same C, 0.25 times the B, 2 times the A"
    assert differences(dict.fromkeys("DEF", sides["C"])) == "the same D, E, and F"


def test_rates_are_shown_where_they_differ():
    sides = {"A": {"cause": 10, "waiter": 5}, "B": {"cause": 1.5, "waiter": 6e9}, "C": {"cause": 21, "waiter": 20}}
    assert rates(sides, "rank 3.1") == [
        "B per second: 1.50, rank 3.1: 6.00 G", "A per second: 10, rank 3.1: 5",
    ]  # fmt: skip
    assert rates({"A": {"cause": 0, "waiter": 5}}, "rank 0") == []


def test_a_level_has_no_rate(tmp_path):
    result = whywait.analyze(trace_from_text(TWO_RANKS, tmp_path), counter_modes={"MISS": "absolute"})
    (work,) = result.explain(whywait.Choice("mpi_latesender"))["work"]
    assert (set(work["counters"]), set(work["rates"])) == ({"INS", "MISS"}, {"INS"})


def test_command_line(tmp_path, capsys):
    from whywait.cli import main

    stream = [(0, 0, (100,)), (0, "enter", "main"), (20, 0, (300,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, "leave", "foo"), (100, 0, (1000,)), (100, "leave", "main")]  # fmt: skip
    anchor = str(archive(tmp_path, [counter("PAPI_L1_DCM", occurrence=STRICT)], [stream]))
    assert main(["counters", anchor, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["counters"]
    assert (row["name"], row["kind"], row["total"], row["samples"]) == ("PAPI_L1_DCM", "total", 900, 4)
    assert main(["counters", anchor]) == 0
    assert "PAPI_L1_DCM" in capsys.readouterr().out
    assert main(["counters", anchor, "--metric", "PAPI_L1_DCM", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["callpath"], row["value"]) for row in rows] == [
        ("main/foo", 600), ("main", 300), ("(outside)", 0),
    ]  # fmt: skip


def test_counters_of_open_mpi_are_recorded_derived_or_not_available(tmp_path, capsys):
    from whywait.analysis.counters.spc import available, definitions
    from whywait.cli import main

    assert len({one.name for one in definitions()}) == len(definitions()) == 161
    stream = [(0, 0, (3,)), (0, "enter", "MPI_Waitall"), (10, 0, (8,)), (10, "leave", "MPI_Waitall"),
              (20, "enter", "mpi_wait_"), (30, "leave", "mpi_wait_")]  # fmt: skip
    anchor = archive(tmp_path, [counter("OMPI_SPC_OUT_OF_SEQUENCE")], [stream])
    result = whywait.analyze(anchor, causes=False, queues="estimate")
    found = {row["name"]: row for row in available(result)}
    assert len(found) == 161
    assert (found["OUT_OF_SEQUENCE"]["state"], found["OUT_OF_SEQUENCE"]["value"]) == ("recorded", 5)
    assert (found["WAITALL"]["state"], found["WAITALL"]["value"], found["WAIT"]["value"]) == ("derived", 1, 1)
    assert found["UNEXPECTED"]["source"] == "mpi_unexpected"
    assert found["BASE_BCAST_BINOMIAL"]["state"] == "not available"
    # A result without its queues says less.
    few = {row["name"]: row for row in available(analyze(anchor))}
    assert few["MAX_UNEXPECTED_IN_QUEUE"]["state"] == few["UNEXPECTED"]["state"] == "not available"
    assert main(["counters", str(anchor), "--spc", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["spc"]) == 161
    assert main(["counters", str(anchor), "--spc"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"OUT_OF_SEQUENCE +5  messages \(recorded: OMPI_SPC_OUT_OF_SEQUENCE\)", out)
    # The limit is not known: nothing went by rendezvous.
    assert found["EAGER_MESSAGES"]["state"] == found["NOT_EAGER_MESSAGES"]["state"] == "not available"
    assert main(["counters", str(anchor), "--spc", "--metric", "UNEXPECTED"]) == 2


@pytest.mark.parametrize(
    "name", ["OMPI_SPC_UNEXPECTED", "OMPI_UNEXPECTED", "SPC_UNEXPECTED", "runtime_spc_OMPI_SPC_UNEXPECTED"]
)
def test_counters_of_open_mpi_have_several_names(name, tmp_path):
    """Those of table 3.1, of table 3.3, and of MPI_T, which a plugin reads."""
    from whywait.analysis.counters.spc import available

    anchor = archive(tmp_path, [counter(name)], [[(0, 0, (0,)), (0, "enter", "f"), (10, 0, (5,)), (10, "leave", "f")]])
    found = {row["name"]: row for row in available(analyze(anchor))}
    assert (found["UNEXPECTED"]["state"], found["UNEXPECTED"]["source"]) == ("recorded", name)


def test_recorded_and_derived_counters_of_open_mpi_stand_side_by_side(tmp_path, capsys):
    """An early message of 8 bytes, and one of 100,000 bytes whose sender waits for its receiver."""
    from whywait.analysis.counters.spc import available
    from whywait.cli import main

    anchor = trace_from_text(
        """
        counters OMPI_SPC_UNEXPECTED
        0: MPI_Send(1, bytes=8) [1, 1.1]
        0: MPI_Send(1, bytes=100000) [2, 5.1]
        1: MPI_Recv(0, bytes=8, OMPI_SPC_UNEXPECTED=2) [3, 3.1]
        1: MPI_Recv(0, bytes=100000) [5, 5.2]
        """,
        tmp_path,
    )
    found = {row["name"]: row for row in available(whywait.analyze(anchor, causes=False, queues="send"))}
    unexpected = found["UNEXPECTED"]
    assert (unexpected["state"], unexpected["value"]) == ("recorded", 2)
    assert (unexpected["derived"], unexpected["derived_from"]) == (2, "mpi_unexpected")
    assert [found[name]["value"] for name in ("EAGER_MESSAGES", "NOT_EAGER_MESSAGES")] == [1, 1]
    assert main(["counters", str(anchor), "--arrival", "send", "--spc"]) == 0
    assert "(recorded: OMPI_SPC_UNEXPECTED; mpi_unexpected: 2, 1 times the value)" in capsys.readouterr().out
