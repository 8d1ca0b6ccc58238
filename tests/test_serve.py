"""A server shows a result of any size, on this machine only; and the summary as Markdown."""

import http.client
import json
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait.cli import main
from whywait.report.html.model import shown_part
from whywait.report.html.places import Resolution
from whywait.report.html.served import ServedPage
from whywait.report.html.server import Server
from whywait.report.markdown import markdown

from tests.browser import Viewer, unpack_columns, unpack_document
from tests.fake_native import result, small

DATA = Path(__file__).parent / "data"


@contextmanager
def serving(found, events=None):
    """Serve a result on a free port."""
    with Server(0, ServedPage(found, found.summary(), found.timeline, events)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def get(server, path, host=None, token=None):
    path += f"{'&' if '?' in path else '?'}token={server.token if token is None else token}"
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_blocks_are_those_of_the_page(stencil):
    with serving(stencil) as server:
        status, page = get(server, "/")
        assert status == 200
        names = re.findall(r'id="data-([\w-]+)" data-served=""></script>', page)
        assert {"meta", "instances", "timeline", "iterations", "communication", "cells-0"} <= set(names)
        meta = unpack_document(get(server, "/data/meta")[1])
        shown = shown_part(stencil, stencil.summary()).profile
        for number, name in enumerate(meta["stored"]):
            found = unpack_columns(get(server, f"/data/cells-{number}")[1])
            cells = shown.cells(name)
            expected = Resolution(1, exact=True).cells(cells, stencil.profile.locations)
            for column, values in expected.items():
                np.testing.assert_array_equal(found[column], values)
        assert meta["resolution"] == {"merged": 1, "exact": True}
        assert get(server, "/?from=here")[0] == 200


@pytest.fixture(scope="module")
def many_calls(tmp_path_factory):
    """A result whose timeline has no individual calls, because they are too many for a page, and its events."""
    archive = tmp_path_factory.mktemp("many")
    main(["bench", "generate", "sor-p2p", "--ranks", "8", "--iterations", "1500", "-o", str(archive)])
    whole = whywait.analyze(archive)
    whole.write(archive / "results", html=True)
    return whywait.load(archive / "results"), whole.tables.analysis


def window(server, begin, end, first, last, rows=8):
    status, text = get(server, f"/data/timeline-window?from={begin}&to={end}&first={first}&last={last}&rows={rows}")
    return unpack_columns(text) if status == 200 else status


def test_calls_of_a_window_are_sent_when_asked_for(many_calls):
    found, analysis = many_calls
    asked = []

    def events():
        asked.append(1)
        return analysis

    with serving(found, events) as server:
        length = found.facts["length"]
        assert not asked
        calls = window(server, 0.5 * length, 0.51 * length, 2, 5)
        assert set(calls["location"].tolist()) == {2, 3, 4}
        for row in (2, 3, 4):
            expected = [
                (enter, leave)
                for enter, leave in naive_calls(found, row)
                if enter < 0.51 * length and leave >= 0.5 * length
            ]
            own = calls["location"] == row
            sent = np.stack([calls["enter"][own], calls["leave"][own]], axis=1)
            np.testing.assert_allclose(sent, expected, atol=1e-9)
        # All of them are too many.
        assert window(server, 0, length, 0, 8)["location"].size == 0
        assert len(asked) == 1
        for wrong in ((1, 0, 0, 8), ("x", 1, 0, 8), (0, "nan", 0, 8)):
            assert window(server, *wrong) == 404
    with serving(found) as server:
        assert window(server, 0, 1, 0, 8) == 404


def test_waits_of_a_window_are_sent_with_its_calls(many_calls):
    found, analysis = many_calls
    length = found.facts["length"]
    begin, end = 0.5 * length, 0.51 * length
    kinds = [metric.name for metric in found.profile.metrics.waiting]
    expected = sorted(
        (row["location"], row["waiting"])
        for row in found.tables.wait_states.select(["kind", "location", "enter", "leave", "waiting"]).to_pylist()
        if row["kind"] in kinds and row["location"] in (2, 3, 4) and row["enter"] < end and row["leave"] > begin
    )
    with serving(found, lambda: analysis) as server:
        names = unpack_document(get(server, "/data/timeline")[1])["kinds"]
        sent = window(server, begin, end, 2, 5)
    assert sorted(zip(sent["wait_location"].tolist(), sent["wait_waiting"].tolist(), strict=True)) == expected != []
    np.testing.assert_allclose(sent["wait_end"] - sent["wait_begin"], sent["wait_waiting"], atol=1e-12)
    assert {names[number] for number in sent["wait_kind"]} <= set(kinds)
    # Each lies in a call that was sent.
    for location, first, last in zip(sent["wait_location"], sent["wait_begin"], sent["wait_end"], strict=True):
        own = sent["location"] == location
        assert np.any((sent["enter"][own] <= first + 1e-9) & (sent["leave"][own] >= last - 1e-9))


def naive_calls(found, rank):
    """The calls of a rank by the official reader, by Enter."""
    import otf2

    calls, stack = [], []
    with otf2.reader.open(str(found.run.path)) as trace:
        for _, event in trace.events(
            [one for one in trace.definitions.locations if one.group.name.endswith(f" {rank}")]
        ):
            time = (event.time - found.facts["origin"]) / found.facts["resolution"]
            if isinstance(event, otf2.events.Enter | otf2.events.ProgramBegin):
                stack.append(len(calls))
                calls.append([time, time])
            elif isinstance(event, otf2.events.Leave | otf2.events.ProgramEnd):
                calls[stack.pop()][1] = time
    return [tuple(call) for call in calls]


def test_zooming_in_shows_calls_of_any_run(browser, many_calls):
    found, analysis = many_calls
    with serving(found, lambda: analysis) as server:
        length = found.facts["length"]
        browser.get(f"{server.url}#timeline?from={0.5 * length}&to={0.502 * length}")
        viewer = Viewer(browser, Path("/"))
        viewer.until("document.querySelector('.times')?.dataset.shows === 'calls'")
        # Zoomed out, shares of time suffice.
        viewer.press("body", "0")
        viewer.until("document.querySelector('.times').dataset.shows === 'shares'")
        browser.get("about:blank")


@pytest.mark.parametrize(
    "path", ["/data/nothing", "/data/cells-999", "/data/cells-x", "/etc/passwd", "/../../etc/passwd", "/data/../meta"]
)
def test_other_paths_are_not_found(stencil, path):
    with serving(stencil) as server:
        assert get(server, path) == (404, "there is nothing here")


def test_only_this_machine_is_answered(stencil):
    with serving(stencil) as server:
        assert server.server_address[0] == "127.0.0.1"
        # The name of a web page can resolve to this machine, but the browser sends the name it asks for.
        assert get(server, "/", host="evil.example:80")[0] == 403
        assert get(server, "/", host=f"localhost:{server.server_port}")[0] == 200


def test_other_users_of_the_machine_are_not_answered(stencil):
    with serving(stencil) as server, serving(stencil) as other:
        assert re.fullmatch(rf"http://127\.0\.0\.1:{server.server_port}/\?token=[0-9a-f]{{32}}", server.url)
        assert server.token != other.token
        for path in ("/", "/data/meta", "/data/cells-0", "/nothing"):
            for token in ("", server.token[:-1], server.token + "0", other.token, "%C3%A9"):
                status, text = get(server, path, token=token)
                assert (status, "token" in text) == (403, True), (path, token)


def test_a_browser_shows_the_served_report(browser, stencil):
    with serving(stencil) as server:
        browser.get("about:blank")
        browser.get(f"{server.url}#explore?metric=mpi_latesender")
        viewer = Viewer(browser, Path("/"))
        viewer.until("document.documentElement.dataset.ready !== undefined")
        viewer.until("document.querySelector('#tree-system .row') !== null")
        assert viewer.selected("metrics") == "Late Sender"
        viewer.js("location.hash = '#timeline'")
        viewer.until("document.querySelector('.timeline')?.dataset.shown !== undefined")
        assert [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]] == []
        browser.get("about:blank")


