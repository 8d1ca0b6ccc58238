"""What-if simulation: the worked examples of tests/patterns/whatif.md, identity, invariants, bad input.

A document of examples holds pairs of fenced blocks, ```run (a trace of tests/tracedsl.py) and ```whatif. In the latter
one line is

    change scale work=0.5                    a hypothesis; lines of `change` that follow one another are one simulation
    0 MPI_Send#1 [2, 2.2]                    Enter and Leave of an instance (the first without a number)
    length 7                                 of the whole run, s
    mpi_latesender 0                         a metric of the simulated run, analyzed as any other, over all
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait import UsageError, _native, cli
from whywait.hypotheses import (
    Balance,
    Cpu,
    Cut,
    CutMessages,
    EagerLimit,
    IdealNetwork,
    Network,
    Overhead,
    Overlap,
    Protocol,
    Scale,
    Selection,
    Set,
    Split,
    Trim,
    parse,
    read,
)
from whywait.hypotheses.kinds import duration
from whywait.hypotheses.lengths import Lengths, _fit_line

from tests import naive_whatif
from tests.programs import messages_of_two_sizes, programs
from tests.results import SHARED, UNRECORDED
from tests.rma_programs import one_sided_programs
from tests.team_programs import team_programs
from tests.test_finding_rules import repeated
from tests.test_mpi import mpiexec
from tests.thread_programs import thread_programs
from tests.tracedsl import trace_from_text

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^## ([^\n]+)$|^```(run|whatif)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NANOSECOND = 1e-9
EVENTS = {"Enter", "Leave", "ProgramBegin", "ProgramEnd"}


def examples() -> Iterator:
    heading, trace = "", None
    for block in BLOCK.finditer((ROOT / "tests/patterns/whatif.md").read_text()):
        if block[1]:
            heading = block[1]
        elif block[2] == "run":
            trace = block[3]
        else:
            assert trace is not None, heading
            yield pytest.param(trace, block[3], id=heading)
            trace = None


def stages(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """The simulations of a block: their changes and what is expected of each."""
    changes, expected = [], []
    for line in text.splitlines():
        if line.startswith("change "):
            if expected:
                yield changes, expected
                changes, expected = [], []
            changes.append(line.removeprefix("change "))
        else:
            expected.append(line)
    yield changes, expected


def instances(sim) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """New Enter and Leave of every region instance, by place and name, seconds since the begin of the trace."""
    run = sim.measured.run
    regions = run.definitions["Region"]
    names = dict(zip(regions["id"].to_pylist(), regions["name"].to_pylist(), strict=True))
    places = sim.measured.places
    begin = min(run.events(location)["time"][0].as_py() for location in range(len(places)) if len(run.events(location)))
    found: dict[tuple[str, str], list] = {}
    for location in range(len(places)):
        rows = [row for row in run.events(location).select(["type", "region"]).to_pylist() if row["type"] in EVENTS]
        times = sim.events(location)["simulated"].to_pylist()
        assert len(rows) == len(times)
        thread = places.thread[location]
        place = f"{places.rank[location]}" + (f".{thread}" if thread else "")
        stack = []
        for row, ticks in zip(rows, times, strict=True):
            seconds = (ticks - begin) / sim.measured.facts["resolution"]
            if row["type"] in ("Enter", "ProgramBegin"):
                of = found.setdefault((place, names.get(row["region"], "program")), [])
                stack.append((of, len(of)))
                of.append((seconds, None))
            else:
                of, number = stack.pop()
                of[number] = (of[number][0], seconds)
    return found


@pytest.mark.parametrize(("trace", "text"), list(examples()))
def test_simulations_match_worked_examples(trace, text, tmp_path):
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    for changes, expected in stages(text):
        sim = whywait.whatif(result, [parse(*change.split(" ", 1)) for change in changes])
        times = instances(sim)
        for line in expected:
            if match := re.fullmatch(r"([\d.]+) (.+?)(?:#(\d+))? \[([\d.]+), ([\d.]+)\]", line):
                found = times[match[1], match[2]][int(match[3] or 0)]
                assert found == pytest.approx((float(match[4]), float(match[5])), rel=0, abs=NANOSECOND), (
                    changes,
                    line,
                )
            elif match := re.fullmatch(r"length ([\d.]+)", line):
                assert sim.after == pytest.approx(float(match[1]), rel=0, abs=NANOSECOND), (changes, line)
            else:
                metric, value = line.split()
                total = sim.result.metrics[metric].total
                assert total == pytest.approx(float(value), rel=0, abs=NANOSECOND), (changes, line)


def is_identical(sim) -> bool:
    tables = [sim.events(location) for location in range(len(sim.measured.places))]
    return sim.before == sim.after and all(table["measured"].equals(table["simulated"]) for table in tables)


def archives() -> list:
    own = [path.parent for path in sorted(ROOT.glob("tests/data/*/traces.otf2"))]
    shared = sorted(path for part in ("cases", "real") for path in (SHARED / part).rglob("*.otf2"))
    return [pytest.param(path, id=str(path.relative_to(ROOT / "tests/data"))) for path in own] + [
        pytest.param(path, id=str(path.relative_to(SHARED))) for path in shared
    ]


@pytest.mark.parametrize("archive", archives())
def test_without_hypotheses_every_time_is_the_measured_one(archive):
    result = whywait.analyze(archive, causes=False)
    for hidden in ("estimate", "remainder"):
        assert is_identical(whywait.whatif(result, hidden=hidden)), hidden


def pattern_traces() -> Iterator:
    for document in sorted((ROOT / "tests/patterns").glob("*.md")):
        blocks = re.findall(r"^```(?:trace|run)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(map(repeated, blocks)):
            yield pytest.param(block, id=f"{document.stem} {number}")


@pytest.mark.parametrize("trace", list(pattern_traces()))
def test_the_traces_of_the_patterns_stay_the_same(trace, tmp_path):
    assert is_identical(whywait.whatif(trace_from_text(trace, tmp_path)))


@given(
    st.one_of(programs(), programs(groups=True), one_sided_programs(), team_programs(), thread_programs()),
    st.sampled_from(["estimate", "remainder"]),
)
@settings(max_examples=100)
def test_random_programs_stay_the_same(tmp_path_factory, program, hidden):
    anchor = trace_from_text(program, tmp_path_factory.mktemp("run"))
    assert is_identical(whywait.whatif(anchor, hidden=hidden))


@given(
    st.one_of(programs(partitions=True), programs(groups=True), programs(neighbors=True)),
    st.sampled_from([0.25, 0.7, 1.5, 4.0]),
)
@settings(max_examples=100)
def test_new_times_are_those_of_the_oracle(tmp_path_factory, program, ratio):
    anchor = trace_from_text(program, tmp_path_factory.mktemp("run"))
    sim = whywait.whatif(anchor, [Cpu(ratio)], hidden="remainder")
    oracle = naive_whatif.Simulation(anchor, lambda instance: 1.0 if instance.is_mpi else 1 / ratio)
    expected = oracle.run()
    if expected is None:
        assert "circular" in sim.assumptions["assumption"].to_pylist()
        return
    for location, ref in enumerate(sorted(expected)):
        assert sim.events(location)["simulated"].to_pylist() == expected[ref], (ref, program)


@given(st.one_of(programs(), one_sided_programs()), st.sampled_from([0.0, 0.3, 0.9]))
@settings(max_examples=40)
def test_faster_is_never_later(tmp_path_factory, program, factor):
    result = whywait.analyze(trace_from_text(program, tmp_path_factory.mktemp("run")), causes=False)
    sim = whywait.whatif(result, [Cpu(1 / factor)] if factor else [Scale("program/**", 0.0)])
    for location in range(len(result.places)):
        times = sim.events(location)
        assert (times["simulated"].to_numpy() <= times["measured"].to_numpy()).all()


# Where clocks agree, and no thread begins at a distance to its fork or its creation, which no hypothesis changes.
DISTANT = (
    "Clocks disagree", "A barrier whose clocks disagree", "Threads of a team", "A created thread",
    "Kernels and the calls that await them", "A faster host waits for a kernel that it did not wait for before",
    "A kernel in a queue starts when the one before it ends, or with its launch",
    "Kernels without a known launch move with the host",
)  # fmt: skip
CONSISTENT = [example for example in examples() if example.id not in DISTANT]


@pytest.mark.parametrize(("trace", "_"), CONSISTENT)
def test_all_times_slower_is_the_whole_run_slower(trace, _, tmp_path):
    """Every segment and every remainder f times as long: every time is."""
    result = whywait.analyze(trace_from_text(trace, tmp_path), causes=False)
    for factor in (2, 3):
        changes = [Scale(str(callpath), factor) for callpath in range(len(result.tree))]
        sim = whywait.whatif(result, changes, hidden="remainder")
        for location in range(len(result.places)):
            times = sim.events(location)
            measured, simulated = (times[name].to_numpy() for name in ("measured", "simulated"))
            assert (simulated - measured[0] == factor * (measured - measured[0])).all(), factor


@pytest.mark.parametrize("workload", ["sor-p2p", "sor-fence", "sor-gats"])
def test_a_generated_run_without_imbalance_is_predicted_to_the_tick(workload, tmp_path):
    for name, imbalance in (("uneven", 0.2), ("even", 0.0)):
        _native.generate(workload, tmp_path / name, ranks=16, iterations=10, seed=7, imbalance=imbalance)
    sim = whywait.whatif(tmp_path / "uneven", [Set("compute", 1e-3)])
    even = whywait.whatif(tmp_path / "even")
    for location in range(16):
        assert sim.events(location)["simulated"].equals(even.events(location)["measured"])


def test_faster_kernels_are_predicted_to_the_tick(tmp_path):
    """Kernels run in waves of one length, so that half the work is half the time only where it is a multiple."""
    for name, work in (("slow", 2_000_000), ("fast", 1_000_000)):
        _native.generate("comd-gpu", tmp_path / name, ranks=6, iterations=10, seed=7, work=work, imbalance=0.0)
    sim = whywait.whatif(tmp_path / "slow", [Scale("compute", 0.5), Scale("force_kernel", 0.5)])
    fast = whywait.whatif(tmp_path / "fast")
    for location in range(12):
        assert sim.events(location)["simulated"].equals(fast.events(location)["measured"])


def test_transfers_that_do_not_wait_for_their_receives_are_predicted_closely(tmp_path):
    """Here a transfer begins at the send although the send waits for its receive; in the model it waits as well."""
    for name, imbalance in (("uneven", 0.2), ("even", 0.0)):
        _native.generate("bt", tmp_path / name, ranks=16, iterations=10, seed=7, imbalance=imbalance)
    sim = whywait.whatif(tmp_path / "uneven", [Set("compute", 1e-3)])
    even = whywait.analyze(tmp_path / "even", causes=False)
    assert sim.after == pytest.approx(even.facts["length"], rel=1e-3)


@pytest.mark.parametrize("workload", ["sor-locks", "contention"])
def test_a_run_with_locks_is_predicted_although_others_may_come_first(workload, tmp_path):
    """Locks keep their order in a simulation, not in another run: the lengths are close."""
    for name, imbalance in (("uneven", 0.2), ("even", 0.0)):
        _native.generate(workload, tmp_path / name, ranks=16, iterations=10, seed=7, imbalance=imbalance)
    sim = whywait.whatif(tmp_path / "uneven", [Set("compute", 1e-3)])
    even = whywait.analyze(tmp_path / "even", causes=False)
    truth = even.facts["length"]
    assert abs(sim.after - truth) < abs(sim.before - truth)
    assert sim.after == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("ranks", [8, 13])
@pytest.mark.parametrize("workload", ["lb-coll", "lb-p2p"])
def test_a_balance_is_predicted_to_the_tick(workload, ranks, tmp_path):
    """The benchmarks of Jül-4297, 5.1, with the balanced program itself as the truth."""
    for name, balanced in (("uneven", False), ("even", True)):
        _native.generate(workload, tmp_path / name, ranks=ranks, iterations=10, seed=3, balanced=balanced)
    sim = whywait.whatif(tmp_path / "uneven", [Balance("foo")])
    even = whywait.whatif(tmp_path / "even")
    assert sim.saved > 0
    assert (sim.before.length, sim.after.length) == (sim.before, sim.after)
    for location in range(ranks):
        assert sim.events(location)["simulated"].equals(even.events(location)["measured"])


@pytest.mark.parametrize(
    ("workload", "hypothesis", "percent"), [("sweep", Balance("compute"), 0.01), ("xns", CutMessages("size==0"), 1)]
)
def test_other_optimizations_are_predicted_closely(workload, hypothesis, percent, tmp_path):
    for name, balanced in (("plain", False), ("better", True)):
        _native.generate(workload, tmp_path / name, ranks=12, iterations=10, seed=3, balanced=balanced)
    sim = whywait.whatif(tmp_path / "plain", [hypothesis])
    better = whywait.analyze(tmp_path / "better", causes=False)
    assert sim.saved > 0
    assert sim.after == pytest.approx(better.facts["length"], rel=percent / 100)


def test_only_some_workloads_have_a_balanced_form(tmp_path):
    with pytest.raises(UsageError, match="have a balanced form"):
        _native.generate("sor-p2p", tmp_path, ranks=4, iterations=1, seed=1, balanced=True)


def test_predictions_are_measured(capsys):
    arguments = ["bench", "whatif", "--ranks", "8", "--iterations", "5"]
    assert cli.main([*arguments, "--json"]) == 0
    rows = {row["workload"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == ["lb-coll", "lb-p2p", "sweep", "xns"]
    assert all(row["identity"] == 0 for row in rows.values())
    assert rows["lb-coll"]["ticks"] == rows["lb-p2p"]["ticks"] == 0
    assert cli.main([*arguments, "--workload", "lb-coll"]) == 0
    assert "< 0.003%" in capsys.readouterr().out


STENCIL = ROOT / "tests/data/stencil"


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(STENCIL)


def test_the_critical_path_bounds_what_is_saved(stencil):
    """Less of a call path saves no more than the critical path has of it."""
    on_path = {row["callpath_id"]: row["value"] for row in stencil.metrics["critical_path"].by_callpath().to_pylist()}
    for callpath, time in on_path.items():
        # What the program does after MPI_Finalize is on no path.
        if callpath in stencil.tree.roots:
            continue
        sim = whywait.whatif(stencil, [Scale(str(callpath), 0.5)], hidden="remainder")
        assert -1e-9 <= sim.saved <= 0.5 * time + 1e-6, callpath
        slower = whywait.whatif(stencil, [Scale(str(callpath), 1.5)], hidden="remainder")
        assert -slower.saved >= 0.5 * time - 1e-6, callpath


def test_who_has_hardly_any_time_gets_it_where_others_have_theirs(tmp_path):
    """Rank 0 has 1 ms before the first barrier and 2 ms after it: the proportions of so little say nothing."""
    text = """
        0: f [0, 1.2]
        0: MPI_Barrier [0.001, 1.1]
        0: MPI_Barrier [1.102, 1.2]
        1: f [0, 1.2]
        1: MPI_Barrier [1, 1.1]
        1: MPI_Barrier [1.101, 1.2]
    """
    sim = whywait.whatif(whywait.analyze(trace_from_text(text, tmp_path)), [Balance("f")])
    assert sim.before - sim.after == pytest.approx(0.5, abs=0.005)


def test_balance_conserves_sums(stencil):
    for mode in ("instance", "local", "global", "scaled"):
        sim = whywait.whatif(stencil, [Balance("relax", mode=mode)])
        total = [0, 0]
        run = stencil.run
        regions = run.definitions["Region"]
        names = dict(zip(regions["id"].to_pylist(), regions["name"].to_pylist(), strict=True))
        for location in range(len(stencil.places)):
            rows = [r for r in run.events(location).select(["type", "region"]).to_pylist() if r["type"] in EVENTS]
            times = sim.events(location)
            for i, column in enumerate((times["measured"].to_pylist(), times["simulated"].to_pylist())):
                for row, ticks in zip(rows, column, strict=True):
                    if names.get(row["region"]) == "relax":
                        total[i] += ticks if row["type"] == "Leave" else -ticks
        assert total[0] == total[1] != 0, mode


def test_without_noise_all_instances_take_as_long_as_their_median(tmp_path):
    text = "\n".join(f"{rank}: work [{t}, {t + 0.5 + 0.1 * ((t + rank) % 3):g}]" for rank in (0, 1) for t in range(9))
    result = whywait.analyze(trace_from_text("*: main [0, 9]\n" + text, tmp_path))
    # 0.5, 0.6 and 0.7 s, as often each: the median is 0.6 s, and half of the way to it 0.55, 0.6, 0.65 s.
    for by, lengths in ((1.0, {0.6}), (0.5, {0.55, 0.6, 0.65})):
        sim = whywait.whatif(result, [Balance("work", mode="median", by=by)])
        found = set()
        for location in range(2):
            rows = result.run.events(location).select(["type", "region"]).to_pylist()
            rows = [row["type"] for row in rows if row["type"] in EVENTS]
            times = sim.events(location)["simulated"].to_pylist()
            # Each Enter that the next event leaves is one of work.
            found |= {round((b - a) / 1e9, 6) for a, b, one, two in zip(times, times[1:], rows, rows[1:], strict=False)
                      if (one, two) == ("Enter", "Leave")}  # fmt: skip
        assert found == lengths


def test_lanes_find_the_same_lengths(stencil):
    from whywait.hypotheses.compiler import Compiler

    hypotheses = [Scale("relax", factor / 10) for factor in range(10)]
    compiler = Compiler(stencil, None, None)
    candidates = [compiler.changes([hypothesis]) for hypothesis in hypotheses]
    lengths = _native.Simulator(stencil.tables.analysis).lengths(candidates)
    simulations = [whywait.whatif(stencil, [hypothesis]) for hypothesis in hypotheses]
    assert lengths == [(one.after, one.focus_after) for one in simulations]


def test_the_focus_ends_with_the_last_enter_of_finalize(tmp_path):
    text = """
        *: MPI_Init [0, 1]
        0: work [1, 6]
        1: work [1, 9]
        0: MPI_Finalize [6, 9.1]
        1: MPI_Finalize [9, 9.1]
        1: work [9.1, 12]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    nothing = whywait.whatif(result, [])
    assert (nothing.focus_before, nothing.focus_after) == (pytest.approx(8), pytest.approx(8))
    # What follows after the focus is no part of it.
    half = whywait.whatif(result, [Scale("work", 0.5)])
    assert half.focus_after == pytest.approx(4)
    assert half.after == pytest.approx(1 + 4 + 0.1 + 1.45)
    balanced = whywait.whatif(result, [Balance("work#0")])
    assert balanced.focus_saved == pytest.approx(1.5)


