"""The page contains the numbers of the tables, and a browser shows them.

The first half reads the data of a page back, the second half drives Chromium.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import whywait
from whywait.analysis.focus import is_whole
from whywait.cli import main
from whywait.model.imbalance import imbalance
from whywait.report.html import blocks, sections, worst_waits
from whywait.report.html.bundle import ASSETS, program
from whywait.report.html.formulas import Formulas
from whywait.report.html.model import shown_part
from whywait.report.html.parts import parts
from whywait.report.html.places import Resolution

from tests.browser import Page, Viewer, unpack_columns
from tests.fake_native import BARRIER, MAIN, RECV, SEND, FakeAnalysis, dense, result, small

DATA = Path(__file__).parent / "data"
TRACES = ["stencil", "collectives", "rma_gats_rdma", "sor_locks"]

NASTY = "</script><img src=x onerror=\"document.title=1\">&amp; 'quoted' {{data}} <b>"


def page_of(found, tmp_path):
    found.write_html(tmp_path / "report.html")
    return Page(tmp_path / "report.html")


def stored_cells(page, callpaths, places):
    """Unpack all stored metrics as arrays over (position, place)."""
    found = []
    for number in range(len(page.meta["stored"])):
        columns = page.columns(f"cells-{number}")
        values = np.zeros((callpaths, places))
        start = 0
        for position, count in zip(columns["position"], columns["count"], strict=True):
            end = start + int(count)
            values[position, np.cumsum(columns["place"][start:end])] = columns["value"][start:end]
            start = end
        found.append(values)
    return found


def check_numbers(found, page):
    """Compare every metric at every call path and location, and the totals."""
    meta, tree = page.meta, found.tree
    found = shown_part(found, found.summary())
    factors = page.columns("factors")["factor"].reshape(-1, max(1, len(tree)))
    cells = stored_cells(page, len(tree), found.locations.num_rows)
    totals = np.zeros((len(meta["stored"]), len(tree)))
    columns = page.columns("totals")
    totals[columns["metric"], columns["position"]] = columns["value"]
    assert [metric["name"] for metric in meta["metrics"]] == [
        metric.name for metric in found.profile.metrics if metric.name not in found.profile.void
    ]
    for metric in meta["metrics"]:
        shown = sum((factors[vector][:, None] * cells[stored] for stored, vector in metric["terms"]), np.zeros(1))
        expected = dense(found.profile, metric["name"])[tree.preorder]
        np.testing.assert_allclose(np.broadcast_to(shown, expected.shape), expected, rtol=1e-9, atol=1e-12)
        total = sum(float((factors[vector] * totals[stored]).sum()) for stored, vector in metric["terms"])
        assert total == pytest.approx(found.metrics[metric["name"]].total, rel=1e-9, abs=1e-12)
    for number, name in enumerate(meta["stored"]):
        assert totals[number].tolist() == found.profile.by_position(name).tolist()


def test_a_page_is_of_the_focus_and_counts_are_of_the_whole_run():
    found = whywait.analyze(DATA / "stencil")
    shown = shown_part(found, found.summary())
    focus = found.window(found.facts["focus_begin"], found.facts["focus_end"])
    for name in ("time", "comp", "mpi", "waiting", "mpi_latesender", "critical_path"):
        assert shown.profile.total(name) == pytest.approx(focus[name].total, rel=1e-12)
        assert (shown.profile.total(name) < found.profile.total(name)) == (name != "mpi_latesender")
        assert not is_whole(shown, name)
    for name in ("visits", "bytes_sent", "comms_send"):
        assert shown.profile.total(name) == found.profile.total(name)
        assert is_whole(shown, name)
    # The imbalance is that of the computation in the focus.
    assert shown.profile.total("imbalance") == pytest.approx(
        sum(imbalance(shown.profile, found.places)["imbalance"].value), rel=1e-12
    )
    everything = shown_part(found, found.summary(focus="all"))
    assert everything.profile.total("time") == found.profile.total("time")
    assert not is_whole(everything, "visits")


# The page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_values_match_the_tables(name, tmp_path):
    found = whywait.analyze(DATA / name)
    page = page_of(found, tmp_path)
    check_numbers(found, page)
    assert page.meta["resolution"] == {"merged": 1, "exact": True}
    assert page.meta["callpaths"]["id"] == found.tree.preorder.tolist()


def test_values_of_an_unordered_tree(tmp_path):
    found = result(small())
    check_numbers(found, page_of(found, tmp_path))


def test_every_module_of_the_directory_is_a_section():
    names = {path.stem for path in Path(sections.__file__).parent.glob("*.py")} - {"__init__"}
    assert {section.__module__.rpartition(".")[2] for section in sections.SECTIONS} == names


def test_empty_run(tmp_path):
    found = result(FakeAnalysis([], [], [(0, 0)], {}))
    page = page_of(found, tmp_path)
    assert page.meta["stored"] == []
    assert page.story["found"] is None


@pytest.mark.parametrize("name", TRACES)
def test_parts_add_up_to_the_time(name):
    found = whywait.analyze(DATA / name)
    told = parts(found, Formulas(found.profile))
    assert sum(part["value"] for part in told) == pytest.approx(found.metrics["time"].total, rel=1e-9)
    each = np.sum([part["ranks"] for part in told], axis=0)
    np.testing.assert_allclose(each, found.profile.by_location("time"), rtol=1e-5)
    waiting = sum(part["value"] for part in told if part["family"] == "waiting")
    assert waiting == pytest.approx(found.metrics["waiting"].total, rel=1e-9)


def test_names_are_escaped(tmp_path):
    analysis = FakeAnalysis([None, 0], [(NASTY, "COMPILER", "FUNCTION"), RECV], [(0, 0)], {"time": {(0, 0): 1.0}})
    found = result(analysis)
    found.run._native.archive_name = NASTY
    page = page_of(found, tmp_path)
    assert "<img" not in page.text
    assert page.meta["regions"][0]["name"] == NASTY
    assert {tag for tag, _ in page.elements} <= {
        "html", "head", "meta", "link", "title", "style", "body", "a", "header", "main", "p", "div", "dialog",
        "noscript", "script",
    }  # fmt: skip


def test_no_external_addresses(tmp_path):
    page = page_of(result(small()), tmp_path)
    assert set(re.findall(r"\bhttps?://[^\s\"')]+", page.text)) == {"http://www.w3.org/2000/svg"}
    (policy,) = (attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert not any({"src", "href"} & attrs.keys() - {"href"} for _, attrs in page.elements)


@pytest.mark.parametrize("name", ["report", "compare", "series"])
def test_program_and_style_are_small(name):
    assert len((program(name) + ASSETS.joinpath("style.css").read_text(encoding="utf-8")).encode()) < 271_000


def test_export_of_a_written_result_is_identical(tmp_path, capsys):
    assert main(["analyze", str(DATA / "stencil"), "-o", str(tmp_path), "--html", "--quiet"]) == 0
    first = Page(tmp_path / "report.html")
    assert main(["export", "html", str(tmp_path), "-o", str(tmp_path / "again.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    again = Page(tmp_path / "again.html")
    assert told == {"file": str(tmp_path / "again.html"), "bytes": (tmp_path / "again.html").stat().st_size}
    assert first.meta == again.meta
    assert first.blocks == again.blocks
    assert main(["export", "html", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"Written to {tmp_path / 'report.html'}: open it in a browser\n"


def test_export_without_the_trace(tmp_path):
    shutil.copytree(DATA / "stencil", tmp_path / "trace")
    whywait.analyze(tmp_path / "trace").write(tmp_path / "results", html=True)
    shutil.rmtree(tmp_path / "trace")
    assert main(["export", "html", str(tmp_path / "results"), "-o", str(tmp_path / "later.html")]) == 0
    before, after = (Page(path).story for path in (tmp_path / "results/report.html", tmp_path / "later.html"))
    assert before["found"]["findings"][1]["example"]
    assert before["found"]["findings"][0]["price"]["saved"] == pytest.approx(0.085, abs=1e-4)
    assert before == after


def test_output_must_not_be_a_directory(tmp_path, capsys):
    result(small()).write(tmp_path)
    assert main(["export", "html", str(tmp_path), "-o", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_packed_columns_round_trip():
    data = {
        "u1": np.array([0, 255, 7], np.uint8), "u4": np.array([0, 2**32 - 1], np.uint32),
        "i4": np.array([-(2**31), 5], np.int32), "f4": np.array([1.5, -0.0, np.inf], np.float32),
        "f8": np.array([np.pi, -1e300, np.nan]), "none": np.empty(0),
    }  # fmt: skip
    back = unpack_columns(blocks.columns(data))
    assert list(back) == list(data)
    for name, column in data.items():
        assert back[name].dtype == column.dtype
        np.testing.assert_array_equal(back[name], column)
    with pytest.raises(TypeError, match="cannot hold columns of type int64"):
        blocks.columns({"x": np.array([1])})


def test_too_many_cells_are_merged_and_rounded():
    rng = np.random.default_rng(7)
    locations = 1001
    values = {(c, l): float(rng.gamma(2.0)) for c in range(3) for l in range(locations) if rng.random() < 0.7}  # noqa: E741
    analysis = FakeAnalysis([None, 0, 0], [MAIN, RECV, SEND], [(r, 0) for r in range(locations)], {"time": values})
    profile = result(analysis).profile
    resolution = Resolution.of(profile, ["time"], limit=600, exact=100)
    assert (resolution.merged, resolution.exact) == (4, False)
    columns = resolution.cells(profile.cells("time"), locations)
    exact = np.zeros((3, resolution.places(locations)))
    np.add.at(
        exact,
        (profile.cells("time").key // locations, profile.cells("time").key % locations // 4),
        profile.cells("time").value,
    )
    shown = np.zeros_like(exact)
    start = 0
    for position, count in zip(columns["position"], columns["count"], strict=True):
        shown[position, np.cumsum(columns["place"][start : start + count])] = columns["value"][start : start + count]
        start += count
    # To the nearest of values with 13 bits, not to the next below.
    np.testing.assert_allclose(shown, exact, rtol=2.0**-13)
    assert columns["value"].dtype == np.float32


def test_page_size_is_limited(tmp_path, monkeypatch):
    rng = np.random.default_rng(7)
    values = {"time": {(0, location): float(rng.random()) for location in range(3000)}}
    found = result(FakeAnalysis([None], [MAIN], [(r, 0) for r in range(3000)], values))
    seen = []
    for room in (200_000, 45_000, 8_000):
        monkeypatch.setattr("whywait.report.html.page.ROOM", room)
        page = page_of(found, tmp_path)
        seen.append(tuple(page.meta["resolution"].values()))
        assert sum(len(block) for name, block in page.blocks.items() if name.startswith("cells")) <= room
        # Totals stay exact.
        columns, time_ = page.columns("totals"), page.meta["stored"].index("time")
        assert columns["value"][columns["metric"] == time_].tolist() == found.profile.by_position("time").tolist()
        assert page.columns(f"cells-{time_}")["value"].sum() == pytest.approx(found.metrics["time"].total, rel=1e-4)
    assert seen[:2] == [(1, True), (1, False)]
    merged, exact = seen[2]
    assert merged > 1
    assert not exact
    assert page.meta["system"]["name"][:2] == ["3,000 locations", f"ranks 0\N{EN DASH}{merged - 1}"]


# Wait states -----------------------------------------------------------------------------------------


def many_waits(rng, cells, each):
    rows = [
        {"kind": "mpi_latesender", "location": cell % 7, "callpath": 1 + cell // 7, "enter": 0.0, "leave": 1.0,
         "waiting": float(rng.random()), "cause_location": None, "cause_callpath": None, "cause_time": None}
        for cell in range(cells) for _ in range(each)
    ]  # fmt: skip
    analysis = FakeAnalysis(
        [None, 0, 0, 0, 0], [MAIN, RECV, SEND, BARRIER, RECV], [(r, 0) for r in range(7)], {"time": {(0, 0): 1.0}}, rows
    )
    return result(analysis)


@pytest.mark.parametrize("limit", [10_000, 300, 40])
def test_longest_waits_of_every_cell(limit):
    found = many_waits(np.random.default_rng(3), 28, 50)
    native = found.tables.wait_states
    kinds, columns = worst_waits.worst(found, limit)
    assert kinds == ["mpi_latesender"]
    waiting = columns["waiting"]
    assert waiting.size == min(limit, 28 * 20)
    assert (np.diff(waiting) <= 0).all()
    assert columns["count"].tolist() == [7 * 50] * 4
    # The longest waits of every call path come first, as far as they fit.
    for position in np.unique(columns["position"]):
        everything = np.sort(native["waiting"].to_numpy()[native["callpath"].to_numpy() == position])[::-1]
        chosen = waiting[columns["position"] == position]
        certain = min(20, limit // 8)
        assert chosen[:certain].tolist() == everything[:certain].tolist()


def test_causes_of_wait_states(tmp_path):
    page = page_of(result(small()), tmp_path)
    columns = page.columns("instances")
    assert page.meta["kinds"] == ["mpi_barrier_wait", "mpi_latesender", "mpi_lswo_same"]
    assert columns["waiting"].tolist() == [0.004, 0.004, 0.003, 0.002, 0.001, 0.001]
    assert columns["cause_rank"].tolist() == [1, 1, -1, 1, 2, 1]
    unknown = columns["waiting"].tolist().index(0.003)
    assert [columns[name][unknown] for name in ("cause_rank", "cause_position", "cause_place")] == [-1, -1, -1]
    assert np.isnan(columns["cause_time"][unknown])


# A browser -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    found = whywait.analyze(DATA / "stencil")
    path = tmp_path_factory.mktemp("stencil") / "report.html"
    found.write_html(path)
    return found, path


def test_front_page(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open()
    told = found.findings(prices=True)
    assert viewer.text(".headline .verdict") == told.verdict()
    sentences = viewer.js("return [...document.querySelectorAll('.findings .sentence')].map((one) => one.textContent)")
    assert sentences == [" ".join([one.sentence, *one.remarks.values()]) for one in told.shown]
    amounts = viewer.js("return [...document.querySelectorAll('.findings .amount b')].map((one) => one.textContent)")
    assert amounts[:4] == ["676 ms", "85.0 ms", "112 ms", "12.0 ms"]
    # The evidence is behind a click.
    assert viewer.js("return [...document.querySelectorAll('.evidence')].every((one) => !one.checkVisibility())")
    viewer.click(".findings summary")
    assert viewer.js("return document.querySelector('.evidence').checkVisibility()")
    parts = viewer.js("return [...document.querySelectorAll('.families h3')].map((one) => one.textContent)")
    assert parts == ["Computation1.89 s · 69.4%", "Waiting808 ms · 29.8%", "Transfer and library22.3 ms · 0.8%"]
    viewer.until("document.querySelector('.iterations:not([hidden])')")
    titles = viewer.js("return [...document.querySelectorAll('.card > h2')].map((title) => title.textContent)")
    assert titles == [
        "Where the time went", "Findings", "Iterations", "Who causes the waiting",
        "What determines how long the run takes", "Efficiencies", "Problems in the trace",
    ]  # fmt: skip
    efficiency = found.efficiencies(window=found.summary()["focus"]["window"])["parallel_efficiency"].value
    assert viewer.text(".efficiency b") == f"{efficiency:.3f}"
    viewer.click(".evidence .go")
    viewer.until("document.querySelectorAll('.box').length")
    assert (viewer.selected("metrics"), viewer.selected("call-tree")) == ("Delay costs", "work")
    viewer.is_well()


def test_empty_cards_are_omitted(browser, tmp_path):
    found = result(FakeAnalysis([None], [MAIN], [(0, 0), (1, 0)], {"time": {(0, 0): 1.0, (0, 1): 2.0}}))
    found.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open()
    titles = viewer.js("return [...document.querySelectorAll('.card > h2')].map((title) => title.textContent)")
    assert titles == ["Where the time went", "Problems in the trace"]
    viewer.is_well()


def test_deep_link_to_a_selection(browser, stencil):
    found, path = stencil
    call = next(c for c in range(len(found.tree)) if found.tree.path(c)[-1] == "MPI_Allreduce")
    viewer = Viewer(browser, path).open(f"#explore?metric=mpi_wait_nxn&call={call}&show=root")
    viewer.until("document.querySelectorAll('.box').length")
    assert (viewer.selected("metrics"), viewer.selected("call-tree")) == ("Wait at N x N", "MPI_Allreduce")
    found = shown_part(found, found.summary())
    total, time_ = found.metrics["mpi_wait_nxn"].total, found.metrics["time"].total
    assert viewer.rows("metrics")["Wait at N x N"] == f"{total / time_:.1%}"
    assert viewer.rows("call-tree")["MPI_Allreduce"] == f"{total / time_:.1%}"
    by_rank = dict(
        zip(*(column.to_pylist() for column in found.metrics["mpi_wait_nxn"].by_rank().columns), strict=True)
    )
    for rank, value in by_rank.items():
        if value:
            assert viewer.rows("system")[f"MPI Rank {rank}"] == f"{value / time_:.1%}"
    viewer.is_well()


def test_expanded_nodes_show_exclusive_values(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=mpi_latesender")
    viewer.until("document.querySelectorAll('.box').length")
    whole, part = (found.metrics[name].total for name in ("mpi_latesender", "mpi_latesender_wo"))
    assert viewer.rows("metrics")["Late Sender"] == f"{whole * 1e3:.0f} ms"
    viewer.press("#tree-metrics", "ArrowRight")
    assert viewer.rows("metrics")["Late Sender"] == f"{(whole - part) * 1e3:.0f} ms"
    assert viewer.rows("metrics")["Messages in Wrong Order"] == f"{part * 1e3:.1f} ms"
    assert "metric=mpi_latesender%7E" in viewer.js("return location.hash")
    viewer.until(f"document.querySelector('.crumbs').textContent.includes('{(whole - part) * 1e3:.0f} ms')")
    # The call tree shows the same difference.
    assert viewer.rows("call-tree")["stencil"] == f"{(whole - part) * 1e3:.0f} ms"
    viewer.is_well()


def test_search_in_a_tree(browser, stencil):
    _, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=time")
    viewer.until("document.querySelectorAll('.box').length")
    viewer.js(
        "const box = document.querySelector('[aria-label=\"Find in Call tree\"]'); box.value = 'mpi_';"
        "box.dispatchEvent(new Event('input'));"
    )
    first = viewer.selected("call-tree")
    assert first.startswith("MPI_")
    assert re.fullmatch(r"1 of \d+", viewer.text("[aria-label='Call tree'] .count"))
    assert viewer.text("#tree-call-tree mark") == "MPI_"
    viewer.press("[aria-label='Find in Call tree']", "Enter")
    assert viewer.text("[aria-label='Call tree'] .count").startswith("2 of ")
    viewer.press("[aria-label='Find in Call tree']", "Escape")
    assert viewer.js("return document.activeElement.id") == "tree-call-tree"
    viewer.is_well()


def test_rows_sort_by_value(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=time")
    viewer.until("document.querySelectorAll('.box').length")
    viewer.press("#tree-call-tree", "Home", "ArrowRight", "ArrowDown", "ArrowRight")
    viewer.click("[data-key=value]")
    names = viewer.js(
        "return [...document.querySelectorAll('#tree-call-tree .row')].filter((row) => row.ariaLevel === '3')"
        ".map((row) => row.querySelector('.name').textContent)"
    )
    inclusive = shown_part(found, found.summary()).metrics["time"].by_callpath().to_pylist()
    values = {row["callpath"][-1]: row["inclusive"] for row in inclusive if len(row["callpath"]) == 3}
    assert names == sorted(values, key=lambda name: -values[name])
    viewer.is_well()


def test_longest_waits_and_their_causes(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=mpi_latesender")
    viewer.until("document.querySelectorAll('.instances button').length")
    waits = found.wait_states().to_pylist()
    longest = max((w for w in waits if w["kind"] == "mpi_latesender"), key=lambda w: w["waiting"])
    shown = viewer.text(".instances li > button")
    assert f"{longest['waiting'] * 1e3:.1f} ms" in shown
    assert f"rank {longest['rank']}" in shown
    assert f"for rank {longest['cause_rank']}, {longest['cause_callpath'][-1]}" in shown
    viewer.click(".instances li > button")
    details = viewer.text(".instances dl")
    assert f"from{longest['enter']:.9f} s to {longest['leave']:.9f} s" in details
    viewer.is_well()


def test_box_plots_show_the_distribution(browser, stencil):
    found, path = stencil
    viewer = Viewer(browser, path).open("#explore?metric=mpi_latesender")
    viewer.until("document.querySelectorAll('.box').length")
    viewer.js("document.querySelector('.box').dispatchEvent(new MouseEvent('mousemove', { bubbles: true }))")
    values = found.profile.by_location("mpi_latesender")
    told = viewer.text("#tip")
    assert f"median{np.median(values) * 1e3:.1f} ms" in told
    assert f"most{values.max() * 1e3:.1f} ms on rank {values.argmax()}" in told
    assert f"first quartile{np.quantile(values, 0.25) * 1e3:.1f} ms" in told
    viewer.is_well()


def test_names_are_shown_verbatim(browser, tmp_path):
    analysis = FakeAnalysis(
        [None, 0, None],
        [(NASTY, "COMPILER", "FUNCTION"), RECV, MAIN],
        [(0, 0), (1, 0)],
        {"time": {(0, 0): 1.0, (1, 1): 2.0, (2, 1): 1.0}, "mpi_latesender": {(1, 1): 1.5}},
        warnings=[{"kind": "x", "count": 2, "text": NASTY, "place": NASTY}],
    )
    found = result(analysis)
    found.run._native.archive_name = NASTY
    found.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open()
    assert NASTY in viewer.text(".odd")
    viewer.open("#explore?metric=time")
    viewer.until("document.querySelectorAll('.box').length")
    # Two programs share an artificial root, so that both can be selected together.
    assert viewer.selected("call-tree") == "All programs"
    viewer.press("#tree-call-tree", "ArrowRight")
    assert NASTY in viewer.rows("call-tree")
    assert not viewer.js("return document.querySelector('main img')")
    viewer.is_well()


def test_topology_map(browser, tmp_path):
    ranks = [(rank, 0) for rank in range(6)]
    values = {(0, rank): 1.0 + rank for rank in range(6)}
    definitions = {
        "LocationGroup": [{"id": r, "name": f"Rank {r}", "location_group_type": "PROCESS", "system_tree_parent": None,
                           "creating_location_group": None} for r in range(6)],
        "Group": [{"id": 0, "name": "", "group_type": "COMM_LOCATIONS", "paradigm": "MPI", "members": list(range(6))}],
        "Comm": [{"id": 0, "group": 0}],
        "CartDimension": [{"id": i, "name": n, "size": s, "cart_periodicity": "FALSE"}
                          for i, (n, s) in enumerate([("y", 2), ("x", 3)])],
        "CartTopology": [{"id": 0, "name": "grid", "communicator": 0, "cart_dimensions": [0, 1]}],
        "CartCoordinate": [{"cart_topology": 0, "rank": r, "coordinates": [r // 3, r % 3]} for r in range(6)],
    }  # fmt: skip
    found = result(FakeAnalysis([None], [MAIN], ranks, {"time": values}), definitions=definitions)
    found.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#explore?metric=time")
    viewer.until("document.querySelectorAll('.box').length")
    viewer.js(
        "const arrange = document.querySelector('[aria-label=\"Arrangement of the map\"]');"
        "arrange.value = '1'; arrange.dispatchEvent(new Event('change'));"
    )
    assert viewer.text("[aria-label='Arrangement of the map'] option:checked") == "grid (2 \N{MULTIPLICATION SIGN} 3)"
    # Rank 3 is in the lower left corner.
    viewer.js(
        "const map = document.querySelector('.map canvas'); const box = map.getBoundingClientRect();"
        "const columns = Math.min(96, box.width / 3); const rows = Math.min(64, box.height / 2);"
        "const event = { clientX: box.left + (box.width - 3 * columns) / 2 + columns / 2,"
        " clientY: box.top + (box.height - 2 * rows) / 2 + 1.5 * rows, bubbles: true };"
        "map.dispatchEvent(new MouseEvent('mousemove', event)); map.dispatchEvent(new MouseEvent('click', event));"
    )
    assert viewer.text("#tip") == "rank 3 at (y 1, x 0)4.00 s"
    assert "Master" not in viewer.selected("system")
    viewer.is_well()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_color_scale_is_even_in_lightness(browser, stencil, theme):
    _, path = stencil
    viewer = Viewer(browser, path)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    viewer.open("#explore?metric=time")
    viewer.until("document.querySelectorAll('.box').length")
    colours = re.findall(r"rgb\((\d+)[, ]+(\d+)[, ]+(\d+)\)", viewer.js(
        "return document.querySelector('.legend i').style.background"))  # fmt: skip
    linear = (np.array(colours, float) / 255) ** 2.2
    lightness = np.cbrt(linear @ [0.2126, 0.7152, 0.0722])
    steps = np.diff(lightness) * (1 if theme == "dark" else -1)
    assert steps.size > 10
    assert (steps > 0).all()
    assert steps.max() < 2.5 * steps.min()
    viewer.is_well()


def test_many_ranks_open_at_once(browser, tmp_path):
    ranks = 4096
    values = {
        "time": {(c, l): 1.0 + (l % 64) / 64 for c in range(3) for l in range(ranks)},  # noqa: E741
        "mpi_latesender": {(1, l): 0.01 * (l % 100) for l in range(1, ranks)},  # noqa: E741
    }
    found = result(FakeAnalysis([None, 0, 0], [MAIN, RECV, SEND], [(r, 0) for r in range(ranks)], values))
    found.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#explore?metric=mpi_latesender")
    viewer.until("document.querySelectorAll('.box').length")
    assert 1 < len(viewer.rows("system")) < 100
    viewer.press("#tree-system", "End")
    viewer.until("document.querySelector('#tree-system .row[aria-selected=true]')")
    assert viewer.js("return location.hash").endswith(f"system={ranks}")
    viewer.is_well()


def test_unknown_columns_are_ignored(tmp_path):
    analysis = small()
    analysis._wait_states = analysis._wait_states.append_column("more", pa.array([1] * 6))
    page_of(result(analysis), tmp_path)
