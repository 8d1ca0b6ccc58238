"""The timelines of the measured and the simulated run in the page of `whywait whatif --html`."""

from pathlib import Path

import pytest
import whywait
from selenium.webdriver.common.action_chains import ActionChains
from whywait.hypotheses import Balance, Cut, Network, Scale
from whywait.report.html.bundle import bundle, read

from tests.browser import Page, Viewer
from tests.test_html_timeline import settle
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
SHOWN = "document.querySelector('.timeline.both')?.dataset.shown !== undefined"
EVENTS = {"Enter", "Leave", "ProgramBegin", "ProgramEnd"}
GUTTER, AXIS = 84, 22
MEASURED, SIMULATED = 0, 1
PROGRAM = """
*: main [0, 10]
0: work [1, 4]
0: MPI_Send(1) [4, 4.2]
0: check [5, 6]
0: MPI_Send(1, tag=1) [7, 7.1]
1: MPI_Recv(0) [2, 4.4]
1: MPI_Recv(0, tag=1) [5, 7.3]
"""


@pytest.fixture(scope="module")
def stencil(tmp_path_factory):
    path = tmp_path_factory.mktemp("timelines") / "page.html"
    sim = whywait.whatif(whywait.analyze(DATA / "stencil"), [Balance("relax/work")])
    sim.write_html(path)
    return sim, path


def opened(browser, path, query=""):
    viewer = Viewer(browser, path).open(f"#timelines{query}")
    viewer.until(SHOWN)
    settle(viewer)
    return viewer


def window(viewer, side):
    text = viewer.js(
        "return document.querySelectorAll('.timeline .of span:not(.hint)')[arguments[0]].textContent", side
    )
    begin, _, end = text.partition(" (")[0].partition(" to ")
    return float(begin.split()[0]), float(end.split()[0])


def click(viewer, side, rank, time, ranks):
    """Click on a rank at a time."""
    settle(viewer)
    canvas = viewer.browser.find_elements("css selector", ".timeline .times")[side]
    box = canvas.rect
    begin, end = window(viewer, side)
    x = GUTTER + (time - begin) / (end - begin) * (box["width"] - GUTTER)
    y = AXIS + (rank + 0.5) / ranks * (box["height"] - AXIS)
    ActionChains(viewer.browser).move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    ).click().perform()
    settle(viewer)


def told(viewer):
    """The description of the selected call: its name, and its length, begin, and wait in each run."""
    rows = viewer.js(
        "return [...document.querySelectorAll('.picked tr')].map((row) =>"
        " [...row.querySelectorAll('td')].map((cell) => cell.textContent))"
    )
    return viewer.text(".picked p"), rows


def outlined(viewer, side):
    """Where the outline of the selected call begins, in pixels of the canvas: its left edge is a long dark line."""
    return viewer.js(
        "const canvas = document.querySelectorAll('.timeline .times')[arguments[0]];"
        "const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });"
        "copy.drawImage(canvas, 0, 0);"
        "const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);"
        "const ink = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim().slice(1);"
        "const tone = [0, 2, 4].map((at) => Number.parseInt(ink.slice(at, at + 2), 16));"
        "for (let x = 86; x < canvas.width; x++) { let run = 0;"
        "  for (let y = 0; y < canvas.height; y++) {"
        "    const at = 4 * (y * canvas.width + x);"
        "    run = tone.every((value, i) => Math.abs(data[at + i] - value) < 3) ? run + 1 : 0;"
        "    if (run >= 12) return x; } }"
        "return -1",
        side,
    )


def layers_off(viewer):
    viewer.js("for (const box of document.querySelectorAll('[data-layer]')) box.click()")
    settle(viewer)


