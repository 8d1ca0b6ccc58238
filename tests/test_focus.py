"""The focus: the part of the run that headlines, efficiencies, causes and the critical path cover."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import whywait
from whywait import cli
from whywait.analysis.focus import find_focus, focused
from whywait.hypotheses import Scale

from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"

# Two ranks start up until 2 and shut down from 10 on; rank 0 waits for rank 1 in MPI_Finalize from 8 on, and something
# runs after MPI_Finalize.
TEXT = """
ranks 2
*: main [0, 12]
0: MPI_Init [0, 1]
1: MPI_Init [0, 2]
0: MPI_Barrier [3, 5.1]
1: work [2, 5]
1: MPI_Barrier [5, 5.1]
0: MPI_Finalize [8, 11]
1: work [7, 10]
1: MPI_Finalize [10, 11]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return whywait.analyze(trace_from_text(TEXT, tmp_path_factory.mktemp("focus")))


@pytest.fixture(scope="module")
def stencil():
    return whywait.analyze(DATA / "stencil")


def test_it_lasts_from_the_last_init_to_the_last_finalize(result):
    assert (result.facts["focus_begin"], result.facts["focus_end"]) == pytest.approx((2, 10))
    assert result.facts["focus_rule"] == "last_finalize"
    focus = result.summary()["focus"]
    assert (focus["name"], focus["window"]) == ("run", pytest.approx((2, 10)))
    account = focus["account"]
    assert account["time"] == pytest.approx(16)
    # In the barrier from 3 to 5, and in MPI_Finalize from 8 to 10.
    assert account["waiting"] == pytest.approx(4)
    assert account["share"] == pytest.approx(4 / 16)
    assert focus["outside"] == pytest.approx({"time": 8, "waiting": 0})
    assert {place["metric"]: place["waiting"] for place in focus["worst"]} == pytest.approx(
        {"mpi_barrier_wait": 2, "mpi_finalize_wait": 2}
    )


def test_sessions_start_and_end_the_library_as_well(tmp_path):
    sessions = TEXT.replace("MPI_Init", "MPI_Session_init").replace("MPI_Finalize", "MPI_Session_finalize")
    result = whywait.analyze(trace_from_text(sessions, tmp_path))
    assert (result.facts["focus_begin"], result.facts["focus_end"]) == pytest.approx((2, 10))
    focus = result.summary()["focus"]
    assert focus["account"]["time"] == pytest.approx(16)
    # Ending a session waits for nobody.
    assert focus["account"]["waiting"] == pytest.approx(2)
    # The path begins with the last to end its session, and loses nothing to start-up in the focus.
    path = {place["callpath"][-1]: place["time"] for place in focus["critical_path"]["callpaths"]}
    assert path == pytest.approx({"work": 6, "main": 1.9, "MPI_Barrier": 0.1})


def test_a_library_that_is_only_a_name_on_the_stack_swallows_nothing(tmp_path):
    """Frames of a library around several calls also span what the program does between them."""
    trace = """
        frames ARMCI_Barrier ARMCI_Init
        *: main [0, 12]
        *: ARMCI_Init [0.5, 1]
        *: ARMCI_Barrier [1, 11]
        *: MPI_Barrier [2, 2.1]
        *: MPI_Barrier [8, 8.1]
    """
    result = whywait.analyze(trace_from_text(trace + "0-1: f [11.6, 11.7]", tmp_path))
    assert result.facts["focus_rule"] == "whole"
    parts = result.summary()["focus"]["account"]["parts"]
    assert parts["computation"] == pytest.approx(2 * (12 - 0.2))
    assert result.metrics["comp"].total == pytest.approx(parts["computation"])


def test_the_critical_path_of_the_focus_is_cut_at_its_bounds(result):
    path = result.summary()["focus"]["critical_path"]
    assert path["length"] == pytest.approx(8)
    places = {"/".join(place["callpath"][1:]): place["time"] for place in path["callpaths"]}
    assert places == pytest.approx({"main/work": 6, "main/MPI_Barrier": 0.1, "main": 1.9})


