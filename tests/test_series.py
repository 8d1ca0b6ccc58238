"""Many runs: order, efficiencies, scaling models, limits, the page and the badge.

The last part drives Chromium, as in `test_html`.
"""

import json
import math
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import whywait
from hypothesis import given
from hypothesis import strategies as st
from whywait.analysis.runs.scaling_models import NEEDED, TERMS, fit
from whywait.analysis.runs.threshold import Threshold
from whywait.cli import main
from whywait.report.html.series import parts

from tests.browser import Page, Viewer
from tests.fake_native import BARRIER, MAIN, SEND, FakeAnalysis, result

DATA = Path(__file__).parent / "data"
SIZES = [4, 8, 16, 32, 64]
ROWS = (
    "return [...document.querySelectorAll(arguments[0])].map((row) => [...row.cells].map((c) => c.textContent.trim()))"
)


def run_of(processes, *, late=0.0):
    """A run whose processes work 2/p s, send for 0.1 log2(p) s, and wait in a barrier for the first one."""
    work, send = 2.0 / processes, 0.1 * math.log2(processes)
    values = {
        "time": {
            **{(0, rank): work for rank in range(processes)},
            **{(1, rank): send for rank in range(processes)},
            **{(2, rank): 0.25 + late for rank in range(1, processes)},
        },
        "visits": {(c, rank): 1.0 for c in range(3) for rank in range(processes)},
        "mpi_barrier_wait": {(2, rank): 0.25 + late for rank in range(1, processes)},
    }
    ranks = [(rank, 0) for rank in range(processes)]
    return result(FakeAnalysis([None, 0, 0], [MAIN, SEND, BARRIER], ranks, values))


@pytest.fixture(scope="module")
def study():
    return whywait.series([run_of(size) for size in reversed(SIZES)], names=[f"p{size}" for size in reversed(SIZES)])


# Models


def test_terms_are_found_again():
    sizes = np.array([2.0, 4, 8, 16, 32, 64])
    values = np.array([3 + 0.5 * sizes ** float(i) * np.log2(sizes) ** j for i, j in TERMS])
    found = fit(sizes, values)
    assert [(model.power, model.log_power) for model in found] == TERMS
    assert [model.constant for model in found] == pytest.approx([3] * len(TERMS), rel=1e-6)
    assert [model.coefficient for model in found] == pytest.approx([0.5] * len(TERMS), rel=1e-6)
    assert max(model.error for model in found) < 1e-9


def test_noise_has_the_models_of_extra_p():
    """Extra-P 4.2.5 (its basic single-parameter modeler) found these functions for these measurements."""
    sizes = np.array([4.0, 8, 16, 32, 64, 128])
    measured = [
        [2.47, 2.93, 3.52, 4.31, 5.32, 7.01],
        [1.02, 0.98, 1.01, 1.0, 0.99, 1.01],
        [10.1, 24.3, 63.2, 162.0, 385.0, 901.0],
        [0.91, 1.22, 1.44, 1.81, 2.07, 2.41],
    ]
    assert [str(model) for model in fit(sizes, np.array(measured))] == EXTRA_P


EXTRA_P = ["1.56 + 0.48 * p^(1/2)", "1", "0.424 + 1 * p * log2(p)", "0.304 + 0.298 * log2(p)"]


def test_what_does_not_grow_is_a_constant():
    rng = np.random.default_rng(3)
    sizes = np.repeat([4.0, 8, 16, 32, 64], 3)
    flat = fit(sizes, 1 + 1e-3 * rng.standard_normal((200, sizes.size)))
    # Chance looks like growth now and then.
    assert sum(model.coefficient == 0 for model in flat) > 170
    nothing = fit(sizes, np.zeros((1, sizes.size)))[0]
    assert (nothing.constant, nothing.coefficient, nothing.error) == (0, 0, 0)


def test_few_runs_have_no_models():
    assert fit(np.array([1.0, 2, 4, 8] * 3), np.ones((1, 12))) is None
    assert NEEDED == 5


