"""Two runs in one page: the numbers are those of the runs, and a browser shows them.

The second half drives Chromium, as in `test_html`.
"""

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import whywait
from otf2.enums import MetricMode
from whywait.analysis.focus import focused
from whywait.analysis.runs.account_changes import account_changes, finding_changes
from whywait.analysis.runs.compare import differences
from whywait.cli import main
from whywait.model.united_tree import UnitedTree
from whywait.report.html.compare import changes
from whywait.report.html.formulas import Formulas

from tests.browser import Page, Viewer
from tests.fake_native import MAIN, SEND, FakeAnalysis, result, small
from tests.test_counters import archive, counter
from tests.test_html import NASTY
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
KERNEL = """
    0: main [0, 7]
    0: hipLaunchKernel [1, 1.1]
    0/0: heavy [1.15, 5.0]
    0: hipDeviceSynchronize [1.2, 5.1]
"""
MINUS, TO = "\N{MINUS SIGN}", "\N{EN DASH}"
PAIRS = [("sor_fence", "sor_gats"), ("collectives", "stencil"), ("sor_p2p", "sor_p2p")]


@pytest.fixture(scope="module", params=PAIRS, ids="-".join)
def pair(request):
    return tuple(whywait.analyze(DATA / name) for name in request.param)


def shorter(parent, *names):
    """A run whose call tree is a chain or a fan of these names."""
    regions = [MAIN, *((name, "USER", "FUNCTION") for name in names)]
    callpaths = [None, *(parent for _ in names)]
    values = {"time": {(callpath, 0): 1.0 + callpath for callpath in range(len(regions))}}
    return result(FakeAnalysis(callpaths, regions, [(0, 0)], values))


