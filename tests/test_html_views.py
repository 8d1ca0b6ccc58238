"""Functions, statistics of a window, the dense critical path, and export of tables."""

from collections import defaultdict
from pathlib import Path

import pytest
import whywait
from whywait.model.timeline import CLASSES as OF_TIMELINE
from whywait.report.html.bundle import bundle, read
from whywait.report.html.model import shown_part

from tests.browser import Viewer
from tests.fake_native import MAIN, RECV, FakeAnalysis, result
from tests.test_sampling import steps
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
ROWS = (
    "return [...document.querySelectorAll(arguments[0])].map((row) => [...row.cells].map((c) => c.textContent.trim()))"
)

# What a moment can be in the statistics of a window.
CLASSES = {"Waiting", "Outside the program", *(text for _, text, _ in OF_TIMELINE)}


def module(name):
    """A module with its imports, to be followed by a script."""
    return bundle([name], read) + "\n"


def choose_metric(viewer, name):
    rows = "[...document.querySelectorAll('#tree-metrics .row')]"
    viewer.js(f"{rows}.find((row) => row.textContent.includes(arguments[0])).click()", name)


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    target = tmp_path_factory.mktemp("views")
    found = whywait.analyze(DATA / "stencil")
    found.write_html(target / "report.html")
    return found, target / "report.html"


