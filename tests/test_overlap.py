"""Communication that goes on while the program computes, and split calls: the runs that follow (whatif.md#overlap)."""

import json
import statistics
from collections import Counter
from pathlib import Path

import pytest
import whywait
from whywait import UsageError, cli
from whywait.analysis.account import account
from whywait.hypotheses import Cut, Network, Overlap, Protocol, Scale, Split

from tests.tracedsl import trace_from_text

ROOT = Path(__file__).parents[1]
PAIR = """
0: main [0, 6]
1: main [0, 6]
0: work [0, 1]
0: MPI_Sendrecv(to=1, source=1) [1, 4.2]
0: after [4.2, 5]
1: work [0, 4]
1: MPI_Sendrecv(to=0, source=0) [4, 4.3]
1: after [4.3, 5]
"""


@pytest.fixture
def pair(tmp_path):
    return whywait.analyze(trace_from_text(PAIR, tmp_path))


def records(run, location):
    """The records of a location with the names of their regions, seconds since the begin of the trace."""
    names = {row["id"]: row["name"] for row in run.definitions["Region"].to_pylist()}
    rows = run.events(location).select(["type", "region", "time"]).to_pylist()
    return [(row["type"], names.get(row["region"]), row["time"]) for row in rows]


def calls(run, location):
    """Enter and Leave of each region but main, ticks."""
    found, stack = [], []
    for kind, name, time in records(run, location):
        if kind == "Enter":
            stack.append((name, time))
        elif kind == "Leave":
            assert stack[-1][0] == name
            found.append((*stack.pop(), time))
    assert not stack
    return [one for one in found if one[0] != "main"]


def seconds(result, found):
    """The same in seconds since the begin of the run."""
    begin = result.facts["origin"]
    return [
        (name, *(round((time - begin) / result.facts["resolution"], 6) for time in times)) for name, *times in found
    ]


def test_a_call_that_sends_and_receives_becomes_two_starts_and_a_wait(pair):
    after = whywait.whatif(pair, [Overlap("MPI_Sendrecv@0")]).result
    # The own code of main behind `after` is passed as well.
    assert seconds(after, calls(after.run, 0)) == [
        ("work", 0, 1), ("MPI_Isend", 1, 1), ("MPI_Irecv", 1, 1), ("after", 1, 1.8), ("MPI_Waitall", 2.8, 4.2),
    ]  # fmt: skip
    kinds = Counter(kind for kind, *_ in records(after.run, 0))
    assert {kinds[kind] for kind in ("MpiIsend", "MpiIrecvRequest", "MpiIsendComplete", "MpiIrecv")} == {1}
    assert kinds["MpiSend"] == kinds["MpiRecv"] == 0
    assert after.metrics["comms_send"].total == pair.metrics["comms_send"].total
    assert after.metrics["bytes_rcvd"].total == pair.metrics["bytes_rcvd"].total
    assert not after.warnings


def test_a_split_call_is_a_send_and_a_receive(pair):
    after = whywait.whatif(pair, [Split("MPI_Sendrecv")]).result
    assert seconds(after, calls(after.run, 0)) == [
        ("work", 0, 1), ("MPI_Send", 1, 1), ("MPI_Recv", 1, 4.2), ("after", 4.2, 5),
    ]  # fmt: skip
    assert after.metrics["mpi_latesender"].total == pytest.approx(3)


def test_split_calls_that_wait_for_each_other_are_a_deadlock(pair):
    with pytest.raises(UsageError, match="the changed run is a deadlock"):
        whywait.whatif(pair, [Split("MPI_Sendrecv"), Protocol("MPI_Sendrecv", "rendezvous")])


def test_what_was_overlapped_can_be_changed_again(pair):
    """The wait of the simulated run is an ordinary one."""
    after = whywait.whatif(pair, [Overlap("MPI_Sendrecv")]).result
    again = whywait.whatif(after, [Scale("work@1", 0.25)])
    assert again.before == pytest.approx(whywait.whatif(pair, [Overlap("MPI_Sendrecv")]).after)
    assert again.after < again.before


@pytest.mark.parametrize(
    ("hypotheses", "why"),
    [
        ([Overlap("MPI_Sendrecv"), Cut("after")], "overlap or split calls of that run"),
        ([Split("MPI_Sendrecv"), Network(1e-6)], "another network of that run"),
        ([Overlap("MPI_Sendrecv"), Split("MPI_Sendrecv")], "only be moved or split once"),
        ([Overlap("main~0")], "only whole instances can be overlapped"),
        ([Split("main/**")], "only whole instances can be split"),
    ],
)
def test_what_cannot_be_combined_is_refused(pair, hypotheses, why):
    with pytest.raises(UsageError, match=why):
        whywait.whatif(pair, hypotheses)


