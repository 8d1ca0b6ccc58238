"""Efficiencies: hand-worked runs, and invariants of every run."""

import json
import math
import re
import sys
from pathlib import Path

import pytest
import whywait
from hypothesis import example, given
from hypothesis import strategies as st
from whywait import cli
from whywait.analysis.efficiency.efficiency import efficiencies, scaling, waits_of
from whywait.analysis.focus import find_focus
from whywait.commands.results import names_of
from whywait.hypotheses import IdealNetwork
from whywait.model.metrics import metric_tree
from whywait.model.selection import find_callpaths
from whywait.report.html.parts import efficiency_rows

from tests import fake_native
from tests.results import SHARED
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
#: Recorded programs with processes and teams of threads.
HYBRID = sorted(
    anchor.parent
    for pattern in ("cases/hyb_*", "real/prk_hyb_*")
    for anchor in SHARED.glob(f"{pattern}/archive/traces.otf2")
)
FENCE = ("MPI_Win_fence", "MPI", "FUNCTION")
WORK = ("work", "USER", "FUNCTION")
STORED = ("time", "mpi_latesender", "mpi_wait_nxn", "mpi_barrier_completion", "mpi_rma_wait_at_fence")


def run(time, late_sender, fence_wait, ranks=None):
    """Return main > (work, MPI_Recv, MPI_Win_fence) with the times of each rank."""
    count = len(time)
    values = {
        "time": {(c, rank): row[c] for rank, row in enumerate(time) for c in range(4)},
        "mpi_latesender": {(2, rank): value for rank, value in enumerate(late_sender)},
        "mpi_rma_wait_at_fence": {(3, rank): value for rank, value in enumerate(fence_wait)},
    }
    regions = [fake_native.MAIN, WORK, fake_native.RECV, FENCE]
    places = ranks or [(rank, 0) for rank in range(count)]
    analysis = fake_native.FakeAnalysis([None, 0, 0, 0], regions, places, values)
    return fake_native.result(analysis, stored=STORED)


def shares(result, *arguments, **options):
    return {value.name: value.value for value in efficiencies(result, *arguments, **options)}


# Two ranks of 8 s: 6 and 4 s of computation, of which 5 and 2 in work; 2 s of Late Sender, 0.5 s at a fence.
TWO = run([(1, 5, 1, 1), (2, 2, 3, 1)], [0, 2], [0.5, 0])


def test_efficiencies_match_a_hand_worked_run():
    assert shares(TWO) == pytest.approx(
        {
            "parallel_efficiency": 5 / 8,
            "load_balance": 5 / 6,
            "communication_efficiency": 6 / 8,
            "serialization": 6 / 6.5,  # rank 0 would take 8 - (2 - 0.5), rank 1 8 - (4 - 2)
            "transfer": 6.5 / 8,
            "load_imbalance": 1 / 5,
        }
    )


def test_what_runs_beside_the_program_is_not_its_work():
    beside = run([(1, 5, 1, 1), (9, 0, 0, 0), (2, 2, 3, 1)], [0, 0, 2], [0.5, 0, 0],
                 [(0, 0), (0, 1, "ACCELERATOR_STREAM"), (1, 0)])  # fmt: skip
    assert shares(beside) == shares(TWO)


def test_cube_knows_no_one_sided_waits():
    cube = shares(TWO, method="cube")
    assert (cube["serialization"], cube["transfer"]) == pytest.approx((6 / 6, 6 / 8))
    assert {name: value for name, value in cube.items() if name not in {"serialization", "transfer"}} == {
        name: value for name, value in shares(TWO).items() if name not in {"serialization", "transfer"}
    }


def test_efficiencies_of_a_call_path():
    assert shares(TWO, "main/work")["load_balance"] == pytest.approx(3.5 / 5)
    assert shares(TWO, "work") == shares(TWO, 1)
    assert shares(TWO, "main") == shares(TWO)
    only_mpi = shares(TWO, "MPI_Recv")
    assert only_mpi["parallel_efficiency"] == 0
    assert only_mpi["load_balance"] is None
    with pytest.raises(whywait.UsageError, match="no call path ends in nowhere"):
        efficiencies(TWO, "nowhere")


