"""The card about locks, tasks, and loops: the data of the page, and what a browser shows."""

import pytest
import whywait

from tests.browser import Page, Viewer, unpack_document
from tests.results import SHARED, UNRECORDED
from tests.tracedsl import trace_from_text

TIMES = "\N{MULTIPLICATION SIGN}"
# Task 1 takes 2 s to run, and 0.2 s to create; task 2 is created in 3 s, and runs for 0.5 s. The critical section is on
# the path: thread 1 waits for it from 12 to 14.
TEXT = """
0: fork [0, 20]
0: !$omp parallel @a:1 [0, 20]
0: !$omp create task @a:5(task=1) [1, 1.2]
0: !$omp create task @a:6(task=2) [2, 5]
0: !$omp barrier @a:7 [6, 10]
0: !$omp task @a:5(task=1) [6.5, 8.5]
0: !$omp critical @a:8(order=1) [11, 14] @11, 14
0: !$omp implicit barrier @a:9 [15, 19]
0.1: !$omp parallel @a:1 [0, 20]
0.1: !$omp barrier @a:7 [0.5, 10]
0.1: !$omp task @a:6(task=2) [5, 5.5]
0.1: !$omp critical @a:8(order=2) [12, 16] @14, 16
0.1: !$omp implicit barrier @a:9 [17, 19]
"""
# Of 40 s on two threads: waits at barriers without starvation (5 - 0.5 + 2), for the lock, for the task (2) with
# starvation and creation (3.2), and the rest, which the critical section is part of.
LOST = [
    ("Imbalance", "6.50 s", "16.3%"),
    ("Contention", "2.00 s", "5.0%"),
    ("Tasks", "5.70 s", "14.3%"),
    ("Rest", "13.0 s", "32.5%"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("threads")
    result = whywait.analyze(trace_from_text(TEXT, directory / "trace"))
    result.write(directory / "result", html=True)
    return result, directory / "result" / "report.html"


def test_the_page_has_the_rows_of_the_tables(written):
    result, path = written
    told = unpack_document(Page(path).blocks["threads"])
    for name, table in (
        ("locks", result.locks()),
        ("tasks", result.tasks()),
        ("regions", result.work_span()),
        ("loops", result.loops()),
    ):
        numbers = [column for column in table.column_names if column not in ("callpath", "callpath_id")]
        assert [{column: row[column] for column in numbers} for row in told[name]] == table.select(numbers).to_pylist()
        assert [row["callpath"] for row in told[name]] == table["callpath_id"].to_pylist()
    assert (told["waiting"], told["count"]) == (pytest.approx(2), 2)


def test_the_losses_are_those_of_the_efficiencies(written):
    result, path = written
    told = {one["name"]: one["share"] for one in unpack_document(Page(path).blocks["threads"])["losses"]}
    found = [one for one in result.efficiencies().hybrid if one.name.startswith("parallel_region_loss_")]
    assert told == {one.display_name: one.value for one in found if one.value > 0}
    assert sum(told.values()) == pytest.approx(1 - result.efficiencies()["parallel_region_efficiency"].value)


def test_a_run_without_locks_and_tasks_has_no_card(tmp_path):
    result = whywait.analyze(trace_from_text("0: main [0, 1]", tmp_path / "trace"))
    result.write(tmp_path / "result", html=True)
    assert "threads" not in Page(tmp_path / "result" / "report.html").blocks


def test_the_card_in_a_browser(browser, written):
    viewer = Viewer(browser, written[1]).open()
    viewer.until("document.querySelectorAll('.threads tbody tr').length")
    lost, waiting = viewer.texts(".threads .lead")
    assert lost == "In parallel regions, threads lose 27.2 s, 68.0% of the processor time."
    assert waiting == "Threads wait 2.00 s for 1 of 1 lock. 2 tasks run for 2.50 s."
    shown = viewer.texts(".threads .losses .swatches span")
    assert shown == [f"{name} {seconds} ({share})" for name, seconds, share in LOST]
    assert len(viewer.texts(".threads .losses .part")) == len(LOST)
    rows = "[...document.querySelectorAll('.threads {} tbody tr')]"
    texts = "[...row.cells].filter((cell) => !cell.querySelector('svg')).map((cell) => cell.textContent)"
    cells = f"return {rows}.map((row) => {texts})"
    ((name, *of_lock),) = viewer.js(cells.format(".locks"))
    assert name.endswith("!$omp critical @a:8")
    assert of_lock == ["2.00 s", "1 of 2", "1", "5.00 s", "5.00 s (25.0%)"]
    first, second = viewer.js(cells.format(".tasks"))
    # 2 s against 0.2 s to create, and the thread that starts it was not idle; 0.5 s against 3 s and, from 2 to 5, 3 s.
    assert first[1:] == ["1", "0", "2.00 s", "2.00 s", "2.00 s", "200 ms", "0 s", f"10{TIMES}"]
    assert second[1:] == ["1", "1", "500 ms", "500 ms", "500 ms", "3.00 s", "3.00 s", f"0.1{TIMES}, too small"]
    # The second is left of the line.
    assert viewer.texts(".lengths rect title") == ["1 task of 1.07 s to 2.15 s", "1 task of 268 ms to 537 ms"]
    assert viewer.texts(".lengths line title") == ["a task shorter than 6.00 s costs more than it gains"]
    viewer.click(".threads .locks a")
    viewer.until("document.body.dataset.view === 'explore'")
    viewer.is_well()


@pytest.mark.skipif(not SHARED.exists(), reason=UNRECORDED)
def test_a_finding_without_call_path_opens(browser, tmp_path):
    result = whywait.analyze(SHARED / "cases" / "hyb_imbalance" / "archive" / "traces.otf2")
    result.write(tmp_path, html=True)
    viewer = Viewer(browser, tmp_path / "report.html").open()
    assert viewer.text("h1") == "hyb_imbalance"
    viewer.is_well()
