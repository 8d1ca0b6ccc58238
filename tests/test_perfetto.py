"""A timeline for Perfetto says what the tables say. Files are decoded with the classes of the package `perfetto`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import whywait
from otf2.enums import MetricMode
from whywait.cli import main

from tests.test_counters import STRICT, archive, counter
from tests.test_sampling import steps
from tests.tracedsl import trace_from_text

trace_pb2 = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="the package perfetto decodes the files"
)

DATA = Path(__file__).parent / "data"
TRACES = ["stencil", "collectives", "p2p", "intercomm", "rma_fence", "rma_gats_rdma", "rma_lock_sm", "sor_locks"]
VALUES = ("string_value", "string_value_iid", "int_value", "double_value")


@dataclass
class Slice:
    name: str
    category: str
    track: int
    begin: int
    end: int | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    depth: int = 0


class Timeline:
    """A file as Perfetto reads it: events in the order of time, those of a time in the order of the file."""

    def __init__(self, path: Path) -> None:
        trace = trace_pb2.Trace()
        trace.ParseFromString(path.read_bytes())
        self.tracks: dict[int, Any] = {}
        self.names: dict[str, dict[int, str]] = defaultdict(dict)
        events = []
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            for kind, entries in packet.interned_data.ListFields():
                for entry in entries:
                    text = entry.str.decode() if hasattr(entry, "str") else entry.name
                    assert self.names[kind.name].setdefault(entry.iid, text) == text
            if packet.HasField("track_descriptor"):
                assert packet.track_descriptor.uuid not in self.tracks
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                # Interned names must be defined before use.
                events.append((packet.timestamp, packet.track_event, self.arguments(packet.track_event)))
        self.slices: list[Slice] = []
        self.instants: list[Slice] = []
        self.counters: dict[int, list[tuple[int, float]]] = defaultdict(list)
        self.flows: dict[int, list[tuple[str, Slice]]] = defaultdict(list)
        open_: dict[int, list[Slice]] = defaultdict(list)
        for time, event, arguments in sorted(events, key=lambda event: event[0]):
            assert event.track_uuid in self.tracks
            stack = open_[event.track_uuid]
            if event.type == event.TYPE_COUNTER:
                self.counters[event.track_uuid].append((time, event.double_counter_value))
                continue
            if event.type == event.TYPE_SLICE_END:
                slice_ = stack.pop()
                slice_.end = time
                slice_.arguments |= arguments
            else:
                name = event.name or self.names["event_names"][event.name_iid]
                category = self.names["event_categories"][event.category_iids[0]]
                slice_ = Slice(name, category, event.track_uuid, time, None, arguments, len(stack))
                if event.type == event.TYPE_SLICE_BEGIN:
                    stack.append(slice_)
                    self.slices.append(slice_)
                else:
                    assert event.type == event.TYPE_INSTANT
                    self.instants.append(slice_)
            for flow in event.flow_ids:
                assert not self.flows[flow]
                self.flows[flow].append(slice_)
            for flow in event.terminating_flow_ids:
                assert len(self.flows[flow]) == 1
                self.flows[flow].append(slice_)
        assert not any(open_.values())

    def arguments(self, event) -> dict[str, Any]:
        found = {}
        for annotation in event.debug_annotations:
            (kind,) = (kind for kind in VALUES if annotation.HasField(kind))
            value = getattr(annotation, kind)
            if kind == "string_value_iid":
                value = self.names["debug_annotation_string_values"][value]
            found[self.names["debug_annotation_names"][annotation.name_iid]] = value
        return found

    def of(self, category: str) -> list[Slice]:
        return [slice_ for slice_ in self.slices if slice_.category == category]

    def place(self, slice_: Slice) -> tuple[str, str]:
        """Process and thread of a slice."""
        track = self.tracks[slice_.track]
        while not track.HasField("thread"):
            track = self.tracks[track.parent_uuid]
        return self.tracks[track.parent_uuid].process.process_name, track.thread.thread_name

    def arrows(self, category: str, other: str) -> list[tuple[Slice, Slice]]:
        pairs = [tuple(ends) for ends in self.flows.values()]
        return [(a, b) for a, b in pairs if (a.category, b.category) == (category, other)]


def written(result, tmp_path, **options):
    counts = result.write_timeline(tmp_path / "run.pftrace", **options)
    assert counts["bytes"] == (tmp_path / "run.pftrace").stat().st_size
    return counts, Timeline(tmp_path / "run.pftrace")


@pytest.fixture(scope="module", params=TRACES)
def run(request, tmp_path_factory):
    result = whywait.analyze(DATA / request.param)
    return result, *written(result, tmp_path_factory.mktemp(request.param))


def nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def places(result) -> list[tuple[str, str]]:
    return [(f"Rank {row['rank']}", row["name"]) for row in result.locations.to_pylist()]


def test_calls_are_the_events(run):
    result, counts, timeline = run
    resolution = result.facts["resolution"]
    first = min(t[0].as_py() for i in range(result.locations.num_rows) if len(t := result.run.events(i)["time"]))
    names = dict(zip(*(result.run.definitions["Region"][c].to_pylist() for c in ("id", "name")), strict=True))
    program = result.tree.path(result.tree.roots[0])[0]
    found = defaultdict(list)
    for slice_ in timeline.of("region"):
        found[timeline.place(slice_)].append((slice_.begin, slice_.end, slice_.name, slice_.depth))
    total = 0
    for location, place in enumerate(places(result)):
        expected, stack = [], []
        for event in result.run.events(location).to_pylist():
            time = round((event["time"] - first) * 10**9 / resolution)
            if event["type"] in ("Enter", "ProgramBegin"):
                stack.append((time, names[event["region"]] if event["type"] == "Enter" else program))
            elif event["type"] in ("Leave", "ProgramEnd"):
                begin, name = stack.pop()
                expected.append((begin, time, name, len(stack)))
        assert sorted(found[place]) == sorted(expected)
        total += len(expected)
    assert counts["calls"] == total == result.metrics["visits"].total
    assert counts["threads"] == result.locations.num_rows


def test_waits_are_those_of_the_table(run):
    result, counts, timeline = run
    table = result.wait_states().to_pylist()
    slices = timeline.of("wait_state")
    assert counts["wait_states"] == len(slices) == len(table)
    where = places(result)

    def key(place, kind, callpath, waiting):
        return place, kind, callpath, round(waiting * 1e9)

    expected = Counter(
        key(where[row["location"]], row["kind"], "/".join(row["callpath"]), row["waiting"]) for row in table
    )
    found = Counter(
        key(timeline.place(s), s.arguments["metric"], s.arguments["callpath"], s.arguments["waiting"]) for s in slices
    )
    assert found == expected
    labels = {name: values.display_name for name, values in result.metrics.items()}
    for slice_ in slices:
        assert abs(slice_.end - slice_.begin - slice_.arguments["waiting"] * 1e9) <= 1
        assert slice_.name == labels[slice_.arguments["metric"]]
    for kind in {row["kind"] for row in table}:
        length = sum(s.end - s.begin for s in slices if s.arguments["metric"] == kind)
        assert length == pytest.approx(result.metrics[kind].total * 1e9, abs=len(slices))


def test_waits_lie_in_their_calls(run):
    result, _, timeline = run
    calls = defaultdict(list)
    for slice_ in timeline.of("region"):
        calls[timeline.place(slice_)].append(slice_)
    upper_bound = {name for name in result.metrics if name.endswith(("_last_call", "_away"))}
    for slice_ in timeline.of("wait_state"):
        if slice_.arguments["metric"] not in upper_bound:
            name = slice_.arguments["callpath"].split("/")[-1]
            assert any(
                call.name == name and call.begin <= slice_.begin and slice_.end <= call.end
                for call in calls[timeline.place(slice_)]
            )


def test_arrows_of_causes(run):
    result, counts, timeline = run
    rows = [row for row in result.wait_states().to_pylist() if row["cause_callpath"] is not None]
    arrows = timeline.arrows("region", "wait_state")
    assert counts["cause_flows"] == len(arrows)
    assert counts["cause_flows"] + counts["backwards"] >= len(rows)
    where = places(result)
    expected = Counter(
        (where[row["location"]], row["kind"], where[row["cause_location"]], row["cause_callpath"][-1],
         nanoseconds(row["cause_time"])) for row in rows
    )  # fmt: skip
    found = Counter(
        (timeline.place(wait), wait.arguments["metric"], timeline.place(cause), cause.name, cause.begin)
        for cause, wait in arrows
    )
    assert found <= expected
    for cause, wait in arrows:
        assert cause.begin <= wait.end
        assert wait.arguments["cause_callpath"].split("/")[-1] == cause.name
        assert f"Rank {wait.arguments['cause_rank']}" == timeline.place(cause)[0]


def test_arrows_of_messages(run):
    result, counts, timeline = run
    arrows = timeline.arrows("region", "region")
    messages = [
        sum(result.metrics[name].total for name in names)
        for names in (("comms_send", "syncs_send"), ("comms_recv", "syncs_recv"))
    ]
    assert counts["message_flows"] == len(arrows)
    assert len(arrows) == messages[0] == messages[1]
    for category, name in (("bytes_sent", "bytes_sent"), ("bytes_received", "bytes_rcvd")):
        moved = sum(slice_.arguments.get(category, 0) for slice_ in timeline.of("region"))
        assert moved == result.metrics[name].total
    for sender, receiver in arrows:
        assert sender.begin < receiver.end


def test_transfers_are_those_of_the_table(run):
    result, counts, timeline = run
    rows = result.transfers().to_pylist()
    where = places(result)
    assert counts["transfers"] == len(timeline.instants) == len(rows)
    assert Counter(
        (where[row["source_location"]], row["kind"], nanoseconds(row["start"]), row["bytes"], row["window"],
         row["destination_rank"]) for row in rows
    ) == Counter(
        (timeline.place(moment), moment.name, moment.begin, moment.arguments["bytes"], moment.arguments["window"],
         moment.arguments["destination_rank"]) for moment in timeline.instants
    )  # fmt: skip
    arrows = timeline.arrows("one_sided", "region")
    assert counts["transfer_flows"] == len(arrows)
    assert Counter(
        (where[row["source_location"]], nanoseconds(row["start"]), nanoseconds(row["end"]))
        for row in rows if row["end"] is not None
    ) == Counter((timeline.place(start), start.begin, end.end) for start, end in arrows)  # fmt: skip
    ends = {(where[row[f"{name}_location"]], nanoseconds(row["end"])) for row in rows if row["end"] is not None
            for name in ("origin", "destination")}  # fmt: skip
    assert {(timeline.place(end), end.end) for _, end in arrows} <= ends


def test_the_critical_path(run):
    result, counts, timeline = run
    rows = result.critical_path().to_pylist()
    slices = timeline.of("critical_path")
    assert counts["critical_path"] == len(slices) == len(rows)
    assert sorted((s.begin, s.end, s.arguments["rank"], s.arguments["thread"]) for s in slices) == sorted(
        (nanoseconds(row["from"]), nanoseconds(row["to"]), row["rank"], row["thread"]) for row in rows
    )
    assert [s.arguments["hop"] for s in slices if "hop" in s.arguments] == [row["hop"] for row in rows if row["hop"]]


def test_every_arrow_has_two_ends(run):
    _, counts, timeline = run
    assert all(len(ends) == 2 for ends in timeline.flows.values())
    kinds = counts["message_flows"] + counts["cause_flows"] + counts["transfer_flows"]
    assert len(timeline.flows) == kinds


# What is chosen --------------------------------------------------------------------------------------


def same(timeline: Timeline, slices: list[Slice]) -> Counter:
    return Counter((timeline.place(s), s.category, s.name, s.begin, s.end) for s in slices)


@pytest.mark.parametrize(
    ("ranks", "window", "shortest"),
    [([1, 3], None, 0), (None, (0.4, 0.42), 0), (None, None, 1e-4), ([0, 1, 2], (0.45, 0.6), 2e-6)],
)
def test_only_what_is_chosen(tmp_path, ranks, window, shortest):
    result = whywait.analyze(DATA / "stencil")
    _, everything = written(result, tmp_path)
    counts, some = written(result, tmp_path, ranks=ranks, window=window, min_duration=shortest)
    begin, end = (nanoseconds(bound) for bound in window or (0, 1e9))

    def is_chosen(slice_):
        rank = f"Rank {slice_.arguments['rank']}" if slice_.category == "critical_path" else everything.place(slice_)[0]
        inside = slice_.begin <= end and slice_.end >= begin and slice_.end - slice_.begin >= shortest * 1e9
        return inside and (ranks is None or rank in {f"Rank {one}" for one in ranks})

    for category in ("region", "wait_state"):
        chosen = [slice_ for slice_ in everything.of(category) if is_chosen(slice_)]
        assert same(some, some.of(category)) == same(everything, chosen)
        assert 0 < len(chosen) < len(everything.of(category))
    path = [(s.begin, s.end) for s in everything.of("critical_path") if is_chosen(s)]
    assert [(s.begin, s.end) for s in some.of("critical_path")] == path
    # Of the arrows those are left that have both ends.
    for kinds in (("region", "region"), ("region", "wait_state")):
        left = [ends for ends in everything.arrows(*kinds) if is_chosen(ends[0]) and is_chosen(ends[1])]
        assert len(some.arrows(*kinds)) == len(left)
    assert counts["threads"] == (8 if ranks is None else len(ranks))


def test_a_long_minimum_duration_leaves_an_empty_timeline(tmp_path):
    result = whywait.analyze(DATA / "p2p")
    counts, timeline = written(result, tmp_path, min_duration=1e6)
    assert counts["calls"] == counts["wait_states"] == 0
    assert not timeline.slices


# Cases by hand ---------------------------------------------------------------------------------------


def test_two_messages_and_a_cause(tmp_path):
    trace = trace_from_text(
        """
        ranks 2
        0: main [0, 10]
        1: main [0, 10]
        0: MPI_Isend(1, tag=1, bytes=4, req=1) [1, 1.5]
        0: MPI_Send(1, bytes=100) [5, 5.25]
        0: MPI_Wait(1) [6, 6.5]
        1: MPI_Recv(0) [2, 5.5]
        1: MPI_Recv(0, tag=1) [7, 7.5]
        """,
        tmp_path,
    )
    counts, timeline = written(whywait.analyze(trace), tmp_path)
    assert counts["message_flows"] == 2
    arrows = {(a.name, a.begin, b.name, b.end) for a, b in timeline.arrows("region", "region")}
    assert arrows == {
        ("MPI_Isend", 1_000_000_000, "MPI_Recv", 7_500_000_000),
        ("MPI_Send", 5_000_000_000, "MPI_Recv", 5_500_000_000),
    }
    # Both the wait and what it is besides, one in the other, have their cause.
    waits = timeline.arrows("region", "wait_state")
    assert [(wait.name, wait.depth) for _, wait in waits] == [
        ("Late Sender", 0), ("From same source", 1),
    ]  # fmt: skip
    for cause, wait in waits:
        assert (cause.name, cause.begin) == ("MPI_Send", 5_000_000_000)
        assert (wait.begin, wait.end) == (2_000_000_000, 5_000_000_000)
    assert timeline.tracks[wait.track].name == "Wait states"
    assert timeline.tracks[cause.track].thread.tid % 10 == 0
    order = [t.process.process_name for t in timeline.tracks.values() if t.HasField("process")]
    assert order == ["Rank 0", "Rank 1"]


def test_an_arrow_never_goes_backwards(tmp_path):
    trace = trace_from_text(
        """
        ranks 2
        0: main [0, 10]
        1: main [0, 10]
        0: MPI_Send(1) [5, 6]
        1: MPI_Recv(0) [1, 2]
        """,
        tmp_path,
    )
    counts, timeline = written(whywait.analyze(trace), tmp_path)
    assert (counts["message_flows"], counts["cause_flows"], counts["backwards"]) == (0, 0, 2)
    assert not timeline.flows
    (wait,) = timeline.of("wait_state")
    assert (wait.begin, wait.end) == (1_000_000_000, 2_000_000_000)


# The command line ------------------------------------------------------------------------------------


def test_export_perfetto_selects_ranks_and_a_window(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "perfetto", str(DATA / "stencil"), "--json", "--ranks", "0-2,5", "--window", "0:0.01"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == "stencil.pftrace"
    timeline = Timeline(tmp_path / "stencil.pftrace")
    assert told["threads"] == 4
    assert told["calls"] == len(timeline.of("region"))
    assert main(["export", "perfetto", str(DATA / "stencil"), "-o", "x.pftrace", "--min-duration", "1e-5"]) == 0
    assert capsys.readouterr().out.startswith("Written to x.pftrace: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["stencil.pftrace", "x.pftrace"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--ranks", "0-99"], "the run has no rank 8; the last one is rank 7"),
        (["--window", "100:200"], "nothing is in the window from 100 to 200 s"),
        (["-o", "."], "is a directory, not a file to write to"),
    ],
)
def test_a_wrong_selection_is_refused(options, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["export", "perfetto", str(DATA / "stencil"), *options]) == 2
    assert text in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options", [["--ranks", "a"], ["--ranks", "3-1"], ["--window", "1"], ["--window", "2:1"], ["--min-duration", "-1"]]
)
def test_a_malformed_option_is_a_usage_error(options, capsys):
    with pytest.raises(SystemExit) as error:
        main(["export", "perfetto", str(DATA / "stencil"), *options])
    assert error.value.code == 2
    assert options[0] in capsys.readouterr().err


def test_a_written_result_has_no_events(tmp_path):
    result = whywait.analyze(DATA / "p2p")
    result.write(tmp_path)
    from whywait import load

    with pytest.raises(whywait.UsageError, match="has no events"):
        load(tmp_path).write_timeline(tmp_path / "x.pftrace")


def test_an_interrupted_file_is_not_there(tmp_path):
    result = whywait.analyze(DATA / "p2p")
    (tmp_path / "run.pftrace").write_text("before")
    with pytest.raises(whywait.UsageError):
        result.write_timeline(tmp_path / "run.pftrace", ranks=[1000])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_counters_are_counter_tracks(tmp_path):
    """Of a total its growth in a second, of a level itself; below the thread, or the process, that they speak of."""
    stream = [(0, 0, (100,)), (0, 1, (8,)), (0, "enter", "main"), (20, 0, (300,)), (20, "enter", "foo"),
              (50, 0, (900,)), (50, 1, (2,)), (50, "leave", "foo"), (100, 0, (1000,)),
              (100, "leave", "main")]  # fmt: skip
    metrics = [(0, 2, (0,)), (100, 2, (5,))]
    counters = [
        counter("INS", occurrence=STRICT),
        counter("memory", MetricMode.ABSOLUTE_NEXT),
        counter("energy", scope="group"),
    ]
    result = whywait.analyze(archive(tmp_path, counters, [stream, metrics]))
    counts, timeline = written(result, tmp_path)
    found = {timeline.tracks[track].name: values for track, values in timeline.counters.items()}
    assert counts["counters"] == len(found) == 3
    assert found["INS"] == [(0, 100), (2e9, 200), (5e9, 20), (10e9, 0)]
    assert found["memory"] == [(0, 8), (5e9, 2)]
    assert found["energy"] == [(0, 0.5), (10e9, 0)]
    above = {
        track.name: timeline.tracks[track.parent_uuid] for track in timeline.tracks.values() if track.name in found
    }
    assert above["INS"].thread.thread_name == above["memory"].thread.thread_name == "location 0"
    assert above["energy"].process.process_name == "Rank 0"
    units = {track.name: track.counter.unit_name for track in timeline.tracks.values() if track.name in found}
    assert units == {"INS": "#/s", "memory": "#", "energy": "#/s"}
    # What is shorter than the shortest slice is one stretch with what follows.
    counts, timeline = written(result, tmp_path, min_duration=3, window=(4, 6))
    found = {timeline.tracks[track].name: values for track, values in timeline.counters.items()}
    assert found["INS"] == [(0, 160), (5e9, 20), (10e9, 0)]


# Levels of the whole run


def level(timeline, name):
    """The values of a counter of the whole run."""
    tracks = [uuid for uuid, track in timeline.tracks.items() if track.name == name and track.HasField("counter")]
    assert all(not timeline.tracks[uuid].parent_uuid for uuid in tracks)
    return timeline.counters[tracks[0]] if tracks else []


def at(values, time):
    """What a counter is at a time."""
    return next((value for begin, value in reversed(values) if begin <= time), 0)


def test_how_many_ranks_wait(run):
    result, _, timeline = run
    values = level(timeline, "Ranks waiting")
    waiting = {metric.name for metric in result.profile.metrics.waiting}
    slices = [s for s in timeline.of("wait_state") if s.arguments["metric"] in waiting and s.end > s.begin]
    spans = [(timeline.place(s)[0], s.begin, s.end) for s in slices]
    assert bool(values) == bool(spans)
    times = sorted({time for _, *span in spans for time in span})
    # Times are rounded to nanoseconds: in the middle of what is longer than that nothing changes.
    middles = [(a + b) // 2 for a, b in pairwise(times) if b - a > 4]
    for middle in middles[:: max(1, len(middles) // 500)]:
        assert at(values, middle) == len({rank for rank, begin, end in spans if begin < middle < end})
    assert not values or values[-1][1] == 0
    assert all(a[1] != b[1] for a, b in pairwise(values))


def test_how_many_bytes_are_in_flight(run):
    result, _, timeline = run
    values = level(timeline, "Bytes in flight")
    spans = []
    for send, receive in timeline.arrows("region", "region"):
        if send.arguments.get("bytes_sent"):
            spans.append((send.begin, receive.end))
    transfers = result.transfers().to_pylist()
    known = [row for row in transfers if row["end"] is not None and row["end"] > row["start"]]
    spans += [(nanoseconds(row["start"]), nanoseconds(row["end"])) for row in known if row["bytes"]]
    assert bool(values) == bool(spans)
    assert all(value >= 0 for _, value in values)
    assert not values or values[-1][1] == 0
    times = sorted({time for span in spans for time in span})
    for a, b in pairwise(times):
        if b - a > 4:
            middle = (a + b) // 2
            assert (at(values, middle) > 0) == any(begin < middle < end for begin, end in spans)


def test_levels_of_a_small_run(tmp_path):
    trace = trace_from_text(
        """
        *: main [0, 10]
        0: MPI_Send(1, bytes=100) [3, 3.5]
        1: MPI_Recv(0) [1, 4]
        1: MPI_Send(0, tag=1, bytes=7) [5, 5.5]
        0: MPI_Recv(1, tag=1) [5.25, 8]
        """,
        tmp_path / "trace",
    )
    result = whywait.analyze(trace)
    _, timeline = written(result, tmp_path)
    # Late Sender, then Late Receiver, both on rank 1.
    assert level(timeline, "Ranks waiting") == [(1e9, 1), (3e9, 0), (5e9, 1), (5.25e9, 0)]
    assert level(timeline, "Bytes in flight") == [(3e9, 100), (4e9, 0), (5e9, 7), (8e9, 0)]
    units = {track.name: track.counter.unit_name for track in timeline.tracks.values() if track.HasField("counter")}
    assert units == {"Ranks waiting": "ranks", "Bytes in flight": "bytes"}
    # A window begins with what is there then.
    _, timeline = written(result, tmp_path, window=(2, 3.25))
    assert level(timeline, "Ranks waiting") == [(2e9, 1), (3e9, 0)]
    assert level(timeline, "Bytes in flight") == [(3e9, 100)]
    _, timeline = written(result, tmp_path, window=(6, 7))
    assert level(timeline, "Bytes in flight") == [(6e9, 7)]
    # Of chosen ranks their own waits, and what goes to or from them.
    _, timeline = written(result, tmp_path, ranks=[0])
    assert level(timeline, "Ranks waiting") == []
    assert len(level(timeline, "Bytes in flight")) == 4


def test_samples_are_instants_below_their_threads(tmp_path):
    result = whywait.analyze(trace_from_text(steps(late="a b b/x b/x", count=10), tmp_path / "trace"))
    counts, timeline = written(result, tmp_path)
    instants = [one for one in timeline.instants if one.category == "sample"]
    found = [(timeline.place(one)[0], one.begin, one.name, one.arguments["callpath"]) for one in instants]
    rows = result.samples().to_pylist()
    assert sorted(found) == sorted(
        (f"Rank {row['rank']}", nanoseconds(row["time"]), row["callpath"][-1], "/".join(row["callpath"]))
        for row in rows
    )
    assert counts["samples"] == len(rows) == 60
    _, timeline = written(result, tmp_path, ranks=[1], window=(1, 3))
    assert [one.name for one in timeline.instants] == ["a", "b", "x", "x"]


def test_ids_end_in_the_rank(run):
    result, _, timeline = run
    processes = {t.process.process_name: t.process.pid for t in timeline.tracks.values() if t.HasField("process")}
    digits = len(str(max([*result.locations["rank"].to_pylist(), result.locations.num_rows])))
    for name, pid in processes.items():
        assert pid == 10**digits + int(name.removeprefix("Rank "))
    threads = [(t.thread.pid, t.thread.tid) for t in timeline.tracks.values() if t.HasField("thread")]
    assert len({tid for _, tid in threads}) == len(threads)
    first = [tid for pid, tid in threads if pid == tid]
    assert sorted(first) == sorted(processes.values())