def test_every_number_says_how():
    found = TWO.efficiencies()
    for value in found:
        names = dict(value.inputs.items())
        formula = value.formula
        for name, number in names.items():
            formula = formula.replace(name, repr(number))
        assert eval(formula) == pytest.approx(value.value)  # noqa: S307
    # Only waits that occur: there are none in collective calls.
    assert found.definitions["wait"] == "mpi_rma_wait_at_fence + mpi_latesender"
    assert found.as_dict()["efficiencies"]["transfer"]["formula"] == "max(ideal) / max(elapsed)"
    with pytest.raises(KeyError):
        found["beauty"]


def test_waits_are_all_that_waits_in_mpi():
    waits = waits_of(metric_tree(), "all")
    assert set(waits_of(metric_tree(), "cube")) < set(waits)
    assert {"mpi_rma_wait_at_fence", "mpi_rma_early_wait", "mpi_rma_comm_lock_competition"} <= set(waits)
    # Neither parts of others nor completion nor what threads wait for.
    assert not {"mpi_latesender_wo", "mpi_rma_early_fence", "mpi_nxn_completion", "omp_ebarrier_wait"} & set(waits)


def test_threads_count_with_their_process():
    threads = run([(1, 5, 1, 1), (2, 2, 3, 1)], [0, 2], [0.5, 0], ranks=[(0, 0), (0, 1)])
    found = shares(threads)
    assert found["load_balance"] == 1
    assert found["parallel_efficiency"] == pytest.approx(10 / 16)


def test_an_empty_run_has_no_efficiencies():
    empty = fake_native.result(fake_native.FakeAnalysis([], [], [], {}))
    assert set(shares(empty).values()) == {None}


def test_strong_and_weak_scaling_match_a_hand_worked_series():
    one = run([(0, 8, 0, 0)], [0], [0])
    two = run([(0, 5, 1, 0), (0, 4, 2, 0)], [0, 1], [0, 0])
    reference, strong = scaling([one, two])
    assert reference["speedup"].value == reference["computation_scaling"].value == 1
    assert strong["computation_scaling"].value == pytest.approx(8 / 9)
    assert strong["speedup"].value == pytest.approx(8 / 6)
    assert strong["global_efficiency"].value == pytest.approx(4.5 / 6 * 8 / 9)
    _, weak = scaling([one, two], mode="weak")
    assert weak["computation_scaling"].value == pytest.approx(2 * 8 / 9)
    assert weak["speedup"].value == pytest.approx(2 * 8 / 6)
    assert weak["speedup"].formula == "max(elapsed0) / max(elapsed) * processes / processes0"


seconds = st.floats(1e-6, 1e3)
share = st.floats(0, 1)
rank = st.tuples(seconds, seconds, seconds, seconds, share, share)


@given(st.lists(rank, min_size=1, max_size=6))
@example([(1e-6, 1e-6, 64.0, 960.6037506780652, 0.0, 0.0)])
def test_products_and_bounds(rows):
    result = run(
        [row[:4] for row in rows], [row[2] * row[4] for row in rows], [row[3] * row[5] for row in rows]
    )  # fmt: skip
    # Computation is what is left of all time without that in MPI: it rounds as the sums do, and may be much less.
    rounding = 16 * sys.float_info.epsilon * max(sum(row[:4]) for row in rows) / max(row[0] + row[1] for row in rows)
    for method in ("cube", "all"):
        found = shares(result, method=method)
        imbalance = found.pop("load_imbalance")
        assert all(0 < value <= 1 + rounding for value in found.values())
        assert found["load_balance"] * found["communication_efficiency"] == pytest.approx(found["parallel_efficiency"])
        assert found["serialization"] * found["transfer"] == pytest.approx(found["communication_efficiency"])
        # Load is computation here, so the two measures of balance are one.
        assert found["load_balance"] == pytest.approx(1 / (1 + imbalance), rel=1e-9 + rounding)
    assert shares(result)["transfer"] >= shares(result, method="cube")["transfer"]


