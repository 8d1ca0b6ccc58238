"""Locks, tasks, and collective operations over time: the timeline of the page, and Perfetto's."""

from __future__ import annotations

import pytest
import whywait
from whywait.model.schema import patterns

from tests.browser import Page, Viewer, unpack_columns, unpack_document
from tests.test_locks import CRITICAL
from tests.test_perfetto import Timeline, nanoseconds, written
from tests.test_timeline import build
from tests.tracedsl import trace_from_text

# Thread 1 runs a task from 2 to 4, and waits before and after it; the latest thread comes at 6. Then it waits for the
# task of thread 0.
PARTS = """
0: fork [0, 10]
0: !$omp parallel @a:1 [0, 10]
0: !$omp create task @a:5(task=1) [1.9, 2.1]
0: !$omp create task @a:5(task=2) [5, 5.2]
0: !$omp implicit barrier @a:7 [6, 10]
0: !$omp task @a:5(task=2) [6, 9]
0.1: !$omp parallel @a:1 [0, 10]
0.1: !$omp implicit barrier @a:7 [1, 10]
0.1: !$omp task @a:5(task=1) [2, 4]
"""
REDUCTION = """
0: f [0, 1]
0: MPI_Iallreduce(req=1) [1, 1.1]
0: f [1.1, 2]
0: MPI_Wait(1) [2, 5.6]
1: f [0, 5]
1: MPI_Iallreduce(req=1) [5, 5.1]
1: MPI_Wait(1) [5.2, 5.4]
"""
# Two operations overlap, so that neither may hide in the other.
OVERLAPPING = """
0: MPI_Iallreduce(req=1) [1, 1.1]
0: MPI_Iallreduce(req=2) [1.2, 1.3]
0: f [1.3, 4]
0: MPI_Waitall(1, 2) [4, 7]
1: f [0, 3]
1: MPI_Iallreduce(req=1) [3, 3.1]
1: MPI_Iallreduce(req=2) [6, 6.1]
1: MPI_Waitall(1, 2) [6.1, 7]
"""


def analyzed(text: str, directory) -> whywait.Result:
    return whywait.analyze(trace_from_text(text, directory / "trace"))


def rows(table, *columns):
    return sorted(zip(*(table[column].to_pylist() for column in columns), strict=True))


def test_a_wait_between_tasks_is_in_parts(tmp_path):
    result = analyzed(PARTS, tmp_path)
    built = build(result)
    kinds = result.wait_states()["kind"].to_pylist()
    waits, total = built["waits"]
    assert total == waits.num_rows
    found = [(kinds[wait], begin, end) for wait, begin, end in rows(waits, "wait", "begin", "end")]
    barrier = [(begin, end) for kind, begin, end in found if kind == "omp_ibarrier_wait"]
    assert barrier == [pytest.approx((1, 2)), pytest.approx((4, 6))]
    assert [time for kind, *time in found if kind == "omp_ibarrier_task_wait"] == [pytest.approx([6, 9])]
    # While the task runs, the thread does not wait.
    level = built["levels"][0]
    share = level["shares"][-1, 1] / 255 * level["width"]
    bins = slice(int(2.1 / level["width"]), int(3.9 / level["width"]))
    assert share[bins].sum() == 0
    assert share.sum() == pytest.approx(6, abs=0.05)


def test_windows_cut_the_parts(tmp_path):
    result = analyzed(PARTS, tmp_path)
    for window, expected in (((0, 2), 1), ((2, 4), 0), ((3, 5), 1), ((0, 10), 3)):
        assert result.window(*window).total("omp_ibarrier_wait") == pytest.approx(expected)


def test_owners_of_locks_that_others_wait_for(tmp_path):
    result = analyzed(CRITICAL, tmp_path)
    locks, total = build(result)["locks"]
    assert (total, set(locks["lock"].to_pylist())) == (3, {locks["lock"][0].as_py()})
    owned = [(row["rank"], row["thread"]) for row in result.locations.to_pylist()]
    times = [(owned[location], begin, end) for location, begin, end in rows(locks, "location", "begin", "end")]
    assert times == [
        ((0, 0), pytest.approx(1), pytest.approx(4)),
        ((0, 1), pytest.approx(4.5), pytest.approx(6)),
        ((0, 2), pytest.approx(6), pytest.approx(6.5)),
    ]
    assert {result.tree.path(number)[-1] for number in locks["callpath"].to_pylist()} == {"!$omp critical @a:2"}
    # Only the longest, with their number.
    few, total = build(result, most=1)["locks"]
    assert (total, rows(few, "begin", "end")) == (3, [(pytest.approx(1), pytest.approx(4))])


def test_tasks_that_start_elsewhere(tmp_path):
    tasks, total = build(analyzed(PARTS, tmp_path))["tasks"]
    assert total == 1
    assert rows(tasks, "from_location", "to_location", "start", "end") == [(0, 1, pytest.approx(1.9), pytest.approx(2))]


def test_waits_for_the_end_of_something_say_so():
    ends = ("omp_lock_contention_critical", "omp_taskwait_wait", "omp_ibarrier_task_wait", "pthread_join_wait")
    assert all(patterns()[kind].ends_with_cause for kind in ends)
    assert not any(patterns()[kind].ends_with_cause for kind in ("mpi_latesender", "pthread_cond_late_signal"))