def instances(sim, rank, name):
    """Begin and end of the calls of a function, measured and simulated, in seconds since the begin of each run."""
    events = [event for event in sim.measured.run.events(rank).to_pylist() if event["type"] in EVENTS]
    regions = {region["id"]: region["name"] for region in sim.measured.run.definitions["Region"].to_pylist()}
    facts = sim.measured.facts
    times = [
        [(tick - facts["origin"]) / facts["resolution"] for tick in sim.events(rank)[column].to_pylist()]
        for column in ("measured", "simulated")
    ]
    found, begun = [], None
    for number, event in enumerate(events):
        if regions.get(event.get("region")) != name:
            continue
        if event["type"] == "Enter":
            begun = number
        else:
            found.append([(of[begun], of[number]) for of in times])
    return found


def test_click_selects_the_call_in_both_runs(browser, stencil):
    sim, path = stencil
    call = max(instances(sim, 0, "MPI_Allreduce"), key=lambda call: call[MEASURED][1] - call[MEASURED][0])
    begin = call[MEASURED][0]
    viewer = opened(browser, path, f"?from={begin - 0.003}&to={begin + 0.003}")
    layers_off(viewer)
    click(viewer, MEASURED, 0, sum(call[MEASURED]) / 2, ranks=8)
    name, rows = told(viewer)
    assert name.startswith("rank 0: stencil → main → solve → residual → MPI_Allreduce; simulated it is")
    assert [row[1] for row in rows] == [f"from {of[0]:.9f} s" for of in call]
    # Both timelines have the same scale, and the call is at the same position.
    assert viewer.js("return document.querySelectorAll('.timeline .of').length") == 2
    (first, last), (second, end) = window(viewer, MEASURED), window(viewer, SIMULATED)
    assert last - first == pytest.approx(end - second, abs=2e-5)
    assert begin - first == pytest.approx(call[SIMULATED][0] - second, abs=2e-5)
    assert outlined(viewer, MEASURED) == outlined(viewer, SIMULATED) > 0
    # A click in the simulated run leaves that run where it is.
    other = min(instances(sim, 2, "work"), key=lambda work: abs(work[SIMULATED][0] - second))
    click(viewer, SIMULATED, 2, max(second, other[SIMULATED][0]) + 2e-4, ranks=8)
    _, rows = told(viewer)
    assert [row[1] for row in rows] == [f"from {of[0]:.9f} s" for of in other]
    assert window(viewer, SIMULATED) == (second, end)
    assert outlined(viewer, MEASURED) == outlined(viewer, SIMULATED)
    viewer.is_well()


def test_measured_and_simulated_timelines_zoom_together(browser, stencil):
    _, path = stencil
    viewer = opened(browser, path)
    length = window(viewer, MEASURED)
    assert window(viewer, SIMULATED) == length
    assert length[1] == pytest.approx(0.742, abs=1e-3)
    viewer.press(".timeline .times", "ArrowRight")
    viewer.press("body", "+", "+")
    settle(viewer)
    assert window(viewer, SIMULATED) == window(viewer, MEASURED)
    assert window(viewer, MEASURED)[1] < length[1] * 0.7
    # The longest wait of each run aligns both timelines; then the starts are aligned again.
    viewer.press("body", "w")
    settle(viewer)
    _, rows = told(viewer)
    assert "waits" in rows[MEASURED][2]
    shift = window(viewer, SIMULATED)[0] - window(viewer, MEASURED)[0]
    assert shift == pytest.approx(float(rows[1][1].split()[1]) - float(rows[0][1].split()[1]), abs=1e-3)
    assert shift < -0.05
    viewer.press("body", "x")
    settle(viewer)
    assert "waits" in told(viewer)[1][SIMULATED][2]
    viewer.browser.execute_async_script("setTimeout(arguments[0], 300)")
    address = viewer.js("return location.hash")
    assert "shift=-" in address
    there = [window(viewer, side) for side in (MEASURED, SIMULATED)]
    viewer.click("[data-key=begin]")
    settle(viewer)
    assert window(viewer, SIMULATED) == window(viewer, MEASURED)
    # The address restores the windows.
    viewer = opened(browser, path, address.removeprefix("#timelines"))
    assert [window(viewer, side) for side in (MEASURED, SIMULATED)] == there
    viewer.press("body", "0")
    settle(viewer)
    assert window(viewer, MEASURED)[1] - window(viewer, MEASURED)[0] >= length[1]
    viewer.is_well()