def test_call_paths_of_one_name_are_one():
    first, second = shorter(0, "a", "b", "a"), shorter(0, "c", "b")
    united = UnitedTree(first, second)
    assert united.names == ["main", "a", "b", "c"]
    assert united.parents == [-1, 0, 0, 0]
    assert united.nodes == [[0, 1, 2, 1], [0, 3, 2]]
    assert united.path(3) == ["main", "c"]
    assert united.to_nodes(0, np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [1, 6, 3, 0]


def test_several_programs_get_a_root():
    one = result(FakeAnalysis([None, None], [MAIN, SEND], [(0, 0)], {"time": {(0, 0): 1.0, (1, 0): 1.0}}))
    united = UnitedTree(one, shorter(0))
    assert united.names == [None, "main", "MPI_Send"]
    assert united.parents == [-1, 0, 0]
    assert united.path(2) == ["MPI_Send"]
    nothing = result(FakeAnalysis([], [], [], {}))
    assert UnitedTree(nothing, nothing).names == [None]


def program(*paths):
    """A run with these call paths, each as "main/solve" with the time spent in it; callers come first."""
    numbers = {path: number for number, (path, _) in enumerate(paths)}
    parents = [numbers.get(path.rpartition("/")[0]) for path in numbers]
    regions = [(path.rpartition("/")[2], "USER", "FUNCTION") for path in numbers]
    times = {(numbers[path], 0): float(time) for path, time in paths}
    return result(FakeAnalysis(parents, regions, [(0, 0)], {"time": times}))


def matched(first, second):
    """For each call path of the first run, the one of the second that it matches, or None."""
    united = UnitedTree(first, second)
    sides = []
    for run, nodes in zip((first, second), united.nodes, strict=True):
        sides.append({node: "/".join(run.tree.path(int(run.tree.preorder[i]))) for i, node in enumerate(nodes)})
    return {name: sides[1].get(node) for node, name in sides[0].items()}


def test_roots_match_whatever_their_names():
    before = program(("old", 1), ("old/solve", 5))
    after = program(("new", 1), ("new/solve", 6))
    assert matched(before, after) == {"old": "new", "old/solve": "new/solve"}
    places = differences(before, after, ["time"]).to_pylist()
    assert [(place["callpath"], place["difference"]) for place in places] == [(["old", "solve"], 1.0)]
    # Of several, those of one name, then the longest ones.
    before = program(("a", 1), ("b", 9), ("c", 3))
    after = program(("x", 2), ("y", 8), ("a", 5))
    assert matched(before, after) == {"a": "a", "b": "y", "c": "x"}


@pytest.mark.parametrize("inserted", [True, False])
def test_call_paths_match_through_a_wrapper(inserted):
    plain = program(("main", 1), ("main/solve", 8), ("main/solve/work", 1))
    wrapped = program(("main", 1), ("main/run", 1), ("main/run/solve", 8), ("main/run/solve/work", 1))
    if inserted:
        assert matched(plain, wrapped) == {
            "main": "main",
            "main/solve": "main/run/solve",
            "main/solve/work": "main/run/solve/work",
        }
    else:
        assert matched(wrapped, plain) == {
            "main": "main",
            "main/run": None,
            "main/run/solve": "main/solve",
            "main/run/solve/work": "main/solve/work",
        }


def test_what_does_more_than_wrap_is_another_call_path():
    plain = program(("main", 1), ("main/solve", 7))
    busy = program(("main", 1), ("main/run", 3), ("main/run/solve", 7))
    assert matched(plain, busy)["main/solve"] is None
    # Two pairs: nobody can tell which is meant.
    both = program(("main", 1), ("main/run", 0), ("main/run/solve", 7), ("main/go", 0), ("main/go/solve", 7))
    assert matched(plain, both)["main/solve"] is None


def late(directory, work):
    """Sixty times: rank 0 works so long, then sends to rank 1, which worked 1 s."""
    lines = ["ranks 2"]
    for i in range(60):
        begin = i * (work + 1)
        lines += [
            f"0: work [{begin}, {begin + work}]",
            f"0: MPI_Send(1) [{begin + work}, {begin + work + 0.5}]",
            f"1: work [{begin}, {begin + 1}]",
            f"1: MPI_Recv(0) [{begin + 1}, {begin + work + 0.5}]",
        ]
    return whywait.analyze(trace_from_text("\n".join(lines), directory))


def test_accounts_and_findings_of_two_runs(tmp_path):
    """Rank 0 works 3 s instead of 5 s: Late Sender shrinks by 2 s each, and the reason for it does, too."""
    first, second = late(tmp_path / "a", 5), late(tmp_path / "b", 3)
    accounts = {line["row"]: line for line in account_changes(first, second)}
    waits = accounts["wait.mpi_latesender"]
    assert (waits["first"], waits["second"], waits["difference"]) == pytest.approx((240.0, 120.0, -120.0))
    (found,) = [line for line in finding_changes(first, second) if line["rule"] == "imbalance"]
    assert (found["change"], found["first"], found["second"]) == ("shrank", pytest.approx(240), pytest.approx(120))
    assert {line["change"] for line in finding_changes(first, first)} == {"stayed"}
    calm = late(tmp_path / "c", 1)
    (went,) = [line for line in finding_changes(first, calm) if line["rule"] == "imbalance"]
    assert (went["change"], went["second"], went["difference"]) == ("went", None, pytest.approx(-240))
    both = whywait.compare(first, second)
    assert both.accounts() == account_changes(first, second)
    # There are no findings of another focus.
    assert whywait.compare(first, second, focus="all").findings() is None


def test_changes_add_up_and_are_those_of_diff(pair):
    formulas = tuple(Formulas(run.profile) for run in pair)
    found = changes(pair, formulas, UnitedTree(*pair))
    for side, run in zip(("first", "second"), pair, strict=True):
        assert math.isclose(sum(change[side] for change in found), run.metrics["time"].total, rel_tol=1e-9)
    cells = defaultdict(float)
    for row in differences(*pair).to_pylist():
        cells[row["metric"], tuple(row["callpath"])] += row["difference"]
    waiting = [change for change in found if change.get("family") == "waiting"]
    for change in waiting:
        own = {path: value for (metric, path), value in cells.items() if metric == change["metric"]}
        assert math.isclose(change["difference"], sum(own.values()), abs_tol=1e-12)
        most = (max if change["difference"] > 0 else min)(own.values())
        assert math.isclose(change["there"], most, rel_tol=1e-9)
        assert math.isclose(own[tuple(change["callpath"])], most, rel_tol=1e-9)
    if pair[0].run.name != pair[1].run.name:
        assert waiting


def test_names_in_a_trace_are_no_markup(tmp_path):
    first, second = shorter(0, NASTY), shorter(0, "b")
    whywait.compare(first, second, names=(NASTY, "b")).write_html(tmp_path / "diff.html")
    page = Page(tmp_path / "diff.html")
    assert not any(tag == "img" for tag, _ in page.elements)
    assert {"compare", "a-meta", "b-meta", "a-cells-0", "b-cells-0"} <= page.blocks.keys()


def test_diff_writes_a_page_and_checks_thresholds(tmp_path, capsys):
    runs = [str(DATA / name) for name in PAIRS[0]]
    assert main(["diff", *runs, "--html", str(tmp_path / "diff.html"), "--fail-on", "time>0.0001%"]) in {0, 1}
    assert "open it in a browser" in capsys.readouterr().out
    assert "<title>sor_fence and sor_gats - whywait</title>" in (tmp_path / "diff.html").read_text()
    assert main(["diff", *runs, "--html", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_a_page_compares_empty_runs(tmp_path):
    nothing = result(FakeAnalysis([], [], [], {}))
    whywait.compare(nothing, result(small())).write_html(tmp_path / "diff.html")
    whywait.compare(nothing, nothing).write_html(tmp_path / "diff.html")


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fence_and_gats(tmp_path_factory):
    runs = [whywait.analyze(DATA / name) for name in PAIRS[0]]
    path = tmp_path_factory.mktemp("diff") / "diff.html"
    whywait.compare(*runs, names=PAIRS[0]).write_html(path)
    return runs, path


def lines(viewer, pane):
    """The four numbers of each line."""
    return dict(
        viewer.js(
            "const text = (nodes) => [...nodes].map((node) => node.textContent);"
            "return [...document.querySelectorAll(`#tree-${arguments[0]} .row`)].map((row) =>"
            " [row.querySelector('.name').textContent, text(row.querySelectorAll('.value'))])",
            pane,
        )
    )


def milliseconds(text):
    sign = -1 if text.startswith(MINUS) else 1
    number, unit = text.lstrip("+" + MINUS).split()
    return sign * float(number) * {"s": 1e3, "ms": 1, "µs": 1e-3, "ns": 1e-6}[unit]


def test_the_front_page_says_what_got_better_and_worse(browser, fence_and_gats):
    (fence, gats), path = fence_and_gats
    viewer = Viewer(browser, path).open()
    headline = viewer.text(".headline")
    assert "2.4% less time in B than in A: 53.2 ms instead of 54.5 ms" in headline
    assert "Whole runs: 389 ms → 389 ms." in headline
    less, more = viewer.js("return [...document.querySelectorAll('.better > div')].map((side) => side.textContent)")
    assert "31.6 ms less waiting: Wait at Fence (B has none), all of it in MPI_Win_fence." in less
    assert "20.2 ms more waiting: Late Post (A has none), all of it in MPI_Win_complete." in more
    foot = viewer.js("return [...document.querySelectorAll('.changes tfoot td')].map((cell) => cell.textContent)")
    totals = [focused(run).metrics["time"].total for run in (fence, gats)]
    assert [milliseconds(cell) for cell in foot[1:4]] == pytest.approx(
        [1e3 * totals[0], 1e3 * totals[1], 1e3 * (totals[1] - totals[0])], rel=5e-3
    )
    titles = viewer.js("return [...document.querySelectorAll('.card > h2')].map((title) => title.textContent)")
    assert titles == [
        "Where the time went", "What changed", "Where the difference comes from", "Efficiencies",
        "Only in one run",
    ]  # fmt: skip
    viewer.click(".better .path")
    viewer.until("document.body.dataset.view === 'differences'")
    viewer.until("document.querySelectorAll('.pair-row').length")
    assert (viewer.selected("metrics"), viewer.selected("call-tree")) == ("Wait at Fence", "MPI_Win_fence")
    viewer.is_well()


def test_deep_link_search_and_groups(browser, fence_and_gats):
    whole, path = fence_and_gats
    runs = [focused(run) for run in whole]
    viewer = Viewer(browser, path).open("#differences?metric=comp&groups=2")
    viewer.until("document.querySelectorAll('.pair-row').length")
    first, second, change, _ = lines(viewer, "metrics")["Computation"]
    totals = [1e3 * run.metrics["comp"].total for run in runs]
    assert [milliseconds(first), milliseconds(second)] == pytest.approx(totals, rel=5e-3)
    assert milliseconds(change) == pytest.approx(totals[1] - totals[0], rel=5e-3)
    bars = viewer.js(
        "const text = (nodes) => [...nodes].map((node) => node.textContent);"
        "return [...document.querySelectorAll('.pair-row')].map((row) => text(row.children))"
    )
    assert [row[0] for row in bars] == [f"ranks 0{TO}1", f"ranks 2{TO}3"]
    by_rank = [run.metrics["comp"].by_rank()["value"].to_pylist() for run in runs]
    for half, row in enumerate(bars):
        expected = [1e3 * sum(values[2 * half : 2 * half + 2]) for values in by_rank]
        assert [milliseconds(cell) for cell in row[2:4]] == pytest.approx(expected, rel=5e-3)

    viewer.js(
        "const box = document.querySelector('[aria-label=\"Find in Call tree\"]'); box.value = 'win_wait';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert viewer.selected("call-tree") == "MPI_Win_wait"
    assert "only in B" in viewer.text("[aria-label='Call tree'] .note")
    # What is equal is shown when it is asked for.
    hidden = viewer.js("return document.querySelectorAll('#tree-metrics .row').length")
    viewer.click(".check input")
    assert viewer.js("return document.querySelectorAll('#tree-metrics .row').length") > hidden
    viewer.is_well()


def test_runs_of_different_size(browser, tmp_path):
    runs = whywait.analyze(DATA / "collectives"), whywait.analyze(DATA / "stencil")
    whywait.compare(*runs).write_html(tmp_path / "diff.html")
    viewer = Viewer(browser, tmp_path / "diff.html").open("#differences?metric=time")
    viewer.until("document.querySelectorAll('.pair-row').length === 4")
    names = viewer.js("return [...document.querySelectorAll('.pair-row .name')].map((name) => name.textContent)")
    assert names == [f"ranks {i} / {2 * i}{TO}{2 * i + 1}" for i in range(4)]
    assert lines(viewer, "call-tree")["collectives"][3] == "+52.8%"
    viewer.is_well()


def level_of(directory, low, high):
    events = [(0, "enter", "main"), (0, 0, (low,)), (50, "enter", "f"), (50, 0, (high,))]
    events += [(90, "leave", "f"), (90, 0, (low,))]
    level = counter("level", MetricMode.ABSOLUTE_NEXT)
    return whywait.analyze(archive(directory, [level], [[*events, (100, "leave", "main")]]))


def test_counters_have_a_root(browser, tmp_path):
    """Maxima combine to the largest value, even if all are negative, and the root has no value."""
    whywait.compare(level_of(tmp_path / "a", 4, 8), level_of(tmp_path / "b", -4, -2)).write_html(tmp_path / "diff.html")
    viewer = Viewer(browser, tmp_path / "diff.html").open("#differences?metric=max:level")
    viewer.until("document.querySelectorAll('.pair-row').length")
    metrics = lines(viewer, "metrics")
    assert metrics["Counters"] == [""]
    expected = ["8", "-2", f"{MINUS}10", f"{MINUS}125.0%"]
    assert metrics["max:level"] == lines(viewer, "call-tree")["main"] == expected
    viewer.is_well()


def test_waits_for_devices_are_in_the_tree(browser, tmp_path):
    device = whywait.analyze(trace_from_text(KERNEL, tmp_path / "device"))
    host = whywait.analyze(trace_from_text("0: main [0, 9]", tmp_path / "host"))
    whywait.compare(device, host).write_html(tmp_path / "diff.html")
    viewer = Viewer(browser, tmp_path / "diff.html").open("#differences?metric=gpu_host_wait")
    viewer.until("document.querySelectorAll('.pair-row').length")
    levels = viewer.js(
        "return [...document.querySelectorAll('#tree-metrics .row')]"
        ".map((row) => [row.querySelector('.name').textContent, row.ariaLevel])"
    )
    assert ["Host synchronizes with devices", "1"] in levels
    assert ["Host Waits for Device", "2"] in levels


def test_bars_of_both_runs_are_on_one_scale(browser, tmp_path):
    """Parts are as wide as they are long: 1 s + 1 s and 1 s, but for the gaps between them."""
    runs = [
        result(FakeAnalysis([None, 0], [MAIN, SEND], [(0, 0)], {"time": {(0, 0): 1.0, (1, 0): second}}))
        for second in (1.0, 0.0)
    ]
    whywait.compare(*runs, names=("two", "one")).write_html(tmp_path / "diff.html")
    viewer = Viewer(browser, tmp_path / "diff.html").open()
    widths = viewer.js(
        "return [...document.querySelectorAll('.side .part')].map((part) => part.getBoundingClientRect().width)"
    )
    assert len(widths) == 3
    assert max(widths) - min(widths) <= 2
    viewer.is_well()