@pytest.mark.parametrize("text", [CRITICAL, PARTS])
def test_a_stored_result_has_them_too(text, tmp_path):
    result = analyzed(text, tmp_path)
    result.write(tmp_path / "result", html=True)
    after, before = whywait.load(tmp_path / "result").tables.timeline, build(result)
    for name in ("waits", "tasks", "locks"):
        assert getattr(after, name).to_pylist() == before[name][0].to_pylist()
    blocks = Page(tmp_path / "result" / "report.html").blocks
    drawn = unpack_columns(blocks["timeline-locks"])
    assert drawn["begin"].tolist() == after.locks["begin"].to_pylist()
    assert unpack_document(blocks["timeline"])["totals"]["tasks"] == after.totals["tasks"]


def test_what_a_browser_shows(browser, tmp_path):
    result = analyzed(CRITICAL, tmp_path)
    result.write(tmp_path / "result", html=True)
    viewer = Viewer(browser, tmp_path / "result" / "report.html").open("#timeline?from=0&to=9")
    viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    layers = viewer.js("return [...document.querySelectorAll('[data-layer]')].map((box) => box.dataset.layer)")
    assert layers == ["waits", "path", "locks", "causes"]
    assert "Bar: owns a lock" in viewer.text(".timeline .classes")
    viewer.is_well()


# Perfetto --------------------------------------------------------------------------------------------


def levels(timeline: Timeline, name: str) -> list[tuple[float, float]]:
    tracks = [track for track, of in timeline.tracks.items() if of.name == name and of.HasField("counter")]
    return [(time / 1e9, value) for track in tracks for time, value in timeline.counters[track]]


def test_perfetto_has_the_owners_of_locks(tmp_path):
    counts, timeline = written(analyzed(CRITICAL, tmp_path), tmp_path)
    slices = timeline.of("lock")
    assert counts["locks"] == len(slices) == 3
    assert sorted((s.begin, s.end, s.name, s.arguments["thread"]) for s in slices) == [
        (nanoseconds(1), nanoseconds(4), "Thread 0: !$omp critical @a:2", 0),
        (nanoseconds(4.5), nanoseconds(6), "Thread 1: !$omp critical @a:2", 1),
        (nanoseconds(6), nanoseconds(6.5), "Thread 2: !$omp critical @a:2", 2),
    ]
    assert {timeline.tracks[s.track].name for s in slices} == {"Locks"}
    assert levels(timeline, "Threads waiting for locks") == [(2, 1), (3.5, 2), (4, 1), (6, 0)]


def test_perfetto_has_the_tasks(tmp_path):
    counts, timeline = written(analyzed(PARTS, tmp_path), tmp_path)
    arrows = timeline.arrows("region", "region")
    assert counts["task_flows"] == len(arrows) == 1
    ((create, task),) = arrows
    assert (create.name, create.begin) == ("!$omp create task @a:5", nanoseconds(1.9))
    assert (task.name, task.begin) == ("!$omp task @a:5", nanoseconds(2))
    assert levels(timeline, "Running tasks") == [(2, 1), (4, 0), (6, 1), (9, 0)]
    assert levels(timeline, "Ready tasks") == [(pytest.approx(1.9), 1), (2, 0), (5, 1), (6, 0)]
    parts = [s for s in timeline.of("wait_state") if s.arguments["metric"] == "omp_ibarrier_wait"]
    assert sorted((s.begin, s.end) for s in parts) == [
        (nanoseconds(1), nanoseconds(2)),
        (nanoseconds(4), nanoseconds(6)),
    ]
    waits = analyzed(PARTS, tmp_path / "again").wait_states().num_rows
    assert counts["wait_states"] == waits


def test_perfetto_has_collective_operations_and_what_they_hide(tmp_path):
    counts, timeline = written(analyzed(REDUCTION, tmp_path), tmp_path)
    operations = timeline.of("nonblocking")
    assert counts["nonblocking"] == len(operations) == 2
    assert sorted((s.begin, s.end) for s in operations) == [
        (nanoseconds(1), nanoseconds(5.6)),
        (nanoseconds(5), nanoseconds(5.4)),
    ]
    (hidden,) = timeline.of("hidden")
    # Until rank 0 begins to wait, at 2.
    assert (hidden.begin, hidden.end, hidden.depth) == (nanoseconds(1.1), nanoseconds(2), 1)
    assert levels(timeline, "Collectives in flight") == [(1, 1), (5.6, 0), (5, 1), (5.4, 0)]


def test_operations_that_overlap_have_tracks_of_their_own(tmp_path):
    _, timeline = written(analyzed(OVERLAPPING, tmp_path), tmp_path)
    operations = sorted(timeline.of("nonblocking"), key=lambda s: (s.begin, s.end))
    assert all(s.depth == 0 for s in operations)
    assert len({s.track for s in operations[:2]}) == 2
    hidden = sorted((s.begin, s.end) for s in timeline.of("hidden"))
    assert hidden == [(nanoseconds(1.1), nanoseconds(3)), (nanoseconds(1.3), nanoseconds(4))]


def test_only_chosen_threads_are_written(tmp_path):
    result = analyzed(CRITICAL, tmp_path)
    counts, timeline = written(result, tmp_path, window=(4.2, 6.2))
    assert counts["locks"] == len(timeline.of("lock")) == 2
    counts, _ = written(result, tmp_path, min_duration=1)
    assert counts["locks"] == 2