@given(
    st.lists(st.integers(1, 4096), min_size=5, max_size=9, unique=True),
    st.data(),
)
def test_models_are_never_negative_where_they_predict(sizes, data):
    values = data.draw(st.lists(st.floats(0, 1e6), min_size=len(sizes), max_size=len(sizes)))
    (model,) = fit(np.array(sizes, np.float64), np.array([values]))
    assert math.isfinite(model.error)
    assert 0 <= model.error <= 2
    if model.power < 0:
        assert model.constant >= 0
    assert model.coefficient >= 0 or model.power < 0
    largest = max(values)
    assert all(model(factor * max(sizes)) >= min(0.0, model(max(sizes))) - 1e-6 * largest for factor in (1, 2, 10, 100))


def test_the_study_finds_what_each_call_path_does(study):
    rows = {row["path"]: row for row in study.models(at=256).to_pylist()}
    assert next(iter(rows)) is None
    assert rows["main/MPI_Send"]["model"] == "0.1 * log2(p)"
    assert (rows["main"]["power"], rows["main"]["log_power"]) == (-1, 0)
    assert rows["main"]["predicted"] == pytest.approx(2 / 256)
    assert rows["main/MPI_Send"]["values"] == pytest.approx([0.1 * math.log2(size) for size in SIZES])
    # A quarter of a second on all ranks but one.
    barrier = rows["main/MPI_Barrier"]
    assert barrier["values"] == pytest.approx([0.25 * (size - 1) / size for size in SIZES])
    assert barrier["predicted"] == pytest.approx(0.25, rel=0.03)
    waits = {row["path"] for row in study.models("Wait at Barrier").to_pylist()}
    assert waits == {None, "main/MPI_Barrier"}
    with pytest.raises(whywait.UsageError, match="no run has a metric beauty"):
        study.models("beauty")


# Order, names and dates


def test_runs_are_ordered(study):
    assert [point.processes for point in study.points] == SIZES
    kept = whywait.series([run_of(8), run_of(4)], over="order")
    assert [point.processes for point in kept.points] == [8, 4]
    same = whywait.series([run_of(4), run_of(4)])
    assert same.over == "order"
    with pytest.raises(whywait.UsageError, match="is unknown: use another order"):
        whywait.series([run_of(4)], over="date")
    with pytest.raises(whywait.UsageError, match="at least one run"):
        whywait.series([])
    with pytest.raises(whywait.UsageError, match="1 runs and 2 names"):
        whywait.series([run_of(4)], names=["a", "b"])


def test_a_directory_of_runs(tmp_path):
    for name in ("run-16", "run-4"):
        whywait.analyze(DATA / "sor_p2p").write(tmp_path / name)
    (tmp_path / "notes").mkdir()
    history = whywait.series([tmp_path])
    assert [point.name for point in history.points] == ["run-4", "run-16"]
    assert all(point.date is not None for point in history.points)
    # Directories with the same name are distinguished by their parents.
    for name, run in (("monday", "run-4"), ("tuesday", "run-16")):
        (tmp_path / name).mkdir()
        (tmp_path / run).rename(tmp_path / name / "results")
    named = whywait.series([tmp_path / "monday/results", tmp_path / "tuesday/results"])
    assert [point.name for point in named.points] == ["monday", "tuesday"]


# Numbers


def test_efficiencies_are_those_of_the_verb(study, capsys):
    own = [row["parallel_efficiency"].value for row in study.efficiencies()]
    longest = [2 / size + 0.1 * math.log2(size) + 0.25 for size in SIZES]
    assert own == pytest.approx([2 / size / time for size, time in zip(SIZES, longest, strict=True)])
    runs = [str(DATA / name) for name in ("sor_p2p", "sor_fence")]
    assert main(["efficiency", *runs, "--json"]) == 0
    one = json.loads(capsys.readouterr().out)["methods"]["all"]
    assert main(["series", *runs, "--json"]) == 0
    other = json.loads(capsys.readouterr().out)["runs"]
    assert [run["efficiencies"] for run in other] == [run["efficiencies"] for run in one]


def test_metrics_and_parts_add_up(study):
    rows = study.metrics().to_pylist()
    time = [row["value"] for row in rows if row["metric"] == "time"]
    assert time == pytest.approx([point.result.metrics["time"].total for point in study.points])
    waiting = [row for row in rows if row["metric"] == "mpi_barrier_wait"]
    assert [row["share"] for row in waiting] == pytest.approx(
        [0.25 * (size - 1) / total for size, total in zip(SIZES, time, strict=True)]
    )
    assert {row["share"] for row in rows if row["metric"] == "visits"} == {None}
    found = parts(study)
    assert np.sum([part["values"] for part in found], axis=0) == pytest.approx(time)
    # What waits and what does not are the two sides of one branch.
    hatched = next(part for part in found if part["waits"])
    assert hatched["label"] == "Waiting in MPI synchronization"
    assert hatched["values"] == pytest.approx([0.25 * (size - 1) for size in SIZES])