def test_without_start_and_end_the_focus_is_the_run(tmp_path):
    result = whywait.analyze(trace_from_text(TRACE, tmp_path))
    half = whywait.whatif(result, [Scale("work", 0.5)])
    assert (half.focus_before, half.focus_after) == (half.before, half.after)


def test_calls_of_libraries_cannot_be_balanced(stencil, capsys):
    with pytest.raises(UsageError, match="time in MPI_Allreduce is no work"):
        whywait.whatif(stencil, [Balance("MPI_Allreduce")])
    assert cli.main(["whatif", str(ROOT / "tests/data/stencil"), "--balance", "MPI_Waitall"]) == 2
    assert "is no work that could move" in capsys.readouterr().err


def test_trimmed_calls_take_no_longer_than_the_floor_of_their_kind(tmp_path):
    """Ten receives of messages that are there: nine take 0.1 s, and the last 0.6 s."""
    sends = "".join(f"0: MPI_Send(1) [{i / 5:.1f}, {i / 5 + 0.1:.1f}]\n" for i in range(10))
    receives = "".join(f"1: MPI_Recv(0) [{5 + i / 5:.1f}, {5 + i / 5 + 0.1:.1f}]\n" for i in range(9))
    text = sends + receives + "1: MPI_Recv(0) [6.8, 7.4]\n1: work [7.4, 8]\n"
    result = whywait.analyze(trace_from_text(text, tmp_path))
    for trim in (Trim(), Trim("MPI_Recv")):
        assert whywait.whatif(result, [trim]).saved == pytest.approx(0.5)
    assert whywait.whatif(result, [Trim("MPI_Send")]).saved == 0
    # The excess of the account is what goes.
    account = result.account(by="row").to_pylist()
    assert sum(line["excess"] for line in account) == pytest.approx(0.5)


