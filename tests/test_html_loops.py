"""Iterations and the communication matrix: the data of the page, and what a browser shows."""

from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait.report.html.sections import Report, iterations

from tests.browser import Page, Viewer, unpack_columns, unpack_document
from tests.fake_native import result, small

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def looped(tmp_path_factory):
    target = tmp_path_factory.mktemp("looped")
    found = whywait.analyze(DATA / "stencil")
    found.write(target, html=True)
    return found, target / "report.html"


def test_iterations_match_the_table(looped):
    found, path = looped
    page, table = Page(path), found.iterations()
    told = unpack_document(page.blocks["iterations"])
    rows = page.columns("iterations-rows")
    assert told["iterations"] == table.num_rows == len(rows["begin"])
    np.testing.assert_array_equal(rows["duration"], table["duration"].to_numpy())
    most = rows["duration"] - rows["computation"]
    waiting = np.minimum(table["waiting"].to_numpy() / found.locations.num_rows, most)
    np.testing.assert_allclose(rows["waiting"], waiting)
    assert (rows["computation"] + rows["waiting"] <= rows["duration"] * (1 + 1e-9)).all()
    for number, (kind, _) in enumerate(told["kinds"]):
        each = rows[f"kind-{number}"] * found.locations.num_rows
        np.testing.assert_allclose(each, table[kind].to_numpy(), rtol=1e-6)


def test_many_iterations_are_rounded(looped, monkeypatch):
    found, path = looped
    exact = Page(path).columns("iterations-rows")
    monkeypatch.setattr("whywait.report.html.sections.iterations._EXACT", found.iterations().num_rows - 1)
    rounded = unpack_columns(dict(iterations.data(Report(found, {}, {})))["iterations-rows"])
    for name, values in exact.items():
        rtol = 0 if values.dtype.kind == "i" or name in ("begin", "end", "duration") else 2.0**-12
        np.testing.assert_allclose(rounded[name], values, rtol=rtol)
    assert (rounded["computation"] != exact["computation"]).any()


def test_matrix_matches_the_table(looped):
    found, path = looped
    pairs, columns = found.communication(), Page(path).columns("communication-pairs")
    for name in ("rank", "peer", "messages", "bytes", "waiting"):
        np.testing.assert_allclose(columns[name], pairs[name].to_numpy())


def test_iteration_links_to_the_timeline(browser, looped):
    found, path = looped
    viewer = Viewer(browser, path).open()
    viewer.until("document.querySelector('.iterations .bars canvas')?.width > 300")
    table = found.iterations()
    assert viewer.js("return document.querySelector('.iterations').dataset.columns") == str(table.num_rows)
    worst = table.sort_by([("duration", "descending")]).to_pylist()[0]
    assert viewer.text(".iterations tbody td") == f"iteration {worst['iteration']}"
    viewer.press(".iterations canvas", "ArrowRight", "ArrowRight")
    assert viewer.text(".iterations .picked b") == "Iteration 1"
    viewer.click(".iterations .picked .go")
    viewer.until(
        "document.body.dataset.view === 'timeline' && document.querySelector('.timeline').dataset.shown !== undefined"
    )
    second = table.to_pylist()[1]
    query = viewer.js("return Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))")
    assert float(query["from"]) <= second["begin"] <= second["end"] <= float(query["to"])
    viewer.is_well()


def test_matrix_in_a_browser(browser, looped):
    found, path = looped
    viewer = Viewer(browser, path).open("#communication")
    viewer.until("document.querySelector('.communication')?.dataset.shown === 'bytes'")
    assert int(viewer.text(".communication tbody td:nth-child(3)").replace(",", "")) > 0
    viewer.click(".communication [data-key=waiting]")
    viewer.until("document.querySelector('.communication').dataset.shown === 'waiting'")
    worst = max(found.communication().to_pylist(), key=lambda row: row["waiting"])
    first = viewer.js(
        "return [...document.querySelectorAll('.communication tbody tr:first-child td')].map((c) => c.textContent)"
    )
    assert first[:2] == [f"rank {worst['rank']}", f"rank {worst['peer']}"]
    viewer.is_well()


def test_page_without_loop_and_messages(browser, tmp_path):
    small_page = tmp_path / "report.html"
    result(small()).write_html(small_page)
    viewer = Viewer(browser, small_page).open("#overview")
    assert viewer.js("return document.querySelector('nav [data-view=communication]')") is None
    assert viewer.js("return document.querySelector('.iterations')") is None
    viewer.is_well()
