"""Functions on the timeline (colors, search, call stacks), resizable panes, sources, and names of threads."""

import re
from pathlib import Path

import pytest
import whywait
from whywait.cli import main
from whywait.report.html import blocks
from whywait.report.html.bundle import bundle, read

from tests.browser import Page, Viewer, unpack_document
from tests.fake_native import MAIN, FakeAnalysis, result

DATA = Path(__file__).parent / "data"
SHOWN = "document.querySelector('.timeline')?.dataset.shown !== undefined"
CLOSE = "#timeline?from=0.64&to=0.65"


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    path = tmp_path_factory.mktemp("timeline") / "report.html"
    found = whywait.analyze(DATA / "stencil")
    found.write_html(path, source=DATA / "programs")
    return found, path


def opened(browser, path, address=CLOSE):
    viewer = Viewer(browser, path).open(address)
    viewer.until(SHOWN)
    viewer.until("document.querySelector('.times').dataset.shows !== undefined")
    return viewer


def colors(viewer, selector):
    """The colors of a canvas, each with its number of pixels."""
    return viewer.js(
        "const canvas = document.querySelector(arguments[0]); const found = {};"
        "const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });"
        "copy.drawImage(canvas, 0, 0);"
        "const { data } = copy.getImageData(90, 30, canvas.width - 90, canvas.height - 30);"
        "for (let i = 0; i < data.length; i += 4) {"
        "  const key = data.slice(i, i + 3).join(); found[key] = (found[key] ?? 0) + 1;"
        "}"
        "return found",
        selector,
    )


def find(viewer, text):
    viewer.js(
        "const box = document.querySelector('[aria-label=\"Find a function\"]'); box.value = arguments[0];"
        "box.dispatchEvent(new Event('input'))",
        text,
    )


def settle(viewer):
    viewer.browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
    )


def layers_off(viewer):
    viewer.js("for (const box of document.querySelectorAll('[data-layer]')) box.click()")
    settle(viewer)


def test_calls_are_colored_by_function(browser, stencil):
    viewer = opened(browser, stencil[1])
    layers_off(viewer)
    by_class = colors(viewer, ".times")
    assert "Computation" in viewer.text(".timeline .classes")
    viewer.click("[data-key=function]")
    settle(viewer)
    by_function = colors(viewer, ".times")
    assert max(by_class, key=by_class.get) != max(by_function, key=by_function.get)
    legend = viewer.text(".timeline .classes")
    assert "work" in legend
    assert "MPI_Waitall" in legend
    assert "Computation" not in legend
    # The legend and the calls have the same colors.
    swatch = viewer.js(
        "const spans = [...document.querySelectorAll('.timeline .classes span')];"
        "const swatch = spans.find((span) => span.textContent === 'work').querySelector('i');"
        "return getComputedStyle(swatch).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map((part) => Math.round(part))"
    )
    most = [int(part) for part in max(by_function, key=by_function.get).split(",")]
    assert most == pytest.approx(swatch, abs=1)
    viewer.click("[data-key=class]")
    settle(viewer)
    assert max(colors(viewer, ".times"), key=by_class.get) == max(by_class, key=by_class.get)
    viewer.is_well()


def test_find_a_function(browser, stencil):
    found, path = stencil
    viewer = opened(browser, path)
    layers_off(viewer)
    start = float(hash_of(viewer).split("from=")[1].split("&")[0])
    before = colors(viewer, ".times")
    find(viewer, "ALLREDUCE")
    settle(viewer)
    visits = sum(
        row["value"] for row in found.metrics["visits"].by_callpath().to_pylist()
        if row["callpath"][-1] == "MPI_Allreduce"
    )  # fmt: skip
    assert viewer.text(".timeline .toolbar .hint") == f"{int(visits):,} calls; Enter: the next"
    # Other calls are pale.
    after = colors(viewer, ".times")
    most = max(before, key=before.get)
    assert after.get(most, 0) < before[most] / 4
    viewer.press("[aria-label='Find a function']", "Enter")
    settle(viewer)
    first = min(e["time"] for e in enters(found, "MPI_Allreduce") if e["time"] > start)
    begin, end = (float(part.split("=")[1]) for part in hash_of(viewer).split("?")[1].split("&")[:2])
    assert begin < first < end
    viewer.press("[aria-label='Find a function']", "Enter")
    assert float(hash_of(viewer).split("from=")[1].split("&")[0]) > begin
    find(viewer, "no such name")
    assert viewer.text(".timeline .toolbar .hint") == "no such call"
    find(viewer, "")
    settle(viewer)
    assert viewer.text(".timeline .toolbar .hint") == ""
    viewer.is_well()


