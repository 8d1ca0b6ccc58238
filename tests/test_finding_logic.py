"""Sentences of findings agree with each other, with their order, and with what their changes save."""

from __future__ import annotations

import re
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import whywait
from hypothesis import given, note, settings
from whywait.analysis.findings import findings
from whywait.analysis.findings.evidence import parts
from whywait.analysis.findings.finding import Run
from whywait.analysis.findings.groups import two_groups, who
from whywait.analysis.findings.words import percent
from whywait.report.findings import finding_lines

from tests.programs import programs
from tests.results import SHARED
from tests.team_programs import team_programs
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"


def value(one, name):
    """Return a figure or a name in the words of a finding."""
    return next(value.value for value in one.values if value.name == name)


def by_rule(result):
    return {one.rule: one for one in reversed(findings(result))}


def analyzed(text, directory):
    return whywait.analyze(trace_from_text(text, directory))


def consistent(result) -> None:
    """What must hold between the findings of every trace, with their prices."""
    found = result.findings(prices=True)
    lost = [one for one in found if one.base != "run"]
    # The largest loss comes first, as the heading says.
    assert all(before.share >= after.share for before, after in pairwise(lost))
    # One finding of a rule about all calls, all regions.
    of_rules = [one.rule for one in found]
    assert all(
        of_rules.count(rule) <= 1 for rule in ("few_cores", "pauses", "slow_calls", "small_regions", "collectives")
    )
    # The rest has names.
    shown = sum(one.loss for one in found.shown if one.base == "cpu")
    if found.silent is None:
        assert found.lost - shown - sum(time for _, time in found.rest) <= 0.05 * found.time + 1e-9
    run = Run(result)
    for one in found:
        # A bound and a price belong to the loss.
        for price in one.prices:
            assert (
                not price.is_bound or one.base != "cpu" or price.saved is None or price.saved <= one.loss * (1 + 1e-9)
            )
        if one.rule in {"imbalance", "thread_imbalance"}:
            # What is called so gains by balancing, where that is known.
            balances = [price for price in one.prices if price.label.startswith(("balance", "distribute"))]
            assert all(price.saved is None or price.saved >= 0.001 * found.length for price in balances)
        if one.rule == "imbalance":
            times = run.sum_of_times(one.causes)
            # What the times differ by can cause at least half of the waiting, and the longest is among those to blame.
            assert run.lacks(times) >= 0.5 * value(one, "waiting") * (1 - 1e-9)
            assert int(result.places.rank[times.argmax()]) in one.ranks
        if one.rule == "pipeline":
            assert np.unique(result.places.rank[run.times(one.callpath) > 0]).size >= 3