def test_call_paths_are_found_by_what_a_person_writes():
    tree = fake_native.result(fake_native.small()).tree
    solve = fake_native.SOLVE[0]

    def ids(text):
        return [int(tree.preorder[position]) for position in find_callpaths(tree, text)]

    assert ids("solver::solve") == ids(solve) == ids("main/solver::solve") == ids(0) == ids("0") == [0]
    assert ids("solver::solve/MPI_Recv") == [1]
    for text in ("solve/MPI_Recv", "n/solver::solve", "x/main", "", "99"):
        with pytest.raises(whywait.UsageError):
            find_callpaths(tree, text)


def test_subtrees_do_not_overlap():
    recursive = fake_native.FakeAnalysis([None, 0, 1], [WORK, WORK, WORK], [(0, 0)], {"time": {(2, 0): 1.0}})
    assert find_callpaths(fake_native.result(recursive).tree, "work") == [0]


@pytest.mark.parametrize(
    "anchor", sorted(Path(__file__).parent.glob("data/*/traces.otf2")), ids=lambda a: a.parent.name
)
def test_bounds_of_real_runs(anchor):
    result = whywait.analyze(anchor)
    for part in (None, "main"):
        all_waits, cube = (shares(result, part, method=method) for method in ("all", "cube"))
        for found in (all_waits, cube):
            assert all(0 < value <= 1 for name, value in found.items() if name != "load_imbalance")
        assert all_waits["transfer"] >= cube["transfer"]


@pytest.mark.parametrize("case", HYBRID, ids=lambda case: case.parts[-2])
@pytest.mark.parametrize("focus", ["all", "focus"])
def test_hybrid_efficiencies_multiply_and_add_up(case, focus):
    result = whywait.analyze(case)
    window = find_focus(result).window if focus == "focus" else None
    hybrid = result.efficiencies(window=window).hybrid
    for one in hybrid:
        formula = re.sub("[a-z]+", lambda name: repr(one.inputs[name[0]]), one.formula)  # noqa: B023
        assert eval(formula) == pytest.approx(one.value, abs=1e-12), one.name  # noqa: S307
    found = {one.name: one.value for one in hybrid}
    # A quotient of two balances, which POP does not bound.
    assert all(0 <= value <= 1 + 1e-9 for name, value in found.items() if name != "openmp_load_balance"), found
    whole = found["hybrid_parallel_efficiency"]
    for parts in (
        ("hybrid_load_balance", "hybrid_communication_efficiency"),
        ("mpi_parallel_efficiency", "openmp_parallel_efficiency"),
    ):
        assert math.prod(found[part] for part in parts) == pytest.approx(whole)
    for paradigm in ("mpi", "openmp"):
        parts = found[f"{paradigm}_load_balance"], found[f"{paradigm}_communication_efficiency"]
        assert math.prod(parts) == pytest.approx(found[f"{paradigm}_parallel_efficiency"])
    lost = {name: 1 - value for name, value in found.items()}
    for name, parts in {
        "hybrid_parallel_efficiency": ("process_efficiency", "thread_efficiency"),
        "process_efficiency": ("process_load_balance", "process_communication_efficiency"),
        "thread_efficiency": ("serial_region_efficiency", "parallel_region_efficiency"),
    }.items():
        assert sum(lost[part] for part in parts) == pytest.approx(lost[name])
    losses = [value for name, value in found.items() if name.startswith("parallel_region_loss")]
    assert sum(losses) == pytest.approx(lost["parallel_region_efficiency"], abs=1e-9)


def test_programs_without_teams_are_not_hybrid():
    assert whywait.analyze(Path(__file__).parent / "data/stencil").efficiencies().hybrid == ()