@pytest.mark.parametrize(
    ("unmatched", "why"),
    [
        (Overlap("MPI_Sendrecv@7"), "the ranks have no instance"),
        (Overlap("work"), "no call in it that can be changed so"),
        (Split("work"), "no call in it that can be changed so"),
    ],
)
def test_what_matches_nothing_is_left_out(pair, unmatched, why):
    sim = whywait.whatif(pair, [unmatched, Scale("work", 0.5)])
    assert [one.hypothesis for one in sim.left_out] == [unmatched]
    assert why in sim.left_out[0].reason
    assert sim.after == whywait.whatif(pair, [Scale("work", 0.5)]).after


def test_what_stays_is_counted(tmp_path):
    """A wait behind which nothing is computed, and one that waits for nobody."""
    text = """
    0: main [0, 4]
    1: main [0, 4]
    0: MPI_Recv(1) [0, 2.1]
    0: MPI_Barrier [2.1, 3]
    1: MPI_Send(0) [2, 2.2]
    1: MPI_Barrier [2.2, 3]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    sim = whywait.whatif(result, [Overlap("MPI_Recv"), Overlap("MPI_Send")])
    counts = dict(zip(sim.assumptions["assumption"].to_pylist(), sim.assumptions["count"].to_pylist(), strict=True))
    assert counts["nothing_to_pass"] == 2
    assert sim.after == sim.before


def test_a_wait_does_not_pass_communication_inside_a_function(tmp_path):
    text = """
    0: main [0, 8]
    1: main [0, 8]
    0: MPI_Recv(1) [0, 3.1]
    0: inner [3.1, 4]
    0: outer [4, 6]
    0: MPI_Send(1, tag=1) [5, 5.1]
    1: MPI_Send(0) [3, 3.2]
    1: MPI_Recv(0, tag=1) [6, 6.1]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    after = whywait.whatif(result, [Overlap("MPI_Recv@0")]).result
    names = [name for name, *_ in calls(after.run, 0)]
    assert names == ["MPI_Irecv", "inner", "MPI_Wait", "MPI_Send", "outer"]


def test_the_official_reader_agrees(pair, tmp_path):
    sim = whywait.whatif(pair, [Overlap("MPI_Sendrecv")])
    reader = pytest.importorskip("otf2").reader
    with reader.open(str(sim.write(tmp_path / "after"))) as trace:
        own = [location for location in range(2) for _ in records(sim.result.run, location)]
        assert sum(1 for _ in trace.events) == len(own)


def test_advise_proposes_to_overlap(tmp_path, capsys):
    """Rank 1 waits for a message half of the time, and could work meanwhile."""
    steps = "".join(
        f"0: work [{i}, {i}.5]\n0: MPI_Send(1) [{i}.5, {i}.51]\n"
        f"0: rest [{i}.51, {i}.9]\n0: MPI_Barrier [{i}.9, {i}.95]\n"
        f"1: MPI_Recv(0) [{i}, {i}.52]\n1: rest [{i}.52, {i}.92]\n1: MPI_Barrier [{i}.92, {i}.95]\n"
        for i in range(40)
    )
    path = trace_from_text(f"0: main [0, 40]\n1: main [0, 40]\n{steps}", tmp_path)
    advice = whywait.advise(path, rounds=0, only=["overlap"])
    assert [(one.option, one.kind) for one in advice] == [("--overlap 'MPI_Recv'", "overlap")]
    # In each step, rank 1 comes to the barrier as early as rank 0, 0.02 s before.
    assert advice[0].saved == pytest.approx(40 * 0.02)
    assert cli.main(["whatif", str(path), "--overlap", "MPI_Recv"]) == 0
    assert "What if: overlap MPI_Recv" in capsys.readouterr().out


#: What was changed in the recorded programs (tests/data/pairs/overlap.c), and how far predictions may be off, percent.
PAIRS = {
    "split": (Split("MPI_Sendrecv"), 3),
    "blocking": (Overlap("MPI_Recv"), 4),
    "wait": (Overlap("MPI_Waitall"), 4),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_predictions_are_those_of_recorded_programs(kind):
    """From the first recording before the change; compared with the median of five after it."""
    directory = ROOT / "tests/data/pairs"
    lengths = json.loads((directory / "lengths.json").read_text())[kind]
    hypothesis, percent = PAIRS[kind]
    before, after = (whywait.analyze(directory / kind / side) for side in ("before", "after"))
    sim = whywait.whatif(before, [hypothesis])
    assert length(before) == pytest.approx(lengths["before"][0], abs=1e-6)
    assert length(after) == pytest.approx(lengths["after"][0], abs=1e-6)
    truth = statistics.median(lengths["after"])
    assert 100 * abs(length(sim.result) - truth) / truth < percent
    if kind != "split":
        gained = statistics.median(lengths["before"]) - truth
        assert length(before) - length(sim.result) == pytest.approx(gained, rel=0.1)


def length(result):
    """The time between start-up and shutdown, seconds."""
    begin, end = account(result).window
    return end - begin