def hash_of(viewer):
    """The address, which is updated with a delay."""
    viewer.browser.execute_async_script("setTimeout(arguments[0], 300)")
    return viewer.js("return location.hash")


def enters(found, name):
    """When a function is entered, in seconds since the begin of the trace."""
    regions = {r["id"]: r["name"] for r in found.run.definitions["Region"].to_pylist()}
    origin, resolution = found.facts["origin"], found.facts["resolution"]
    for location in range(8):
        for event in found.run.events(location).to_pylist():
            if event["type"] == "Enter" and regions.get(event["region"]) == name:
                yield {"location": location, "time": (event["time"] - origin) / resolution}


def test_the_call_stack_of_a_rank(browser, stencil):
    viewer = opened(browser, stencil[1], "#timeline?from=0.64&to=0.68")
    assert viewer.text(".stack-of summary") == "Call stack of rank 0"
    viewer.js("document.querySelector('.stack-of').open = true")
    viewer.until("document.querySelector('.stack-of canvas').dataset.levels === '5'")
    # Rows change their height when the stack appears.
    settle(viewer)
    # A click on a row shows the calls of that rank.
    viewer.js(
        "const canvas = document.querySelector('.times'); const box = canvas.getBoundingClientRect();"
        "const at = { clientX: box.left + box.width / 2, clientY: box.top + 22 + (box.height - 22) * 5.5 / 8 };"
        "canvas.setPointerCapture = () => {};"
        "for (const kind of ['pointerdown', 'pointerup']) {"
        "  canvas.dispatchEvent(new PointerEvent(kind, { ...at, pointerId: 1, bubbles: true }));"
        "}"
    )
    settle(viewer)
    assert viewer.text(".stack-of summary") == "Call stack of rank 5"
    # The root has one color over the whole width, its callees have several.
    tip_of = (
        "const canvas = document.querySelector('.stack-of canvas'); const box = canvas.getBoundingClientRect();"
        "const at = { clientX: box.left + arguments[0], clientY: box.top + arguments[1] };"
        "canvas.dispatchEvent(new MouseEvent('mousemove', at));"
        "return document.getElementById('tip').textContent"
    )
    assert viewer.js(tip_of, 120, 5).startswith("stencil")
    assert "stencil → main → solve" in viewer.js(tip_of, 120, 2 * 18 + 5)
    viewer.js(
        "const canvas = document.querySelector('.stack-of canvas'); const box = canvas.getBoundingClientRect();"
        "canvas.dispatchEvent(new MouseEvent('dblclick', { clientX: box.left + 120, clientY: box.top + 4 * 18 + 5 }))"
    )
    settle(viewer)
    span = [float(part.split("=")[1]) for part in hash_of(viewer).split("?")[1].split("&")[:2]]
    assert span[1] - span[0] < 0.005
    viewer.is_well()


def test_nesting_of_calls(browser, stencil):
    viewer = opened(browser, stencil[1])
    code = bundle(["timeline_data"], read)
    depths = viewer.js(
        code + "const data = Object.create(TimelineData.prototype);"
        "data.rowOf = [0, 5, 6]; data.calls = { enter: [0, 0, 2, 2, 9, 0], leave: [10, 2, 2, 5, 10, 4] };"
        "const whole = data.stackOf(0, 0, 10).map((one) => [one.call, one.depth]);"
        "return [whole, data.stackOf(0, 6, 8).map((one) => one.call)]"
    )
    # A call without duration may be nested in the previous one.
    assert depths == [[[0, 0], [1, 1], [2, 2], [3, 1], [4, 1]], [0]]