def test_a_candidate_that_is_refused_costs_the_others_nothing(stencil):
    """Errors stay in their lane: nothing selected, nothing to balance, longer than the clock."""
    good = [Scale("relax/work", 0.5), Set("relax", 0.0), Balance("relax/work")]
    bad = [Scale("relax#9999999", 0.5), Scale("relax/work", 1e300), Scale("relax/work~77", 0.5)]
    lanes = Lengths(stencil)
    expected = [whywait.whatif(stencil, [hypothesis]).after for hypothesis in good]
    assert lanes.of([[one] for one in good]) == expected
    assert lanes.of([[one] for pair in zip(bad, good, strict=True) for one in pair]) == [
        length for after in expected for length in (None, after)
    ]
    assert lanes.of([[good[0], bad[0]], [good[0]]]) == [None, expected[0]]
    assert lanes.of([[bad[0]]]) == [None]


@given(st.one_of(programs(partitions=True), one_sided_programs()), st.data())
@settings(max_examples=30)
def test_several_lists_of_hypotheses_are_as_each_alone(tmp_path_factory, program, data):
    """Whatever they are about: the same or others, one in the other, several in a row."""
    result = whywait.analyze(trace_from_text(program, tmp_path_factory.mktemp("run")), causes=False)
    callpaths = [
        f"{number}{part}"
        for number, visits in enumerate(result.profile.by_position("visits")[result.tree.position])
        for part in ("", "/**", "#0", "~0", "~last")
        if visits
    ]
    selections = st.sampled_from(callpaths).map(Selection.parse)
    factors = st.sampled_from([0.0, 0.5, 1.7])
    hypothesis = st.one_of(
        st.builds(Scale, selections, factors),
        st.builds(Set, selections, st.sampled_from([0.0, 0.25])),
        st.builds(Balance, selections, st.sampled_from(["local", "global", "scaled", "median"])),
        st.just(IdealNetwork()),
    )
    lists = data.draw(st.lists(st.lists(hypothesis, max_size=2), min_size=2, max_size=9))
    lengths = Lengths(result)
    assert lengths.of(lists) == [alone for one in lists for alone in lengths.of([one])]


