"""Who communicates with whom: the matrix of ranks is what the events and the wait states say."""

import json
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import whywait
from hypothesis import given, settings
from whywait import _native
from whywait.analysis.communication import by_rank, coarsen, heaviest, in_blocks, measure, nodes
from whywait.cli import main
from whywait.model.system import SYSTEM, TOPOLOGIES, table_of_rows
from whywait.report.values import quantity

from tests import fake_native
from tests.browser import Viewer
from tests.programs import programs
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
TRACES = sorted(path.parent for path in DATA.glob("*/traces.otf2"))


def waiting(result):
    """Add up who waits for whom from the table of wait states."""
    known = {metric.name for metric in result.profile.metrics.waiting}
    found = defaultdict(float)
    for row in result.wait_states().to_pylist():
        if row["kind"] in known and row["cause_rank"] is not None and min(row["rank"], row["cause_rank"]) >= 0:
            found[row["rank"], row["cause_rank"]] += row["waiting"]
    return {pair: value for pair, value in found.items() if value > 1e-12}


def column(table, name):
    rows = zip(table["rank"].to_pylist(), table["peer"].to_pylist(), table[name].to_pylist(), strict=True)
    return {(rank, peer): value for rank, peer, value in rows if value}


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.name)
def test_pairs_are_what_the_tables_say(trace):
    result = whywait.analyze(trace)
    pairs, sizes = result.communication(), result.message_sizes()
    assert column(pairs, "waiting") == pytest.approx(waiting(result))
    transfers = defaultdict(lambda: np.zeros(3))
    for row in result.transfers().to_pylist():
        time = 0.0 if row["end"] is None else max(0.0, row["end"] - row["start"])
        transfers[row["source_rank"], row["destination_rank"]] += 1, row["bytes"], time
    for number, name in enumerate(("transfers", "transfer_bytes", "transfer_time")):
        expected = {pair: values[number] for pair, values in transfers.items() if values[number]}
        assert column(pairs, name) == pytest.approx(expected), name
    counted = sum(sum(pairs[name].to_pylist()) for name in ("messages", "transfers"))
    assert sum(sizes["count"].to_pylist()) == counted
    for row in sizes.to_pylist():
        assert row["least"] * row["count"] <= row["bytes"] < row["below"] * row["count"] or row["below"] == 1


@pytest.mark.parametrize("name", ["stencil", "sor_p2p"])
def test_messages_are_what_the_events_say(name):
    result = whywait.analyze(DATA / name)
    ranks = result.places.rank.tolist()
    sent = defaultdict(lambda: [0, 0])
    histogram = defaultdict(int)
    for location, rank in enumerate(ranks):
        events = result.run.events(location)
        if "receiver" not in events.column_names:
            continue
        rows = events.filter(pc.is_in(events["type"].cast(pa.string()), pa.array(["MpiSend", "MpiIsend"])))
        # All of these traces have one communicator, which is the world.
        for peer, size in zip(rows["receiver"].to_pylist(), rows["msg_length"].to_pylist(), strict=True):
            sent[rank, peer][0] += 1
            sent[rank, peer][1] += size
            histogram[1 << size.bit_length() >> 1 if size else 0] += 1
    pairs = result.communication()
    assert column(pairs, "messages") == {pair: count for pair, (count, _) in sent.items()}
    assert column(pairs, "bytes") == {pair: size for pair, (_, size) in sent.items() if size}
    found = result.message_sizes().filter(pc.field("kind") == "message")
    assert dict(zip(found["least"].to_pylist(), found["count"].to_pylist(), strict=True)) == histogram