def test_page_without_single_calls(browser, tmp_path):
    whywait.analyze(DATA / "stencil").write_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    page = Page(tmp_path / "report.html")
    calls = page.columns("timeline-calls")
    empty = blocks.columns({name: column[:0] if name != "classes" else column for name, column in calls.items()})
    (tmp_path / "less.html").write_text(text.replace(page.blocks["timeline-calls"], empty))
    viewer = opened(browser, tmp_path / "less.html")
    assert viewer.js("return document.querySelector('[data-key=function]')") is None
    find(viewer, "work")
    assert viewer.text(".timeline .toolbar .hint") == "this file has no individual calls"
    assert "no individual calls" in viewer.text(".stack-of summary")
    viewer.is_well()


# Panes


def widths(viewer):
    return viewer.js(
        "return [...document.querySelectorAll('.explorer .panes > .pane')].map((pane) => pane.offsetWidth)"
    )


def test_panes_can_be_resized(browser, stencil):
    viewer = Viewer(browser, stencil[1]).open("#explore?metric=mpi_wait_nxn")
    viewer.until("document.querySelectorAll('.box').length")
    before = widths(viewer)
    assert max(before) - min(before) <= 2
    viewer.press(".panes .bar-between", "ArrowRight", "ArrowRight")
    after = widths(viewer)
    assert after[0] > before[0] + 60
    assert after[1] < before[1] - 60
    assert after[2] == before[2]
    bar = "document.querySelector('.panes .bar-between')"
    assert int(viewer.js(f"return {bar}.getAttribute('aria-valuenow')")) > 55
    # The pointer does the same.
    viewer.js(
        f"const bar = {bar}; const box = bar.getBoundingClientRect(); bar.setPointerCapture = () => {{}};"
        "const at = (x) => ({ clientX: x, clientY: box.top + 5, pointerId: 1, bubbles: true });"
        "bar.dispatchEvent(new PointerEvent('pointerdown', at(box.left)));"
        "bar.dispatchEvent(new PointerEvent('pointermove', at(box.left - 100)));"
        "bar.dispatchEvent(new PointerEvent('pointerup', at(box.left - 100)));"
    )
    assert widths(viewer)[0] == pytest.approx(after[0] - 100, abs=4)
    # Panes keep a minimum size.
    viewer.press(".panes .bar-between", *["ArrowLeft"] * 30)
    assert widths(viewer)[0] > 90
    viewer.js(f"{bar}.dispatchEvent(new MouseEvent('dblclick'))")
    assert widths(viewer) == before
    heights = "return [document.querySelector('.panes').offsetHeight, document.querySelector('.details').offsetHeight]"
    high = viewer.js(heights)
    viewer.press(".explorer > .bar-between", "ArrowDown")
    assert viewer.js(heights)[0] > high[0] + 20
    viewer.is_well()


# Sources


def test_source_lines_are_shown(browser, stencil):
    found, path = stencil
    call = next(c for c in range(len(found.tree)) if found.tree.path(c)[-1] == "relax")
    region = found.tree.regions.to_pylist()[found.tree.region_rows[call]]
    viewer = Viewer(browser, path).open(f"#explore?metric=time&call={call}")
    viewer.until("document.querySelector('.source-of')?.hidden === false")
    viewer.click(".source-of")
    viewer.until("document.querySelector('dialog.source')?.open")
    source = (DATA / "programs" / Path(region["file"]).name).read_text().splitlines()
    lines = viewer.js("return [...document.querySelectorAll('dialog.source .line')].map((line) => line.textContent)")
    begin = region["begin_line"]
    assert [line.rstrip("\n") for line in lines[:4]] == [
        f"{number} {source[number - 1]}" for number in range(begin - 3, begin + 1)
    ]
    assert any("relax" in line for line in lines[:4])
    assert viewer.text("dialog.source .begin").startswith(str(begin))
    viewer.is_well()