def test_work_of_threads_by_hand(tmp_path):
    """Two processes of two threads in 10 s; rank 0 works alone until 2, both work in parallel until 8 and 6."""
    text = """
    ranks 2
    threads 2
    *: main [0, 10]
    *: fork [2, 8]
    *: !$omp parallel @a.c:1 [2, 8]
    0.1: !$omp parallel @a.c:1 [2, 8]
    1.1: !$omp parallel @a.c:1 [2, 8]
    0: !$omp implicit barrier @a.c:2 [7, 8]
    0.1: !$omp implicit barrier @a.c:2 [7, 8]
    1: !$omp implicit barrier @a.c:2 [5, 8]
    1.1: !$omp implicit barrier @a.c:2 [6, 8]
    *: MPI_Barrier [8, 10]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    # Of 40 s the masters are 2 x 8 s outside of MPI, for 2 threads each: 32. Serial work of 2 s leaves a thread idle.
    computation = (2 + 5 + 5) + (2 + 3 + 4)
    assert {one.name: one.value for one in result.efficiencies().hybrid} == pytest.approx(
        {
            "hybrid_parallel_efficiency": computation / 40,
            "hybrid_load_balance": computation / (4 * 7),
            "hybrid_communication_efficiency": 7 / 10,
            "mpi_parallel_efficiency": 8 / 10,
            "mpi_load_balance": 1,
            "mpi_communication_efficiency": 8 / 10,
            "openmp_parallel_efficiency": computation / 32,
            "openmp_load_balance": computation / 28,
            "openmp_communication_efficiency": 7 / 8,
            "process_efficiency": 8 / 10,
            "process_load_balance": 1,
            "process_communication_efficiency": 8 / 10,
            "thread_efficiency": 1 - (32 - computation) / 40,
            "serial_region_efficiency": 1 - 4 / 40,
            "parallel_region_efficiency": 1 - (28 - computation) / 40,
            # At the barrier of rank 1, a thread waits 1 s; the rest is completion: 2 s of each process's threads.
            "parallel_region_loss_imbalance": 1 / 40,
            "parallel_region_loss_contention": 0,
            "parallel_region_loss_tasks": 0,
            "parallel_region_loss_management": 0,
            "parallel_region_loss_communication": 0,
            "parallel_region_loss_rest": (28 - computation - 1) / 40,
        }
    )


def test_a_run_of_threads_alone_has_their_efficiencies(tmp_path):
    """Of 20 s, 2 are idle beside serial work; a thread waits 1 s for a lock and 3 s at the barrier."""
    text = """
    threads 2
    0: main [0, 10]
    0: fork [2, 10]
    0: !$omp parallel @a.c:1 [2, 10]
    0: !$omp critical @a.c:2(order=1) [2, 4] @2, 4
    0: !$omp implicit barrier @a.c:3 [9, 10]
    0.1: !$omp parallel @a.c:1 [2, 10]
    0.1: !$omp critical @a.c:2(order=2) [3, 4] @4, 4
    0.1: !$omp implicit barrier @a.c:3 [6, 10]
    """
    found = whywait.analyze(trace_from_text(text, tmp_path)).efficiencies()
    hybrid = {one.name: one.value for one in found.hybrid}
    assert hybrid["serial_region_efficiency"] == pytest.approx(0.9)
    assert hybrid["parallel_region_loss_imbalance"] == pytest.approx(0.15)
    assert hybrid["parallel_region_loss_contention"] == pytest.approx(0.05)
    losses = [value for name, value in hybrid.items() if name.startswith("parallel_region_loss")]
    assert sum(losses) == pytest.approx(1 - hybrid["parallel_region_efficiency"], abs=1e-9)
    assert "process_efficiency" not in hybrid


def test_threads_that_communicate_lose_the_time_themselves(tmp_path):
    """In a parallel region the master communicates while the other thread computes: the process loses nothing."""
    text = """
    ranks 2
    threads 2
    *: main [0, 10]
    *: fork [2, 10]
    *: !$omp parallel @a.c:1 [2, 10]
    0.1: !$omp parallel @a.c:1 [2, 10]
    1.1: !$omp parallel @a.c:1 [2, 10]
    *: MPI_Barrier [4, 8]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    found = {one.name: one.value for one in result.efficiencies().hybrid}
    assert found["mpi_parallel_efficiency"] == found["process_efficiency"] == pytest.approx(1)
    assert found["thread_efficiency"] == found["hybrid_parallel_efficiency"] == pytest.approx(1 - (2 * 4 + 2 * 2) / 40)
    assert found["serial_region_efficiency"] == pytest.approx(1 - 2 * 2 / 40)