def test_flat_profile(browser, stencil):
    found, path = stencil
    own, visits = defaultdict(float), defaultdict(float)
    found = shown_part(found, found.summary())
    for name, sums in (("time", own), ("visits", visits)):
        for row in found.metrics[name].by_callpath().to_pylist():
            sums[row["callpath"][-1]] += row["value"]
    viewer = Viewer(browser, path).open("#functions")
    viewer.until("document.querySelectorAll('.functions tbody tr').length")
    script = "return [...document.querySelectorAll('.functions tbody td:first-child')].map((cell) => cell.textContent)"
    assert viewer.js(script) == sorted(own, key=lambda name: -own[name])
    heads = viewer.js("return [...document.querySelectorAll('.functions th')].map((head) => head.textContent)")
    cells = viewer.js(ROWS, ".functions tbody tr")
    at = heads.index("Visits")
    assert {row[0]: row[at].replace(",", "") for row in cells} == {
        name: str(int(count)) for name, count in visits.items() if name in own
    }
    # The root includes everything, although `work` has two callers.
    whole = dict(zip((row[0] for row in cells), (row[heads.index("With callees")] for row in cells), strict=True))
    assert whole["stencil"] == f"{found.metrics['time'].total:.2f} s"
    viewer.js("document.querySelectorAll('.functions .sort')[0].click()")
    assert viewer.js(script) == sorted(own, key=str.lower)
    viewer.js(
        "const box = document.querySelector('.functions input'); box.value = 'mpi_i';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert viewer.js(script) == sorted((name for name in own if "mpi_i" in name.lower()), key=str.lower)
    viewer.is_well()


def test_recursion_counts_once(browser, tmp_path):
    # main > f > f > MPI_Recv
    analysis = FakeAnalysis(
        [None, 0, 1, 2], [MAIN, ("f", "USER", "FUNCTION"), ("f", "USER", "FUNCTION"), RECV], [(0, 0)],
        {"time": {(0, 0): 1.0, (1, 0): 2.0, (2, 0): 4.0, (3, 0): 8.0}, "visits": {(1, 0): 1.0, (2, 0): 1.0}},
    )  # fmt: skip
    result(analysis).write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#functions")
    viewer.until("document.querySelectorAll('.functions tbody tr').length")
    rows = viewer.js(ROWS, ".functions tbody tr")
    by_name = {row[0]: row for row in rows}
    assert by_name["f"][1:4] == ["6.00 s", "40.0%", "14.0 s"]


def test_csv_quoting(browser, stencil):
    viewer = Viewer(browser, stencil[1]).open("#functions")
    rows = '[["a,b", "c\\"d", 1.5, null], ["line\\nbreak", 0, "plain", -2e-9]]'
    assert viewer.js(module("table_export") + f"return csv({rows})") == (
        '"a,b","c""d",1.5,\r\n"line\nbreak",0,plain,-2e-9\r\n'
    )
    assert viewer.js(module("table_export") + f"return tabs({rows})") == 'a,b\tc"d\t1.5\t\nline break\t0\tplain\t-2e-9'


def test_the_statistics_of_a_window(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open("#timeline?from=0.40&to=0.50")
    viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
    viewer.js("document.querySelector('.statistics').open = true")
    viewer.until("document.querySelectorAll('.statistics tr').length")
    rows = viewer.js(ROWS, ".statistics tr")
    shares = {row[0]: float(row[1].lstrip("<").rstrip("%")) / 100 for row in rows}
    window = found.window(0.40, 0.50)
    assert shares["Computation"] == pytest.approx(window.total("comp") / 0.8, abs=0.01)
    assert shares["Waiting"] == pytest.approx(sum(window.total(m.name) for m in window.metrics.waiting) / 0.8, abs=0.01)
    assert sum(shares[name] for name in shares if name in CLASSES) == pytest.approx(1, abs=0.01)
    # The page has single calls, so there are exclusive times by function.
    position = {found.tree.path(int(c))[-1]: p for p, c in enumerate(found.tree.preorder)}
    work = sum(window.by_position("time")[p] for name, p in position.items() if name == "MPI_Waitall")
    assert shares["MPI_Waitall"] == pytest.approx(work / 0.8, abs=0.01)
    viewer.is_well()


def test_dense_critical_path_is_simplified(browser, stencil):
    _, path = stencil
    viewer = Viewer(browser, path).open("#timeline")
    viewer.until("document.querySelector('.times')?.dataset.path !== undefined")
    viewer.open("#timeline?from=0.44&to=0.447")
    viewer.until("document.querySelector('.times')?.dataset.path === 'each'")
    found = viewer.js(
        module("timeline_paint") + "return mostlyOn([{ location: 1, from: 0, to: 3 }, { location: 2, from: 3, to: 4 },"
        " { location: 3, from: 5, to: 8 }], { from: 0, to: 8 }, 2)"
    )
    assert found == [{"location": 1, "from": 0, "to": 4}, {"location": 3, "from": 4, "to": 8}]


def test_dense_critical_path_is_one_line(browser, tmp_path):
    """Two ranks wait for each other in turn, 300 times: more often than there are pixels."""
    lines = ["*: main [0, 1000]"]
    for i in range(300):
        late = i % 2
        begin = 1 + 3 * i
        lines.append(f"{late}: MPI_Barrier [{begin + 2}, {begin + 2.1}]")
        lines.append(f"{1 - late}: MPI_Barrier [{begin + 1}, {begin + 2.1}]")
    whywait.analyze(trace_from_text("\n".join(lines), tmp_path / "trace")).write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#timeline")
    viewer.until("document.querySelector('.times')?.dataset.path === 'mostly'")
    assert "critical path: where it mostly is" in viewer.text(".timeline .classes .hint")
    viewer.press(".times", *["+"] * 5)
    viewer.until("document.querySelector('.times').dataset.path === 'each'")
    viewer.is_well()


def test_the_critical_path_of_a_short_window_is_exact(browser, stencil):
    _, path = stencil
    viewer = Viewer(browser, path).open("#timeline?from=0.44&to=0.447")
    viewer.until("document.querySelector('.times')?.dataset.path === 'each'")
    viewer.is_well()


def test_selection_moves_where_the_metric_occurs(browser, stencil):
    found, path = stencil
    call = next(c for c in range(len(found.tree)) if found.tree.path(c)[-1] == "MPI_Allreduce")
    viewer = Viewer(browser, path).open(f"#explore?metric=mpi_wait_nxn&call={call}")
    viewer.until("document.querySelectorAll('.box').length")
    # The call path has time, so it stays selected.
    choose_metric(viewer, "Collective")
    assert viewer.selected("call-tree") == "MPI_Allreduce"
    # It has no Late Sender; below its ancestor `solve`, this call has most of it.
    choose_metric(viewer, "Point-to-point")
    assert viewer.selected("call-tree") == "MPI_Waitall"
    # The chosen call path is selected again where the metric occurs.
    choose_metric(viewer, "Collective")
    assert viewer.selected("call-tree") == "MPI_Allreduce"
    viewer.is_well()


def test_search_expands_what_it_finds(browser, stencil):
    _, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=mpi_wait_nxn")
    viewer.until("document.querySelectorAll('.box').length")
    viewer.js(
        "const box = document.querySelector('[aria-label=\"Find in Call tree\"]'); box.value = 'mpi_';"
        "box.dispatchEvent(new Event('input'));"
    )
    marked = viewer.js(
        "return [...document.querySelectorAll('#tree-call-tree .row')].filter((r) => r.querySelector('mark')).length"
    )
    assert marked == int(viewer.text("[aria-label='Call tree'] .count").split()[-1])
    viewer.is_well()


def test_print_keeps_the_text_of_links(browser, stencil):
    viewer = Viewer(browser, stencil[1]).open("#overview")
    viewer.until("document.querySelectorAll('.iterations tbody a').length")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = "return [...document.querySelectorAll(arguments[0])].map((one) => one.offsetWidth > 0)"
        assert set(viewer.js(shown, ".iterations tbody a")) == {True}
        assert set(viewer.js(shown, ".legend-row")) == {True}
        # What only leads elsewhere is left out.
        assert set(viewer.js(shown, "#top, .jumps")) == {False}
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    viewer.is_well()


def test_help_closes_when_another_view_is_shown(browser, stencil):
    viewer = Viewer(browser, stencil[1]).open("#overview")
    viewer.press("body", "?")
    assert viewer.js("return document.getElementById('help').open")
    viewer.js("location.hash = '#functions'")
    viewer.until("!document.getElementById('help').open")


def test_functions_of_samples(browser, tmp_path):
    # Rank 1 is late because of b: see tests/test_sampling.py.
    run = whywait.open(trace_from_text(steps(), tmp_path))
    whywait.analyze(run).write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#overview")
    viewer.until("document.querySelectorAll('.difference').length")
    (row,) = viewer.js(ROWS, "tr:has(.difference)")
    assert row == ["program → main → step → b", "30.0 s ± 6.02 s", "", "100.0%", ""]
    assert viewer.js("return document.querySelector('.difference i').className") == "more"
    shares = "return [...document.querySelectorAll('.ranking td small')].map((one) => one.textContent)"
    assert " by samples: b 75.0% ± 7.8%, a 25.0% ± 7.8%" in viewer.js(shares)
    viewer.show("functions")
    viewer.until("document.querySelectorAll('.functions tbody tr').length")
    by_name = {row[0]: row for row in viewer.js(ROWS, ".functions tbody tr")}
    assert (by_name["a"][2], by_name["b"][2]) == ("30.0 s", "60.0 s")
    viewer.is_well()