def test_parts_of_real_runs_add_up():
    names = ["sor_p2p", "sor_fence", "sor_gats", "sor_locks"]
    runs = whywait.series([DATA / name for name in names])
    total = [sum(account["parts"].values()) for account in runs.accounts()]
    assert np.sum([part["values"] for part in parts(runs)], axis=0) == pytest.approx(total)
    waits = np.sum([part["values"] for part in parts(runs) if part["waits"]], axis=0)
    assert waits == pytest.approx([account["waiting"] for account in runs.accounts()])


# Limits and the badge


def test_the_newest_run_is_held_against_the_one_before(study):
    history = whywait.series(
        [run_of(4), run_of(8), run_of(4, late=0.5), run_of(8, late=0.01)], names=list("abcd"), over="order"
    )
    limit = Threshold.parse("mpi_barrier_wait>10%")
    assert history.exceeded([limit]) == [{"run": "c", "baseline": "a", "limit": "mpi_barrier_wait>10%"}]
    assert history.exceeded([Threshold.parse("mpi_barrier_wait>2%")])[1]["run"] == "d"
    with pytest.raises(whywait.UsageError, match="nothing to compare"):
        study.exceeded([limit])


def test_the_badge_is_a_picture(study):
    picture = ET.fromstring(study.badge())  # noqa: S314
    texts = [node.text for node in picture.iter() if node.tag.endswith("text")]
    value = study.efficiencies()[-1]["parallel_efficiency"].value
    assert texts == ["parallel efficiency", f"{value:.0%}"]
    assert "#b3261e" in study.badge()


# The verb


def test_the_verb_writes_table_page_and_badge(tmp_path, capsys):
    runs = [str(DATA / name) for name in ("sor_p2p", "sor_fence")]
    badge, page = tmp_path / "badge.svg", tmp_path / "series.html"
    assert main(["series", *runs, "--badge", str(badge), "--html", str(page), "--fail-on", "time>50%"]) == 0
    text = capsys.readouterr().out
    # A path may be longer than a terminal is wide.
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith("Written to"))
    assert "Parallel efficiency" in text
    assert "Waiting" in text
    assert "scaling models" not in text
    ET.fromstring(badge.read_text())  # noqa: S314
    assert Page(page).blocks["series"]
    assert main(["series", *runs, "--fail-on", "mpi_rma_wait_at_fence>5%"]) == 1
    assert "failed: mpi_rma_wait_at_fence>5% (sor_fence after sor_p2p)" in capsys.readouterr().out
    assert main(["series", *runs, str(DATA / "stencil")]) == 0
    assert "they need 5 different numbers of processes, and there are 2" in capsys.readouterr().out
    assert main(["series", str(tmp_path / "none")]) == 3
    assert main(["series", *runs, "--metric", "beauty"]) == 2