def test_openshmem_is_communication(tmp_path):
    text = """
    ranks 2
    win w on world
    *: main [0, 10]
    0: shmem_barrier_all(w) [2, 8.1]
    1: shmem_barrier_all(w) [8, 8.1]
    """
    result = whywait.analyze(trace_from_text(text, tmp_path))
    found = result.efficiencies()
    assert "shmem" in found.definitions["ideal"]
    assert "mpi" not in found.definitions["ideal"] + found.definitions["wait"]
    waiting = result.metrics["shmem_barrier_wait"].total
    assert waiting == pytest.approx(6)
    assert found["transfer"].value == pytest.approx((10 - 0.1) / 10)
    assert found["serialization"].value == pytest.approx(9.9 / 9.9)
    assert found["load_balance"].value == pytest.approx((3.9 + 9.9) / 2 / 9.9)


def test_an_ideal_network_is_simulated(tmp_path, capsys):
    """Worked example 16 of the what-if simulation: the estimate says 0.90 and 0.778, the simulation 0.80 and 0.875."""
    text = """
    0: work [0, 4]
    0: MPI_Send(1) [4, 4.5]
    0: work [4.5, 6.5]
    0: MPI_Recv(1) [6.5, 9]
    0: work [9, 10]
    1: work [0, 1]
    1: MPI_Recv(0) [1, 5.5]
    1: work [5.5, 8.5]
    1: MPI_Send(0) [8.5, 9]
    1: work [9, 9.5]
    """
    anchor = str(trace_from_text(text, tmp_path))
    whywait.analyze(anchor).write(tmp_path / "results")
    found = []
    # A result on disk has no events to simulate, a trace has.
    for words in ([str(tmp_path / "results")], [anchor], [anchor, "--simulate"]):
        assert cli.main(["efficiency", *words, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)["methods"]["all"][0]["efficiencies"]
        found.append({name: row[name]["value"] for name in ("transfer", "serialization")})
    assert found[0] == pytest.approx({"transfer": 0.9, "serialization": 7 / 9})
    assert found[1] == found[2] == pytest.approx({"transfer": 0.8, "serialization": 0.875})
    assert cli.main(["efficiency", anchor, "--simulate"]) == 0
    assert "simulated on a network that takes no time" in capsys.readouterr().out
    assert cli.main(["efficiency", anchor, "--simulate", "--window", "0:5"]) == 2


def test_an_ideal_network_is_simulated_for_hybrid_programs(tmp_path, capsys):
    """The receive ends with the send, at 4 s, so the run takes 9 of 10 s; 5.5 s are the longest outside of MPI."""
    text = """
    ranks 2
    threads 2
    0: main [0, 6]
    0: fork [1, 3]
    0: !$omp parallel @a.c:1 [1, 3]
    0.1: !$omp parallel @a.c:1 [1, 3]
    0: MPI_Send(1) [4, 4.5]
    1: main [0, 10]
    1: MPI_Recv(0) [0, 5]
    1: fork [6, 7]
    1: !$omp parallel @a.c:1 [6, 7]
    1.1: !$omp parallel @a.c:1 [6, 7]
    """
    anchor = str(trace_from_text(text, tmp_path))
    expected = {
        "mpi_serialization": 5.5 / 9,
        "mpi_transfer": 9 / 10,
        "process_serialization": 1 - (9 - 5.5) / 10,
        "process_transfer": 1 - (10 - 9) / 10,
    }
    for option in ((), ("--simulate",)):
        assert cli.main(["efficiency", anchor, *option, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)["methods"]["all"][0]["hybrid"]
        found = {name: row[name]["value"] for name in expected if name in row}
        assert found == (pytest.approx(expected) if option else {})
    assert cli.main(["efficiency", anchor, "--simulate"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^      MPI serialization +61\.1%$", shown, re.MULTILINE)
    assert re.search(r"^    Process serialization +65\.0%$", shown, re.MULTILINE)


def test_what_cube_has_is_shown_where_it_differs(tmp_path, capsys):
    plain = trace_from_text("0: f [0, 3]\n0: MPI_Barrier [3, 5]\n1: MPI_Barrier [4, 5]", tmp_path / "plain")
    for source, differs in ((DATA / "sor_gats", True), (plain, False)):
        trace = source.name
        whywait.analyze(source).write(tmp_path / trace)
        assert cli.main(["efficiency", str(tmp_path / trace)]) == 0
        assert ("Transfer, as Cube has it" in capsys.readouterr().out) is differs


@pytest.mark.parametrize("name", ["stencil", "sor_fence", "sor_gats", "sor_locks", "sor_p2p", "collectives"])
def test_on_the_ideal_network_only_the_focus_changes(name):
    """Start-up stays as measured, so nothing computes less between the bounds, and no efficiency exceeds 1."""
    result = whywait.analyze(DATA / name)
    begin, end = result.facts["focus_begin"], result.facts["focus_end"]
    simulation = whywait.whatif(result, [IdealNetwork()], window=(begin, end))
    ideal = result.efficiencies(window=(begin, end))
    changed = simulation.result.efficiencies(window=(begin, begin + simulation.focus_after))
    longest = ideal["load_balance"].inputs["max(comp)"]
    assert changed["load_balance"].inputs["max(comp)"] == pytest.approx(longest, rel=1e-9)
    assert longest <= simulation.focus_after <= simulation.focus_before
    # The page has the same numbers.
    result.findings(prices=True)
    rows = {row["name"]: row for row in efficiency_rows(result, result.summary()["focus"])}
    assert rows["serialization"]["value"] == pytest.approx(longest / simulation.focus_after, rel=1e-6)
    assert rows["transfer"]["value"] == pytest.approx(simulation.focus_after / simulation.focus_before, rel=1e-6)
    assert all(row["value"] <= 1 for row in rows.values() if row["name"] != "load_imbalance")


def test_without_a_simulation_it_is_an_estimate():
    result = whywait.analyze(DATA / "stencil")
    rows = {row["name"]: row for row in efficiency_rows(result, result.summary()["focus"])}
    assert rows["transfer"]["display_name"] == "Transfer (estimate)"
    assert rows["load_balance"]["display_name"] == "Load balance"


def test_a_simulated_run_is_not_compared_with_an_estimated_one():
    both = [whywait.analyze(DATA / name) for name in ("sor_p2p", "sor_fence")]
    windows = [(result.facts["focus_begin"], result.facts["focus_end"]) for result in both]
    estimated = scaling(both, windows=windows)
    both[0].findings(prices=True)
    assert both[0].efficiencies(window=windows[0])["transfer"].value != estimated[0]["transfer"].value
    again = scaling(both, windows=windows)
    assert [row["transfer"].value for row in again] == [row["transfer"].value for row in estimated]


def test_talp_splits_the_idle_time_of_threads(tmp_path, capsys):
    """Of 10 s on two threads, 2 s are serial; then thread 0 computes for 8 s, and thread 1 for 4 s."""
    text = """
        0: main [0, 10]
        0: fork [2, 10]
        0: !$omp parallel @a:1 [2, 10]
        0: f [2, 10]
        0.1: !$omp parallel @a:1 [2, 10]
        0.1: f [2, 3]
        0.1: !$omp critical @a:3(order=2) [3, 4]
        0.1: f [4, 7]
        0.1: !$omp implicit barrier @a:9 [7, 10]
    """
    anchor = trace_from_text(text, tmp_path / "trace")
    found = whywait.analyze(anchor).efficiencies()
    names = ("serialization_efficiency", "load_balance", "scheduling_efficiency", "parallel_efficiency")
    assert [found[f"talp_{name}"].value for name in names] == pytest.approx([0.9, 7 / 9, 1, 0.7])
    assert cli.main(["efficiency", "--talp", str(anchor)]) == 0
    assert "OpenMP (TALP)" in capsys.readouterr().out
    assert cli.main(["efficiency", "--talp", "--json", str(anchor)]) == 0
    assert json.loads(capsys.readouterr().out)["methods"]["all"][0]["talp"]["talp_load_balance"]["value"] > 0.7
    assert cli.main(["efficiency", str(anchor)]) == 0
    assert "TALP" not in capsys.readouterr().out


def test_runs_are_named_by_what_tells_their_directories_apart(tmp_path):
    for run in ("a/traces", "b/traces", "c"):
        (tmp_path / run).mkdir(parents=True)
    runs = [str(tmp_path / run) for run in ("a/traces", "b/traces")]
    assert names_of(runs) == ["a/traces", "b/traces"]
    assert names_of([runs[0], str(tmp_path / "c")]) == ["traces", "c"]
    assert names_of([runs[0]] * 2) == ["traces", "traces"]
    assert names_of([str(tmp_path / name) for name in ("two.prv.gz", "four.prv")]) == ["two", "four"]