def test_sources_outside_the_directory_are_not_read(tmp_path):
    (tmp_path / "secret.c").write_text("secret\n" * 50)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.c").symlink_to(tmp_path / "secret.c")
    analysis = FakeAnalysis([None], [MAIN], [(0, 0)], {"time": {(0, 0): 1.0}})
    lines = analysis._regions.column_names.index("begin_line")
    analysis._regions = analysis._regions.set_column(lines, "begin_line", [[2]])
    result(analysis).write_html(tmp_path / "report.html", source=tmp_path / "src")
    assert "sources" not in Page(tmp_path / "report.html").blocks
    (tmp_path / "src/main.c").unlink()
    (tmp_path / "src/main.c").write_text("one\ntwo </script>\nthree\n")
    result(analysis).write_html(tmp_path / "report.html", source=tmp_path / "src")
    page = Page(tmp_path / "report.html")
    known = unpack_document(page.blocks["sources"])
    assert known == {
        "0": {"file": "main.c", "begin": 2, "first": 1, "lines": ["one", "two </script>", "three"], "more": False}
    }
    with pytest.raises(whywait.UsageError, match="is not a directory"):
        result(analysis).write_html(tmp_path / "report.html", source=tmp_path / "none")


def test_source_needs_html_and_a_directory(tmp_path, capsys):
    trace = str(DATA / "stencil")
    assert main(["analyze", trace, "-o", str(tmp_path / "a"), "--source", str(DATA / "programs")]) == 2
    assert "--html" in capsys.readouterr().err
    arguments = ["analyze", trace, "-o", str(tmp_path / "a"), "--html", "--quiet"]
    assert main([*arguments, "--source", str(tmp_path / "none")]) == 2
    assert not (tmp_path / "a").exists()
    assert main([*arguments, "--source", str(DATA / "programs")]) == 0
    assert "sources" in Page(tmp_path / "a/report.html").blocks
    assert main(["export", "html", str(tmp_path / "a"), "--source", str(DATA / "programs")]) == 0
    assert "sources" in Page(tmp_path / "a/report.html").blocks


# Threads


def test_ranks_without_threads(stencil):
    for place in stencil[0].summary()["focus"]["worst"]:
        assert place["worst_thread"] is None
        assert place["worst_thread_share"] is None


# Causes

#: Remembers the color and the ends of each line that is drawn.
RECORD = """
globalThis.lines = [];
const pen = CanvasRenderingContext2D.prototype, { moveTo, lineTo, stroke } = pen;
pen.moveTo = function (x, y) { this.begun = [x, y]; moveTo.call(this, x, y); };
pen.lineTo = function (x, y) { this.ended = [x, y]; lineTo.call(this, x, y); };
pen.stroke = function () {
  if (this.begun && this.ended) lines.push([this.strokeStyle, ...this.begun, ...this.ended]);
  stroke.call(this);
};
"""


def test_wait_for_a_kernel_ends_with_the_kernel(browser, tmp_path):
    arguments = ["--ranks", "2", "--iterations", "2", "-o", str(tmp_path / "trace")]
    assert main(["bench", "generate", "comd-gpu", *arguments]) == 0
    found = whywait.analyze(tmp_path / "trace")
    found.write_html(tmp_path / "report.html")
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": RECORD})
    try:
        viewer = opened(browser, tmp_path / "report.html", "#timeline")
        bad = viewer.js("return getComputedStyle(document.documentElement).getPropertyValue('--bad').trim()")
        lines = viewer.js("return lines")
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    arrows = [line[1:] for line in lines if line[0] == bad]
    # The host waits for the end of a kernel, MPI for the begin of a call: both end the wait.
    assert len(arrows) >= 4
    assert all(abs(begin - end) < 2 for begin, _, end, _ in arrows)


