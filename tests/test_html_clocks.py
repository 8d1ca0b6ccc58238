"""The card about clocks: the data of the page, and what a browser shows."""

import pytest
import whywait

from tests.browser import Page, Viewer, unpack_document
from tests.tracedsl import trace_from_text

# Rank 1 is 1 s ahead.
TEXT = """
    0: MPI_Send(1) [1, 1.1]
    1: MPI_Recv(0) [2, 2.2]
    1: MPI_Send(0) [3, 3.1]
    0: MPI_Recv(1) [2, 2.2]
    0: MPI_Send(1) [11, 11.1]
    1: MPI_Recv(0) [12, 12.2]
    1: MPI_Send(0) [13, 13.1]
    0: MPI_Recv(1) [12, 12.2]
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("clocks")
    result = whywait.analyze(trace_from_text(TEXT, directory / "trace"), clocks="lines")
    result.write(directory / "result", html=True)
    return result, directory / "result" / "report.html"


def test_the_page_has_the_tables_of_the_result(written):
    result, path = written
    told = unpack_document(Page(path).blocks["clocks"])
    assert [(one["name"], one["checked"], one["violated"], one["left"]) for one in told["kinds"]] == [
        ("messages", 4, 2, 0)
    ]
    assert (sum(told["over_time"]["violated"]), sum(told["over_time"]["left"])) == (2, 0)
    assert [one["name"] for one in told["moves"]] == ["rank 1"]
    assert told["moves"][0]["moved"] == pytest.approx([-1] * 101)
    assert told["moves"][0]["uncertainty"] == pytest.approx(result.clock_processes()["uncertainty"][1].as_py())


def test_devices_have_clocks_of_their_own(tmp_path):
    """A kernel ends 1 s after the call that awaits it: its device is moved, its host is not."""
    text = """
        0: hipLaunchKernel(stream=1) [1, 1.1]
        0: hipStreamSynchronize(stream=1) [2, 4]
        0/1: kernel [3, 5]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path / "trace"), clocks="lines")
    result.write(tmp_path / "result", html=True)
    (device,) = unpack_document(Page(tmp_path / "result" / "report.html").blocks["clocks"])["moves"]
    domain = result.clock_domains().to_pylist()[1]
    assert device["name"] == f"device of {result.tables.locations['name'][domain['location']]}"
    assert device["moved"][0] == pytest.approx(domain["offset_begin"])
    assert device["uncertainty"] == domain["uncertainty"]


def test_a_run_without_violations_has_no_card(tmp_path):
    result = whywait.analyze(trace_from_text("0: main [0, 1]", tmp_path / "trace"))
    result.write(tmp_path / "result", html=True)
    assert "clocks" not in Page(tmp_path / "result" / "report.html").blocks


def test_the_card_in_a_browser(browser, written):
    _, path = written
    viewer = Viewer(browser, path).open()
    viewer.until("document.querySelectorAll('.clocks tbody tr').length")
    assert viewer.text(".clocks .lead").startswith("The clocks are corrected (each clock has an offset and a drift)")
    assert "rank 1 -1.00 s to -1.00 s" in viewer.text(".clocks .moves figcaption")
    assert "none is left" in viewer.text(".clocks .over-time figcaption")
    assert viewer.js("return document.querySelectorAll('.clocks polyline').length") == 1
    viewer.is_well()