TRACE = """
0: main [0, 10]
1: main [0, 10]
0: work [0, 5]
0: MPI_Send(1) [5, 5.2]
1: work [0, 1]
1: work [1, 2]
1: MPI_Recv(0) [2, 5.3]
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return whywait.analyze(trace_from_text(TRACE, tmp_path_factory.mktemp("small")))


@pytest.mark.parametrize(
    ("hypothesis", "why"),
    [
        (Scale("wrok", 0.5), "no call path ends in wrok: did you mean work?"),
        (Scale("Work", 0.5), "no call path ends in Work: did you mean work?"),
        (
            Scale("nosuch", 0.5),
            "no call path ends in nosuch: the program has program, main, work; whywait tree lists",
        ),
        (Scale("solve/work", 0.5), "no call path ends in solve/work: work is at program/main/work"),
        (Scale("77", 0.5), "there is no call path 77: the last one has the number"),
        (Scale("work@7", 0.5), "the ranks have no instance"),
        (Scale("work#5", 0.5), "no instances with these numbers"),
        (Scale("work~3", 0.5), "no such part"),
        (Scale("work", -1), "not negative"),
        (Scale("work", float("nan")), "finite"),
        (Scale("work", float("inf")), "finite"),
        (Set("work", -1e-3), "not negative"),
        (Cpu(0), "above zero"),
        (Balance("work", by=1.5), "from 0 to 1"),
        (Balance("work", mode="fair"), "the modes are"),
        (Balance("work", among="rack"), "among is node"),
        (Balance("work", among="comm:77"), "no communicator 77"),
        (Set("work", 1e12), "longer than the clock"),
        (Balance("work"), "rank 0 1, rank 1 2"),
        (Scale("work", 1e300), "longer than the clock"),
        (Protocol("MPI_Send", "fast"), "eager or rendezvous"),
        (Protocol("MPI_Send@0", "eager"), "all messages of a call path"),
        (EagerLimit(-1), "number of bytes"),
        (Cut("main~0"), "whole instances"),
        (Cut("work@7"), "the ranks have no instance"),
        (Cut("work#5"), "no instances with these numbers"),
        (CutMessages("size==77"), "no message"),
        (CutMessages("weight==1"), "not a condition"),
        (CutMessages("size==-1"), "not a condition"),
        (CutMessages("size=-1"), "not a condition"),
        (CutMessages("size==8,in=nowhere"), "no call path"),
        (Overhead(-1.0), "not negative"),
        (Network(-1e-6), "times are not negative"),
        (Network(1e-6, 0.0), "bandwidths above zero"),
        (Network(float("nan")), "times are not negative"),
    ],
)
def test_invalid_hypotheses_are_refused(small, hypothesis, why):
    with pytest.raises(UsageError, match=re.escape(why)):
        whywait.whatif(small, [hypothesis])


UNMATCHED = [
    (Scale("wrok", 0.5), "did you mean work?"),
    (Balance("77"), "there is no call path 77"),
    (Set("work@7", 1.0), "the ranks have no instance"),
    (Cpu(2.0, "7"), "the ranks have no instance"),
    (Scale("work#5", 0.5), "no instances with these numbers"),
    (Scale("work~3", 0.5), "no such part"),
    (Protocol("nosuch", "eager"), "no call path ends in nosuch"),
    (Cut("work@7"), "the ranks have no instance"),
    (CutMessages("size==77"), "no message in the run matches"),
    (CutMessages("size==8,in=nowhere"), "no call path ends in nowhere"),
    (Overlap("nosuch"), "no call path ends in nosuch"),
    (Overlap("MPI_Recv", "nosuch"), "no call path ends in nosuch"),
]


@pytest.mark.parametrize(("unmatched", "why"), UNMATCHED, ids=[str(one) for one, _ in UNMATCHED])
@pytest.mark.parametrize("other", [Scale("work@0", 0.4), Cut("work@0"), CutMessages("size==8")], ids=str)
def test_what_matches_nothing_is_left_out(small, unmatched, why, other):
    alone = whywait.whatif(small, [other])
    for chosen in ([unmatched, other], [other, unmatched]):
        sim = whywait.whatif(small, chosen)
        assert sim.hypotheses == [other]
        assert [one.hypothesis for one in sim.left_out] == [unmatched]
        assert why in sim.left_out[0].reason
        assert all(sim.events(location).equals(alone.events(location)) for location in range(len(small.places)))
        with pytest.raises(UsageError, match=re.escape(why)):
            whywait.whatif(small, chosen, strict=True)
    assert not alone.left_out


def test_of_several_the_others_are_simulated(small):
    """All that match nothing are left out, in the given order; those on the same selection together."""
    unmatched = [one for one, _ in UNMATCHED]
    kept = [Scale("work@0", 0.4), CutMessages("size==8")]
    sim = whywait.whatif(small, [*unmatched[:5], kept[0], *unmatched[5:], kept[1]])
    assert sim.hypotheses == kept
    assert [one.hypothesis for one in sim.left_out] == unmatched
    assert sim.after == whywait.whatif(small, kept).after


def test_if_nothing_matches_there_is_nothing_to_simulate(small):
    with pytest.raises(UsageError, match=r"no call path ends in wrok.*; .*no call path ends in nowhere"):
        whywait.whatif(small, [Scale("wrok", 0.5), Scale("nowhere", 0.5)])


def test_what_is_invalid_is_refused_even_beside_others(small):
    for invalid in (Scale("nosuch", -1), Balance("work", among="comm:77"), Set("work", 1e12)):
        with pytest.raises(UsageError):
            whywait.whatif(small, [Scale("work@0", 0.4), invalid])


def test_the_command_warns_of_what_matches_nothing(small, tmp_path, capsys):
    """Listing 4.4 names regions that a program need not have."""
    file = tmp_path / "listing.txt"
    file.write_text(f'{LISTING}\nSCALE REGION "work@0" 0.4\n')
    command = ["whatif", str(small.run.path), "--hypotheses", str(file), "--only-time"]
    assert cli.main(command) == 0
    shown = capsys.readouterr()
    assert "3.00 s saved" in shown.out
    assert "What if: scale bar" not in shown.out
    for left_out in ("balance foo", "scale bar=0.5", "cut messages size==0"):
        assert f"whywait: {left_out} is left out: no " in shown.err
    assert cli.main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["hypotheses"] == ["scale work@0=0.4"]
    assert [one["hypothesis"] for one in told["left_out"]] == ["balance foo", "scale bar=0.5", "cut messages size==0"]
    assert cli.main([*command, "--strict"]) == 2
    assert "no call path ends in foo" in capsys.readouterr().err


def test_paths_of_sending_calls_may_have_commas():
    assert CutMessages("size==0,in=map<int, long>/send, tag!=3").parsed == (
        [("size", "==", 0), ("tag", "!=", 3)],
        ["map<int, long>/send"],
    )
    assert CutMessages("size=8,in==send").parsed == CutMessages("size==8,in=send").parsed


def test_a_window_without_instances_is_refused(small):
    with pytest.raises(UsageError, match="no instance begins in the window"):
        whywait.whatif(small, [Scale("work", 0.5)], window=(8, 9))


@pytest.mark.parametrize("name", ["stencil", "collectives", "mixed", "sor_p2p", "rma_fence"])
def test_what_is_cut_is_gone_from_the_archive(name, tmp_path):
    """Whatever of a run is cut, what is written has no message or collective operation without its partners."""
    result = whywait.analyze(ROOT / "tests/data" / name, causes=False)
    kinds = [kind.name for kind in result.tree.kinds]
    for number, region in enumerate(dict.fromkeys(kinds)):
        try:
            sim = whywait.whatif(result, [Cut(region, ranks=[1])])
        except UsageError:
            continue
        found = whywait.analyze(sim.write(tmp_path / str(number)))
        before, after = ({warning["kind"]: warning["count"] for warning in one.warnings} for one in (result, found))
        # An epoch without its operation says no longer whom it was about.
        after.pop("unknown_targets", None)
        assert all(count <= before.get(kind, 0) for kind, count in after.items()), (region, after)
        assert found.facts["length"] == pytest.approx(sim.after, rel=0, abs=NANOSECOND)


def test_requests_of_receives_that_are_cut_are_never_started(tmp_path):
    """Startall also starts another message, so it stays; the failing test asks for nothing else, so it vanishes."""
    trace = """
    0: main [0, 9]
    0: MPI_Recv_init(1, req=1, tag=1) [0, 0.1]
    0: MPI_Recv_init(1, req=2, tag=2) [0.1, 0.2]
    0: MPI_Startall(1, 2) [1, 1.1]
    0: MPI_Test(1, failed) [2, 2.1]
    0: MPI_Waitall(1, 2) [3, 6]
    1: main [0, 9]
    1: MPI_Send(0, tag=1, bytes=0) [4, 4.1]
    1: MPI_Send(0, tag=2) [5, 5.1]
    """
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [CutMessages("size==0")])
    run = whywait.open(sim.write(tmp_path / "cut"))
    assert count_records(run, 0, "MpiIrecvRequest", "MpiIrecv", "MpiRequestTest") == [1, 1, 0]
    assert whywait.analyze(run).warnings == whywait.analyze(sim.measured.run).warnings


def count_records(run, location: int, *kinds: str) -> list[int]:
    rows = run.events(location)["type"].to_pylist()
    return [rows.count(kind) for kind in kinds]


def visits(result, name: str) -> int:
    numbers = result.profile.by_position("visits")[result.tree.position]
    return sum(int(of) for kind, of in zip(result.tree.kinds, numbers, strict=True) if kind.name == name)


POLLING = """
0: main [0, 20]
0: MPI_Irecv(1, req=1, tag=1) [0, 0.1]
0: MPI_Irecv(1, req=2, tag=2) [0.1, 0.2]
0: MPI_Isend(1, req=3, tag=3, bytes=0) [0.2, 0.3]
0: MPI_Test(1, failed) [1, 1.1]
0: MPI_Test(2, failed) [2, 2.1]
0: MPI_Test(3, failed) [3, 3.1]
0: MPI_Testall(1, 2, failed) [4, 4.1]
0: MPI_Testall(1, 3, failed) [5, 5.1]
0: MPI_Wait(3) [6, 6.1]
0: MPI_Isend(1, req=3, tag=4) [6.2, 6.3]
0: MPI_Test(3, failed) [7, 7.1]
0: MPI_Test(1) [9, 9.1]
0: MPI_Waitall(2, 3) [11, 11.1]
1: main [0, 20]
1: MPI_Send(0, tag=1, bytes=0) [8, 8.1]
1: MPI_Send(0, tag=2) [10, 10.1]
1: MPI_Recv(0, tag=3, bytes=0) [11, 11.1]
1: MPI_Recv(0, tag=4) [12, 12.1]
"""


def test_tests_of_requests_that_are_cut_vanish(tmp_path):
    """Tests 1 and 3, the second Testall, and the Test that completes. What asks for other messages as well stays, and
    so does a test of a later request of the same number."""
    sim = whywait.whatif(trace_from_text(POLLING, tmp_path), [CutMessages("size==0")])
    assert [visits(sim.result, name) for name in ("MPI_Test", "MPI_Testall", "MPI_Wait", "MPI_Waitall")] == [2, 1, 0, 1]
    run = whywait.open(sim.write(tmp_path / "cut"))
    assert count_records(run, 0, "MpiRequestTest", "MpiIsend", "MpiIrecv") == [3, 1, 1]
    # The rank moves forward by Irecv, Isend, three Tests, a Testall and a Wait of 0.1 s each.
    assert instances(sim)["0", "main"] == [(0, pytest.approx(19.3, rel=0, abs=NANOSECOND))]
    again = whywait.whatif(sim.result, [CutMessages("tag==4")])
    assert [visits(again.result, name) for name in ("MPI_Test", "MPI_Testall", "MPI_Isend")] == [1, 1, 0]


def test_a_request_that_is_started_in_a_cut_region_is_not_cancelled(tmp_path):
    trace = """
    0: main [0, 9]
    0: start [0, 1]
    0: MPI_Irecv(1, req=1) [0.1, 0.2]
    0: MPI_Test(1, failed) [2, 2.1]
    0: MPI_Cancel [3, 3.1]
    0: MPI_Wait(1, cancelled) [4, 4.1]
    0: MPI_Irecv(1, req=1) [5, 5.1]
    0: MPI_Test(1, failed) [5.5, 5.6]
    0: MPI_Wait(1) [6, 7.1]
    1: main [0, 9]
    1: MPI_Send(0) [7, 7.1]
    """
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Cut("start")])
    assert [visits(sim.result, name) for name in ("MPI_Test", "MPI_Wait", "MPI_Irecv")] == [1, 1, 1]
    run = whywait.open(sim.write(tmp_path / "cut"))
    kinds = ("MpiIrecvRequest", "MpiRequestTest", "MpiRequestCancelled", "MpiIrecv")
    assert count_records(run, 0, *kinds) == [1, 1, 0, 1]


@pytest.mark.parametrize(("factor", "noted"), [(1, []), (1.5, []), (2.5, [(1, 2.7)])])
def test_locks_that_would_change_their_order_are_noted(tmp_path, factor, noted):
    """Rank 0 gets the lock first, even if it asks at 2.5 s, and rank 1 at 2 s. Rank 1 then waits until 4.7 s."""
    trace = """
    ranks 3
    win w on world
    0: work [0, 1]
    0: MPI_Win_lock(2, win=w) [1, 1.1]
    0: MPI_Win_unlock(2, win=w) [3, 3.2]
    1: MPI_Win_lock(2, win=w) [2, 3.3]
    1: MPI_Win_unlock(2, win=w) [4, 4.1]
    """
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Scale("work", factor)])
    rows = [row for row in sim.assumptions.to_pylist() if row["assumption"] == "inverted_lock"]
    assert [(row["count"], pytest.approx(row["time"])) for row in rows] == noted


def test_the_start_of_the_library_cannot_be_cut(tmp_path):
    trace = "*: main [0, 2]\n0: MPI_Init [0, 1]\n1: MPI_Init [0, 1]"
    with pytest.raises(UsageError, match="MPI_Init and MPI_Finalize cannot be cut"):
        whywait.whatif(trace_from_text(trace, tmp_path), [Cut("main")])


@pytest.mark.parametrize(
    ("first", "second", "noted"),
    [
        ((0, 3), (4, 7), [("unrecorded", 2, 6.0)]),
        ((0, 5), (4, 7), []),  # all were in it at once: a barrier
        ((0, 0.05), (4, 4.05), []),  # less than 1% of the time
    ],
)
def test_calls_of_which_nothing_is_recorded_are_noted(first, second, noted, tmp_path):
    trace = f"*: main [0, 10]\n0: MPI_Comm_split [{first[0]}, {first[1]}]\n1: MPI_Comm_split [{second[0]}, {second[1]}]"
    assumed = whywait.whatif(trace_from_text(trace, tmp_path)).assumptions.to_pylist()
    assert [(row["assumption"], row["count"], row["time"]) for row in assumed] == noted


@pytest.mark.parametrize(("wait", "noted"), [(4, [("unrecorded_nonblocking", 2, 8.0)]), (0.01, [])])
def test_non_blocking_operations_of_which_nothing_is_recorded_are_noted(wait, noted, tmp_path):
    trace = f"ranks 2\n*: main [0, 10]\n*: MPI_Ibarrier [1, 1.1]\n*: MPI_Wait [2, {2 + wait}]"
    assumed = whywait.whatif(trace_from_text(trace, tmp_path)).assumptions.to_pylist()
    assert [(row["assumption"], row["count"], row["time"]) for row in assumed] == noted


# What is left over where one side of something is missing.
PARTNERLESS = {
    "unmatched_send", "unmatched_receive", "incomplete_collective", "mixed_collective", "unknown_request",
    "pending_request", "open_epoch", "unknown_targets",
}  # fmt: skip


def missing(result):
    return {warning["kind"]: warning["count"] for warning in result.warnings if warning["kind"] in PARTNERLESS}


@settings(deadline=None, max_examples=40)
@given(text=st.one_of(programs(partitions=True), one_sided_programs()), data=st.data())
def test_a_cut_leaves_nothing_without_its_partner(text, data, tmp_path_factory):
    """No receive without a message, no collective operation without members, no open request."""
    run = whywait.analyze(trace_from_text(text, tmp_path_factory.mktemp("cut")))
    calls = sorted({region.name for region in run.tree.kinds} - {"program", "main", "MPI_Init", "MPI_Finalize"})
    cuts = [CutMessages(data.draw(st.sampled_from(("size==0", "size>0", "tag==1", "from==0", "to!=1"))))]
    if calls:
        ranks = data.draw(st.sampled_from(("", "@0", "@1")))
        cuts.append(Cut(data.draw(st.sampled_from(calls)) + ranks))
    for cut in [[one] for one in cuts] + [cuts]:
        try:
            sim = whywait.whatif(run, cut)
        except UsageError as error:
            if not re.search("selects nothing|is to be cut|cannot be cut|only be cut", str(error)):
                raise
            continue
        before = missing(run)
        assert all(count <= before.get(kind, 0) for kind, count in missing(sim.result).items())
        assert sim.result.facts["length"] == pytest.approx(sim.after)


FENCES = """ranks 2
win w on world
*: main [0, 8]
*: MPI_Win_fence(w) [0.5, 1]
0: foo [2, 5]
0: MPI_Put(1, win=w) [3, 3.1]
0: MPI_Win_fence(w) [4, 4.5]
1: foo [2, 5]
1: MPI_Win_fence(w) [4, 4.5]
*: MPI_Win_fence(w) [6, 6.5]"""
EPOCHS = """ranks 2
win w on world
group of_0 = 0
group of_1 = 1
*: main [0, 8]
0: foo [1, 4]
0: MPI_Win_start(w, of_1) [1, 1.1]
0: MPI_Put(1, win=w) [1.2, 1.3]
0: MPI_Win_complete(w, of_1) [2, 4]
1: foo [1, 5]
1: MPI_Win_post(w, of_0) [1, 1.1]
1: MPI_Win_wait(w, of_0) [1.2, 5]"""
WINDOWS = """ranks 2
win w on world
win v on world
*: main [0, 8]
*: phase [0.5, 5]
*: MPI_Win_create(w) [1, 1.5]
*: MPI_Win_fence(w) [2, 2.5]
0: MPI_Put(1, win=w) [3, 3.1]
*: MPI_Win_fence(w) [4, 4.1]
*: MPI_Win_free(w) [4.5, 4.6]
0: MPI_Win_lock(v, 1) [6, 6.1]
0: MPI_Win_unlock(v, 1) [6.2, 6.3]"""
LOCKS = """ranks 2
win w on world
*: main [0, 8]
0: foo [1, 5]
0: MPI_Win_lock(w, 1) [1, 1.1]
0: MPI_Put(1, win=w) [2, 2.1]
0: MPI_Win_unlock(w, 1) [4, 4.2]"""


@pytest.mark.parametrize(
    ("trace", "cuts", "is_whole"),
    [
        pytest.param(FENCES, ["foo"], True, id="a fence with what came before it"),
        pytest.param(FENCES, ["MPI_Put"], True, id="an operation alone"),
        pytest.param(FENCES, ["foo@0"], False, id="a fence of one process"),
        pytest.param(FENCES, ["MPI_Win_fence#0"], False, id="the fence that opens an epoch"),
        pytest.param(FENCES, ["MPI_Win_fence#0", "foo"], True, id="fences without anything left between them"),
        pytest.param(FENCES.replace("[3, 3.1]", "[1.5, 1.6]"), ["foo"], False, id="not what came before it"),
        pytest.param(EPOCHS, ["foo"], True, id="both sides"),
        pytest.param(EPOCHS, ["foo@0"], False, id="the access alone"),
        pytest.param(EPOCHS, ["foo@1"], False, id="the exposure alone"),
        pytest.param(EPOCHS, ["MPI_Win_start"], False, id="half of an epoch"),
        pytest.param(
            EPOCHS, ["MPI_Win_start", "MPI_Win_complete", "MPI_Win_post", "MPI_Win_wait"], False, id="not the operation"
        ),
        pytest.param(WINDOWS, ["phase"], True, id="a window with all that is done on it"),
        pytest.param(WINDOWS, ["MPI_Win_free"], True, id="the end of a window"),
        pytest.param(WINDOWS, ["MPI_Win_free@0"], False, id="the end of a window on one side"),
        pytest.param(WINDOWS, ["MPI_Win_create"], False, id="the making of a window that is used"),
        pytest.param(WINDOWS, ["MPI_Win_create", "MPI_Put", "MPI_Win_free"], False, id="fences without their window"),
        pytest.param(LOCKS, ["foo"], True, id="a lock with what is done under it"),
        pytest.param(LOCKS, ["MPI_Win_unlock"], False, id="half of a lock"),
        pytest.param(LOCKS, ["MPI_Win_lock", "MPI_Win_unlock"], False, id="not what is done under it"),
    ],
)
def test_one_sided_synchronization_is_cut_with_its_epochs_or_not_at_all(trace, cuts, is_whole, tmp_path):
    run = whywait.analyze(trace_from_text(trace, tmp_path))
    hypotheses = [Cut(cut) for cut in cuts]
    if not is_whole:
        with pytest.raises(UsageError, match="one-sided synchronization"):
            whywait.whatif(run, hypotheses)
        return
    sim = whywait.whatif(run, hypotheses)
    assert not sim.result.warnings
    assert sim.result.facts["length"] == pytest.approx(sim.after)


def test_overhead_does_not_combine_with_other_changes(small):
    assert whywait.whatif(small, [Overhead(1e-6)]).saved > 0
    with pytest.raises(UsageError, match="only change"):
        whywait.whatif(small, [Overhead(1e-6), Scale("work", 0.5)])


def test_uneven_instances_have_a_mean_of_those_there_are(small):
    times = instances(whywait.whatif(small, [Balance("work", uneven="average")]))
    assert times["0", "work"] == [pytest.approx((0, 3))]
    assert times["1", "work"] == [pytest.approx((0, 3)), pytest.approx((3, 4))]


def test_segments_of_one_visit_are_balanced(tmp_path):
    """Each rank works 1 s and 3 s, in another order, before two barriers."""
    trace = """
    *: main [0, 6.2]
    0: MPI_Barrier [1, 3.1]
    1: MPI_Barrier [3, 3.1]
    0: MPI_Barrier [6.1, 6.2]
    1: MPI_Barrier [4.1, 6.2]
    """
    result = whywait.analyze(trace_from_text(trace, tmp_path / "even"))
    assert whywait.whatif(result, [Balance("main")]).saved == pytest.approx(0)
    assert whywait.whatif(result, [parse("balance", "main:segment")]).saved == pytest.approx(2)
    uneven = trace.replace("0: MPI_Barrier [1, 3.1]", "0: MPI_Send(1) [0.5, 0.6]\n0: MPI_Barrier [1, 3.1]")
    result = whywait.analyze(trace_from_text(uneven, tmp_path / "uneven"))
    with pytest.raises(UsageError, match=r"not the same number of segments everywhere \(rank 0 4, rank 1 3\)"):
        whywait.whatif(result, [Balance("main", mode="segment")])


def test_sends_head_to_head_are_a_deadlock_by_rendezvous(tmp_path):
    trace = """
    0: MPI_Send(1) [1, 1.1]
    0: MPI_Recv(1) [2, 2.1]
    1: MPI_Send(0) [1, 1.1]
    1: MPI_Recv(0) [2, 2.1]
    """
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    with pytest.raises(UsageError, match=r"deadlock.*MPI_Send of rank [01] at 1.1"):
        whywait.whatif(result, [Protocol("MPI_Send", "rendezvous")])


def test_a_protocol_is_that_of_all_messages_that_a_function_sends(tmp_path):
    trace = """
    0: main [0, 5.1]
    1: main [0, 3.2]
    0: give [0, 3.1]
    0: MPI_Ssend(1) [0, 3.1]
    0: work [3.1, 5.1]
    1: take [0, 3.1]
    1: work [0, 3]
    1: MPI_Recv(0) [3, 3.1]
    """
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    for path in ("give", "MPI_Ssend", "main"):
        assert whywait.whatif(result, [Protocol(path, "eager")]).saved == pytest.approx(2, abs=0.2), path
    with pytest.raises(UsageError, match="take sends no messages"):
        whywait.whatif(result, [Protocol("take", "eager")], strict=True)


def test_synchronous_sends_say_nothing_of_the_eager_limit(tmp_path):
    """The times of the second send leave open what it was: no message was proved to go by rendezvous."""
    trace = """
    0: MPI_Ssend(1, bytes=8) [0, 1.1]
    1: MPI_Recv(0) [1, 1.2]
    1: MPI_Recv(0) [2, 4.1]
    0: work [1.1, 4]
    0: MPI_Send(1, bytes=16) [4, 4.1]
    1: wait [4.1, 6]
    """
    # A receive that comes later would hold up a rendezvous.
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Scale("work", 0.1)])
    assert instances(sim)["0", "MPI_Send"] == [pytest.approx((1.39, 1.49))]


@pytest.mark.parametrize(
    "text",
    [
        "relax", "solve/relax", "solve/**", "relax~0", "relax~last", "relax@0-3,8", "relax@5.1", "relax#10-20",
        "relax#last", "solve/relax@1#2", "operator@at", "f<a=b>",
    ],
)  # fmt: skip
def test_selections_are_read_and_written(text):
    assert str(Selection.parse(text)) == text


def test_the_last_sign_that_leaves_something_valid_splits():
    assert parse("scale", "f<a=b>@0=0.5") == Scale(Selection("f<a=b>", ranks="0"), 0.5)
    assert Selection.parse("name#x@y") == Selection("name#x@y")
    assert parse("balance", "std::sort:scaled,by=0.5") == Balance(Selection("std::sort"), "scaled", 0.5)
    assert parse("balance", "std::sort") == Balance(Selection("std::sort"))


@pytest.mark.parametrize(("text", "seconds"), [("2ms", 2e-3), ("1us", 1e-6), ("0.5", 0.5), ("3ns", 3e-9)])
def test_durations_accept_units(text, seconds):
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("scale", "work"), ("scale", "=2"), ("scale", "work=fast"), ("set", "work=soon"), ("cpu", "2@x"),
        ("overhead", "much"), ("overhead", "1us,least=-1ns"), ("scale", "work=0.5,min_span=short"),
        ("scale", "work=0.5,min_span=-1us"), ("scale", "work=0.5,max_span=1us"),
        ("eager-limit", "many"), ("progress", "slow"), ("network", "fast"),
        ("network", "bandwidth=10GB/s"), ("network", "latency=soon"), ("network", "latency=1us,bandwidth=wide"),
        ("balance", "work:uneven=no"), ("protocol", "work"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(small, kind, text):
    with pytest.raises(UsageError):
        whywait.whatif(small, [parse(kind, text)])


def test_whatif_reports_savings_and_differences(small, capsys):
    trace = str(small.run.path)
    assert cli.main(["whatif", trace, "--scale", "work@0=0.4", "--only-time"]) == 0
    assert "3.00 s saved (30.0%), speed-up 1.429" in capsys.readouterr().out
    assert cli.main(["whatif", trace, "--scale", "work@0=0.4"]) == 0
    out = capsys.readouterr().out
    assert "Late Sender" in out
    assert "What if: scale work@0=0.4" in out
    # The answer first, then what `diff` shows.
    assert out.index("saved") < out.index("Late Sender") < out.index("Metric") < out.index("Place")
    assert out.splitlines().index(next(line for line in out.splitlines() if line.startswith("Metric"))) <= 6
    assert cli.main(["whatif", trace, "--only-time"]) == 0
    assert "Nothing is changed" in capsys.readouterr().out
    assert cli.main(["whatif", trace, "--scale", "nowhere=2"]) == 2
    assert "no call path ends in nowhere" in capsys.readouterr().err


def test_the_simulated_run_is_an_archive(small, tmp_path, capsys):
    output = tmp_path / "new"
    assert cli.main(["whatif", str(small.run.path), "--scale", "work@0=0.4", "-o", str(output), "--json"]) == 0
    capsys.readouterr()
    found = whywait.analyze(output / "traces.otf2")
    assert found.facts["length"] == pytest.approx(7)
    assert found.metrics["mpi_latesender"].total == 0
    assert (output / "summary.json").is_file()
    # Once more would be in its way.
    assert cli.main(["whatif", str(small.run.path), "--scale", "work@0=0.4", "-o", str(output)]) == 2
    assert "already exists" in capsys.readouterr().err


def test_the_official_library_reads_it(small, tmp_path):
    otf2 = pytest.importorskip("otf2")
    anchor = whywait.whatif(small, [Scale("work@0", 0.4)]).write(tmp_path / "new")
    with otf2.reader.open(str(anchor)) as trace:
        names = [event.region.name for _, event in trace.events if isinstance(event, otf2.events.Enter)]
        assert sorted(names) == ["MPI_Recv", "MPI_Send", "main", "main", "work", "work", "work"]


@pytest.mark.parametrize("archive", [path.parent for path in sorted(ROOT.glob("tests/data/*/traces.otf2"))])
def test_what_is_written_without_a_change_says_the_same(archive, tmp_path):
    first = whywait.analyze(archive)
    second = whywait.analyze(whywait.whatif(first).write(tmp_path))
    assert first.facts == second.facts
    assert first.severities().equals(second.severities())
    assert first.wait_states().equals(second.wait_states())


def test_the_html_compares_both(small, tmp_path):
    page = tmp_path / "page.html"
    assert cli.main(["whatif", str(small.run.path), "--scale", "work@0=0.4", "--html", str(page)]) == 0
    assert "measured" in page.read_text()
    assert "simulated" in page.read_text()


def test_what_waits_less_and_what_more_is_told(tmp_path, capsys):
    trace = """
    *: main [0, 10]
    0: work [0, 5]
    0: MPI_Send(1) [5, 5.2]
    1: MPI_Recv(0) [2, 5.3]
    1: more [5.3, 8]
    0: MPI_Barrier [6, 8.1]
    1: MPI_Barrier [8, 8.1]
    """
    anchor = trace_from_text(trace, tmp_path)
    assert cli.main(["whatif", str(anchor), "--scale", "work=0.5", "--scale", "more=2"]) == 0
    out = capsys.readouterr().out
    assert "less    Late Sender -2.50 s" in out
    assert "exposed Wait at Barrier +2.70 s" in out


def test_a_limit_makes_it_fail(small, capsys):
    trace = str(small.run.path)
    scaled = ["whatif", trace, "--scale", "work@0=2"]
    assert cli.main([*scaled, "--fail-on", "time>5%"]) == 1
    assert "failed: time>5%" in capsys.readouterr().out
    assert cli.main([*scaled, "--fail-on", "time>500%", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["failed"] == []
    assert cli.main([*scaled, "--only-time", "--fail-on", "time>5%"]) == 2
    with pytest.raises(SystemExit):
        cli.main([*scaled, "--fail-on", "time"])


def test_with_little_memory(small, capsys):
    trace = str(small.run.path)
    assert cli.main(["whatif", trace, "--scale", "work@0=0.4", "--memory-limit", "2G"]) == 0
    assert "3.00 s saved" in capsys.readouterr().out


def test_only_results_are_written(small, tmp_path, capsys):
    trace, results = str(small.run.path), tmp_path / "results"
    assert cli.main(["whatif", trace, "--scale", "work@0=0.4", "--results", str(results)]) == 0
    capsys.readouterr()
    assert (results / "summary.json").is_file()
    assert not list(results.glob("*.otf2"))
    assert whywait.load(results).facts["length"] == pytest.approx(7)


LISTING = """
MODEL "Reenact"             # listing 4.4
  OPTION "idle overhead" 5e-06
  OPTION "noop threshold" 1e-06,
  OPTION "aggregate idle" TRUE