def test_the_verb_prints_models(tmp_path, capsys):
    for size in SIZES:
        arguments = ["bench", "generate", "sor-p2p", "--ranks", str(size), "--iterations", "4"]
        assert main([*arguments, "-o", str(tmp_path / f"run-{size}")]) == 0
    capsys.readouterr()
    assert main(["series", str(tmp_path), "--predict", "1024", "--scaling", "weak", "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    head = next(number for number, line in enumerate(lines) if line.startswith("Time of one of p processes"))
    assert "at 64" in lines[head]
    assert "at 1,024" in lines[head]
    assert lines[head + 1].startswith("whole program")
    assert len(lines) == head + 1 + 2 * 4 + 2


# The page


@pytest.fixture(scope="module")
def page(tmp_path_factory, study):
    path = tmp_path_factory.mktemp("series") / "series.html"
    study.write_html(path, at=512)
    return path


def bars(viewer):
    """The heights of the bars, run by run, as shares of the highest one."""
    runs = "[...document.querySelectorAll('.stacks svg > g')].filter((run) => run.querySelector('.bar-part'))"
    pairs = (
        "[...run.querySelectorAll('.bar-part')].map((bar) => [bar.dataset.part, Number(bar.getAttribute('height'))])"
    )
    return viewer.js(f"return {runs}.map((run) => Object.fromEntries({pairs}))")


def test_the_page_shows_efficiencies(browser, study, page):
    viewer = Viewer(browser, page).open()
    rows = {row[0]: row[1:] for row in viewer.js(ROWS, ".pop tbody tr")}
    expected = [row["parallel_efficiency"].value for row in study.efficiencies()]
    assert [float(text.rstrip("%")) for text in rows["Parallel efficiency"]] == pytest.approx(
        [100 * v for v in expected], abs=0.051
    )
    assert rows["Speedup"][0] == "1.00"
    classes = viewer.js("return [...document.querySelectorAll('.pop td')].map((cell) => cell.className)")
    assert {"good", "fair", "poor"} <= set(classes)
    assert rows["Wait at Barrier"][0] == f"{100 * 0.75 / (0.75 + 4 * 0.7):.1f}%"
    viewer.is_well()


def test_bars_are_scaled_and_chosen(browser, study, page):
    viewer = Viewer(browser, page).open()
    whole = bars(viewer)
    assert len(whole) == len(SIZES)
    heights = [sum(bar.values()) for bar in whole]
    assert heights == pytest.approx([heights[0]] * len(SIZES))
    time = [point.result.metrics["time"].total for point in study.points]
    assert whole[0]["Computation"] / heights[0] == pytest.approx(2 / time[0], rel=1e-3)
    viewer.click("[data-key=total]")
    heights = [sum(bar.values()) for bar in bars(viewer)]
    assert [height / heights[-1] for height in heights] == pytest.approx([one / time[-1] for one in time], rel=1e-2)
    viewer.click("[data-key=each]")
    heights = [sum(bar.values()) for bar in bars(viewer)]
    each = [one / size for one, size in zip(time, SIZES, strict=True)]
    assert [height / heights[-1] for height in heights] == pytest.approx([one / each[-1] for one in each], rel=1e-2)
    # Figure 5.6 b of the thesis: only communication, normalized.
    viewer.click("[data-key=communication]")
    viewer.click("[data-key=share]")
    shown = bars(viewer)
    assert all("Computation" not in bar for bar in shown)
    assert shown[0]["Waiting in MPI synchronization"] / sum(shown[0].values()) == pytest.approx(
        0.75 / (0.75 + 0.8), rel=1e-3
    )
    hatched = viewer.js("return document.querySelectorAll('.stacks .hatched').length")
    assert hatched == len(SIZES)
    # Figures 5.2 and 5.3: a count as a line over the bars.
    viewer.js(
        "const s = document.querySelector('[aria-label=\"Count to draw as a line\"]'); s.value = 'visits';"
        "s.dispatchEvent(new Event('change'))"
    )
    assert viewer.js("return document.querySelectorAll('.count-line circle').length") == len(SIZES)
    assert viewer.text(".stacks + .swatches").endswith("Visits")
    viewer.is_well()


def test_the_ideal_speedup_is_a_straight_line(browser, study, page):
    """Numbers of processes grow by factors, so both axes are logarithmic."""
    viewer = Viewer(browser, page).open()
    charts = "[...document.querySelectorAll('figure.lines')].at(-1)"
    points = "Array.from(line.points, (point) => [point.x, point.y])"
    measured, ideal = viewer.js(f"return [...{charts}.querySelectorAll('polyline')].map((line) => {points})")
    steps = [math.log2(size / SIZES[0]) for size in SIZES]
    for (x, y), step in zip(ideal, steps, strict=True):
        assert (x - ideal[0][0]) / (ideal[-1][0] - ideal[0][0]) == pytest.approx(step / steps[-1], abs=1e-5)
        assert (y - ideal[0][1]) / (ideal[-1][1] - ideal[0][1]) == pytest.approx(step / steps[-1], abs=1e-5)
    speedups = [row["speedup"].value for row in study.efficiencies()]
    unit = (ideal[-1][1] - ideal[0][1]) / steps[-1]
    assert [y for _, y in measured] == pytest.approx([ideal[0][1] + unit * math.log2(s) for s in speedups], abs=1e-3)
    labels = viewer.js(f"return [...{charts}.querySelectorAll('text')].map((text) => text.textContent)")
    assert {"1", "2", "4", "processes", str(SIZES[0]), str(SIZES[-1])} <= set(labels)


def test_counts_of_several_orders_of_magnitude_stand_with_their_parts(browser, tmp_path):
    """Figures 5.2 and 5.3 of the thesis: pairs that synchronize, and the unneeded ones."""
    pairs, unneeded = "mpi_rma_pairsync_count", "mpi_rma_pairsync_unneeded_count"

    def run(values):
        counts = {name: {(2, 0): float(value)} for name, value in values.items() if value}
        values = {"time": {(0, 0): 1.0}, **counts}
        analysis = FakeAnalysis([None, 0, 0], [MAIN, SEND, BARRIER], [(0, 0)], values)
        return result(analysis, stored=("time", pairs, unneeded))

    runs = [run({pairs: 5e6, unneeded: 4e6}), run({pairs: 3e5, unneeded: 2e5}), run({pairs: 300, unneeded: 0})]
    whywait.series(runs, names=["fence", "both", "gats"], over="order").write_html(tmp_path / "series.html")
    viewer = Viewer(browser, tmp_path / "series.html").open()
    choose = "const s = document.querySelector('[aria-label^=Count]'); s.value = arguments[0];"
    choose += "s.dispatchEvent(new Event('change'))"
    viewer.js(choose, pairs)
    lines = "[...document.querySelectorAll('.count-line > g')]"
    dots = "[...line.querySelectorAll('circle')].map((dot) => Number(dot.getAttribute('cy')))"
    whole, part = viewer.js(f"return {lines}.map((line) => {dots})")
    assert (len(whole), len(part)) == (3, 2), "what is none has no place on a logarithmic axis"
    low, high = (math.log10(count) for count in (300, 5e6))
    share = (math.log10(3e5) - low) / (high - low)
    assert (whole[2] - whole[1]) / (whole[2] - whole[0]) == pytest.approx(share, abs=1e-6)
    marks = viewer.js("return [...document.querySelectorAll('.count-line > text')].map((mark) => mark.textContent)")
    assert len(marks) == 6, "powers of ten from 100 to 10 M"
    labels = viewer.js("return [...document.querySelectorAll('.swatch.count')].map((i) => i.parentElement.textContent)")
    assert len(labels) == 2
    assert "unneeded" in labels[1].lower()
    viewer.is_well()


def test_call_paths_and_their_models(browser, page):
    viewer = Viewer(browser, page).open("#scaling")
    rows = viewer.js(ROWS, ".places tbody tr")
    by_name = {row[0].split(" → ")[-1]: row for row in rows}
    assert rows[0][0] == "Whole program"
    assert by_name["MPI_Send"][-3:] == ["0.1 * log2(p)", "900 ms", "<0.1%"]
    assert viewer.js("return document.querySelectorAll('.places .model-line').length") == len(rows)
    viewer.js(
        "const box = document.querySelector('[aria-label=\"Find a call path\"]'); box.value = 'barrier';"
        "box.dispatchEvent(new Event('input'))"
    )
    assert [row[0] for row in viewer.js(ROWS, ".places tbody tr")] == ["main → MPI_Barrier"]
    viewer.js(
        "const box = document.querySelector('[aria-label=Metric]'); box.value = 'waiting';"
        "box.dispatchEvent(new Event('change'))"
    )
    assert len(viewer.js(ROWS, ".places tbody tr")) == 1
    viewer.is_well()


def test_limits_stand_on_the_page(browser, tmp_path):
    history = whywait.series([run_of(4), run_of(4, late=1)], names=["<b>old", "new"])
    history.write_html(tmp_path / "p.html", limits=[Threshold.parse("time>10%"), Threshold.parse("visits>5")])
    viewer = Viewer(browser, tmp_path / "p.html").open()
    assert viewer.text(".gate h2") == "Limits exceeded"
    assert viewer.text(".gate .bad") == "time>10% in new, after <b>old"
    assert viewer.js("return document.querySelectorAll('.gate li').length") == 2
    viewer.is_well()


def test_one_run_has_a_page(browser, tmp_path):
    whywait.series([run_of(4)], names=["only"]).write_html(tmp_path / "p.html")
    viewer = Viewer(browser, tmp_path / "p.html").open()
    assert "Speedup" not in {row[0] for row in viewer.js(ROWS, ".pop tbody tr")}
    viewer.is_well()