def test_start_up_causes_nothing_in_the_focus(result):
    focus, whole = (result.summary(focus=name)["focus"] for name in (None, "all"))
    names = {place["callpath"][-1] for place in focus["causes"]}
    assert "MPI_Init" not in names
    assert whole["outside"] == {"time": 0.0, "waiting": 0.0}
    account = focus["account"]
    told = account["known"] + account["elsewhere"] + account["unknown"]
    assert told == pytest.approx(account["waiting"])


# The library starts late: rank 1 waits until 8 for rank 2, which worked from 3 on; a quarter of the wait is in the
# focus, and rank 2 came late itself, because it had waited for rank 0.
CUT = """
ranks 3
*: main [0, 12]
0: late [1, 3]
0: MPI_Send(2) [3, 3.1]
2: MPI_Recv(0) [1, 3.1]
2: work [3.1, 8]
2: MPI_Send(1) [8, 8.1]
1: MPI_Recv(2) [4, 8.1]
0: MPI_Init [6, 7]
*: MPI_Finalize [11, 12]
"""


def test_costs_are_those_of_the_waits_in_the_focus(tmp_path):
    found = whywait.analyze(trace_from_text(CUT, tmp_path))
    whole, focus = (found.summary(focus=name)["focus"] for name in ("all", None))
    assert focus["window"] == pytest.approx((7, 11))
    # Rank 1 waits from 4 to 8, one second of it in the focus; rank 2 from 1 to 3.
    assert whole["account"]["waiting"] == pytest.approx(6)
    assert focus["account"]["waiting"] == pytest.approx(1)

    def costs(of):
        return {place["callpath"][-1]: place["costs"] for place in of["causes"]}

    paid, of_all = costs(focus), costs(whole)
    assert sum(of_all.values()) + whole["passed_on"] == pytest.approx(6)
    # Of the wait of rank 1 a quarter is paid for, by what runs in the focus; what caused the wait before it does not.
    assert paid["work"] == pytest.approx(of_all["work"] / 4)
    assert "late" not in paid
    assert focus["account"]["elsewhere"] == pytest.approx(1 - sum(paid.values()) - focus["passed_on"])


def test_a_call_path_is_a_focus(stencil):
    focus = stencil.summary(focus="solve")["focus"]
    assert (focus["name"], focus["callpath"], focus["window"]) == (
        "solve", "solve", (stencil.facts["focus_begin"], stencil.facts["focus_end"]),
    )  # fmt: skip
    assert all("solve" in place["callpath"] for place in focus["worst"] + focus["causes"])
    assert all("solve" in place["callpath"] for place in focus["critical_path"]["callpaths"])
    profile = focused(stencil, "solve").profile
    assert profile.total("waiting") == pytest.approx(focus["account"]["waiting"])
    assert profile.total("time") < stencil.metrics["time"].total
    with pytest.raises(whywait.UsageError, match="no call path ends in nowhere"):
        stencil.summary(focus="nowhere")


def test_a_window_of_the_whole_run_has_all_of_the_critical_path(stencil):
    window = stencil.window(0, stencil.facts["length"])
    whole = stencil.profile.cells("critical_path")
    found = window.cells("critical_path")
    np.testing.assert_array_equal(found.key, whole.key)
    np.testing.assert_allclose(found.value, whole.value, rtol=1e-9)


def test_windows_that_tile_the_run_share_the_critical_path(stencil):
    bounds = np.linspace(0, stencil.facts["length"], 8)
    parts = [stencil.window(*pair).total("critical_path") for pair in pairwise(bounds)]
    assert sum(parts) == pytest.approx(stencil.metrics["critical_path"].total, rel=1e-8)


def test_threads_alone_have_the_whole_run_for_their_focus(tmp_path):
    found = whywait.analyze(trace_from_text("0: main [0, 3]\n0: work [1, 2]\n", tmp_path))
    assert (found.facts["focus_begin"], found.facts["focus_end"]) == pytest.approx((0, 3))
    assert found.facts["focus_rule"] == "whole"
    assert find_focus(found).name == "all"
    assert found.summary()["focus"]["window"] is None


