"""The timeline agrees with the events: its data against a naive count, and its drawing in a browser."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import whywait
from hypothesis import given, note, settings
from otf2.enums import LocationType, MetricMode
from whywait import _native, load
from whywait.cli import main
from whywait.report.html import timeline

from tests.browser import Page, Viewer, unpack_columns, unpack_document
from tests.fake_native import MAIN, FakeAnalysis
from tests.fake_native import result as fake_result
from tests.programs import programs
from tests.test_counters_input import Archive
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
NUMBER = {name: number for number, (name, _, _) in enumerate(timeline.CLASSES)}
PLANES = len(timeline.CLASSES) + 1
# Waits that do not begin with their call.
ELSEWHERE = ("completion", "progress", "late_complete", "exchange_latereceiver")


def build(result, *, cells=1 << 12, calls=100_000, most=10_000):
    built = timeline._draw(result, result.tables.analysis, cells, calls, most)
    for name in ("calls", "waits", "messages", "transfers", "tasks", "locks"):
        built[name] = (pa.table(built[name][0]), built[name][1])
    for level in built["levels"]:
        shape = (PLANES, level["rows"], level["bins"])
        level["shares"] = np.frombuffer(level["shares"], np.uint8).reshape(shape)
    return built


def tops(result):
    """The kinds of waits that waiting is made of."""
    return {metric.name for metric in result.profile.metrics.waiting}


def naive_shares(result, level):
    """Shares by class, location and bin, from the events and the waits, one after the other."""
    width, bins = level["width"], level["bins"]
    resolution = result.facts["resolution"]
    classes = timeline.classes(result.tree)
    locations = result.locations.num_rows
    first = min(t[0].as_py() for i in range(locations) if len(t := result.run.events(i)["time"]))
    seconds = np.zeros((PLANES, locations, bins))
    waiting = defaultdict(list)
    for wait in result.wait_states().to_pylist():
        if wait["kind"] in tops(result):
            waiting[wait["location"]].append((wait["enter"], wait["enter"] + wait["waiting"]))
    regions = result.run.definitions["Region"].to_pylist()
    name_of = {region["id"]: region["name"] for region in regions}
    number = {tuple(result.tree.path(c)): c for c in range(len(result.tree))}
    program = tuple(result.tree.path(result.tree.roots[0]))

    def add(plane, location, begin, end):
        for number in range(max(0, int(begin / width) - 1), min(bins, int(end / width) + 2)):
            inside = min(end, (number + 1) * width) - max(begin, number * width)
            seconds[plane, location, number] += max(0.0, inside)

    for location in range(locations):
        stack, before = [], None
        for event in result.run.events(location).to_pylist():
            if event["type"] not in ("Enter", "Leave", "ProgramBegin", "ProgramEnd"):
                continue
            now = (event["time"] - first) / resolution
            if stack:
                cuts = sorted({before, now, *(t for w in waiting[location] for t in w if before < t < now)})
                for begin, end in pairwise(cuts):
                    waits = any(b <= begin and end <= e for b, e in waiting[location])
                    add(PLANES - 1 if waits else classes[number[stack[-1]]], location, begin, end)
            if event["type"] == "Enter":
                stack.append((*(stack[-1] if stack else ()), name_of[event["region"]]))
            elif event["type"] == "ProgramBegin":
                stack.append(program)
            else:
                stack.pop()
            before = now
    return seconds / width


def check_shares(result, **options):
    (level,) = build(result, **options)["levels"]
    expected = naive_shares(result, level)
    assert level["merged"] == 1
    np.testing.assert_allclose(level["shares"] / 255, expected, atol=0.5 / 255 + 1e-6)


# Data ------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(trace=programs())
def test_shares_are_those_of_a_naive_count(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(trace_from_text(trace, directory))
        if not any(kind.endswith(ELSEWHERE) for kind in tops(result) & set(result.wait_states()["kind"].to_pylist())):
            check_shares(result, cells=200)


def test_shares_of_calls_and_waits(tmp_path):
    trace = trace_from_text(
        """
        ranks 2
        0: main [0, 10]
        1: main [0, 10]
        0: MPI_Send(1) [5, 5.5]
        1: MPI_Recv(0) [2, 6]
        """,
        tmp_path,
    )
    result = whywait.analyze(trace)
    check_shares(result, cells=20)
    (level,) = build(result, cells=20)["levels"]
    assert (level["rows"], level["bins"], level["width"]) == (2, 10, 1.0)
    shares = level["shares"]
    assert shares[-1, 1].tolist() == [0, 0, 255, 255, 255, 0, 0, 0, 0, 0]
    assert shares[NUMBER["p2p"], 0].tolist() == [0, 0, 0, 0, 0, 128, 0, 0, 0, 0]
    assert shares[NUMBER["p2p"], 1].tolist() == [0, 0, 0, 0, 0, 255, 0, 0, 0, 0]
    assert shares[NUMBER["work"], 1].tolist() == [255, 255, 0, 0, 0, 0, 255, 255, 255, 255]


@pytest.mark.parametrize("name", ["stencil", "collectives", "rma_gats_rdma", "sor_locks"])
def test_shares_add_up_to_the_time(name):
    result = whywait.analyze(DATA / name)
    (level,) = build(result, cells=1 << 16)["levels"]
    seconds = level["shares"].sum(axis=(1, 2)) / 255 * level["width"]
    cells = level["rows"] * level["bins"]
    assert seconds.sum() == pytest.approx(result.metrics["time"].total, rel=1e-3)
    waiting = sum(result.metrics[kind].total for kind in tops(result))
    assert seconds[-1] == pytest.approx(waiting, rel=0.02, abs=cells * level["width"] / 255)


def test_calls_are_the_events():
    result = whywait.analyze(DATA / "stencil")
    calls, total = build(result)["calls"]
    assert total == calls.num_rows == result.metrics["visits"].total
    inclusive = {row["callpath_id"]: row["inclusive"] for row in result.metrics["time"].by_callpath().to_pylist()}
    length = np.bincount(calls["callpath"].to_numpy(), calls["leave"].to_numpy() - calls["enter"].to_numpy())
    for callpath, seconds in inclusive.items():
        assert length[callpath] == pytest.approx(seconds, rel=1e-9)
    assert build(result, calls=total - 1)["calls"][0].num_rows == 0
    assert build(result, calls=total - 1)["calls"][1] == total


@pytest.mark.parametrize("name", ["omp_nested", "mixed"])
def test_forks_and_joins_are_those_of_the_account(name):
    """On each location; the master is in no other function meanwhile."""
    result = whywait.analyze(DATA / name)
    rows = result.account("all", by="location").to_pylist()
    accounted = {row["location"]: row["time"] for row in rows if row["row"] == "threads.fork_join"}
    built = build(result, cells=1 << 16)
    calls = built["calls"][0].to_pylist()
    length = defaultdict(float)
    for call in calls:
        length[call["location"]] += call["is_management"] * (call["leave"] - call["enter"])
    assert {location: time for location, time in length.items() if time} == pytest.approx(accounted, rel=1e-9)
    (level,) = built["levels"]
    threads = NUMBER["threads"]
    classes = timeline.classes(result.tree)
    own = defaultdict(float)
    for call in calls:
        if call["is_management"] or classes[call["callpath"]] == threads:
            own[call["location"]] += call["leave"] - call["enter"]
    for wait in result.wait_states().to_pylist():
        if wait["kind"] in tops(result) and classes[wait["callpath_id"]] == threads:
            own[wait["location"]] -= wait["waiting"]
    drawn = level["shares"][threads].sum(axis=1) / 255 * level["width"]
    for location, time in own.items():
        assert drawn[location] == pytest.approx(time, rel=0.05, abs=level["bins"] * level["width"] / 500)


def test_the_largest_are_chosen():
    result = whywait.analyze(DATA / "stencil")
    built, few = build(result), build(result, most=50)
    waits = result.tables.wait_states
    counted = pc.is_in(waits["kind"].cast(pa.string()), pa.array(sorted(tops(result))))
    rows = built["waits"][0]["wait"].to_numpy()
    assert built["waits"][1] == rows.size == pc.sum(counted).as_py()
    lengths = waits["waiting"].to_numpy()[rows]
    assert (np.diff(lengths) <= 0).all()
    messages, total = built["messages"]
    assert total == messages.num_rows == result.metrics["comms_send"].total + result.metrics["syncs_send"].total
    waiting = messages["waiting"].to_numpy()
    assert (np.diff(waiting) <= 0).all()
    late = waits.filter(pc.equal(waits["kind"].cast(pa.string()), "mpi_latesender"))["waiting"].to_numpy()
    assert waiting.max() == late.max()
    assert (messages["end"].to_numpy() > messages["start"].to_numpy()).all()
    for name in ("waits", "messages"):
        assert few[name][0].equals(built[name][0].slice(0, 50))
        assert few[name][1] == built[name][1]


def test_transfers_are_those_of_the_table():
    result = whywait.analyze(DATA / "rma_gats_rdma")
    transfers, total = build(result)["transfers"]
    table = result.transfers()
    ended = table.filter(table["end"].is_valid())
    assert (transfers.num_rows, total) == (ended.num_rows, table.num_rows)
    columns = ("source_location", "destination_location", "start", "end", "bytes")
    expected = sorted(zip(*(ended[name].to_pylist() for name in columns), strict=True))
    found = ("from_location", "to_location", "start", "end", "bytes")
    assert sorted(zip(*(transfers[name].to_pylist() for name in found), strict=True)) == expected


def test_neighbours_share_a_row(tmp_path):
    _native.generate("sor-p2p", tmp_path, ranks=1100, iterations=1, seed=3)
    result = whywait.analyze(tmp_path)
    levels = build(result, cells=1 << 14)["levels"]
    assert [(level["merged"], level["rows"]) for level in levels] == [(4, 275), (1, 1100), (64, 18)]
    assert all(level["rows"] * level["bins"] <= 1 << 14 for level in levels)
    balanced, fine, coarse = (level["shares"].astype(float) for level in levels)
    # Over all time, a row is the mean of its locations.
    by_location = fine.mean(axis=2)
    for shares, merged in ((balanced, 4), (coarse, 64)):
        for row in range(shares.shape[1]):
            members = by_location[:, row * merged : (row + 1) * merged].mean(axis=1)
            # Bins end where the run ends, or a little later.
            np.testing.assert_allclose(shares[:, row].mean(axis=1), members, atol=255 / 10)
    total = [shares.sum(axis=(1, 2)) / (shares.shape[1] * shares.shape[2]) for shares in (balanced, fine)]
    np.testing.assert_allclose(total[0], total[1], atol=255 / 10)


def test_a_timeline_has_its_limit():
    result = whywait.analyze(DATA / "stencil")
    sizes = []
    for room in (10_000_000, 150_000, 70_000):
        _, packed = timeline.fit(result, result.tables.analysis, room)
        sizes.append(sum(len(block) for block in packed.values()))
        assert sizes[-1] <= room
    assert sizes[0] > sizes[1] > sizes[2]


def test_classes_of_call_paths():
    result = whywait.analyze(DATA / "rma_fence")
    classes = timeline.classes(result.tree)
    of = {result.tree.path(c)[-1]: timeline.CLASSES[classes[c]][0] for c in range(len(result.tree))}
    assert of["MPI_Win_fence"] == of["MPI_Put"] == "onesided"
    assert of["MPI_Barrier"] == "collective"
    assert of["MPI_Init"] == of["MPI_Finalize"] == "library"
    assert of["main"] == "work"
    result = whywait.analyze(DATA / "p2p")
    classes = timeline.classes(result.tree)
    of = {result.tree.path(c)[-1]: timeline.CLASSES[classes[c]][0] for c in range(len(result.tree))}
    assert of["MPI_Send"] == of["MPI_Recv"] == "p2p"


def test_kernels_compute(tmp_path):
    assert main(["bench", "generate", "comd-gpu", "--ranks", "2", "--iterations", "2", "-o", str(tmp_path)]) == 0
    result = whywait.analyze(tmp_path, causes=False)
    classes = timeline.classes(result.tree)
    of = {result.tree.path(c)[-1]: timeline.CLASSES[classes[c]][0] for c in range(len(result.tree))}
    assert of["force_kernel"] == of["compute"] == "work"
    assert of["hipLaunchKernel"] == of["hipDeviceSynchronize"] == "devices"


def test_a_call_path_without_a_class():
    result = whywait.analyze(DATA / "p2p")
    options = {"classes": 2, "management": 0, "waiting": [], "cells": 16, "calls": 0, "most": 1}
    with pytest.raises(whywait.UsageError, match="one of the classes"):
        _native.timeline(result.tables.analysis, class_of=b"\0", **options)
    with pytest.raises(whywait.UsageError, match="one of the classes"):
        _native.timeline(result.tables.analysis, class_of=bytes([2] * len(result.tree)), **options)


def test_a_written_result_keeps_its_timeline(tmp_path):
    result = whywait.analyze(DATA / "stencil")
    result.write(tmp_path / "results", html=True)
    assert load(tmp_path / "results").timeline == result.timeline
    page = tmp_path / "again.html"
    assert main(["export", "html", str(tmp_path / "results"), "-o", str(page)]) == 0
    assert {name for name in Page(page).blocks if name.startswith("timeline")} == set(result.timeline)
    # A timeline left by another run is not used.
    stored = (tmp_path / "results" / "timeline.parquet").read_bytes()
    whywait.analyze(DATA / "p2p").write(tmp_path / "results", force=True)
    (tmp_path / "results" / "timeline.parquet").write_bytes(stored)
    assert load(tmp_path / "results").timeline == {}
    (tmp_path / "results" / "timeline.parquet").unlink()
    assert load(tmp_path / "results").timeline == {}


def test_its_tables_say_what_the_picture_shows(tmp_path):
    result = whywait.analyze(DATA / "stencil")
    result.write(tmp_path, html=True)
    level = timeline.fit(result, result.tables.analysis)[0].levels[0]
    cells = pq.read_table(tmp_path / "timeline.parquet")
    cells = cells.filter(pc.equal(cells["level"], 0))
    span = pc.subtract(cells["end"], cells["begin"])
    np.testing.assert_allclose(span.to_numpy(), level.width)
    bins = cells.group_by(["location", "begin"]).aggregate([("share", "sum")])
    # Each is rounded to the next 255th.
    assert pc.max(bins["share_sum"]).as_py() <= 1 + PLANES * 0.5 / 255
    # What a class has of the run is what its bins have of it.
    members = pc.add(pc.subtract(cells["last_location"], cells["location"]), 1)
    cells = cells.append_column("seconds", pc.multiply(pc.multiply(span, cells["share"]), members))
    sums = cells.group_by("class").aggregate([("seconds", "sum")])
    seconds = dict(zip(sums["class"].to_pylist(), sums["seconds_sum"].to_pylist(), strict=True))
    for name, number in [*NUMBER.items(), ("waiting", PLANES - 1)]:
        expected = level.shares[number].sum() / 255 * level.width * level.merged
        assert seconds.get(name, 0.0) == pytest.approx(expected, rel=1e-9), name
    waits = pq.read_table(tmp_path / "timeline_waits.parquet")
    of = pq.read_table(tmp_path / "wait_states.parquet").take(waits["wait"])
    assert pc.all(pc.less_equal(of["enter"], pc.add(waits["begin"], 1e-9))).as_py()
    calls = pq.read_table(tmp_path / "timeline_calls.parquet")
    assert calls.num_rows == result.metrics["visits"].total
    assert set(pq.read_table(tmp_path / "timeline_messages.parquet")["kind"].to_pylist()) == {"message"}


def test_blocks_are_those_of_the_tables():
    result = whywait.analyze(DATA / "stencil")
    packed = result.timeline
    head = unpack_document(packed["timeline"])
    waits = unpack_columns(packed["timeline-waits"])
    table = result.tables.wait_states.to_pylist()
    expected = sorted(
        (row["location"], row["enter"], row["waiting"], -1 if row["cause_location"] is None else row["cause_location"])
        for row in table if row["kind"] in tops(result) and not row["kind"].endswith(ELSEWHERE)
    )  # fmt: skip
    chosen = [not head["kinds"][kind].endswith(ELSEWHERE) for kind in waits["kind"]]
    columns = (waits[name][chosen].tolist() for name in ("location", "begin", "waiting", "cause_location"))
    found = sorted(zip(*columns, strict=True))
    assert len(found) == len(expected)
    np.testing.assert_allclose(np.array(found), np.array(expected), atol=1e-6)
    path = unpack_columns(packed["timeline-path"])
    critical = result.critical_path()
    assert path["from"].tolist() == critical["from"].to_pylist()
    assert path["location"].tolist() == critical["location"].to_pylist()
    assert head["totals"]["path"] == critical.num_rows


def test_metric_locations_have_no_row(tmp_path):
    """A metric location comes before the thread of the next process; its counter is shown after the rows."""
    archive = Archive(tmp_path, processes=2)
    recorder, thread = archive.stream(kind=LocationType.METRIC), archive.stream(process=1)
    level, total = archive.metric("level", mode=MetricMode.ABSOLUTE_NEXT), archive.metric("total")
    instance = archive.definitions.metric_instance(level, recorder, scope=archive.groups[0])
    archive.sample(recorder, 0, instance, 3)
    for time, value in ((0, 1), (100, 5)):
        archive.sample(thread, time, total, value)
    result = archive.analyze()
    metric, cpu = (result.places.table["type"].to_pylist().index(kind) for kind in ("METRIC", "CPU_THREAD"))
    assert metric < cpu
    result.write(tmp_path / "results", html=True)
    for packed in (result.timeline, load(tmp_path / "results").timeline):
        head = unpack_document(packed["timeline"])
        (level,) = head["levels"]
        assert (head["rows"], level["rows"]) == (1, 1)
        shares = unpack_columns(packed["timeline-shares"])["0"].reshape(PLANES, 1, level["bins"])
        assert (shares[NUMBER["work"], 0] == 255).all()
        assert set(unpack_columns(packed["timeline-calls"])["location"].tolist()) == {0}
        assert unpack_columns(packed["timeline-places"])["location"].tolist() == [cpu, metric]
        courses = unpack_document(packed["timeline-courses"])
        values = unpack_columns(packed["timeline-counters"])
        names = [name for name, _ in courses["counters"]]
        known = {name: np.isfinite(values[str(i)].reshape(2, -1)).any(axis=1).tolist() for i, name in enumerate(names)}
        assert known == {"level": [False, True], "total": [True, False]}


# A browser -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    result = whywait.analyze(DATA / "stencil")
    path = tmp_path_factory.mktemp("stencil") / "report.html"
    result.write_html(path)
    return result, path


class Times(Viewer):
    """The timeline in a browser."""

    def open(self, address=""):
        super().open(address)
        self.until("document.querySelector('.times')?.dataset.shows")
        return self

    def window(self):
        """From and to, as the address says when it has settled."""
        self.js("return new Promise((settled) => setTimeout(settled, 250))")
        query = dict(part.split("=") for part in self.js("return location.hash").partition("?")[2].split("&"))
        return float(query["from"]), float(query["to"])

    def at(self, kind, time, row, **more):
        """Send an event of the pointer at a time in a row of the picture."""
        self.js(
            "const [kind, share, row, more] = arguments; const canvas = document.querySelector('.times');"
            "const box = canvas.getBoundingClientRect();"
            "const x = box.left + 84 + share * (box.width - 84); const y = box.top + 22 + row * (box.height - 22);"
            "const type = kind.startsWith('pointer') ? PointerEvent : kind === 'wheel' ? WheelEvent : MouseEvent;"
            "canvas.dispatchEvent(new type(kind,"
            " { clientX: x, clientY: y, bubbles: true, cancelable: true, pointerId: 1, ...more }))",
            kind, time, row, more,
        )  # fmt: skip

    def colours(self):
        """Number of colours in the canvas."""
        return self.js(
            "const canvas = document.querySelector('.times'); const { width, height } = canvas;"
            "const copy = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });"
            "copy.drawImage(canvas, 0, 0);"
            "return new Set(new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer)).size"
        )


def test_what_the_timeline_shows_when_it_zooms(browser, stencil):
    result, path = stencil
    times = Times(browser, path).open("#timeline")
    length = result.facts["length"]
    assert times.js("return document.querySelector('.times').dataset.shows") == "shares"
    assert times.colours() > 4
    times.press(".times", "+", "+")
    begin, end = times.window()
    # It begins with the focus.
    first, last = result.facts["focus_begin"], result.facts["focus_end"]
    assert end - begin == pytest.approx((last - first) / 4, abs=1e-8)
    assert (begin + end) / 2 == pytest.approx((first + last) / 2, abs=1e-8)
    times.press(".times", "+", "+")
    times.until("document.querySelector('.times').dataset.shows === 'calls'")
    times.press("body", "0")
    assert times.window() == pytest.approx((0, length), abs=1e-8)
    # The wheel zooms about the pointer: what is under it stays.
    times.at("wheel", 0.25, 0.5, deltaY=-150)
    begin, end = times.window()
    assert end - begin < 0.7 * length
    assert begin + 0.25 * (end - begin) == pytest.approx(length / 4, rel=1e-3)
    times.is_well()


def test_a_deep_link_to_a_window(browser, stencil):
    _, path = stencil
    times = Times(browser, path).open("#timeline?from=0.45&to=0.47&places=2-4")
    assert times.text(".crumbs") == "0.45000 s to 0.47000 s (20.0 ms), rank 2 to rank 4"
    assert times.window() == pytest.approx((0.45, 0.47))
    assert "places=2-4" in times.js("return location.hash")
    assert times.js("return document.querySelector('nav [data-view=timeline]').getAttribute('aria-current')") == "page"
    times.is_well()


def test_the_longest_wait_and_its_cause(browser, stencil):
    result, path = stencil
    waits = [row for row in result.wait_states().to_pylist() if row["kind"] in tops(result)]
    longest = max(waits, key=lambda row: row["waiting"])
    times = Times(browser, path).open("#timeline")
    times.press("body", "w")
    told = times.text(".picked")
    assert f"rank {longest['rank']}: Late Sender: waits {longest['waiting'] * 1e3:.1f} ms" in told
    assert f"for rank {longest['cause_rank']}" in told
    assert f"from {longest['enter']:.9f} s to {longest['enter'] + longest['waiting']:.9f} s" in told
    begin, end = times.window()
    assert begin < longest["enter"] < longest["enter"] + longest["waiting"] < end
    times.click(".picked button")
    begin, end = times.window()
    assert (begin + end) / 2 == pytest.approx(longest["cause_time"], abs=1e-6)
    times.is_well()
    times.open("#timeline")
    times.press("body", "w")
    times.js("document.querySelectorAll('.picked a')[0].click()")
    times.until("document.querySelectorAll('.box').length")
    assert (times.selected("metrics"), times.selected("call-tree")) == ("Late Sender", longest["callpath"][-1])
    assert times.selected("system") == f"MPI Rank {longest['rank']}"
    times.is_well()


def test_clicking_and_hovering(browser, stencil):
    result, path = stencil
    longest = max((row for row in result.wait_states().to_pylist() if row["kind"] == "mpi_latesender"),
                  key=lambda row: row["waiting"])  # fmt: skip
    begin, end = longest["enter"] - 0.001, longest["leave"] + 0.001
    times = Times(browser, path).open(f"#timeline?from={begin:.9f}&to={end:.9f}")
    times.js("Element.prototype.setPointerCapture = () => {}")
    row = (longest["location"] + 0.5) / result.locations.num_rows
    times.at("pointermove", 0.5, row)
    told = times.text("#tip")
    assert f"rank {longest['rank']}" in told
    assert " → ".join(longest["callpath"]) in told
    assert f"waits {longest['waiting'] * 1e3:.1f} ms for rank {longest['cause_rank']}" in told
    times.at("pointerdown", 0.5, row)
    times.at("pointerup", 0.5, row)
    assert times.text(".picked").startswith(f"rank {longest['rank']}: Late Sender")
    # Far away there are shares of what a location does.
    times.press("body", "0")
    times.until("document.querySelector('.times').dataset.shows === 'shares'")
    times.at("pointermove", 0.2, 0.5)
    assert "Other library calls100.0%" in times.text("#tip")
    times.is_well()


def test_layers_can_be_left_out(browser, stencil):
    _, path = stencil
    times = Times(browser, path).open("#timeline?from=0.45&to=0.47")
    picture = "return document.querySelector('.times').toDataURL()"
    settled = "return new Promise((settled) => requestAnimationFrame(() => requestAnimationFrame(settled)))"
    for layer in ("waits", "path", "messages", "causes"):
        before = times.js(picture)
        times.click(f"[data-layer={layer}]")
        times.js(settled)
        assert times.js(picture) != before
    times.is_well()


def test_from_the_explorer_to_the_timeline(browser, stencil):
    result, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=mpi_latesender")
    viewer.until("document.querySelectorAll('.instances button').length")
    viewer.click(".instances li > button")
    viewer.click(".instances .jumps a")
    viewer.until("document.querySelector('.times')?.dataset.shows")
    longest = max((w for w in result.wait_states().to_pylist() if w["kind"] == "mpi_latesender"),
                  key=lambda w: w["waiting"])  # fmt: skip
    query = dict(part.split("=") for part in viewer.js("return location.hash").partition("?")[2].split("&"))
    assert float(query["from"]) < longest["enter"] < longest["leave"] < float(query["to"])
    viewer.is_well()


def test_a_report_without_events_says_why_it_has_no_timeline(browser, tmp_path):
    found = fake_result(FakeAnalysis([None], [MAIN], [(0, 0), (1, 0)], {"time": {(0, 0): 1.0, (0, 1): 2.0}}))
    found.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#timeline")
    assert "This report has no timeline" in viewer.text("main")
    viewer.is_well()


def test_a_timeline_of_2000_ranks_can_be_browsed(browser, tmp_path):
    _native.generate("sor-fence", tmp_path / "trace", ranks=2000, iterations=2, seed=1)
    result = whywait.analyze(tmp_path / "trace")
    result.write_html(tmp_path / "report.html")
    times = Times(browser, tmp_path / "report.html").open("#timeline")
    assert times.colours() > 3
    assert "to rank" not in times.text(".crumbs")
    for _ in range(6):
        times.press("body", "+", "]")
    times.window()
    assert rows_of(times.text(".crumbs")) < 64
    assert times.colours() > 3
    times.press("body", "w")
    assert "waits" in times.text(".picked")
    times.is_well()


def rows_of(text):
    first, last = (int(part) for part in text.rpartition(", rank ")[2].split(" to rank "))
    return last - first + 1