def test_two_messages_and_a_wait(tmp_path):
    text = """
    0: MPI_Send(1, bytes=100) [5, 6]
    1: MPI_Recv(0) [1, 7]
    0: MPI_Send(1, bytes=0) [7, 7.5]
    1: MPI_Recv(0) [7, 8]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    rows = {(row["rank"], row["peer"]): row for row in result.communication().to_pylist()}
    assert set(rows) == {(0, 1), (1, 0)}
    there, back = rows[0, 1], rows[1, 0]
    assert (there["messages"], there["bytes"], there["waiting"]) == (2, 100, 0)
    assert there["time"] == pytest.approx(2 + 1)
    # The receiver waits for the sender, not the other way round.
    assert (back["messages"], back["waiting"]) == (0, 4)
    sizes = result.message_sizes().to_pylist()
    assert [(row["least"], row["below"], row["count"]) for row in sizes] == [(0, 1, 1), (64, 128, 1)]


@settings(max_examples=40)
@given(trace=programs())
def test_blocks_add_up_to_the_pairs(trace):
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(trace_from_text(trace, directory))
        pairs = result.communication(focus="all")
        assert column(pairs, "waiting") == pytest.approx(waiting(result))
        native = result.tables.analysis
        names = [metric.name for metric in result.profile.metrics.waiting]
        for most in (1, 2, 4):
            table, block, sizes = _native.communication(native, waiting=names, most=most)
            merged = pa.table(table)
            assert pa.table(sizes).equals(result.message_sizes(focus="all"))
            assert merged.num_rows <= most
            expected = dict.fromkeys(column(merged, "waiting"), 0.0)
            for (rank, peer), value in column(pairs, "waiting").items():
                expected[rank // block * block, peer // block * block] += value
            assert column(merged, "waiting") == pytest.approx(expected)
            assert pc.sum(merged["bytes"]).as_py() == pc.sum(pairs["bytes"]).as_py()


def test_pairs_of_the_focus(tmp_path):
    """What overlaps the time between start-up and shutdown counts, and counts whole."""
    lines = """
        ranks 2
        0: MPI_Send(1) [0, 0.5]
        1: MPI_Recv(0) [0, 0.6]
        *: MPI_Init [1, 2]
        0: MPI_Send(1) [3, 3.5]
        1: MPI_Recv(0) [2.5, 4]
        *: MPI_Finalize [5, 6]
    """
    result = whywait.analyze(trace_from_text(lines, tmp_path))
    messages = {focus: sum(column(result.communication(focus=focus), "messages").values()) for focus in (None, "all")}
    assert messages == {None: 1, "all": 2}
    assert [result.message_sizes(focus=focus)["count"].to_pylist() for focus in (None, "all")] == [[1], [2]]
    window = whywait.analyze(result.run, window=(0, 1))
    assert sum(column(window.communication(), "messages").values()) == 1


def test_pairs_of_a_call_path(tmp_path, capsys):
    """What `halo` sends counts, wherever it is received, and what is waited for there."""
    lines = """
        ranks 2
        0: halo [0, 4]
        1: halo [0, 2]
        0: MPI_Send(1, bytes=8) [1, 1.1]
        1: MPI_Recv(0) [0.5, 1.2]
        0: MPI_Send(1, bytes=16) [3, 3.1]
        1: gather [2, 4]
        1: MPI_Recv(0) [2.5, 3.2]
        1: MPI_Send(0, bytes=32) [3.5, 3.6]
        0: gather [4, 5]
        0: MPI_Recv(1) [4.5, 4.6]
    """
    trace = trace_from_text(lines, tmp_path)
    result = whywait.analyze(trace)
    (halo,) = (row for row in result.communication(focus="halo").to_pylist() if row["messages"])
    assert (halo["rank"], halo["peer"], halo["messages"], halo["bytes"]) == (0, 1, 2, 24)
    waiting = {
        focus: sum(column(result.communication(focus=focus), "waiting").values()) for focus in ("halo", "gather")
    }
    assert waiting == pytest.approx({"halo": 0.5, "gather": 0.5})
    assert sum(column(result.communication(), "messages").values()) == 3
    assert result.message_sizes(focus="gather")["bytes"].to_pylist() == [32]
    result.write(tmp_path / "results")
    # A stored result has only the matrix of the focus: its trace is read again.
    assert main(["messages", str(tmp_path / "results"), "--focus", "gather", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["messages"] == 1


def test_pairs_are_merged_into_blocks_of_ranks():
    rank, peer = (axis.ravel().astype(np.int32) for axis in np.meshgrid(np.arange(10), np.arange(10), indexing="ij"))
    names = ("messages", "bytes", "transfers", "transfer_bytes", "time", "transfer_time")
    places = {"rank": rank, "last_rank": rank, "peer": peer, "last_peer": peer}
    pairs = pa.table({**places, **{name: np.ones(100) for name in names}, "waiting": rank * 1.0})
    assert coarsen(pairs, 10).num_rows == 100
    merged = coarsen(pairs, 4)
    assert merged.num_rows == 9
    last = merged.to_pylist()[-1]
    assert [last[name] for name in ("rank", "last_rank", "peer", "last_peer")] == [8, 9, 8, 9]
    assert last["waiting"] == 2 * (8 + 9)
    assert measure(merged, "messages").sum() == 200
    top = heaviest(merged, "waiting", 2)
    assert [(row["rank"], row["peer"]) for row in top] == [(4, 0), (4, 4)]
    assert top[0]["share"] == pytest.approx(4 * 22 / 450)
    assert coarsen(pairs.slice(0, 0), 4).num_rows == 0


def on_nodes(result, monkeypatch, names=("n0", "n1")):
    """Let the eight ranks run on two nodes, the even ones on the first, in a cube of 2 x 2 x 2."""
    rows = [{"parent": None, "kind": "node", "class": "machine", "name": "system"}]
    for number, name in enumerate(names):
        rows.append({"parent": 0, "kind": "node", "class": "node", "name": name})
        node = len(rows) - 1
        for rank in range(number, 8, 2):
            rows.append({"parent": node, "kind": "group", "class": "process", "name": f"rank {rank}", "rank": rank})
            rows.append({"parent": len(rows) - 1, "kind": "location", "class": "thread", "name": "", "location": rank})
    axes = [{"name": name, "size": 2, "periodic": False} for name in "zyx"]
    at = [{"location": rank, "at": [rank // 4, rank // 2 % 2, rank % 2]} for rank in range(8)]
    cube = table_of_rows([{"name": "cube", "axes": axes, "coordinates": at}], TOPOLOGIES)
    system = table_of_rows(rows, SYSTEM)
    monkeypatch.setattr(type(result.tables), "system", property(lambda _: system))
    monkeypatch.setattr(type(result.tables), "topologies", property(lambda _: cube))


def test_ranks_of_a_node_are_added_up(monkeypatch):
    result = whywait.analyze(DATA / "stencil")
    on_nodes(result, monkeypatch)
    expected = defaultdict(float)
    for row in result.communication().to_pylist():
        expected[f"n{row['rank'] % 2}", f"n{row['peer'] % 2}"] += row["waiting"]
    merged = result.communication(merge="node").to_pylist()
    assert {(row["node"], row["peer_node"]): row["waiting"] for row in merged} == pytest.approx(dict(expected))
    assert sum(row["messages"] for row in merged) == sum(result.communication()["messages"].to_pylist())
    on_nodes(result, monkeypatch, ("same", "same"))
    assert nodes(result)[0] == ["same #0", "same #1"]


def test_merged_ranks_of_two_nodes_cannot_be_told_apart(monkeypatch):
    result = whywait.analyze(DATA / "stencil")
    on_nodes(result, monkeypatch)
    both = (in_blocks(result.communication(), 2), result.message_sizes())
    monkeypatch.setattr(type(result.tables), "communication", lambda _, **__: both)
    with pytest.raises(whywait.UsageError, match="2 neighboring ranks are merged, which span several nodes"):
        result.communication(merge="node")
    with pytest.raises(whywait.UsageError, match="use a multiple of 2"):
        result.communication(merge=3)
    assert result.communication(merge=4)["last_rank"].to_pylist()[-1] == 7
    assert by_rank(both[0], 8) is None


def test_blocks_of_ranks_add_up():
    result = whywait.analyze(DATA / "stencil")
    pairs, blocks = result.communication(), result.communication(merge=3)
    for name in ("messages", "bytes", "waiting"):
        assert sum(blocks[name].to_pylist()) == pytest.approx(sum(pairs[name].to_pylist()))
    last = blocks.to_pylist()[-1]
    assert [last[name] for name in ("rank", "last_rank", "peer", "last_peer")] == [6, 7, 6, 7]
    each = by_rank(pairs, 8)
    assert each["waiting_from"] == pytest.approx(
        [sum(row["waiting"] for row in pairs.to_pylist() if row["rank"] == rank) for rank in range(8)]
    )
    assert each["bytes_from"].sum() == each["bytes_to"].sum()


def test_the_verb_merges(monkeypatch, capsys):
    result = whywait.analyze(DATA / "stencil")
    on_nodes(result, monkeypatch)
    monkeypatch.setattr(whywait, "analyze", lambda *_, **__: result)
    assert main(["messages", "trace", "--merge", "node", "--by", "waiting"]) == 0
    text = capsys.readouterr().out
    assert "Waiting (rows: waiting node, columns: node waited for; darker is more)\n          n0 " in text
    assert main(["messages", "trace", "--merge", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["last_rank"] - row["rank"] for row in found["pairs"]} == {3}
    with pytest.raises(SystemExit):
        main(["messages", "trace", "--merge", "some"])
    assert "--merge" in capsys.readouterr().err


def test_nodes_and_the_topology_in_a_browser(browser, monkeypatch, tmp_path):
    result = whywait.analyze(DATA / "stencil")
    on_nodes(result, monkeypatch)
    result.write_html(tmp_path / "report.html")
    viewer = Viewer(browser, tmp_path / "report.html").open("#communication")
    viewer.until("document.querySelector('.communication')?.dataset.shown === 'bytes'")
    assert viewer.text(".ranks select option:checked") == "cube (2 \N{MULTIPLICATION SIGN} 2 \N{MULTIPLICATION SIGN} 2)"
    viewer.click(".communication [data-key=waiting]")
    each = by_rank(result.communication(), 8)
    assert viewer.text(".ranks [aria-checked=true]") == "Waiting by the rank"
    label = viewer.js("return document.querySelector('.ranks canvas').getAttribute('aria-label')")
    least, most = (quantity(bound(each["waiting_from"]), "sec") for bound in (min, max))
    assert label == f"8 places, from {least} to {most}"
    viewer.click(".ranks [data-key=to]")
    label = viewer.js("return document.querySelector('.ranks canvas').getAttribute('aria-label')")
    assert label.endswith(f"to {quantity(each['waiting_to'].max(), 'sec')}")
    # Two planes of 2 x 2 cells beside each other, a free column between them and a row of names above.
    viewer.js(
        "const map = document.querySelector('.ranks canvas'); const box = map.getBoundingClientRect();"
        "const [x, y] = [Math.min(96, box.width / 5), Math.min(64, box.height / 3)];"
        "const at = { clientX: box.left + (box.width - 5 * x) / 2 + 4.5 * x,"
        " clientY: box.top + (box.height - 3 * y) / 2 + 1.5 * y, bubbles: true };"
        "map.dispatchEvent(new MouseEvent('mousemove', at));"
    )
    assert viewer.text("#tip").startswith("rank 5 at (z 1, y 0, x 1)")
    viewer.click(".communication [data-key=node]")
    viewer.until("document.querySelector('.communication').dataset.of === 'node'")
    first = viewer.js(
        "return [...document.querySelectorAll('.communication tbody tr:first-child td')].map((c) => c.textContent)"
    )
    worst = max(result.communication(merge="node").to_pylist(), key=lambda row: row["waiting"])
    assert first[:2] == [worst["node"], worst["peer_node"]]
    viewer.is_well()


def test_a_written_result_keeps_pairs_and_message_sizes(tmp_path):
    result = whywait.analyze(DATA / "stencil")
    result.write(tmp_path)
    back = whywait.load(tmp_path)
    assert back.communication().equals(result.communication())
    assert back.message_sizes().cast(result.message_sizes().schema).equals(result.message_sizes())


def test_results_without_events_refuse_communication(tmp_path):
    result = fake_native.result(fake_native.small())
    with pytest.raises(whywait.UsageError, match="there are no events"):
        result.communication()
    result.write(tmp_path)
    with pytest.raises(whywait.UsageError, match="does not say who communicates with whom"):
        whywait.load(tmp_path).communication()


def test_the_verb_sorts_by_any_quantity(capsys, tmp_path):
    whywait.analyze(DATA / "stencil").write(tmp_path)
    for by in ("bytes", "messages", "time", "waiting"):
        assert main(["messages", str(tmp_path), "--by", by, "--top", "3"]) == 0
        text = capsys.readouterr().out
        assert all(len(line) <= 80 for line in text.splitlines()), text
        assert "messages, " in text
    assert main(["messages", str(tmp_path), "--by", "waiting", "--json", "--top", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    rank, peer = (found["pairs"][0][name] for name in ("rank", "peer"))
    expected = waiting(whywait.load(tmp_path))
    assert expected[rank, peer] == pytest.approx(max(expected.values()))
    assert sum(row["count"] for row in found["sizes"]) == found["totals"]["messages"]
    silent = trace_from_text("0: main [0, 1]", tmp_path / "silent")
    assert main(["messages", str(silent)]) == 0
    assert "\n\nNo messages" in capsys.readouterr().out