def test_cut_calls_take_no_time(browser, tmp_path):
    sim = whywait.whatif(trace_from_text(PROGRAM, tmp_path / "trace"), [Cut("check")])
    sim.write_html(tmp_path / "page.html")
    assert Viewer(browser, tmp_path / "page.html").open().text(".headline p") == f"Simulated: {sim.hypotheses[0]}"
    viewer = opened(browser, tmp_path / "page.html")
    click(viewer, MEASURED, 0, 5.5, ranks=2)
    text, rows = told(viewer)
    assert text.startswith(
        "rank 0: program → main → check; simulated it is 1.00 s shorter, and begins at the same time"
    )
    assert rows[SIMULATED][0] == "takes no time"
    # Later calls have other numbers, so they are matched by time.
    click(viewer, MEASURED, 0, 7.05, ranks=2)
    text, rows = told(viewer)
    assert "MPI_Send; simulated it is as long, and begins 1.00 s earlier" in text
    assert [row[1] for row in rows] == ["from 7.000000000 s", "from 6.000000000 s"]
    viewer.is_well()


def test_base_network_is_shown_above(browser, tmp_path):
    trace = trace_from_text(PROGRAM, tmp_path / "trace")
    sim = whywait.whatif(trace, [Scale("work", 0.5)], network=Network(0.5, 1e9))
    sim.write_html(tmp_path / "page.html")
    viewer = opened(browser, tmp_path / "page.html")
    assert viewer.text(".timeline .of b") == "on the network"
    # The message of the send at 4 takes half a second.
    click(viewer, MEASURED, 1, 3, ranks=2)
    text, rows = told(viewer)
    assert "MPI_Recv; simulated it is 1.50 s shorter" in text
    assert [row[0] for row in rows] == ["2.50 s", "1.00 s"]
    viewer.is_well()


def test_times_are_interpolated(browser, stencil):
    """The page of a large run has only some moments of each location."""
    program = bundle(["compare/time_map"], read)
    viewer = opened(browser, stencil[1])
    found = viewer.js(
        program
        + "const map = new TimeMap({ location: [1, 1, 1, 1], measured: [0, 2, 6, 6], simulated: [0, 1, 1, 4] }, 3);"
        "const times = [[0, 0, 3], [0, 1, 1], [0, 1, 4], [0, 1, 6], [0, 1, 7], [0, 1, -1], [1, 1, 0.5], [1, 1, 2.5]];"
        "return times.map(([side, location, time]) => map.other(side, location, time))"
    )
    # Locations without events are shifted; cut time maps to one moment.
    assert found == [3, 0.5, 1, 4, 5, -1, 1, 6]


def test_measured_runs_have_no_timelines(browser, tmp_path):
    runs = [whywait.analyze(DATA / name) for name in ("sor_fence", "sor_gats")]
    whywait.compare(*runs).write_html(tmp_path / "diff.html")
    assert not [name for name in Page(tmp_path / "diff.html").blocks if "timeline" in name]
    viewer = Viewer(browser, tmp_path / "diff.html").open("#timelines")
    assert viewer.js("return [...document.querySelectorAll('#top nav a')].map((link) => link.textContent)") == [
        "What changed", "Differences",
    ]  # fmt: skip
    assert viewer.js("return document.body.dataset.view") == "changes"
    viewer.is_well()


def test_few_moments_are_evenly_spaced(tmp_path):
    sim = whywait.whatif(trace_from_text(PROGRAM, tmp_path / "trace"), [Scale("work", 0.5)])
    every, few = ([tuple(row.values()) for row in sim.moments(most).to_pylist()] for most in (1000, 5))
    assert every[2:5] == [(0, 1, 1), (0, 4, 2.5), (0, 4, 2.5)]
    assert 5 <= len(few) < len(every)
    assert set(few) < set(every)
    assert {row for row in every if row[1] in {0, 10}} <= set(few)