@settings(max_examples=15)
@given(trace=programs())
def test_random_programs(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        consistent(analyzed(trace, directory))


@settings(max_examples=15)
@given(trace=team_programs())
def test_random_teams(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        consistent(analyzed(trace, directory))


@pytest.mark.parametrize("name", ["stencil", "sor_p2p", "mixed", "workers"])
def test_shipped_traces(name):
    consistent(whywait.analyze(DATA / name))


def test_the_share_of_a_function_is_that_of_all_its_sizes(tmp_path):
    """MPI_Barrier has one kind, MPI_Send two: together, these have more of the excess."""
    text = "*: main [0, 40]\n"
    for n in range(20):
        slow = n >= 18
        begin = 2 * n
        for size, at in ((8, 0.0), (1 << 20, 0.5)):
            took = 0.1 + 0.15 * slow
            text += f"0: MPI_Send(1, bytes={size}) [{begin + at:.2f}, {begin + at + took:.2f}]\n"
            text += f"1: MPI_Recv(0, bytes={size}) [{begin + at + 0.4:.2f}, {begin + at + 0.41:.2f}]\n"
        text += f"*: MPI_Barrier [{begin + 1:.2f}, {begin + 1.1 + 0.1 * slow:.2f}]\n"
    one = by_rule(analyzed(text, tmp_path))["slow_calls"]
    # 2 x 2 sends of 0.15 s, 2 x 2 barriers of 0.1 s.
    assert (value(one, "region"), value(one, "region_share")) == ("MPI_Send", pytest.approx(0.6))
    assert "(60% of it in MPI_Send)" in one.sentence


STAIRS = "".join(
    f"{rank}: work [{t}, {t + 0.02 * rank + 0.001:.3f}]\n"
    f"{rank}: MPI_Reduce(root=0) [{t + 0.02 * rank + 0.001:.3f}, {t + left:.3f}]\n"
    for t in range(30)
    for rank, left in enumerate((0.102, 0.082, 0.102, 0.062, 0.082, 0.102))
)


def test_calls_with_a_root_are_no_sign_of_shared_cores(tmp_path):
    """Ranks that sleep in a staircase before MPI_Reduce wait inside for others of a tree: nothing shares a core."""
    found = by_rule(analyzed("*: main [0, 30]\n" + STAIRS, tmp_path))
    assert "few_cores" not in found
    for one in found.values():
        assert "share cores" not in one.sentence
        assert "lost core" not in one.sentence


def test_pauses_have_no_reason_without_a_counter(tmp_path):
    text = "ranks 2\n*: main [0, 30]\n" + "".join(
        f"*: MPI_Comm_rank [{t}, {t + (0.01 if t % 2 else 0.001)}]\n" for t in range(30)
    )
    one = by_rule(analyzed(text + "0: work [29.5, 29.6]\n", tmp_path))["pauses"]
    assert one.sentence.endswith("the trace does not show why.")


def test_what_cannot_be_known_is_said_first(tmp_path):
    text = "".join(
        f"0: work [{t}, {t + 0.5}]\n0: MPI_Send(1, tag=1) [{t + 0.5}, {t + 0.6}]\n"
        f"1: MPI_Recv(0, tag=1) [{t}, {t + 0.6}]\n"
        f"1: MPI_Recv(0, tag=2) [{t + 0.6}, {t + 0.9}]\n"
        for t in range(60)
    )
    found = findings(analyzed(text, tmp_path))
    assert found.verdict().startswith("50% of the receives have no send in this trace: their waiting is unknown. ")


def region(rank: int, t: float) -> str:
    """A parallel region of two threads that compute 1 ms and are in the barrier for 4."""
    lines = f"{rank}: fork [{t}, {t + 0.01}]\n"
    for thread in ("", ".1"):
        lines += f"{rank}{thread}: !$omp parallel @a.c:1 [{t + 0.001:.3f}, {t + 0.009:.3f}]\n"
        lines += f"{rank}{thread}: !$omp implicit barrier @a.c:2 [{t + 0.002:.3f}, {t + 0.009:.3f}]\n"
    return lines


def test_parallel_regions_are_counted_in_all_ranks(tmp_path):
    text = "ranks 2\n*: main [0, 1]\n" + "".join(region(rank, t / 50) for t in range(50) for rank in (0, 1))
    one = by_rule(analyzed(text, tmp_path))["small_regions"]
    assert value(one, "regions") == 100
    # 1 ms in the region itself on each thread, of what is no team's management.
    assert value(one, "mean") == pytest.approx(0.001, abs=2e-4)
    assert one.loss == pytest.approx(value(one, "lost"))


def barriers(*work: float, times: int = 3) -> str:
    """Ranks that work for some seconds each, and wait for each other."""
    length = max(work) + 0.1
    return "".join(
        f"{rank}: work [{n * length:.2f}, {n * length + took:.2f}]\n"
        f"{rank}: MPI_Barrier [{n * length + took:.2f}, {(n + 1) * length:.2f}]\n"
        for n in range(times)
        for rank, took in enumerate(work)
    )


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ((2, 1), "Rank 0 works 2 times as long as rank 1 in work; the other waits 3.00 s for it."),
        ((1, 1, 3, 1), "Rank 2 works 3 times as long as the others in work; others wait 18.0 s for it."),
        ((3, 3, 1, 1), "Ranks 0 and 1 work 3 times as long as ranks 2 and 3 in work; others wait 12.0 s for it."),
        ((3, 1, 3, 1, 3, 1), "Even ranks work 3 times as long as odd ranks in work; others wait 18.0 s for it."),
        ((3, 3, 3, 1, 1, 1), "Ranks 0 to 2 work 3 times as long as ranks 3 to 5 in work; others wait 18.0 s for it."),
        ((1, 1, 0.01, 0.01), "Ranks 0 and 1 do 99% of the work in work; others wait 5.94 s for it."),
        ((1, 2, 3, 4, 5), "work takes up to 1.7 times as long as on average (on rank 4); others wait 30.0 s for it."),
    ],
)  # fmt: skip
def test_groups_are_named_as_groups(work, said, tmp_path):
    assert by_rule(analyzed(barriers(*work), tmp_path))["imbalance"].sentence == said