BALANCE REGION "foo"
SCALE REGION "bar" 0.5
CUT MESSAGE SIZE == 0
"""


def test_the_listing_of_the_work_is_read():
    found = read(LISTING)
    assert found.hypotheses == [
        Balance(Selection("foo")),
        Scale(Selection("bar"), 0.5),
        CutMessages("size==0"),
    ]
    assert found.ignored == ["idle overhead", "noop threshold", "aggregate idle"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('BALANCE REGION "f" OPTION "mode" "global instance"', Balance(Selection("f"))),
        ('BALANCE REGION "f", OPTION "mode" "process-local"', Balance(Selection("f"), "local")),
        ('BALANCE REGION "f" OPTION "mode" "scaled" OPTION "by" 0.5', Balance(Selection("f"), "scaled", 0.5)),
        ('SC_SCALE SC_REGION "f" +1e-1', Scale(Selection("f"), 0.1)),
        ('SCALE REGION "f" 0.5 OPTION "min_span" 1e-5', Scale(Selection("f"), 0.5, 1e-5)),
        ('CUT REGION "f@0-3"', Cut(Selection("f", ranks="0-3"))),
        ("CUT MESSAGE TAG >= 3", CutMessages("tag>=3")),
        ('SET REGION "f" "2ms"', Set(Selection("f"), 2e-3)),
        ("CPU 2", Cpu(2.0)),
        ('CPU "2@0-3"', Cpu(2.0, "0-3")),
        ('NETWORK "ideal"', IdealNetwork()),
        ('NETWORK "latency=2us,bandwidth=10GB/s"', Network(2e-6, 1e10)),
        ('PROTOCOL REGION "f" EAGER', Protocol(Selection("f"), "eager")),
        ('PROGRESS "asynchronous"', parse("progress", "asynchronous")),
        ('OVERLAP REGION "f"', Overlap(Selection("f"))),
        ('OVERLAP REGION "f@0" OPTION "after" "g/h"', Overlap(Selection("f", ranks="0"), "g/h")),
        ('SPLIT REGION "f"', Split(Selection("f"))),
    ],
)
def test_hypotheses_of_a_file(text, expected):
    assert read(f'MODEL "computed"\n{text}').hypotheses == [expected]


def test_a_perturbation_is_compensated():
    assert read('MODEL "Reenact" OPTION "compensate perturbation" TRUE').hypotheses == [Overhead(1.05e-6)]
    # The least distance of events (Scalasca 1.x spells it so) is what such an overhead leaves, and else nothing.
    found = read('MODEL "Reenact" OPTION "mininal latency" 2e-08 OPTION "compensate perturbation" TRUE')
    assert (found.hypotheses, found.ignored) == ([Overhead(1.05e-6, 2e-8)], [])
    found = read('MODEL "Reenact" OPTION "minimal latency" 2e-08')
    assert (found.hypotheses, found.ignored) == ([], ["minimal latency"])


@pytest.mark.parametrize(
    ("text", "left"), [("2s", 1e-8), ("2s,least=0.5", 0.5), ("0.25", 0.75), ("0.25,least=2s", 1.0)]
)
def test_an_overhead_leaves_a_little(text, left, tmp_path):
    """Segments of 1 s: max(d - t, min(d, least))."""
    trace = trace_from_text("0: main [0, 3]\n0: foo [1, 2]", tmp_path)
    assert whywait.whatif(trace, [parse("overhead", text)]).after == pytest.approx(3 * left)


@pytest.mark.parametrize(
    ("text", "where", "why"),
    [
        ('BALANCE REGION "f"', "line 1, column 1", "MODEL is expected"),
        ('MODEL "m"\nGUESS REGION "f"', "line 2, column 1", "unknown hypothesis GUESS"),
        ('MODEL "m"\n SCALE REGION "f 0.5', "line 2, column 15", "quote is never closed"),
        ('MODEL "m"\nCUT MESSAGE SIZE == -1', "line 2, column 21", "not a number of zero or more"),
        ('MODEL "m"\nCUT MESSAGE COLOR == 1', "line 2, column 13", "a SIZE and a TAG"),
        ('MODEL "m"\nSCALE REGION "f" -1', "line 2, column 1", "not negative"),
        ('MODEL "m"\nSCALE REGION "f"', "line 2, column 17", "the end of the file"),
        ('MODEL "m"\nBALANCE REGION "f" OPTION "mode" "fair"', "line 2, column 27", "unknown mode"),
        (
            'MODEL "m" OPTION "compensate perturbation" 1 OPTION "minimal latency" "short"',
            "line 1, column 53",
            "a time",
        ),
        ('MODEL "m"\nSCALE REGION "f" 1 OPTION "mode" "local"', "line 2, column 27", "no option 'mode'"),
        ('MODEL "m" OPTION "speed" 3', "line 1, column 18", "no option 'speed'"),
        ('MODEL "m"\nSCALE REGION "f" 0.5 %', "line 2, column 22", "has no meaning"),
        ('MODEL "m"\nSCALE REGION "f" "half"', "line 2, column 1", "'half'"),
        ('MODEL "m"\n CPU "fast"', "line 2, column 2", "'fast'"),
        ('MODEL "m"\nNETWORK "slow"', "line 2, column 1", "is not a network"),
        ('MODEL "m"\nPROGRESS "none"', "line 2, column 1", "can only be asynchronous"),
        ('MODEL "m" OPTION "compensate perturbation" "maybe"', "line 1, column 18", "TRUE or FALSE"),
        ('MODEL "m" OPTION "debug" CUT REGION "f"', "line 1, column 26", "not CUT"),
    ],
)
def test_a_bad_file_is_refused_where_it_is_bad(text, where, why):
    with pytest.raises(UsageError) as error:
        read(text, "file")
    assert f"file, {where}: " in str(error.value)
    assert why in str(error.value)


def test_a_file_of_hypotheses_on_the_command_line(small, tmp_path, capsys):
    file = tmp_path / "hypotheses.txt"
    file.write_text('MODEL "Reenact" OPTION "debug" 1\nSCALE REGION "work@0" 0.4\n')
    trace = str(small.run.path)
    assert cli.main(["whatif", trace, "--hypotheses", str(file), "--only-time"]) == 0
    shown = capsys.readouterr()
    assert "3.00 s saved" in shown.out
    assert "these options mean nothing here: 'debug'" in shown.err
    file.write_bytes(b"\xff\xfe\x00")
    assert cli.main(["whatif", trace, "--hypotheses", str(file), "--only-time"]) == 2
    assert cli.main(["whatif", trace, "--hypotheses", str(tmp_path / "none"), "--only-time"]) != 0


def test_the_display_names_the_stages(small, tmp_path):
    told: list[tuple[str, float]] = []
    sim = whywait.whatif(small.run, [Scale("work", 0.5)], progress=lambda *stage: told.append(stage))
    sim.write(tmp_path / "written")
    stages = dict.fromkeys(name for name, _ in told)
    assert [name for name in stages if name in ("arcs", "simulate", "write")] == ["arcs", "simulate", "write"]
    assert all(0 <= share <= 1 for _, share in told)


@pytest.mark.parametrize("stage", ["arcs", "simulate", "write"])
def test_the_display_can_stop_the_work(small, tmp_path, stage):
    def stop(name: str, _: float) -> None:
        if name == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        whywait.whatif(small, [Scale("work", 0.5)], progress=stop).write(tmp_path / "written")
    assert not list(tmp_path.rglob("*.otf2"))


def test_short_segments_are_kept(tmp_path):
    """Worked example 15: between a Leave and the next Enter lies a latency that no programmer can change."""
    trace = "0: foo [0, 10]\n0: bar [2, 5]\n0: baz [5.001, 8]"
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Scale("foo", 0.5, min_span=10e-3)])
    times = instances(sim)
    assert times["0", "bar"] == [pytest.approx((1, 4))]
    assert times["0", "baz"] == [pytest.approx((4.001, 7))]
    assert times["0", "foo"] == [pytest.approx((0, 8))]
    on_paper = parse("scale", "foo=0.5,min_span=10ms")
    assert on_paper == Scale(Selection("foo"), 0.5, min_span=10e-3)
    assert str(on_paper) == "scale foo=0.5,min_span=0.01s"


def test_changes_on_another_network_are_compared_with_the_run_on_it(small, capsys):
    network = Network(0.1, 80.0)
    alone = whywait.whatif(small, network=network)
    assert alone.base is None
    assert alone.before == 10
    sim = whywait.whatif(small, [Scale("work@0", 0.4)], network=network)
    assert sim.before == alone.after != 10
    assert sim.reference.facts["length"] == pytest.approx(alone.after)
    trace = str(small.run.path)
    assert cli.main(["whatif", trace, "--scale", "work@0=0.4", "--network", "latency=0.1,bandwidth=80B/s"]) == 0
    out = capsys.readouterr().out
    assert "On this network alone the run takes 9.90 s (measured: 10.0 s)" in out


@pytest.mark.parametrize("workload", ["sor-p2p", "bt"])
def test_a_network_is_found_in_what_messages_took(workload, tmp_path, capsys):
    """A message travels 1500 ns, and the call that receives it takes 400 ns more."""
    _native.generate(workload, tmp_path, ranks=16, iterations=10, seed=7, imbalance=0.2)
    local = whywait.fit_network(tmp_path)["local"]
    assert local.latency == pytest.approx(1.9e-6)
    assert local.bandwidth == float("inf")
    assert cli.main(["whatif", str(tmp_path), "--network", "fit"]) == 0
    assert "latency=1.9e-06s" in capsys.readouterr().out


def test_two_sizes_give_a_bandwidth(tmp_path):
    found = whywait.fit_network(trace_from_text(messages_of_two_sizes(6), tmp_path))["local"]
    assert found.latency == pytest.approx(0.1)
    assert found.bandwidth == pytest.approx(100)


def test_no_message_arrives_before_it_is_sent():
    """The line of best fit has a latency below zero: the one through zero is taken."""
    found = _fit_line([(1, 1), (2, 4)])
    assert (found.latency, found.bandwidth) == (0, pytest.approx(5 / 9))


def test_nothing_is_left_if_writing_fails(small, tmp_path, monkeypatch):
    sim = whywait.whatif(small, [Scale("work@0", 0.4)])

    class Full:
        def write(self, directory, name, *_, **__):
            (Path(directory) / name).mkdir()
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sim, "_native", Full())
    with pytest.raises(OSError, match="No space left"):
        sim.write(tmp_path / "new")
    assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file() or path.suffix == ".otf2"]
    assert not list((tmp_path / "new").iterdir())


def test_nothing_is_left_under_the_final_name_by_who_is_killed(small, tmp_path):
    """The anchor is written last, so an archive with an anchor is complete."""
    script = """if True:
        import os, signal, sys
        from pathlib import Path
        import whywait
        from whywait.hypotheses import Scale
        rename = Path.rename
        def killed(path, target):
            if path.suffix == ".otf2":
                os.kill(os.getpid(), signal.SIGKILL)
            return rename(path, target)
        Path.rename = killed
        whywait.whatif(sys.argv[1], [Scale("work@0", 0.4)]).write(sys.argv[2])
    """
    command = [sys.executable, "-c", script, str(small.run.path), str(tmp_path / "new")]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not list((tmp_path / "new").glob("*.otf2"))
    with pytest.raises(whywait.Error):
        whywait.analyze(tmp_path / "new")


def test_no_room_for_the_archive(small, tmp_path):
    script = """if True:
        import resource, signal, sys
        import whywait
        from whywait import cli
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        sys.exit(cli.main(["whatif", sys.argv[1], "--scale", "work@0=0.4", "-o", sys.argv[2]]))
    """
    command = [sys.executable, "-c", script, str(small.run.path), str(tmp_path / "new")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.otf2"))


def test_under_mpiexec_the_first_rank_works_alone(small):
    done = mpiexec(3, "-m", "whywait", "whatif", small.run.path, "--scale", "work@0=0.4", "--only-time", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["after"] == pytest.approx(7)


def test_the_measured_archive_is_never_written_to(small, capsys):
    directory = Path(small.run.path).parent
    before = sorted(path.name for path in directory.iterdir())
    assert cli.main(["whatif", str(small.run.path), "--scale", "work@0=0.4", "-o", str(directory)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert sorted(path.name for path in directory.iterdir()) == before


def test_a_simulated_run_can_be_simulated_again(small, tmp_path):
    once = whywait.whatif(small, [Scale("work@0", 0.4)]).write(tmp_path / "once")
    again = whywait.whatif(once, [Scale("work@0", 0.5)])
    assert again.before == pytest.approx(7)
    assert is_identical(whywait.whatif(once))
    anchor = again.write(tmp_path / "twice").read_bytes()
    assert anchor.count(b"WHYWAIT::HYPOTHESES") == 2
    assert b"scale work@0=0.4" in anchor
    assert b"scale work@0=0.5" in anchor


@pytest.mark.parametrize("option", ["--scale=work=1", "--cpu=1", "--balance=work:global,by=0", "--overhead=0s"])
def test_a_change_of_nothing_says_so(small, option, capsys):
    assert cli.main(["whatif", str(small.run.path), option, "--only-time"]) == 0
    assert "Nothing is changed" in capsys.readouterr().out


def test_nothing_changed_says_so(small, capsys):
    assert cli.main(["whatif", str(small.run.path), "--scale", "work=1", "--only-time"]) == 0
    assert "0 s saved (0.0%)" in capsys.readouterr().out


def test_a_balance_of_one_location_is_allowed(tmp_path):
    sim = whywait.whatif(
        trace_from_text("0: main [0, 2]\n0: work [0, 1]\n0: work [1, 1.5]", tmp_path), [Balance("work")]
    )
    assert is_identical(sim)
    assert "only one location has instances" in sim.notes[0]


def test_instances_of_another_shape_are_noted(tmp_path):
    trace = "*: main [0, 4]\n*: work [0, 2]\n1: inner [0.5, 1]"
    sim = whywait.whatif(trace_from_text(f"ranks 2\n{trace}", tmp_path), [Balance("work")])
    assert "not all locations call the same from it" in sim.notes[0]


def test_a_balance_among_the_members_of_a_communicator(tmp_path):
    trace = """
    ranks 3
    comm pair = 0 1
    *: main [0, 9]
    0: work [0, 1]
    1: work [0, 3]
    2: work [0, 6]
    0: MPI_Barrier(comm=pair) [6, 6.1]
    1: MPI_Barrier(comm=pair) [6, 6.1]
    """
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    members = {comm["id"]: comm["group"] for comm in result.run.definitions["Comm"].to_pylist()}
    groups = {group["id"]: group["members"] for group in result.run.definitions["Group"].to_pylist()}
    (pair,) = [comm for comm, group in members.items() if len(groups[group]) == 2]
    times = instances(whywait.whatif(result, [Balance("work", among=f"comm:{pair}")]))
    assert [times[rank, "work"] for rank in "012"] == [[pytest.approx((0, end))] for end in (2, 2, 6)]


def test_a_location_of_which_all_is_cut_keeps_its_program(tmp_path):
    trace = "0: main [0, 4]\n0: foo [1, 2]\n1: foo [0, 3]"
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Cut("foo@1")])
    run = whywait.open(sim.write(tmp_path / "cut"))
    assert [
        row["type"] for row in run.events(1).select(["type"]).to_pylist() if row["type"] in ("Enter", "Leave")
    ] == []
    found = whywait.analyze(run)
    assert len(found.places) == 2
    assert found.facts["length"] == pytest.approx(sim.after, abs=NANOSECOND)


def test_calls_without_length_and_equal_times(tmp_path):
    """Rule R: events with the same time keep their order."""
    trace = """
    *: main [0, 4]
    0: work [0, 1]
    0: MPI_Isend(1, req=1) [1, 1]
    0: MPI_Wait(1) [1, 1]
    1: MPI_Recv(0) [1, 1]
    1: MPI_Barrier [2, 2]
    0: MPI_Barrier [2, 2]
    """
    anchor = trace_from_text(trace, tmp_path)
    assert is_identical(whywait.whatif(anchor))
    times = instances(whywait.whatif(anchor, [Scale("work", 2.0)]))
    assert times["1", "MPI_Recv"] == [pytest.approx((1, 2))]
    assert times["0", "MPI_Barrier"] == times["1", "MPI_Barrier"] == [pytest.approx((3, 3))]


def test_a_truncated_trace_is_simulated_as_far_as_it_goes(tmp_path):
    """Rank 5 has no end: its events keep their lengths, and missing partners are reported."""
    shutil.copytree(ROOT / "tests/data/stencil", tmp_path / "stencil")
    events = tmp_path / "stencil/traces/5.evt"
    events.write_bytes(events.read_bytes()[: events.stat().st_size // 2])
    result = whywait.analyze(tmp_path / "stencil")
    assert is_identical(whywait.whatif(result))
    sim = whywait.whatif(result, [Scale("relax", 0.8)])
    assert "unmatched" in sim.assumptions["assumption"].to_pylist()
    assert whywait.analyze(sim.write(tmp_path / "new")).facts["length"] == pytest.approx(sim.after, abs=1e-6)
    assert cli.main(["whatif", str(tmp_path / "stencil"), "--only-time"]) == 0


def test_messages_to_oneself_and_to_nobody(tmp_path):
    trace = """
    0: main [0, 4]
    0: MPI_Isend(0, req=1) [1, 1.1]
    0: MPI_Recv(0) [1.1, 1.2]
    0: MPI_Wait(1) [1.2, 1.3]
    1: main [0, 4]
    """
    anchor = trace_from_text(trace, tmp_path)
    assert is_identical(whywait.whatif(anchor))
    assert whywait.whatif(anchor, [Cpu(2)]).after == pytest.approx(2.15)


def test_a_circle_in_the_measured_run_is_noted(tmp_path):
    """Broken clocks: each send by rendezvous ends before the receive of the other begins, which it waits for."""
    trace = """
    0: main [0, 4]
    1: main [0, 4]
    0: MPI_Ssend(1) [1, 1.1]
    0: MPI_Recv(1) [2, 2.1]
    1: MPI_Ssend(0) [1, 1.1]
    1: MPI_Recv(0) [2, 2.1]
    """
    sim = whywait.whatif(trace_from_text(trace, tmp_path))
    assert is_identical(sim)
    assert "circular" in sim.assumptions["assumption"].to_pylist()


def test_an_incomplete_collective_keeps_its_length(tmp_path):
    trace = "ranks 3\n*: main [0, 4]\n0: work [0, 1]\n0: MPI_Barrier [1, 3]\n1: MPI_Barrier [2, 3]"
    sim = whywait.whatif(trace_from_text(trace, tmp_path), [Scale("work", 2.0)])
    assert instances(sim)["0", "MPI_Barrier"] == [pytest.approx((2, 4))]
    assert "unmatched" in sim.assumptions["assumption"].to_pylist()


def test_equal_results_with_one_thread_and_several(stencil):
    one, many = (whywait.whatif(stencil, [Scale("relax", 0.7)], threads=threads) for threads in (1, 4))
    for location in range(len(stencil.places)):
        assert one.events(location).equals(many.events(location))


def test_no_location_is_shorter_than_what_it_does_itself(stencil):
    sim = whywait.whatif(stencil, [IdealNetwork()])
    work = stencil.metrics["comp"].by_rank()
    assert sim.after >= max(row["value"] for row in work.to_pylist()) * 0.999
    for row in sim.result.wait_states().slice(0, 1000).to_pylist():
        assert 0 <= row["waiting"] <= row["leave"] - row["enter"] + 1e-9


def test_cuts_can_be_taken_in_any_order(stencil):
    hypotheses = [Cut("MPI_Allreduce#0"), CutMessages("from==0,to==1,size>0")]
    one, other = (whywait.whatif(stencil, order) for order in (hypotheses, hypotheses[::-1]))
    assert one.after == other.after
    for location in range(len(stencil.places)):
        assert one.events(location).equals(other.events(location))


PAIRS = sorted(path.parent for path in (SHARED / "cases/pairs").glob("*/hypothesis.txt"))


@pytest.mark.parametrize("pair", PAIRS or [pytest.param(None, marks=pytest.mark.skip(reason=UNRECORDED))])
def test_a_prediction_is_what_was_recorded(pair):
    """Within 2% of the second recording, from the first Leave of MPI_Init to the first Enter of MPI_Finalize."""
    line = re.search(r"^options: (.*)$", (pair / "hypothesis.txt").read_text(), re.MULTILINE)
    options = re.findall(r"--([\w-]+) '([^']+)'", line[1])
    hypotheses = [parse(kind, text) for kind, text in options]
    assert hypotheses
    sim = whywait.whatif(next((pair / "before").rglob("*.otf2")), hypotheses)
    after = json.loads((pair / "lengths.json").read_text())["after"][0]
    assert length_as_recorded(sim) == pytest.approx(after.get("init_to_finalize_s", after["whole_s"]), rel=0.02)


def length_as_recorded(sim) -> float:
    """The length of a simulated run as recorded runs state it: from the first Leave of MPI_Init to the first Enter of
    MPI_Finalize; without MPI, of the whole run."""
    times = instances(sim)
    inits = [leave for (_, name), all_of in times.items() if name.startswith("MPI_Init") for _, leave in all_of]
    ends = [enter for (_, name), all_of in times.items() if name == "MPI_Finalize" for enter, _ in all_of]
    return min(ends) - min(inits) if inits else float(sim.after)
