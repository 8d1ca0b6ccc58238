"""Contention of networks, files and memory: what takes longer while others use the same (thesis, chapter 6)."""

import pytest
import whywait
from whywait.analysis.findings import findings

from tests.tracedsl import trace_from_text

ROUNDS = 30


def rounds(work, alone):
    """Rounds of a second, in which one, two or three of three ranks do something; `work` writes it for a rank.

    It takes 0.1 s, and `alone` times as much more for each other rank that does it.
    """
    lines = [f"{rank}: main [0, {ROUNDS + 1}]\n" for rank in range(3)]
    for number in range(ROUNDS):
        together = 1 + number % 3
        length = 0.1 * (1 + alone * (together - 1))
        lines += [work(rank, number, number + length) for rank in range(together)]
        if work is works:
            # Own code of others would count as activity.
            lines += [f"{rank}: MPI_Comm_rank [{number}, {number + 1}]\n" for rank in range(together, 3)]
    return "".join(lines)


def writes(rank, begin, end):
    return f"{rank}: write(file=out, bytes=1048576) [{begin}, {end:.6f}]\n"


def works(rank, begin, end):
    return f"{rank}: solve [{begin}, {end:.6f}]\n{rank}: MPI_Comm_rank [{end:.6f}, {begin + 1}]\n"


def sends(rank, begin, end):
    """Rank + 3 receives from rank."""
    return (
        f"{rank}: MPI_Send({rank + 3}, bytes=1000) [{begin + 0.01}, {begin + 0.02}]\n"
        f"{rank + 3}: MPI_Recv({rank}, bytes=1000) [{begin}, {end + 0.01:.6f}]\n"
    )


def shared(result, resource):
    """The rows of the table for a resource."""
    table = result.tables.analysis.sharing(0.0, result.facts["length"])
    return [row for row in whywait.analysis.native.pa.table(table).to_pylist() if row["resource"] == resource]


@pytest.mark.parametrize(("resource", "work"), [("files", writes), ("memory", works), ("network", sends)])
def test_what_takes_longer_beside_others_is_found(resource, work, tmp_path):
    result = whywait.analyze(trace_from_text(rounds(work, 0.5), tmp_path / "slower"))
    (row,) = shared(result, resource)
    assert row["others_quiet"] < 0.7
    assert row["others_crowded"] > 1.3
    assert row["r"] > 0.4
    assert row["ratio"] > 1.2
    assert not shared(whywait.analyze(trace_from_text(rounds(work, 0.0), tmp_path / "equal")), resource)


def test_the_excess_of_own_code_is_what_its_quiet_instances_would_not_take(tmp_path):
    """Rank 0 is alone, beside one and beside two others ten times each: its quiet third takes 0.1 s.

    So it loses 10 (0.05 + 0.1) s, rank 1 (beside one, and beside two others) 10 (0.1 - 0.05) s. Rank 2 is never alone.
    """
    result = whywait.analyze(trace_from_text(rounds(works, 0.5), tmp_path))
    (row,) = shared(result, "memory")
    assert row["excess"] == pytest.approx(1.5 + 0.5, rel=1e-6)


@pytest.mark.parametrize(
    ("rule", "work", "text"),
    [
        ("file_contention", writes, "they share the file system"),
        ("memory_contention", works, "they share memory bandwidth"),
        ("network_contention", sends, "they share its network or memory"),
    ],
)
def test_contention_is_a_finding_with_its_evidence(rule, work, text, tmp_path):
    result = whywait.analyze(trace_from_text(rounds(work, 0.5), tmp_path))
    (found,) = [one for one in findings(result) if one.rule == rule]
    assert text in found.sentence
    assert found.evidence["r"] > 0.4
    assert 0 < found.loss <= found.evidence["excess"] * (1 + 1e-9)
    others = findings(whywait.analyze(trace_from_text(rounds(work, 0.0), tmp_path / "equal")))
    assert rule not in {one.rule for one in others}