def test_groups_are_named_by_their_place_in_a_grid(tmp_path):
    grid = "ranks 12\ncomm grid = 0 1 2 3 4 5 6 7 8 9 10 11\ntopology grid = 3 4\n"
    inside = barriers(*(1 + 2 * (rank in {5, 6}) for rank in range(12)))
    said = by_rule(analyzed(grid + inside, tmp_path / "inside"))["imbalance"].sentence
    assert said.startswith(
        "The ranks inside the 3 x 4 grid work 3 times as long as the ranks at the edges of the 3 x 4 grid in work;"
    )
    corners = barriers(*(1 + 2 * (rank in {0, 3, 8, 11}) for rank in range(12)))
    said = by_rule(analyzed(grid + corners, tmp_path / "corners"))["imbalance"].sentence
    assert said.startswith(
        "The ranks at the corners of the 3 x 4 grid work 3 times as long as the other 8 ranks in work;"
    )


def test_who_waits_for_another_reason_does_not_suffer_from_imbalance(tmp_path):
    """Two ranks are late by 1 s in turn, 20 times: in all, their times differ by 0.1 s."""
    text = "".join(
        f"{late}: work [{2.2 * n:.1f}, {2.2 * n + 2:.1f}]\n"
        f"{late}: MPI_Barrier [{2.2 * n + 2:.1f}, {2.2 * n + 2.1:.1f}]\n"
        f"{1 - late}: work [{2.2 * n:.1f}, {2.2 * n + 1:.1f}]\n"
        f"{1 - late}: MPI_Barrier [{2.2 * n + 1:.1f}, {2.2 * n + 2.1:.1f}]\n"
        for n, late in enumerate([0, 1] * 10 + [0])
    )
    assert "imbalance" not in by_rule(analyzed(text, tmp_path))


def test_one_rank_is_no_pipeline(tmp_path):
    text = """
        1: delay [0, 4]
        0: MPI_Recv(1) [0, 4.1]
        1: MPI_Send(0) [4, 4.1]
        0: MPI_Send(2) [4.1, 4.2]
        2: MPI_Recv(0) [0, 4.2]
    """
    found = by_rule(analyzed(text, tmp_path))
    assert "pipeline" not in found


def test_one_of_two_ranks_that_does_all_can_share_its_work(tmp_path):
    text = "".join(
        f"0: read [{t}, {t + 2}]\n0: MPI_Barrier [{t + 2}, {t + 2.1:.1f}]\n"
        f"1: read [{t}, {t + 0.01:.2f}]\n1: MPI_Barrier [{t + 0.01:.2f}, {t + 2.1:.1f}]\n"
        for t in range(0, 30, 3)
    )
    found = analyzed(text, tmp_path).findings(prices=True)
    one = found[0]
    assert one.sentence == "Rank 0 does 99.5% of the work in read, for 20.0 s; the other waits 19.9 s for it."
    assert (one.price.label, one.price.saved) == ("distribute", pytest.approx(10, rel=0.01))


