"""The card about files: the data of the page, and what a browser shows."""

import pytest
import whywait
from whywait.analysis.io import summary

from tests.browser import Page, Viewer, unpack_document
from tests.tracedsl import trace_from_text

MIB = 1 << 20
# A cell without a value.
NONE = "\N{EN DASH}"
TEXT = f"""
    0: main [0, 10]
    1: main [0, 10]
    0: read(file=input, bytes={MIB}) [1, 2]
    1: read(file=input, bytes={MIB}) [1, 4]
    0: MPI_File_write_all(file=output, bytes=3000) [5, 8]
    1: MPI_File_write_all(file=output, bytes=4000) [7, 8]
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("io")
    # Files beyond the number that the card shows.
    more = "".join(f"0: write(file=log{n}, bytes=1) [{8 + 0.1 * n}, {8.05 + 0.1 * n}]\n" for n in range(6))
    result = whywait.analyze(trace_from_text(TEXT + more, directory / "trace"))
    result.write(directory / "result", html=True)
    return result, directory / "result" / "report.html"


def test_the_page_has_the_sums_of_the_command(written):
    result, path = written
    told, found = unpack_document(Page(path).blocks["io"]), summary(result)
    for name in ("time", "waiting", "count", "bytes_read", "bytes_written"):
        assert told[name] == found[name], name
    assert told["files"] == found["files"][:6]
    assert (told["more_files"], told["more_callpaths"], told["ranks"]) == (2, 0, 2)


def test_a_run_without_files_has_no_card(tmp_path):
    result = whywait.analyze(trace_from_text("0: main [0, 1]", tmp_path / "trace"))
    result.write(tmp_path / "result", html=True)
    assert "io" not in Page(tmp_path / "result" / "report.html").blocks


def test_the_card_in_a_browser(browser, written):
    _, path = written
    viewer = Viewer(browser, path).open()
    viewer.until("document.querySelectorAll('.io tbody tr').length")
    # By hand: 1 + 3 s of reading, 3 + 1 s of writing together, 0.3 s of logs; rank 0 waits from 5 to 7.
    lead = viewer.text(".io .lead")
    assert lead.startswith("All ranks together spend 8.30 s in I/O, 41.5% of the time, 2.00 s of it waiting")
    assert "10 operations read 2.00 MiB and write 6.84 KiB." in lead
    assert "Rank 0 spends most: 51.8% of it." in lead
    cells = "return [...document.querySelectorAll('.io table')].map((table) => [...table.querySelectorAll('tbody tr')]"
    first, second = viewer.js(f"{cells}.map((row) => [...row.cells].map((cell) => cell.textContent)))")
    assert ["input", "2", "2.00 MiB", NONE, "4.00 s", "512 KiB/s"] in first
    assert ["output", "2", NONE, "6.84 KiB", "4.00 s", "1.71 KiB/s"] in first
    assert ["program → main → MPI_File_write_all", "2", NONE, "6.84 KiB", "4.00 s", "2.00 s"] in second
    assert viewer.text(".io > .hint") == "And 2 more files: whywait io."
    viewer.click(".io .wide + .wide a")
    viewer.until("document.body.dataset.view === 'explore'")
    viewer.is_well()