def test_other_libraries_start_and_end_too(tmp_path):
    start, end = "shmem_init", "shmem_finalize"
    calls = f"0: {start} [0, 1]\n1: {start} [0, 2]\n0: {end}(w) [7, 8]\n1: {end}(w) [6, 8]\n"
    text = f"ranks 2\nwin w on world\n*: main [0, 9]\n{calls}"
    found = whywait.analyze(trace_from_text(text, tmp_path))
    assert (found.facts["focus_begin"], found.facts["focus_end"]) == pytest.approx((2, 7))


BOUNDS = {
    "the last start and the last end of several libraries": (
        """
        0: MPI_Init [0, 1]
        1: MPI_Init [0, 2]
        *: shmem_init [2, 3]
        *: shmem_finalize(w) [6, 7]
        0: MPI_Finalize [7, 8]
        1: MPI_Finalize [7.5, 8]
        """,
        (3, 7.5, "last_finalize"),
    ),
    "the first start of a library counts": (
        "*: shmem_init [0, 1]\n*: shmem_init [4, 5]\n*: shmem_finalize(w) [7, 8]",
        (1, 7, "last_finalize"),
    ),
    "without a start, the first event": ("*: MPI_Finalize [7, 8]", (0, 7, "last_finalize")),
    "without an end, the last event": ("*: MPI_Init [1, 2]", (2, 9, "last_finalize")),
    "a process without an end ends with its last event": (
        "*: MPI_Init [1, 2]\n0: MPI_Finalize [5, 6]",
        (2, 9, "last_finalize"),
    ),
    "a start behind the end": ("0: MPI_Finalize [1, 2]\n1: MPI_Finalize [2, 3]\n*: MPI_Init [6, 7]", (0, 9, "whole")),
}


@pytest.mark.parametrize(("calls", "bounds"), BOUNDS.values(), ids=BOUNDS)
def test_its_bounds(calls, bounds, tmp_path):
    found = whywait.analyze(trace_from_text(f"ranks 2\nwin w on world\n*: main [0, 9]\n{calls}\n", tmp_path))
    facts = found.facts
    assert (facts["focus_begin"], facts["focus_end"]) == pytest.approx(bounds[:2])
    assert facts["focus_rule"] == bounds[2]


def test_a_written_result_has_its_focus(stencil, tmp_path):
    stencil.write(tmp_path / "results")
    read = whywait.load(tmp_path / "results")
    assert read.summary()["focus"] == stencil.summary()["focus"]
    summary = json.loads((tmp_path / "results/summary.json").read_text())
    assert summary["focus"]["account"] == stencil.summary()["focus"]["account"]
    with pytest.raises(whywait.UsageError, match="holds no events"):
        read.window(0.1, 0.2)


def test_verbs_have_a_focus(stencil, tmp_path, capsys):
    results = str(tmp_path / "results")
    stencil.write(results)

    def said(*arguments):
        assert cli.main([*arguments, results]) == 0
        return capsys.readouterr().out

    assert "of the time between start-up and shutdown" in said("delay")
    assert "MPI_Init" not in said("critical")
    assert "MPI_Init" in said("critical", "--focus", "all")
    assert "of the time in solve" in said("delay", "--focus", "solve")
    of_run, of_all = (
        json.loads(said("efficiency", "--json", *focus))["methods"]["all"][0] for focus in ((), ("--focus", "all"))
    )
    assert of_run["window"] == list(stencil.summary()["focus"]["window"])
    assert of_all["window"] is None
    parallel = [one["efficiencies"]["parallel_efficiency"]["value"] for one in (of_run, of_all)]
    assert parallel[0] > parallel[1]
    assert all(len(line) <= 80 for line in said("delay").splitlines())


def test_a_simulated_focus_begins_where_its_libraries_are_started(tmp_path):
    trace = """
        0: setup [0, 1]
        0: MPI_Init [1, 2.5]
        1: setup [0, 2]
        1: MPI_Init [2, 2.5]
        *: compute [2.5, 4.5]
        *: MPI_Finalize [4.5, 5]
    """
    result = whywait.analyze(trace_from_text(trace, tmp_path))
    before = whywait.whatif(result, [Scale("setup", 0.0)])
    assert (before.saved, before.focus_saved) == pytest.approx((1.0, 0.0))
    inside = whywait.whatif(result, [Scale("compute", 0.5)])
    assert (inside.saved, inside.focus_saved) == pytest.approx((1.0, 1.0))
