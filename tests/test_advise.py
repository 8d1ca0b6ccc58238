"""Advice: candidates, ranking, the plan, and the verb."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import whywait
from whywait import UsageError, _native, cli
from whywait.api import advise
from whywait.commands.advise import _fitted
from whywait.hypotheses import EagerLimit, Network, Scale, parse
from whywait.hypotheses.compiler import Compiler
from whywait.hypotheses.lengths import Graph, Lengths

from tests.programs import messages_of_two_sizes
from tests.tracedsl import trace_from_text

ROOT = Path(__file__).parents[1]


def worked_example() -> str:
    """Four ranks, two iterations of `foo` (4 s on rank 0, 2 s elsewhere), `bar` of 1 s, and an Allreduce of 0.2 s."""
    lines = []
    for rank in range(4):
        lines.append(f"{rank}: main [0, 10.4]")
        for begin in (0.0, 5.2):
            foo = begin + (4 if rank == 0 else 2)
            lines.append(f"{rank}: foo [{begin}, {foo}]")
            lines.append(f"{rank}: bar [{foo}, {foo + 1}]")
            lines.append(f"{rank}: MPI_Allreduce [{foo + 1}, {begin + 5.2}]")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return whywait.analyze(trace_from_text(worked_example(), tmp_path_factory.mktemp("example")))


def test_whether_a_progress_thread_pays_stands_below_the_list(tmp_path, capsys):
    """What it gains is simulated; what it takes is cores (thesis, section 5.4)."""
    _native.generate("srumma-nb", tmp_path, ranks=16, iterations=1, seed=1)
    result = whywait.analyze(tmp_path)
    advice = whywait.advise(result, only=["progress"], rounds=0)
    assert [one.option for one in advice] == ["--progress asynchronous"]
    assert advice.as_dict()["progress"] == advice.progress == result.summary()["focus"]["progress"]
    assert cli.main(["advise", str(tmp_path), "--only", "progress", "--rounds", "0"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "one per process (50.0% of the cores) would not pay off." in text


def test_advice_ranks_changes_as_worked_by_hand(example):
    advice = whywait.advise(example, top=30, rounds=2)
    assert advice.before == pytest.approx(10.4)
    after = {one.option: one.after for one in advice}
    expected = {
        "--balance 'foo'": 7.4,
        "--scale 'foo@0=0.5'": 6.4,
        "--scale 'foo=0.5'": 6.4,
        "--scale 'bar=0.5'": 9.4,
        "--cut 'MPI_Allreduce'": 10.0,
    }
    assert {option: after[option] for option in expected} == pytest.approx(expected)
    # What changes fewer locations comes first.
    reachable = [one.option for one in advice if one.option in expected]
    assert reachable == list(
        dict(sorted(expected.items(), key=lambda item: (item[1], item[0] != "--scale 'foo@0=0.5'")))
    )
    assert advice[0].cpu_saved == pytest.approx(4 * advice[0].saved)


def test_after_a_balance_the_next_best_is_found_in_the_balanced_run(example):
    advice = whywait.advise(example, rounds=2, only=["balance"])
    assert [one.option for one in advice.plan] == ["--balance 'foo'"]
    balanced = advice.plan[0].result
    best = whywait.advise(balanced, rounds=1, only=["scale"])
    after = {one.option: one.after for one in best}
    assert after["--scale 'foo=0.5'"] == pytest.approx(4.9)


def test_each_step_of_the_plan_starts_where_the_last_ends(example):
    advice = whywait.advise(example, rounds=3)
    assert 1 < len(advice.plan) <= 3
    assert [one.before for one in advice.plan[1:]] == pytest.approx([one.after for one in advice.plan[:-1]])
    assert all("the bound" not in one.what for one in advice.plan)


def test_advice_says_what_a_simulation_says(example):
    for one in whywait.advise(example, top=5, rounds=1):
        sim = whywait.whatif(example, [one.hypothesis])
        assert sim.after == one.after == one.simulation.after
        kind, text = one.option.removeprefix("--").split(" ", 1)
        assert parse(kind, text.strip("'")) == one.hypothesis


def test_what_cannot_be_among_the_first_is_not_simulated(example, monkeypatch):
    """A call path saves at most its time on the critical path; that of `bar` is less than what others save."""
    tried = []
    of = Lengths.all_of

    def counted(self, candidates):
        candidates = [(list(changes), window) for changes, window in candidates]
        tried.extend(changes for changes, _ in candidates)
        return of(self, candidates)

    monkeypatch.setattr(Lengths, "all_of", counted)
    monkeypatch.setattr(advise, "BATCH", 1)
    every = whywait.advise(example, top=30, rounds=0)
    number = len(tried)
    tried.clear()
    few = whywait.advise(example, top=2, rounds=0)
    assert [(one.option, one.after) for one in few] == [(one.option, one.after) for one in every[:2]]
    assert len(tried) < number
    # Bounds are listed apart, so that of `bar` is one of the largest.
    changes = [str(hypothesis) for candidate in tried for hypothesis in candidate]
    assert not any("bar" in change and not change.endswith("=0") for change in changes)
    assert all(one.saved <= one.bound * (1 + 1e-9) for one in every)


def test_the_exposed_waiting_and_its_worst_place_are_named(example):
    best = next(one for one in whywait.advise(example, rounds=1) if one.option == "--balance 'foo'")
    assert best.exposed["waiting_saved"] == pytest.approx(12)
    assert best.exposed["worst"] is None


def test_the_focus_says_what_becomes_shorter_and_what_suggests_changes(tmp_path, capsys):
    """Start-up takes 4 s and shutdown 4 s of 13 s; rank 1 works 1.9 s longer than rank 0 in `solve`."""
    trace = trace_from_text(
        """
        0: main [0, 13]
        1: main [0, 13]
        0: MPI_Init [1, 4]
        1: MPI_Init [3, 4]
        0: solve [4, 6]
        1: solve [4, 7.9]
        0: MPI_Barrier [6, 8]
        1: MPI_Barrier [7.9, 8]
        0: write [8, 9]
        1: write [8, 9]
        0: MPI_Finalize [9, 13]
        1: MPI_Finalize [9, 13]
        """,
        tmp_path,
    )
    result = whywait.analyze(trace)
    here, everywhere = (whywait.advise(result, top=50, rounds=1, focus=focus) for focus in (None, "all"))
    assert (here.before, everywhere.before) == pytest.approx((5.0, 13.0))
    for advice, name in ((here, "focus_saved"), (everywhere, "saved")):
        for one in advice:
            assert one.saved == pytest.approx(getattr(whywait.whatif(result, [one.hypothesis]), name))
    below = whywait.advise(result, top=50, rounds=1, focus="write", only=["balance", "scale"])
    assert {one.option.split("=")[0] for one in (*below, *below.bounds)} == {"--scale 'write"}
    assert cli.main(["advise", str(trace), "--rounds", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["before"] == pytest.approx(found["focus"]["end"] - found["focus"]["begin"])


@pytest.mark.parametrize(
    "options",
    [{"top": 0}, {"rounds": -1}, {"goal": "money"}, {"only": ["luck"]}],
)
def test_invalid_options_are_refused(example, options):
    with pytest.raises(UsageError):
        whywait.advise(example, **options)


def test_other_networks_are_compared_with_the_one_that_fits(tmp_path, capsys):
    """Of 20 messages of two sizes, each of which takes 0.18 s or 0.9 s; the network that fits reproduces the run."""
    run = whywait.analyze(trace_from_text(messages_of_two_sizes(10), tmp_path))
    advice = whywait.advise(run, only=["network"], rounds=2)
    fitted = Network(0.1, 100.0)
    on_fitted = whywait.whatif(run, network=fitted).after
    assert on_fitted == pytest.approx(99.81)
    faster = {one.what: one for one in advice if one.base}
    assert {what: one.hypothesis for what, one in faster.items()} == {
        "half the latency of the network that fits": Network(0.05, 100.0),
        "twice the bandwidth of the network that fits": Network(0.1, 200.0),
    }
    for one in faster.values():
        assert one.base == fitted
        assert one.before == on_fitted
        assert one.after == whywait.whatif(run, network=one.hypothesis).after < on_fitted
    # Faster networks are no change of the program.
    assert not advice.plan
    assert cli.main(["advise", str(run.run.path), "--only", "network"]) == 0
    out = capsys.readouterr().out
    assert "--network 'latency=0.05s,bandwidth=100B/s'" in out
    assert "compared with 99.8 s on the network that fits the run" in out


def test_the_goal_can_be_processor_time(example):
    by_cpu = whywait.advise(example, rounds=0, goal="cpu", only=["balance", "scale"])
    assert by_cpu[0].cpu_saved == max(one.cpu_saved for one in by_cpu)
    # Balance moves work, and saves none.
    assert next(one for one in by_cpu if "balance" in one.option).cpu_saved == pytest.approx(0, abs=1e-6)


def test_the_verb_lists_changes_and_a_plan(example, capsys):
    trace = str(example.run.path)
    assert cli.main(["advise", trace, "--rounds", "1", "--only", "balance,scale"]) == 0
    out = capsys.readouterr().out
    assert "What would help (10.4 s measured)" in out
    assert "--scale 'foo@0=0.5'" in out
    assert "Plan" in out
    assert cli.main(["advise", trace, "--rounds", "0", "--top", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["advice"]) == 2
    assert found["plan"] == []
    assert cli.main(["advise", trace, "--only", "luck"]) == 2
    assert "is not a kind of change" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["advise", trace, "--keep-going", "much"])


def test_what_there_is_no_time_for_is_left_out(example, capsys):
    every = whywait.advise(example, top=30)
    none = whywait.advise(example, top=30, seconds=0.0)
    assert (every.left_out, every.is_cut) == (0, False)
    assert not none
    assert none.left_out >= len(every) + len(every.bounds)
    assert every.expose(0.0) == 0
    assert cli.main(["advise", str(example.run.path), "--limit", "1e-9"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"Not simulated: \d+ changes; the time was up", out)
    assert cli.main(["advise", str(example.run.path), "--limit", "1e-9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == none.left_out


def test_the_graph_of_the_unchanged_run_is_shared_while_it_is_used(example):
    compiler = Compiler(example, None)
    first = Graph.of(example, compiler)
    assert Graph.of(example, compiler) is first
    assert Graph.of(example, compiler, hidden=False) is not first
    assert Graph.of(example, compiler, [EagerLimit(8)]) is not first
    assert Lengths(example).of([[Scale("foo", 0.5)]]) == [whywait.whatif(example, [Scale("foo", 0.5)]).after]
    del first
    assert not example.graphs


# A kernel that runs all the time that matters, and a copy.
DEVICE = """
0: main [0, 20]
0: hipLaunchKernel [1, 1.1]
0/0: kernel [1.2, 12]
0/0: copy to host [12, 15]
0: hipDeviceSynchronize [2, 15]
0: work [15, 20]
"""


def test_a_plan_has_no_bounds_and_changes_nothing_twice(tmp_path):
    advice = whywait.advise(trace_from_text(DEVICE, tmp_path), rounds=5, keep_going=0.0)
    assert all(one.is_bound == one.option.endswith("=0'") for one in [*advice, *advice.bounds, *advice.plan])
    assert any("kernel in no time" in one.what for one in advice.bounds)
    assert not any(one.is_bound for one in [*advice, *advice.plan])
    subjects = [one.subject for one in advice.plan]
    assert len(subjects) == len(set(subjects)) >= 2
    scaled = [one.option.partition("=")[0] for one in advice.plan if one.kind == "scale"]
    assert len(scaled) == len(set(scaled)) >= 2


@pytest.mark.parametrize("name", ["stencil", "rma_fence", "mixed", "omp_nested", "rma_lock_sm"])
def test_every_candidate_can_be_simulated(name):
    advice = whywait.advise(ROOT / "tests/data" / name, rounds=1)
    assert [one.saved for one in advice] == sorted((one.saved for one in advice), reverse=True)


@pytest.mark.parametrize(
    ("width", "title"),
    [
        (46, "main/CG/ComputeMG/ComputeSYMGS_ref in no time"),
        (40, "…/ComputeMG/ComputeSYMGS_ref in no time"),
        (36, "…/ComputeSYMGS_ref in no time"),
        (20, "…/ComputeSYMGS_ref …"),
    ],
)
def test_long_titles_lose_the_front_of_the_call_path(width, title):
    assert _fitted("main/CG/ComputeMG/ComputeSYMGS_ref in no time", width) == title


def test_titles_without_a_call_path_are_cut_at_the_end():
    assert _fitted("asynchronous progress on all ranks", 20) == "asynchronous progre…"


@pytest.mark.parametrize(
    ("workload", "what", "options"),
    [
        ("omp-locks", "(holds locks) twice as fast", {"threads": 4, "window": 8}),
        ("omp-tasks", "compute twice as fast", {"threads": 4, "window": 1, "imbalance": 4.0}),
    ],
)
def test_work_that_threads_wait_for_is_proposed_at_what_a_simulation_saves(workload, what, options, tmp_path):
    _native.generate(workload, tmp_path, ranks=2, iterations=6, seed=3, work=20_000, **options)
    advice = whywait.advise(tmp_path, rounds=0, focus="all", top=50)
    halves = [one for one in advice if what in one.what]
    assert halves
    for one in halves:
        simulated = whywait.whatif(tmp_path, [one.hypothesis]).result
        assert one.saved == pytest.approx(one.before - simulated.facts["length"], abs=1e-9)
        assert one.saved > 0