def shares(viewer, table):
    rows = viewer.js(
        "return [...document.querySelectorAll(`[aria-label='${arguments[0]}'] tr`)].map((row) =>"
        " [row.children[0].textContent.trim(), parseFloat(row.children[1].textContent.replace('<', ''))])",
        table,
    )
    return dict(rows)


@pytest.mark.parametrize("window", [(0.3594, 0.3595), (0.36778, 0.36783), (0.3594, 0.36257)])
def test_classes_of_a_short_window(browser, stencil, window):
    _, path = stencil
    viewer = opened(browser, path, f"#timeline?from={window[0]}&to={window[1]}")
    viewer.js("document.querySelector('details.statistics').open = true")
    viewer.until("document.querySelector('[aria-label=\"Time by function\"]')")
    classes, functions = shares(viewer, "Time by class"), shares(viewer, "Time by function")
    computation = sum(share for name, share in functions.items() if not name.startswith("MPI_"))
    assert classes["Computation"] == pytest.approx(computation, abs=0.1 * len(functions))
    assert sum(classes.values()) == pytest.approx(sum(functions.values()), abs=0.1 * len(functions))
    viewer.is_well()


def test_a_link_to_a_wait_selects_it(browser, stencil):
    _, path = stencil
    viewer = Viewer(browser, path).open("#overview")
    viewer.until("document.querySelector('.evidence .go + .go')")
    viewer.js("document.querySelector('.evidence .go + .go').click()")
    viewer.until(SHOWN)
    viewer.until("/: (Late Sender|Wait at \\w+).*: waits/.test(document.querySelector('.picked b')?.textContent)")
    viewer.is_well()


def test_link_wins_over_a_delayed_address(browser, stencil):
    """The window is noted in the address with a delay; meanwhile the address may name another view."""
    _, path = stencil
    viewer = opened(browser, path)
    viewer.press("body", "w")
    viewer.js("const until = performance.now() + 300; location.hash = '#functions';while (performance.now() < until);")
    viewer.until("document.body.dataset.view === 'functions'")
    assert hash_of(viewer) == "#functions"
    viewer.is_well()


def test_search_highlights_waits_and_callees(browser, stencil):
    _, path = stencil
    viewer = opened(browser, path)
    layers_off(viewer)
    before = colors(viewer, ".times")
    work = max(before, key=before.get)
    find(viewer, "main")
    settle(viewer)
    # Callees of `main` are highlighted, too.
    assert colors(viewer, ".times")[work] == before[work]
    viewer.is_well()


def test_legend_lists_functions_where_calls_are_shown(browser, stencil):
    _, path = stencil
    viewer = opened(browser, path)
    viewer.js(
        "const buttons = [...document.querySelectorAll('.timeline .toolbar button')];"
        "buttons.find((button) => button.textContent === 'By function').click()"
    )
    settle(viewer)
    assert "MPI_Waitall" in viewer.text(".classes")
    assert "Waiting" in viewer.text(".classes")
    viewer.press("body", "0")
    viewer.until("document.querySelector('.times').dataset.shows === 'shares'")
    assert "Point to point" in viewer.text(".classes")
    viewer.is_well()


def test_waits_in_the_focus_come_first(browser, stencil):
    """Waits in MPI_Finalize are among the longest, but outside the focus. Escape leaves all waits."""
    found, path = stencil
    begin, end = found.summary()["focus"]["window"]
    viewer = opened(browser, path)
    for _ in range(4):
        viewer.press("body", "w")
        said = viewer.js("return document.querySelector('.picked p').textContent")
        first, last = map(float, re.search(r"from ([\d.]+) s to ([\d.]+) s", said).groups())
        assert first < end
        assert last > begin
    viewer.press("body", "Escape")
    assert "click a wait" in viewer.js("return document.querySelector('.picked').textContent")
    viewer.is_well()