def test_a_recording_names_the_time_between_calls(tmp_path, monkeypatch):
    """What `whywait record` unwinds has no functions without MPI calls."""
    result = analyzed(barriers(2, 1, 1), tmp_path)
    monkeypatch.setattr(Run, "is_unwound", True)
    one = by_rule(result)["imbalance"]
    assert one.sentence.startswith("Rank 0 works 2 times as long as the others between MPI calls of work;")
    assert one.sentence.endswith("(Functions without MPI calls are not recorded.)")


def test_what_is_all_has_a_share_of_all():
    assert [percent(share) for share in (1.0, 0.9996, 0.998, 0.5, 0.0996, 0.04, 0.0003, 0)] == [
        "100%", "more than 99.9%", "99.8%", "50%", "10%", "4.0%", "less than 0.1%", "0.0%",
    ]  # fmt: skip


def test_groups_need_no_staircase():
    assert two_groups(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) is None
    assert two_groups(np.array([1.0, 0.0])) is None
    assert [*two_groups(np.array([0.0, 3.0, 1.0, 1.0])).slow] == [1]


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} is not there")
@pytest.mark.parametrize("name", ["cases/hyb_imbalance", "cases/mpi_modes", "real/prk_pic", "real/prk_hyb_p2p"])
def test_recorded_traces(name):
    consistent(whywait.analyze(SHARED / name / "archive/traces.otf2"))


def test_threads_are_named_as_what_they_are(tmp_path):
    text = "ranks 2\n0-1: fork [0, 1]\n" + "".join(
        f"{rank}{thread}: !$omp parallel @a.c:1 [0, 1]\n" for rank in (0, 1) for thread in ("", ".1")
    )
    run = Run(analyzed(text, tmp_path))
    assert who(run, np.array([0])) == "thread 0 of rank 0"
    assert who(run, np.array([0, 2])) == "thread 0 of each rank"
    assert who(run, np.array([0, 1])) == "rank 0"


def text_of(found) -> str:
    return "\n".join("".join(text for text, _ in line) for line in finding_lines(found, 80))


def test_what_is_not_simulated_differs_from_what_nothing_removes(tmp_path):
    steps = ((t / 1000, t / 1000 + 0.0005) for t in range(100))
    work = "".join(f"*: step [{begin:.4f}, {end:.4f}]\n" for begin, end in steps)
    flushes = "".join(f"0: raw BufferFlush(stop_time={t + 0.5}) @{t}\n" for t in range(1, 9))
    result = analyzed("ranks 2\n*: work [0, 10]\n" + work + flushes, tmp_path)
    text = text_of(result.findings())
    assert "What changes would save is not simulated" in " ".join(text.split())
    assert "none known" not in text
    # No change of durations removes the measurement.
    text = text_of(result.findings(prices=True))
    assert "none known" in text
    assert "not simulated" not in text


def test_the_rest_is_named_by_its_parts(tmp_path):
    """What calls need is too little for a finding of its own."""
    late = "0: work [60, 65]\n0: MPI_Barrier [65, 65.1]\n1: MPI_Barrier [60, 65.1]\n"
    calls = "".join(f"*: MPI_Barrier [{t + 0.985:.3f}, {t + 1}]\n" for t in range(60))
    found = analyzed("ranks 2\n*: main [0, 66]\n" + late + calls, tmp_path).findings()
    assert dict(found.rest)["what calls need"] == pytest.approx(60 * 2 * 0.015 + 0.1, rel=0.05)
    assert re.search(r"The rest: [\d.]+% of the CPU time \(what calls need [\d.]+%", " ".join(text_of(found).split()))


@pytest.mark.parametrize("name", ["workers", "sor_p2p", "rma_lock_pt2pt", "stencil"])
def test_the_parts_of_a_loss_add_up(name):
    result = whywait.analyze(DATA / name)
    run = Run(result)
    checked = 0
    for one in findings(result):
        if one.rule in {"slow_calls", "pauses", "few_cores", "small_regions", "collectives", "latency_bound"}:
            assert sum(time for _, time in parts(run, one)) == pytest.approx(one.loss)
            checked += 1
    assert checked
