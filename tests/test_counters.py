"""Counters recorded in a trace: worked examples, random samples against a naive division, Score-P's profiles."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import defaultdict
from pathlib import Path

import otf2
import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from otf2.enums import LocationType, MetricMode, MetricOccurrence, MetricType, Type

from tests.results import SHARED
from tests.test_mpi import JOB, mpiexec

STRICT, ASYNC = MetricOccurrence.SYNCHRONOUS_STRICT, MetricOccurrence.ASYNCHRONOUS


def archive(directory, counters, streams, processes=None):
    """Write an archive.

    `processes` is the number of the process of each stream, by default 0.

    `counters` is a list of options of metric members, each in a class of its own. Each stream is a list of
    (time, "enter"/"leave"/number of a counter, region or value); a stream without regions is a metric location.
    """
    place = Path(directory) / "archive"
    with otf2.writer.open(str(place), timer_resolution=10) as trace:
        definitions = trace.definitions
        node = definitions.system_tree_node("machine")
        processes = processes or [0] * len(streams)
        groups = [
            definitions.location_group(f"process {number}", system_tree_parent=node)
            for number in range(max(processes) + 1)
        ]
        regions = {}
        classes = []
        for options in counters:
            occurrence = options.pop("occurrence", ASYNC)
            member = definitions.metric_member(**options)
            classes.append(definitions.metric_class((member,), occurrence=occurrence))
        for number, stream in enumerate(streams):
            kinds = {what for _, what, _ in stream}
            kind = LocationType.CPU_THREAD if kinds & {"enter", "leave"} else LocationType.METRIC
            writer = trace.event_writer(f"location {number}", group=groups[processes[number]], type=kind)
            for time, what, value in stream:
                if what in {"enter", "leave"}:
                    if value not in regions:
                        regions[value] = definitions.region(value)
                    getattr(writer, what)(1000 + time, regions[value])
                else:
                    writer.metric(1000 + time, classes[what], value)
    return place / "traces.otf2"


def counter(name="c", mode=MetricMode.ACCUMULATED_START, kind=MetricType.PAPI, value_type=Type.INT64, **options):
    return {"name": name, "metric_mode": mode, "metric_type": kind, "value_type": value_type, "unit": "#", **options}


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
              (60, 0, (0,)), (80, 0, (0,)), (80, "leave", "main")]  # fmt: skip
    found = analyze(archive(tmp_path, [counter(mode=MetricMode.ABSOLUTE_NEXT)], [stream])).counters["c"]
    assert values(found) == pytest.approx({"foo": 400, "main": 700})
    assert values(found, "seconds") == pytest.approx({"foo": 2, "main": 5})
    assert (found.kind, found.maximum, found.mean) == ("level", 300, pytest.approx(1100 / 7))


def test_a_plugins_total_that_falls_is_a_level(tmp_path):
    stream = [(0, "enter", "main"), *((10 * i, 0, (v,)) for i, v in enumerate((5, 9, 7, 12))), (40, "leave", "main")]
    result = analyze(archive(tmp_path, [counter(kind=MetricType.OTHER)], [stream]))
    found = result.counters["c"]
    assert (found.mode, found.kind, found.mean) == ("ACCUMULATED_START", "samples", 33 / 4)
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
    assert (result.counters["negative"].total, result.counters["negative"].minimum) == (-16, -9)
    assert result.counters["real"].total == pytest.approx(0.004)
    assert [warning["count"] for warning in result.warnings if warning["kind"] == "metric_not_a_number"] == [1]


def test_a_counter_on_a_location_of_its_own_is_outside_of_all_regions(tmp_path):
    streams = [[(0, "enter", "main"), (80, "leave", "main")], [(0, 0, (0,)), (40, 0, (40,)), (80, 0, (120,))]]
    found = analyze(archive(tmp_path, [counter()], streams)).counters["c"]
    assert (found.total, found.outside) == (120, 120)
    assert not found.by_callpath().num_rows
    assert found.by_location()["value"].to_pylist() == [120]


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
    assert not whywait.load(Path(__file__).parent / "data" / "result_0_1_0").counters


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


@pytest.mark.parametrize("case", ["counters_perf", "counters_user"])
def test_score_ps_profile_has_the_same_sums(case):
    place = SHARED / "cases" / case
    if not place.exists():
        pytest.skip(f"{place} is only beside a development checkout")
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
        # The profile also has what lies before the first and behind the last sample: at the program, without records.
        theirs = {cell: value for cell, value in theirs.items() if value and len(cell[0]) > 1}
        ours = {
            (tuple(row["callpath"]), row["rank"], row["thread"]): row["value"]
            for row in found.cells().to_pylist() if row["value"] and row["callpath"]
        }  # fmt: skip
        assert ours.keys() == theirs.keys(), name
        for cell, value in theirs.items():
            assert ours[cell] == pytest.approx(value, rel=1e-12), (name, cell)


def test_instructions_cycles_and_frequency_split_the_scaling_of_computation(tmp_path):
    """Twice the instructions in twice the time, at the same IPC and frequency."""

    def run(name, factor):
        counters = [counter("PAPI_TOT_INS", occurrence=STRICT), counter("PAPI_TOT_CYC", occurrence=STRICT)]
        end = 10 * factor
        stream = [(0, 0, (0,)), (0, 1, (0,)), (0, "enter", "main"),
                  (end, 0, (600 * factor,)), (end, 1, (300 * factor,)), (end, "leave", "main")]  # fmt: skip
        return analyze(archive(tmp_path / name, counters, [stream]))

    from whywait.analysis.efficiency import scaling

    first, second = scaling([run("a", 1), run("b", 2)])
    assert first["ipc"].value == second["ipc"].value == 2
    assert second["instruction_scaling"].value == 0.5
    assert second["ipc_scaling"].value == 1
    assert second["frequency_scaling"].value == 1
    assert second["computation_scaling"].value == pytest.approx(0.5)


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
