"""Findings: the largest losses come first, each with its reason, and no loss is named twice."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from pathlib import Path

import pytest
import whywait
from hypothesis import given, note, settings
from whywait import _native, cli
from whywait.analysis.findings import findings, rules
from whywait.analysis.losses import Losses
from whywait.hypotheses import Network, parse
from whywait.report.html.account import findings_story

from tests.programs import programs
from tests.results import SHARED
from tests.team_programs import team_programs
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
SHIPPED = sorted(anchor for anchor in DATA.rglob("*.otf2") if not anchor.is_dir())
RECORDED = sorted(SHARED.glob("cases/*/archive/*.otf2")) + sorted(SHARED.glob("real/*/archive/*.otf2"))


def analyzed(text, directory):
    return whywait.analyze(trace_from_text(text, directory))


def by_rule(result):
    """Return the largest finding of each rule."""
    found = {}
    for one in findings(result):
        found.setdefault(one.rule, one)
    return found


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def test_the_bugs_of_the_stencil_are_its_first_findings(stencil):
    found = findings(stencil)
    first, second, third = found.shown[:3]
    assert (first.rule, first.ranks) == ("imbalance", [5])
    assert first.loss == pytest.approx(0.676, abs=5e-4)
    assert first.share == pytest.approx(0.249, abs=5e-4)
    assert first.sentence.startswith("Rank 5 works 1.5 times as long as the others in relax/work; others wait 676 ms")
    assert (second.rule, second.ranks) == ("serial_tail", [1])
    assert second.loss == pytest.approx(0.1123, abs=5e-4)
    assert second.sentence == "At the end, rank 1 works in collect_reports/work; the others wait 112 ms for it."
    assert third.rule == "slow_calls"
    assert third.share == pytest.approx(0.013, abs=2e-3)
    assert found.verdict().startswith("31% of the CPU time is lost. Rank 5 works 1.5 times")


def consistent(result) -> None:
    """What must hold for the findings of every trace."""
    losses = Losses(result)
    # Who bears what adds up to what is lost: no second is charged twice.
    assert losses.sum() == pytest.approx(losses.lost, rel=1e-9, abs=1e-9)
    assert losses.unattributed >= -1e-9
    assert losses.outside >= -1e-9
    found = findings(result)
    named = sum(one.loss for one in found if one.base == "cpu")
    assert named <= losses.lost * (1 + 1e-9) + 1e-9
    lost = [one for one in found if one.base != "run"]
    assert found.where == found[len(lost) :]
    assert [one.share for one in lost] == sorted((one.share for one in lost), reverse=True)
    assert len(found.shown) <= 5
    several = len(set(result.places.rank[result.places.works].tolist())) > 1
    for one in found:
        assert one.loss > 0 or one.base == "run"
        assert one.share > 0
        assert one.rule in rules()
        assert not re.search(r"\{|\}|nan|rank -1|inf ", one.sentence)
        # The last one may stand in parentheses.
        assert one.sentence.rstrip(")").endswith(".")
        assert not one.sentence.startswith("what ")
        # A run of one process has no ranks to speak of.
        assert several or not re.search(r"\b[Rr]anks?\b", one.sentence)
    table = found.table(result.tree)
    assert table["number"].to_pylist() == list(range(1, len(found) + 1))
    assert all(json.loads(evidence) is not None for evidence in table["evidence"].to_pylist())


@settings(max_examples=60)
@given(trace=programs())
def test_random_programs_have_consistent_findings(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        consistent(analyzed(trace, directory))


@settings(max_examples=40)
@given(trace=team_programs())
def test_random_teams_have_consistent_findings(trace):
    note(trace)
    with tempfile.TemporaryDirectory() as directory:
        consistent(analyzed(trace, directory))


@pytest.mark.parametrize("anchor", SHIPPED, ids=lambda anchor: str(anchor.parent.relative_to(DATA)))
def test_shipped_traces_have_consistent_findings(anchor):
    consistent(whywait.analyze(anchor))


@pytest.mark.skipif(not RECORDED, reason=f"no recorded cases: {SHARED} is not there")
@pytest.mark.parametrize("anchor", RECORDED, ids=lambda anchor: anchor.parents[1].name)
def test_recorded_traces_have_consistent_findings(anchor):
    consistent(whywait.analyze(anchor))


PAIR = SHARED / "cases/pairs/gats_scale/before"


@pytest.mark.skipif(not PAIR.exists(), reason=f"no recorded cases: {SHARED} is not there")
def test_what_completes_evidently_wait_for_belongs_to_their_targets():
    """Targets that work do not serve: MPI_Win_complete waits for rank 2, as README.md of the case says."""
    found = whywait.analyze(PAIR).findings(prices=True)
    assert found[0].rule == "imbalance"
    assert found[0].sentence.startswith("Rank 2 works 2.6 times as long as the others in epoch/work; others wait ")
    # 323 ms of what completes take is time in which their targets work.
    assert 0.65 < next(one.value for one in found[0].values if one.name == "waiting") < 0.75
    assert found.verdict().endswith("Balanced, the run would be 120 ms (42%) shorter.")


@pytest.mark.skipif(not PAIR.exists(), reason=f"no recorded cases: {SHARED} is not there")
def test_a_finding_that_saves_much_more_than_the_first_is_named():
    found = whywait.analyze(PAIR.parents[1] / "pipeline/after").findings(prices=True)
    assert found[0].rule == "pipeline"
    assert "Finding 2 saves more: if every call were as fast as the fastest 5%, the run would be " in found.verdict()


# Rank 1 works longer three times; what waits for it is a receive and a barrier.
STEPS = "".join(
    f"""
    0: work [{t}, {t + 2}]
    0: MPI_Recv(1) [{t + 2}, {t + 4.2}]
    0: work [{t + 4.2}, {t + 5.2}]
    0: MPI_Barrier [{t + 5.2}, {t + 6.2}]
    1: work [{t}, {t + 4}]
    1: MPI_Send(0) [{t + 4}, {t + 4.1}]
    1: work [{t + 4.1}, {t + 6.1}]
    1: MPI_Barrier [{t + 6.1}, {t + 6.2}]
    """
    for t in (0, 6.2, 12.4)
)


def test_two_kinds_of_wait_are_one_imbalance(tmp_path):
    found = by_rule(analyzed(STEPS, tmp_path))
    assert found["imbalance"].loss == pytest.approx(3 * 2.9)
    assert found["imbalance"].ranks == [1]
    assert (
        found["imbalance"].sentence == "Rank 1 works 2 times as long as rank 0 in work; the other waits 8.70 s for it."
    )
    assert "late_partner" not in found


def test_senders_need_not_wait_for_late_receivers(tmp_path):
    """Both work about 3 s a step, one after the other, because the send waits for its receive."""
    text = "".join(
        f"""
        0: MPI_Ssend(1) [{t}, {t + 3.1}]
        0: work [{t + 3.1}, {t + 5.9}]
        0: MPI_Barrier [{t + 5.9}, {t + 6}]
        1: work [{t}, {t + 3}]
        1: MPI_Recv(0) [{t + 3}, {t + 3.1}]
        1: MPI_Barrier [{t + 3.1}, {t + 6}]
        """
        for t in (0, 6, 12)
    )
    one = analyzed(text, tmp_path).findings(prices=True)[0]
    assert (one.rule, one.advice) == (
        "late_partner",
        "Post receives earlier, or send by a protocol that does not wait for them.",
    )
    assert (one.price.label, one.price.option) == ("eager", "--protocol 'MPI_Ssend=eager'")
    assert one.price.saved == pytest.approx(3 * 2.8, rel=0.05)


def test_a_pipeline_is_no_imbalance(tmp_path):
    text = """
        0: work [0, 1]
        0: MPI_Send(1, bytes=0) [1, 1]
        0: work [1, 2]
        0: MPI_Send(1, bytes=0) [2, 2]
        0: MPI_Barrier [2, 4]
        1: MPI_Recv(0, bytes=0) [0, 1]
        1: work [1, 2]
        1: MPI_Send(2, bytes=0) [2, 2]
        1: MPI_Recv(0, bytes=0) [2, 2]
        1: work [2, 3]
        1: MPI_Send(2, bytes=0) [3, 3]
        1: MPI_Barrier [3, 4]
        2: MPI_Recv(1, bytes=0) [0, 2]
        2: work [2, 3]
        2: MPI_Recv(1, bytes=0) [3, 3]
        2: work [3, 4]
        2: MPI_Barrier [4, 4]
    """
    found = by_rule(analyzed(text, tmp_path))
    assert found["pipeline"].loss == pytest.approx(6)
    assert "imbalance" not in found
    assert not re.search("imbalance|evenly|longer", found["pipeline"].sentence)


def test_work_that_moves_from_rank_to_rank_is_no_pipeline(tmp_path):
    """In a ring, each step waits for the rank with most to do in the one before, which is another one each time."""
    text, ready = "", [0.0] * 4
    for step in range(8):
        ends = [begin + (6 if (0, 2, 1, 3, 2, 0, 3, 1)[step] == rank else 1) for rank, begin in enumerate(ready)]
        begins, ready = ready, [max(end, ends[rank - 1]) + 0.1 for rank, end in enumerate(ends)]
        for rank in range(4):
            text += f"""
            {rank}: work [{begins[rank]:.1f}, {ends[rank]:.1f}]
            {rank}: MPI_Sendrecv(to={(rank + 1) % 4}, source={(rank - 1) % 4}) [{ends[rank]:.1f}, {ready[rank]:.1f}]
            """
    result = analyzed(text, tmp_path)
    found = by_rule(result)
    assert found["varying"].sentence.startswith("work takes longer now on one rank and now on another; others wait ")
    assert "pipeline" not in found
    # Balanced, each step takes 2.25 s.
    one = result.findings(prices=True)[0]
    assert (one.rule, one.price.label) == ("varying", "balance")
    assert one.price.saved == pytest.approx(max(ready) - 8 * 2.35)


def test_moving_work_of_a_phase_is_no_pipeline(tmp_path):
    """Ranks work one after the other, then exchange halos: what moves in the second phase is not part of the first."""
    text, ready = "", [0.0] * 4
    for step in range(8):
        stages, sent = [], 0.0
        for rank, begin in enumerate(ready):
            start = max(begin, sent)
            sent = start + 2
            stages.append(sent + 0.01)
            if rank > 0:
                text += f"{rank}: MPI_Recv({rank - 1}) [{begin:.2f}, {start:.2f}]\n"
            text += f"{rank}: stage [{start:.2f}, {sent:.2f}]\n"
            if rank < 3:
                text += f"{rank}: MPI_Send({rank + 1}) [{sent:.2f}, {sent + 0.01:.2f}]\n"
        longest = (0, 2, 1, 3, 2, 0, 3, 1)[step]
        ends = [begin + (6 if rank == longest else 1) for rank, begin in enumerate(stages)]
        ready = [max(end, ends[rank - 1]) + 0.1 for rank, end in enumerate(ends)]
        for rank in range(4):
            text += f"""
            {rank}: work [{stages[rank]:.2f}, {ends[rank]:.2f}]
            {rank}: MPI_Sendrecv(to={(rank + 1) % 4}, source={(rank - 1) % 4}) [{ends[rank]:.2f}, {ready[rank]:.2f}]
            """
    result = analyzed(text, tmp_path)
    rules_of = {result.tree.path(one.callpath)[-1]: one.rule for one in findings(result) if one.callpath is not None}
    assert (rules_of["stage"], rules_of["work"]) == ("pipeline", "varying")


def test_calls_tell_pieces_of_work_apart(tmp_path):
    """Where a call path is one visit, its pieces between calls are balanced."""
    times = [(1, 3), (3, 1), (2, 4), (4, 2)] * 2
    text, begin = "", 0.0
    for pair in times:
        end = begin + max(pair)
        for rank, own in enumerate(pair):
            text += f"{rank}: MPI_Barrier [{begin + own}, {end + 0.1}]\n"
        begin = end + 0.1
    found = analyzed(f"*: main [0, {begin}]\n" + text, tmp_path).findings(prices=True)
    assert found[0].price.option == "--balance 'main:segment'"
    assert found[0].price.saved == pytest.approx(len(times) * 1.0)
    assert "main:median" not in " ".join(price.option or "" for one in found for price in one.prices)


def test_one_rank_that_writes_at_the_end_is_a_tail(tmp_path):
    text = """
        ranks 3
        *: MPI_Init [0, 1]
        *: work [1, 4]
        0: write [4, 6]
        0: MPI_Finalize [6, 6.1]
        1-2: MPI_Finalize [4, 6.1]
    """
    found = by_rule(analyzed(text, tmp_path))
    assert found["serial_tail"].loss == pytest.approx(4)
    assert found["serial_tail"].sentence == "At the end, only rank 0 works in write; the others wait 4.00 s for it."
    assert found["serial_tail"].ranks == [0]


def test_the_same_work_earlier_is_no_tail(tmp_path):
    text = """
        ranks 3
        *: MPI_Init [0, 1]
        0: write [1, 3]
        0: MPI_Barrier [3, 3.1]
        1-2: MPI_Barrier [1, 3.1]
        0-1: work [3.1, 9]
        2: work [3.1, 8.99]
        0-1: MPI_Finalize [9, 9.1]
        2: MPI_Finalize [8.99, 9.1]
    """
    found = findings(analyzed(text, tmp_path))
    # Nor is what two ranks of three do until the end.
    assert not [one for one in found if one.rule == "serial_tail"]


def test_the_master_alone_is_a_serial_section(tmp_path):
    text = """
        ranks 1
        0: main [0, 10]
        0: fork [2, 6]
        0: !$omp parallel @a.c:1 [2.1, 5.8]
        0.1: !$omp parallel @a.c:1 [2.3, 5.6]
    """
    found = by_rule(analyzed(text, tmp_path))
    assert found["serial_section"].loss == pytest.approx(6)
    assert found["serial_section"].sentence == "main runs on one of 2 threads: the other is idle for 6.00 s."


def test_a_program_without_threads_has_no_serial_section(stencil):
    assert "serial_section" not in by_rule(stencil)
    assert "single_thread" not in by_rule(stencil)


def test_a_critical_section_is_a_block_of_one_thread(tmp_path):
    text = """
        ranks 1
        0: fork [0, 10]
        0: !$omp parallel @a.c:1 [0, 10]
        0.1: !$omp parallel @a.c:1 [0, 10]
        0: !$omp critical @a.c:2(order=1) [1, 6]
        0.1: !$omp critical @a.c:2(order=2) [2, 8]
    """
    found = by_rule(analyzed(text, tmp_path))
    assert found["single_thread"].sentence.endswith("the other waits 4.00 s for it.")
    assert "chunk" not in found["single_thread"].sentence + found["single_thread"].advice


def test_a_chain_has_one_culprit(tmp_path):
    text = "".join(
        f"""
        0: work [{t}, {t + 4}]
        0: MPI_Send(1) [{t + 4}, {t + 4}]
        1: work [{t}, {t + 1}]
        1: MPI_Recv(0) [{t + 1}, {t + 4}]
        1: MPI_Send(2) [{t + 4}, {t + 4}]
        2: work [{t}, {t + 2}]
        2: MPI_Recv(1) [{t + 2}, {t + 4}]
        """
        for t in (0, 4, 8)
    )
    found = by_rule(analyzed(text, tmp_path))
    assert found["imbalance"].loss == pytest.approx(15)
    assert found["imbalance"].ranks == [0]


def test_devices_are_starved_or_take_turns(tmp_path):
    starved = """
        0: main [0, 10]
        0: hipLaunchKernel [1, 1.1]
        0/0: first [1.2, 5]
        0: compute [3.1, 8]
        0: hipLaunchKernel [8, 8.1]
        0/0: second [8.15, 9]
    """
    found = by_rule(analyzed(starved, tmp_path / "starved"))
    assert found["device_starved"].loss == pytest.approx(5.35)
    assert found["device_starved"].base == "device"
    assert "On the host, main/compute keeps the device waiting" in found["device_starved"].sentence
    assert "devices_take_turns" not in found


def test_a_short_run_says_so_and_shows_nothing(tmp_path):
    waits = "0: MPI_Recv(1) [{0}, {1}]\n1: work [{0}, {1}]\n1: MPI_Send(0) [{1}, {1}]\n"
    found = findings(analyzed(waits.format(0, 0.019), tmp_path / "short"))
    assert found.verdict() == "The run is too short for findings."
    assert found.shown == []
    # Few events are no reason to be silent.
    found = findings(analyzed(waits.format(0, 0.021), tmp_path / "few"))
    assert found.verdict().startswith("50% of the CPU time is lost. ")


def test_a_long_run_of_few_events_has_findings(tmp_path):
    text = "".join(
        f"""
        0: work [{t}, {t + 1}]
        0: MPI_Recv(1) [{t + 1}, {t + 3}]
        1: work [{t}, {t + 3}]
        1: MPI_Send(0) [{t + 3}, {t + 3}]
        """
        for t in (0, 3, 6, 9)
    )
    found = findings(analyzed(text, tmp_path))
    assert found.silent is None
    assert found[0].rule == "imbalance"
    assert found[0].loss == pytest.approx(8)
    assert found[0].ranks == [1]


def test_a_written_result_has_its_findings(stencil, tmp_path, capsys):
    stencil.write(tmp_path / "results")
    read = whywait.load(tmp_path / "results")
    ours, theirs = (findings(one).table(one.tree).to_pylist() for one in (stencil, read))
    assert ours == theirs
    assert read.tables.read("findings").to_pylist() == ours
    assert read.verdict() == stencil.verdict()
    assert cli.main(["findings", str(tmp_path / "results")]) == 0
    text = capsys.readouterr().out
    assert "relax/work" in text
    assert "676 ms" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert cli.main(["findings", "--json", str(tmp_path / "results")]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == stencil.verdict()
    assert [one["rule"] for one in answer["findings"]] == [one["rule"] for one in ours]


def test_without_causes_only_calls_have_a_reason():
    result = whywait.analyze(DATA / "stencil", causes=False)
    consistent(result)
    assert {one.rule for one in findings(result)} <= {"slow_calls", "pauses"}


@pytest.mark.parametrize("rule", rules().values(), ids=rules())
def test_rules_are_described(rule):
    assert rule.title
    assert rule.document.rstrip().endswith(".")


def test_prices_are_those_of_whatif(stencil):
    found = stencil.findings(prices=True)
    first, second, third = found.shown[:3]
    assert first.price.saved == pytest.approx(0.0850, abs=5e-5)
    assert second.price.saved == pytest.approx(0.0120, abs=5e-5)
    assert found.together.saved == pytest.approx(0.0971, abs=5e-5)
    assert third.price.option == "--trim all"
    assert found.verdict().endswith(" Balanced, the run would be 85.0 ms (25%) shorter.")
    priced = [price for one in found.shown for price in one.prices if price.option is not None]
    assert sum(price.is_bound for price in priced) == 3
    for price in [*priced, found.together]:
        simulation = simulated(stencil, price.option)
        # The same ticks, divided by the same resolution.
        assert price.saved == simulation.focus_saved


def simulated(result, option):
    """Simulate the changes that an option of the command line names."""
    words = shlex.split(option)
    pairs = list(zip(words[::2], words[1::2], strict=True))
    given = dict(pairs)
    window = tuple(map(float, given["--window"].split(":"))) if "--window" in given else None
    base = Network.parse(given["--base"]) if "--base" in given else None
    changes = [parse(kind.lstrip("-"), text) for kind, text in pairs if kind not in {"--window", "--base"}]
    return whywait.whatif(result, changes, base=base, window=window)


def test_prices_are_stored_with_the_result(stencil, tmp_path):
    found = stencil.findings(prices=True)
    stencil.write(tmp_path / "results")
    stored = whywait.load(tmp_path / "results").findings()
    assert [one.prices for one in stored] == [one.prices for one in found]
    assert (stored.together, stored.verdict()) == (found.together, found.verdict())


def test_without_events_there_is_no_price(tmp_path):
    whywait.analyze(DATA / "stencil").write(tmp_path / "results")
    found = whywait.load(tmp_path / "results").findings(prices=True)
    assert found.shown[0].price is None
    assert found.shown[0].unpriced == "Not simulated: the result has no events."
    assert "shorter" not in found.verdict()


def test_a_pipeline_has_only_a_bound(tmp_path):
    trace = tmp_path / "trace"
    _native.generate("sweep", trace, ranks=16, iterations=2, seed=1)
    found = whywait.analyze(trace).findings(prices=True)
    first = found.shown[0]
    assert first.rule == "pipeline"
    assert first.price is None
    assert [price.is_bound for price in first.prices] == [True]


def test_a_change_that_saves_nothing_does_not_come_first(tmp_path):
    # Rank 0 and rank 1 are slow in turn, before and after the same barriers: balancing one of them alone shifts the
    # time to the other.
    text = "\n".join(
        f"""
        0: first [{t}, {t + 4}]
        0: MPI_Barrier [{t + 4}, {t + 4.1}]
        1: first [{t}, {t + 1}]
        1: MPI_Barrier [{t + 1}, {t + 4.1}]
        """
        for t in (0, 4.1, 8.2)
    )
    found = analyzed(text, tmp_path).findings(prices=True)
    assert found[0].price.saved == pytest.approx(3 * 1.5)


@pytest.mark.parametrize(("text", "saved"), [(STEPS, 3 * 1.4)])
def test_prices_of_worked_examples(tmp_path, text, saved):
    found = analyzed(text, tmp_path).findings(prices=True)
    assert found[0].price.saved == pytest.approx(saved)
    assert found[0].price.label == "balance"


def slices(ranks: int, together: int) -> str:
    """Ranks that compute and call in turn, so many at a time; the others are in a call that lasts as long."""
    lines = [f"*: main [0, {0.02 * ranks / together:.6f}]"]
    for step in range(20 * ranks // together):
        begin = 1e-3 * step
        for rank in range(ranks):
            if (rank // together + step) % (ranks // together):
                lines.append(f"{rank}: MPI_Comm_rank [{begin:.6f}, {begin + 1e-3:.6f}]")
                continue
            for piece in range(40):
                at = begin + 25e-6 * piece
                lines.append(f"{rank}: MPI_Comm_rank [{at + 20e-6:.6f}, {at + 24e-6:.6f}]")
    return "\n".join(lines)


def test_ranks_that_never_run_together_share_cores(tmp_path):
    result = analyzed(slices(4, 2), tmp_path)
    [node] = result.facts["few_cores"]
    assert (node["locations"], node["most"]) == (4, 2)
    # Each is ready all of the time, and runs in half of it: three or four of four, 5/16.
    assert node["expected"] == pytest.approx(5 / 16, abs=0.02)
    assert node["observed"] == 0
    found = by_rule(result)
    # Each of two ranks is in a call for 4 of 25 us, in which the other two are in theirs.
    said = "Hardly ever more than 2 of the 4 ranks compute at the same time (less than 0.1%): they share cores. "
    assert found["few_cores"].sentence.startswith(said)
    assert "slow_calls" not in found
    # The page shows how many do.
    at_once = next(one for one in findings_story(result)["findings"] if one["rule"] == "few_cores")["at_once"]
    assert [one["label"] for one in at_once] == ["no ranks", "1 rank", "2 ranks", "3 ranks", "4 ranks"]
    assert sum(one["share"] for one in at_once[:3]) == pytest.approx(1)
    result.write(tmp_path / "results")
    assert by_rule(whywait.load(tmp_path / "results"))["few_cores"].sentence == found["few_cores"].sentence


@pytest.mark.parametrize(("ranks", "together"), [(4, 4), (2, 2)])
def test_ranks_with_a_core_each_do_not_share(tmp_path, ranks, together):
    result = analyzed(slices(ranks, together), tmp_path)
    assert result.facts["few_cores"] == []
    assert "few_cores" not in by_rule(result)


def test_ranks_that_sleep_do_not_share_cores(stencil):
    # The program sleeps instead of computing, so nothing tells when it runs.
    assert stencil.facts["few_cores"] == []


@pytest.mark.parametrize("workload", ["sweep", "lb-p2p", "lb-coll"])
def test_generated_runs_do_not_share_cores(workload, tmp_path):
    _native.generate(workload, tmp_path / "trace", ranks=16, iterations=5, seed=3)
    assert whywait.analyze(tmp_path / "trace").facts["few_cores"] == []


# Rank 0 and rank 1 are late in turn, by as much.
TURNS = "".join(
    f"""
    {late}: work [{t}, {t + 2}]
    {late}: MPI_Barrier [{t + 2}, {t + 2.1}]
    {1 - late}: work [{t}, {t + 1}]
    {1 - late}: MPI_Barrier [{t + 1}, {t + 2.1}]
    """
    for late, t in ((0, 0), (1, 2.1), (0, 4.2), (1, 6.3))
)


def test_own_code_bears_no_more_waiting_than_it_has_time(tmp_path):
    """Thread 1 works for 1 s like thread 0, but begins 5 s late: four of these seconds are no matter of the code."""
    text = "ranks 1\n"
    for begin in (0, 10, 20):
        text += f"""
        0: fork [{begin}, {begin + 7}]
        0: !$omp parallel @a.c:1 [{begin}, {begin + 7}]
        0.1: !$omp parallel @a.c:1 [{begin + 5}, {begin + 7}]
        0: !$omp implicit barrier @a.c:2 [{begin + 1}, {begin + 7}]
        0.1: !$omp implicit barrier @a.c:2 [{begin + 6}, {begin + 7}]
        """
    result = analyzed(text, tmp_path)
    losses = Losses(result)
    waiting = {bearer.kind: bearer.waiting for bearer in losses.bearers.values() if bearer.waiting}
    assert waiting == pytest.approx({"own": 3 * 1.0, "threads": 3 * 4.0})
    assert losses.sum() == pytest.approx(losses.lost)


def test_noise_is_no_imbalance(tmp_path):
    found = by_rule(analyzed(TURNS, tmp_path))
    assert found["varying"].loss == pytest.approx(4)
    said = "work takes longer now on one rank and now on the other; they wait 4.00 s for each other."
    assert found["varying"].sentence == said
    assert "imbalance" not in found
    # One rank that is late each time is no noise.
    assert "varying" not in by_rule(analyzed(STEPS, tmp_path / "imbalance"))


ONE = "".join(
    f"""
    *: work [{t}, {t + 1}]
    0: plan [{t + 1}, {t + 2}]
    0: MPI_Barrier [{t + 2}, {t + 2.1}]
    1: MPI_Barrier [{t + 1}, {t + 2.1}]
    2: MPI_Barrier [{t + 1}, {t + 2.1}]
    """
    for t in (0, 2.1, 4.2)
)


def test_one_rank_does_all(tmp_path):
    found = by_rule(analyzed(ONE, tmp_path))
    assert found["one_does_all"].loss == pytest.approx(6)
    assert found["one_does_all"].sentence == "Only rank 0 works in plan, for 3.00 s; the others wait 6.00 s for it."
    # Where another rank does a little of it, it does nearly all.
    little = by_rule(analyzed(ONE + "1: plan [6.3, 6.4]\n", tmp_path / "little"))["one_does_all"]
    assert little.sentence == "Rank 0 does 97% of the work in plan, for 3.00 s; the others wait 6.00 s for it."
    # Where another rank does the same, or none waits, nobody does all.
    shared = ONE + "1: plan [6.3, 7.3]\n"
    assert "one_does_all" not in by_rule(analyzed(shared, tmp_path / "shared"))
    assert "one_does_all" not in by_rule(analyzed(STEPS, tmp_path / "other"))


def test_what_happens_once_is_shown_where_the_rest_names_too_little(tmp_path):
    """One rank is late once, and noise makes others wait in many iterations."""
    once = "*: work [10, 11]\n0: read [11, 14]\n0: MPI_Barrier [14, 14.1]\n1-2: MPI_Barrier [11, 14.1]\n"
    noise = "".join(
        f"0: work [{t}, {t + 0.06}]\n1-2: work [{t}, {t + 0.05}]\n"
        f"0: MPI_Barrier [{t + 0.06}, {t + 0.061}]\n1-2: MPI_Barrier [{t + 0.05}, {t + 0.061}]\n"
        f"*: work [{t + 0.061}, {t + 0.1}]\n"
        for t in (0.1 * step for step in range(100))
    )
    found = analyzed(noise + once, tmp_path).findings()
    assert [one.callpath for one in found.shown[:1]] == [one.callpath for one in found if "read" in one.sentence]
    assert found.shown[0].instances == 1
    repeated = analyzed(noise, tmp_path / "noise").findings()
    assert all(one.instances >= 3 for one in repeated.shown)


def messages(count: int, size: int, work: float) -> str:
    """Rank 0 sends messages that rank 1 receives when they are there; sends and receives take 0.1 s."""
    step = 0.1 + work
    return "\n".join(
        f"0: MPI_Send(1, bytes={size}) [{i * step:.1f}, {i * step + 0.1:.1f}]\n"
        f"0: work [{i * step + 0.1:.1f}, {(i + 1) * step:.1f}]\n"
        f"1: work [{i * step + 0.1:.1f}, {(i + 1) * step:.1f}]\n"
        f"1: MPI_Recv(0, bytes={size}) [{(i + 1) * step:.1f}, {(i + 1) * step + 0.1:.1f}]"
        for i in range(count)
    )


def test_small_messages_are_bound_by_latency(tmp_path):
    found = by_rule(analyzed(messages(10, 64, 0.4), tmp_path / "small"))
    assert found["latency_bound"].loss == pytest.approx(2)
    assert found["latency_bound"].sentence.startswith("20 calls transfer less than 8 KiB each and take 2.00 s, 50% of")
    assert "latency_bound" not in by_rule(analyzed(messages(10, 1 << 20, 0.4), tmp_path / "large"))
    assert "latency_bound" not in by_rule(analyzed(messages(10, 64, 9.9), tmp_path / "few"))


def ping_pong(size: int, took: float) -> str:
    """Two ranks exchange messages of a size, which take a time, and each waits for the other."""
    return "\n".join(
        f"0: work [{t}, {t + 0.1:.2f}]\n"
        f"0: MPI_Send(1, bytes={size}) [{t + 0.1:.2f}, {t + 0.11:.2f}]\n"
        f"0: MPI_Recv(1, bytes={size}) [{t + 0.11:.2f}, {t + 0.22 + 2 * took:.2f}]\n"
        f"0: work [{t + 0.22 + 2 * took:.2f}, {t + 1}]\n"
        f"1: MPI_Recv(0, bytes={size}) [{t}, {t + 0.1 + took:.2f}]\n"
        f"1: work [{t + 0.1 + took:.2f}, {t + 0.22 + took:.2f}]\n"
        f"1: MPI_Send(0, bytes={size}) [{t + 0.22 + took:.2f}, {t + 0.23 + took:.2f}]\n"
        f"1: work [{t + 0.23 + took:.2f}, {t + 1}]"
        for t in range(60)
    )


def test_half_the_latency_has_a_price(tmp_path):
    """Each rank waits 0.18 s for a message: with half the latency, each of 60 steps is 0.18 s shorter."""
    result = analyzed(ping_pong(8, 0.18), tmp_path)
    one = next(one for one in result.findings(prices=True) if one.rule == "latency_bound")
    assert one.price.what == "half the latency of the network that fits"
    assert one.price.option == "--network 'latency=0.09s' --base 'latency=0.18s'"
    assert one.price.saved == pytest.approx(60 * 0.18, rel=0.01)
    assert one.price.saved == simulated(result, one.price.option).focus_saved


def test_without_a_network_that_fits_latency_has_no_price(tmp_path):
    """No receive waits, so nothing says how long messages take."""
    result = analyzed(messages(10, 64, 0.4), tmp_path)
    one = next(one for one in result.findings(prices=True) if one.rule == "latency_bound")
    assert one.price is None
    assert [price.is_bound for price in one.prices] == [True]


def test_findings_of_a_call_path_are_those_that_it_is_to_blame_for(stencil, capsys):
    everywhere = {(one.rule, one.callpath): one.loss for one in findings(stencil)}
    found = stencil.findings(focus="solve")
    assert [one.rule for one in found.shown] == ["imbalance"]
    assert {(one.rule, one.callpath): one.loss for one in found}.items() <= everywhere.items()
    assert found.shown[0].loss <= found.lost < findings(stencil).lost
    assert found.verdict().startswith("26% of the CPU time is lost because of solve. Rank 5 works 1.5 times")
    assert stencil.findings(focus="main").lost == pytest.approx(findings(stencil).lost, rel=0.02)
    with pytest.raises(whywait.UsageError, match="nowhere"):
        stencil.findings(focus="nowhere")
    trace = str(DATA / "stencil")
    assert cli.main(["findings", trace, "--focus", "solve"]) == 0
    assert "because of solve" in capsys.readouterr().out
    assert cli.main(["explain", trace, "1", "--focus", "collect_reports"]) == 0
    assert capsys.readouterr().out.startswith("At the end, rank 1 works in collect_reports/work")


def test_collective_operations_are_named(tmp_path):
    def program(work: float) -> str:
        return "\n".join(
            f"*: work [{i * (work + 1):.1f}, {i * (work + 1) + work:.1f}]\n"
            f"*: MPI_Allreduce [{i * (work + 1) + work:.1f}, {(i + 1) * (work + 1):.1f}]"
            for i in range(6)
        )

    found = by_rule(analyzed("ranks 2\n" + program(4), tmp_path / "many"))
    assert found["collectives"].loss == pytest.approx(12)
    assert "12 calls of MPI_Allreduce take 12.0 s (1.00 s each)" in found["collectives"].sentence
    assert "collectives" not in by_rule(analyzed("ranks 2\n" + program(60), tmp_path / "few"))


def test_time_that_is_not_recorded_is_named(tmp_path):
    text = "0: work [0, 6]\n0: work [8, 10]\n1: work [0, 10]\n"
    found = by_rule(analyzed(text, tmp_path / "some"))
    assert found["unrecorded"].loss == pytest.approx(2)
    assert "unrecorded" not in by_rule(analyzed("0: work [0, 10]\n1: work [0, 10]\n", tmp_path / "none"))


def test_a_flush_of_the_trace_buffer_is_the_measurement_itself(tmp_path):
    text = "0: work [0, 10]\n1: work [0, 10]\n"
    found = by_rule(analyzed(text + "0: raw BufferFlush(stop_time=5) @4\n", tmp_path / "flush"))
    assert found["measurement"].loss == pytest.approx(1)
    assert found["measurement"].sentence.startswith("The measurement itself takes 1.00 s")
    assert "measurement" not in by_rule(analyzed(text, tmp_path / "none"))


def test_every_rule_has_a_test_and_a_document():
    tested = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for name, rule in rules().items():
        examples = (Path(__file__).parent / "patterns/findings.md").read_text(encoding="utf-8")
        assert f'"{name}"' in tested or f"\n## {name}\n" in examples, name
        assert len(rule.document) > 100
        assert callable(rule.changes), name


def test_a_finding_is_explained_by_its_sums(capsys):
    trace = str(DATA / "stencil")
    assert cli.main(["explain", trace, "1"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Rank 5 works 1.5 times as long")
    assert re.search(r"Lost +676 ms +24.9%|Lost +676 ms +25%", text)
    # Its parts, the ranks that cause it, and a wait.
    assert re.search(r"Late Sender +44\d ms", text)
    assert re.search(r"rank 5 +6\d\d ms", text)
    assert "as an example" in text
    assert cli.main(["explain", "--json", trace, "1"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert sum(part["time"] for part in data["parts"]) == pytest.approx(data["loss"])
    assert data["ranks"][0]["rank"] == 5
    assert cli.main(["explain", trace, "99"]) != 0
    assert "there is no finding 99" in capsys.readouterr().err


def test_advice_begins_with_the_findings(capsys):
    assert cli.main(["advise", "--json", "--rounds", "0", "--top", "1", str(DATA / "stencil")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["findings"]["findings"][0]["rule"] == "imbalance"
    priced = [price for price in data["findings"]["prices"] if not price["bound"] and price["saved"]]
    assert priced[0]["saved"] == pytest.approx(0.085, abs=5e-5)


def test_varying_work_is_balanced_and_noise_is_taken_away(tmp_path):
    found = analyzed(TURNS, tmp_path).findings(prices=True)
    one = next(one for one in found if one.rule == "varying")
    # Each work takes 1 or 2 s, as often: 1.5 s, so that nobody waits.
    assert [price.option for price in one.prices[:2]] == ["--balance 'work'", "--balance 'work:median'"]
    assert [price.saved for price in one.prices[:2]] == pytest.approx([4 * 0.5, 4 * 0.5])


def test_threads_are_balanced_within_their_process(tmp_path):
    text = """
        ranks 2
        0-1: fork [0, 9.3]
        0: !$omp parallel @a.c:1 [0, 9.3]
        0.1: !$omp parallel @a.c:1 [0, 9.3]
        1: !$omp parallel @a.c:1 [0, 9.3]
        1.1: !$omp parallel @a.c:1 [0, 9.3]
    """
    for t in (0, 3.1, 6.2):
        for rank in (0, 1):
            text += f"""
        {rank}: !$omp for @a.c:2 [{t:.1f}, {t + 3.1:.1f}]
        {rank}.1: !$omp for @a.c:2 [{t:.1f}, {t + 3.1:.1f}]
        {rank}: !$omp implicit barrier @a.c:3 [{t + 1:.1f}, {t + 3.1:.1f}]
        {rank}.1: !$omp implicit barrier @a.c:3 [{t + 3:.1f}, {t + 3.1:.1f}]
        """
    found = analyzed(text, tmp_path).findings(prices=True)
    one = next(one for one in found if one.rule == "thread_imbalance")
    # 1 and 3 s become 2 s each.
    assert one.price.label == "balance threads"
    assert "among=process" in one.price.option
    assert one.price.saved == pytest.approx(3.0)