def test_the_verb_says_where(tmp_path):
    whywait.analyze(DATA / "p2p").write(tmp_path)
    command = [sys.executable, "-m", "whywait", "serve", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            port, token = re.match(r"Open http://127\.0\.0\.1:(\d+)/\?token=(\w+) in a browser", line).groups()
            for query, status in ((f"?token={token}", 200), ("", 403)):
                connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
                connection.request("GET", f"/data/meta{query}")
                assert connection.getresponse().status == status
                connection.close()
        finally:
            process.terminate()
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path), "--port", "99999"])


# Markdown


def tables(text):
    """Return the rows of each table by its title; cells are split at the bars that are not escaped."""
    found = {}
    for part in text.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        found[title] = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    return found


def test_markdown_says_what_the_summary_says(stencil):
    text = markdown(stencil, stencil.summary(), count=3)
    found = tables(text)
    assert list(found) == [
        "Where the time goes", "Worst wait states", "Who causes the waiting", "Critical path", "Efficiencies",
        "Longest iterations",
    ]  # fmt: skip
    for rows in found.values():
        assert {len(row) for row in rows} == {len(rows[0])}
    worst = stencil.summary()["focus"]["worst"]
    assert [row[0].strip() for row in found["Worst wait states"][2:]] == [row["display_name"] for row in worst[:3]]
    longest = stencil.iterations().sort_by([("duration", "descending")])["iteration"].to_pylist()[:3]
    assert [int(row[0]) for row in found["Longest iterations"][2:]] == longest
    assert re.match(r"# stencil\n\n\*\*\d+\.\d% of the time between start-up and shutdown is spent waiting\*\*", text)


def test_names_are_never_markup():
    found = result(small())
    summary = found.summary()
    summary["focus"]["worst"][0]["callpath"] = ["a|b", "<img src=x>", "*c*"]
    rows = tables(markdown(found, summary))["Worst wait states"]
    assert r"a\|b → \<img src=x\> → \*c\*" in rows[2][1]
    assert "<img" not in "".join(map("".join, rows)).replace(r"\<img", "")


def test_the_summary_of_a_written_result(tmp_path, capsys, stencil):
    stencil.write(tmp_path)
    assert main(["summary", str(tmp_path), "--markdown", "--top", "2"]) == 0
    text = capsys.readouterr().out
    assert text == markdown(stencil, stencil.summary(), count=2)
    assert main(["summary", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("stencil: 8 ranks")
    assert main(["summary", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"]["name"] == "stencil"
