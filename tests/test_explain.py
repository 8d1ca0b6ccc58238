"""Explanations of wait states, delay costs, and the critical path, as users see them."""

import json
import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import whywait
from whywait import cli
from whywait.analysis.explain import explain as explain_rows

from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
LOCK = "mpi_rma_sync_lock_competition"
# Rank 1 waits 3 s for rank 0, then works 1 s more than rank 2: g is a quarter of what rank 2 waits 4 s for.
CHAIN = """
*: MPI_Init [0, 1]
0: f [1, 6]
0: MPI_Send(1) [6, 6]
1: f [1, 3]
1: MPI_Recv(0) [3, 6]
1: g [6, 7]
1: MPI_Send(2) [7, 7]
2: f [1, 3]
2: MPI_Recv(1) [3, 7]
"""
# Rank 1 holds the lock until 6.5, rank 0 until 4.5: of the wait of rank 2 some goes back to rank 0.
LOCKS = """
*: MPI_Init [0, 1]
win w on world
0-1: Comp [1, 3]
2: Comp [1, 4]
0-1: MPI_Win_lock(3, win=w) [3, 3.5]
2: MPI_Win_lock(3, win=w) [4, 4.5]
0: MPI_Win_unlock(3, win=w) [3.5, 5.5]
1: MPI_Win_unlock(3, win=w) [3.5, 7.5]
2: MPI_Win_unlock(3, win=w) [4.5, 9.5]
3: MPI_Finalize [1, 13]
0-2: MPI_Finalize [12, 13]
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return trace_from_text(CHAIN, tmp_path_factory.mktemp("chain"))


@pytest.fixture(scope="module")
def result(chain):
    return whywait.analyze(chain)


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def explain(capsys, *arguments):
    assert cli.main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_wait_goes_back_to_the_work_that_took_too_long(chain, capsys):
    history = json.loads(explain(capsys, chain, "--json"))
    assert (history["kind"], history["rank"], history["waiting"]) == ("mpi_latesender", 2, 4)
    assert (history["cause_rank"], history["cause_callpath"][-1], history["cause_time"]) == (1, "MPI_Send", 7)
    (work,), (wait,) = history["work"], history["waits"]
    masters = {"thread": 0, "waiter_thread": 0, "counters": {}, "rates": {}}
    assert work == {"callpath": ["program", "g"], "time": 1, "waiter_time": 0, "explains": 1, **masters}
    assert (wait["rank"], wait["waiting"], wait["explains"], wait["cause_rank"]) == (1, 3, 3, 0)
    assert wait["work"] == [{"callpath": ["program", "f"], "time": 5, "waiter_time": 2, "explains": 3, **masters}]
    assert not wait["waits"]


def test_the_tree_is_readable(chain, capsys):
    lines = explain(capsys, chain).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert [" ".join(line.split()) for line in lines] == [
        "Late Sender: rank 2 at 3.000000 s 4.00 s",
        "program → MPI_Recv",
        "for rank 1, whose MPI_Send began at 7.000000 s; last synchronized at 1.000000 s",
        "├─ rank 1 waited 3.00 s: Late Sender at 3.000000 s 3.00 s",
        "│ program → MPI_Recv",
        "│ for rank 0, whose MPI_Send began at 6.000000 s;",
        "│ last synchronized at 1.000000 s",
        "│ └─ rank 0 spent 5.00 s here, rank 1 2.00 s 3.00 s",
        "│ program → f",
        "└─ rank 1 spent 1.00 s here 1.00 s",
        "program → g",
    ]


def test_the_depth_is_limited(chain, capsys):
    (wait,) = json.loads(explain(capsys, chain, "--depth", 1, "--json"))["waits"]
    assert (wait["explains"], wait["work"], wait["waits"]) == (3, [], [])


def test_one_can_ask_for_another(chain, capsys):
    assert json.loads(explain(capsys, chain, "--rank", 1, "--json"))["waiting"] == 3
    assert explain(capsys, chain, "--metric", "mpi_barrier_wait").startswith("No matching wait state")
    assert cli.main(["explain", str(chain), "--rank", "7"]) == 2
    assert "there is no rank 7" in capsys.readouterr().err


def test_contention_goes_back_along_the_queue(tmp_path, capsys):
    history = json.loads(
        explain(capsys, trace_from_text(LOCKS, tmp_path), "--json", "--metric", "mpi_rma_sync_lock_competition")
    )
    assert (history["kind"], history["rank"], history["waiting"]) == ("mpi_rma_sync_lock_competition", 2, 3)
    (wait,) = history["waits"]
    assert (wait["rank"], wait["explains"], wait["cause_rank"]) == (1, 2, 0)
    assert sum(work["explains"] for work in wait["work"]) == pytest.approx(2)
    assert sum(work["explains"] for work in history["work"]) == pytest.approx(1)


def parts(node):
    """The sum of what the factors of a wait explain."""
    completion = node["completion"]["explains"] if node["completion"] else 0
    listed = sum(part["explains"] for part in (*node["work"], *node["waits"]))
    return completion + listed + node["unattributed"] + node["rest"]


def nodes(node):
    yield node
    for wait in node["waits"]:
        yield from nodes(wait)


@pytest.mark.parametrize("name", ["stencil", "collectives", "sor_locks", "rma_gats_rdma", "rma_lock_sm"])
def test_an_explanation_is_all_of_the_wait(name):
    result = whywait.analyze(DATA / name)
    waits = result.tables.wait_states
    rows = [row for row in range(0, waits.num_rows, 7) if waits["indirect"][row].as_py() is not None]
    assert rows
    for row, root in zip(rows, explain_rows(result, rows, 4), strict=True):
        assert root == result.explain(row, depth=4)
        assert root["waiting"] == root["explains"] == waits["waiting"][row].as_py()
        for node in nodes(root):
            followed = node["since"] is not None
            assert parts(node) == pytest.approx(node["explains"] if followed else 0, abs=1e-12)
            assert 0 <= node["unexplained"] <= node["explains"] + 1e-12


def test_waits_are_explained_by_row_or_choice(result):
    longest = result.explain()
    assert result.explain(longest["row"]) == longest
    assert result.explain(whywait.Choice("mpi_latesender", rank=1))["waiting"] == 3
    assert result.explain(whywait.Choice("mpi_barrier_wait")) is None
    with pytest.raises(whywait.UsageError, match="there is no wait state 99"):
        result.explain(99)


def test_a_written_result_explains_from_its_trace(tmp_path, monkeypatch):
    anchor = trace_from_text(CHAIN, tmp_path)
    result = whywait.analyze(anchor)
    result.write(tmp_path / "results")
    assert whywait.load(tmp_path / "results").explain() == result.explain()
    monkeypatch.setattr("whywait.analysis.stored_factors._LONGEST", 0)
    result.write(tmp_path / "none")
    assert whywait.load(tmp_path / "none").explain() == result.explain()
    anchor.unlink()
    assert whywait.load(tmp_path / "results").explain() == result.explain()
    with pytest.raises(whywait.UsageError, match="is not there"):
        whywait.load(tmp_path / "none").explain()


EXPLANATION = re.compile(r"^## ([^\n]+)$|^```(trace|explain ?[^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def told():
    """The traces in the document on explanations, each with what `whywait explain` says of it."""
    heading = trace = ""
    for block in EXPLANATION.finditer((Path(__file__).parent / "patterns" / "explain.md").read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[3]
        else:
            yield pytest.param(trace, block[2].split()[1:], block[3], id=heading)


@pytest.mark.parametrize(("trace", "options", "expected"), list(told()))
def test_explanations_read_as_documented(trace, options, expected, tmp_path, capsys):
    assert explain(capsys, trace_from_text(trace, tmp_path), *options) == expected


def test_the_work_of_rank_5_is_to_blame(stencil):
    (place, *_) = stencil.summary()["delay_costs"]
    assert place["callpath"][-2:] == ["relax", "work"]
    assert place["worst_rank"] == 5
    assert place["share"] > 0.8
    assert place["worst_rank_share"] > 0.9
    assert place["costs"] == pytest.approx(sum(kind["costs"] for kind in place["classes"]))


def test_delay_costs_name_the_late_ranks(result):
    rows = result.delay_costs().to_pylist()
    assert [(row["class"], row["callpath"][-1], row["rank"], row["short_term"], row["long_term"]) for row in rows] == [
        ("latesender", "f", 0, 3, 3),
        ("latesender", "g", 1, 1, 0),
    ]


def test_costs_are_the_waiting(stencil):
    waits = [row for row in stencil.wait_states().to_pylist() if row["indirect"] is not None]
    costs = sum(row["short_term"] + row["long_term"] for row in stencil.delay_costs().to_pylist())
    assert costs == pytest.approx(sum(row["waiting"] for row in waits))
    assert all(row["direct"] + row["indirect"] == pytest.approx(row["waiting"]) for row in waits)


def test_the_parts_of_wait_classes_add_up(stencil):
    metrics = stencil.metrics
    for name in ("coll", "rma"):
        for form in ("propagating_vs_terminal", "direct_vs_indirect"):
            first, second = metrics[f"waitstates_{form}_{name}"].children
            whole = metrics[f"waitstates_{form}_{name}"].total
            assert metrics[first].total + metrics[second].total == pytest.approx(whole)
            assert metrics[first].total >= 0
    collective = sum(
        metrics[f"mpi_{name}"].total
        for name in ("barrier_wait", "earlyreduce", "finalize_wait", "latebroadcast", "wait_nxn")
    )
    assert metrics["waitstates_direct_vs_indirect_coll"].total == pytest.approx(collective)


def test_the_critical_path_follows_the_late_sender(result, stencil):
    path = result.critical_path().to_pylist()
    assert [(row["rank"], row["from"], row["to"], row["callpath"][-1], row["hop"]) for row in path] == [
        (0, 0, 6, "f", None),
        (1, 6, 7, "g", "latesender"),
    ]
    summary = stencil.summary()["critical_path"]
    assert summary["length"] == pytest.approx(stencil.metrics["critical_path"].total)
    assert 0 < summary["imbalance"] < summary["length"]


def test_the_path_is_written(result, tmp_path):
    assert tmp_path / "critical_path.parquet" in result.write(tmp_path)
    written = pq.read_table(tmp_path / "critical_path.parquet")
    assert written.to_pylist() == result.critical_path().select(written.column_names).to_pylist()


def test_explanations_need_causes(chain, tmp_path):
    result = whywait.analyze(chain, causes=False)
    assert not result.has_causes
    assert "delay" not in result.metrics
    assert result.summary()["delay_costs"] is None
    assert "critical_path.parquet" not in {path.name for path in result.write(tmp_path)}
    for ask in (result.delay_costs, result.critical_path):
        with pytest.raises(whywait.UsageError):
            ask()


def test_scalascas_model_has_its_metrics_only(chain):
    metrics = whywait.analyze(chain, cost_model="scalasca").metrics
    assert "delay_latesender" in metrics
    assert not [name for name in metrics if "rma_fence_longterm" in name or name == "mpi_wait_terminal_barrier"]
    with pytest.raises(whywait.UsageError):
        whywait.analyze(chain, cost_model="other")


@pytest.mark.parametrize("verb", ["delay", "critical"])
def test_ranked_lists(verb, chain, capsys):
    assert cli.main([verb, str(chain), "--top", "1"]) == 0
    text = capsys.readouterr().out
    assert "1. program → f" in text
    assert "█" in text
    assert "2. " not in text
    assert cli.main([verb, str(chain), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["callpaths"][0]["callpath"] == ["program", "f"]


@pytest.mark.parametrize("verb", ["explain", "delay", "critical"])
def test_errors_are_those_of_other_verbs(verb, tmp_path, capsys):
    assert cli.main([verb, str(tmp_path / "missing")]) == 3
    (tmp_path / "traces.otf2").write_text("nothing")
    assert cli.main([verb, str(tmp_path / "traces.otf2")]) == 3
    assert capsys.readouterr().err.count("\n") == 2


def test_an_order_of_locks_that_only_releases_tell_is_inferred(tmp_path, capsys):
    """Rank 1 flushes while it has the lock; rank 0 does nothing that needs it before it unlocks."""
    trace = """
        win w on world
        0: MPI_Win_lock(2, win=w) [1, 1.1]
        0: MPI_Put(2, win=w) [1.2, 1.3]
        {flush}
        0: MPI_Win_unlock(2, win=w) [3.9, 4]
        1: MPI_Win_lock(2, win=w) [2, 2.1]
        1: MPI_Put(2, win=w) [2.2, 2.3]
        1: MPI_Win_unlock(2, win=w) [3, 4.1]
        2: f [0, 5]
    """
    for flush, inferred in (("", True), ("0: MPI_Win_flush(2, win=w) [1.4, 1.5]", False)):
        directory = tmp_path / str(inferred)
        result = whywait.analyze(trace_from_text(trace.format(flush=flush), directory))
        assert result.facts["inferred_waits"] == inferred
        (wait,) = result.wait_states(parts=False).filter(pc.field("kind") == LOCK).to_pylist()
        assert (wait["inferred"], wait["cause_rank"]) == (inferred, 0)
        for verb in ("waits", "explain"):
            assert cli.main([verb, str(directory)]) == 0
            assert ("(inferred)" in capsys.readouterr().out) == inferred
