"""The iterations of the main loop: which loop it is, how long each iteration takes, trend and outliers."""

import json
import math
import re
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
import whywait
from hypothesis import given, settings
from whywait.analysis.iterations import ITERATIONS, assess, find_loop, kinds
from whywait.cli import main

from tests import fake_native
from tests.programs import programs
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"

# Three steps; rank 1 works longer in the second one. What is before and after them is no iteration.
STEPS = """
*: main [0, 20]
*: setup [0, 2]
0: step [2, 6]
0: MPI_Barrier [4, 6]
1: step [2, 6]
1: MPI_Barrier [5, 6]
0: step [6, 12]
0: MPI_Barrier [7, 12]
1: step [6, 12]
1: MPI_Barrier [11, 12]
0: step [13, 16]
0: MPI_Barrier [14, 16]
1: step [12, 16]
1: MPI_Barrier [15, 16]
*: check [16, 16.5]
*: check [16.5, 17]
*: check [17, 17.5]
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return whywait.analyze(trace_from_text(STEPS, tmp_path_factory.mktemp("steps")))


def test_each_iteration_has_its_own_numbers(steps):
    table = steps.iterations()
    assert steps.tree.path(table["callpath_id"][0].as_py())[-2:] == ["main", "step"]
    first, second, third = table.to_pylist()
    # Until the next step begins: on rank 0 the second one lasts a second longer than the region itself. The last one
    # ends with the body of the loop, to which `check` belongs, since it is called as often.
    assert (first["begin"], first["end"], first["duration"], first["shortest"]) == (2, 6, 4, 4)
    assert (second["begin"], second["end"], second["duration"], second["shortest"]) == (6, 13, 7, 6)
    assert (third["begin"], third["end"], third["duration"], third["shortest"]) == (12, 17.5, 4.5, 4.5)
    # Rank 1 begins the last one a second earlier than rank 0.
    assert (third["longest"], third["pace_rank"], third["lead"]) == (5.5, 0, 0.5)
    assert [row["mpi_barrier_wait"] for row in (first, second, third)] == [1, 4, 1]
    assert [row["waiting"] for row in (first, second, third)] == [1, 4, 1]
    assert [row["slowest_rank"] for row in (first, second, third)] == [1, 1, 1]
    assert [row["slowest_computation"] for row in (first, second, third)] == [3, 5, 4.5]
    # Rank 0 computes 1 s in its second step, and 1 s before the third.
    assert [row["computation"] for row in (first, second, third)] == [2.5, 3.5, 3.5]
    assert second["load_balance"] == pytest.approx(3.5 / 5)
    assert second["communication_efficiency"] == pytest.approx(5 / 7)
    assert second["parallel_efficiency"] == pytest.approx(3.5 / 7)
    assert [row["ranks"] for row in (first, second, third)] == [2, 2, 2]
    assert second["critical_rank"] == 1


def test_a_function_may_compute_between_the_calls_of_its_loop(tmp_path):
    """All work is that of `main`; calls take a tenth of the time."""
    text = "ranks 2\n*: main [0, 20]\n" + "".join(f"*: MPI_Barrier [{t + 1.8}, {t + 2}]\n" for t in range(0, 20, 2))
    loop = whywait.analyze(trace_from_text(text, tmp_path)).iterations()
    assert (loop.num_rows, loop["duration"].to_pylist()[0]) == (10, pytest.approx(2))


def test_ranks_may_call_different_functions_in_a_loop(tmp_path):
    """Only the barrier at the end of each step is called by both, and takes little of the time."""
    text = "*: main [0, 16]\n" + "".join(
        f"""
        0: serve [{t}, {t + 1.8}]
        1: ask [{t}, {t + 1.8}]
        *: MPI_Barrier [{t + 1.9}, {t + 2}]
        """
        for t in range(0, 16, 2)
    )
    result = whywait.analyze(trace_from_text(text, tmp_path))
    loop = result.iterations()
    assert (loop.num_rows, loop["duration"].to_pylist()[0]) == (8, pytest.approx(2))
    # The last one has nothing but its barrier, which is no trend.
    assert loop["duration"].to_pylist()[-1] == pytest.approx(0.1)
    assert assess(result, loop)["trend"]["kind"] == "steady"


def test_a_loop_has_a_name(steps):
    check = steps.iterations("main/check").to_pylist()
    assert [(row["begin"], row["end"]) for row in check] == [(16, 16.5), (16.5, 17), (17, 17.5)]
    once = steps.iterations("setup").to_pylist()
    assert len(once) == 1
    number = steps.iterations(steps.iterations()["callpath_id"][0].as_py())
    assert number.equals(steps.iterations())
    with pytest.raises(whywait.UsageError, match="no call path ends in nowhere"):
        steps.iterations("nowhere")
    with pytest.raises(whywait.UsageError, match=r"several call paths end in work: .*; give more names"):
        whywait.analyze(DATA / "stencil").iterations("work")


@pytest.mark.parametrize("name", ["stencil", "sor_fence", "sor_gats", "sor_locks", "sor_p2p", "collectives", "mixed"])
def test_one_iteration_of_everything_is_everything(name):
    """A marker that is entered once makes one iteration, which lasts as long as the call path."""
    result = whywait.analyze(DATA / name)
    root = result.tree.roots[0]
    table = result.iterations(root)
    assert table.num_rows == 1
    row = table.to_pylist()[0]
    occurring = {kind for kind in result.wait_states()["kind"].to_pylist() if result.metrics[kind].total}
    assert set(kinds(table)) == occurring
    for kind in occurring:
        assert row[kind] == pytest.approx(result.metrics[kind].total, rel=1e-9), kind
    assert row["critical_path"] == pytest.approx(result.metrics["critical_path"].total, rel=1e-9)
    assert row["computation"] * row["ranks"] == pytest.approx(result.metrics["comp"].total, rel=1e-9)
    whole = result.efficiencies()
    assert row["load_balance"] == pytest.approx(whole["load_balance"].value, rel=1e-2)
    # The iteration counts from the begin on the last rank.
    longer = row["longest"] / row["duration"]
    assert longer >= 1 - 1e-9
    for efficiency in ("parallel_efficiency", "communication_efficiency"):
        assert row[efficiency] == pytest.approx(longer * whole[efficiency].value, rel=1e-2), efficiency


def naive(result, marker, body):
    """Book every event and every wait by iteration, slowly."""
    scale = result.facts["resolution"]
    names = dict(enumerate(result.tree.kinds))
    comp = result.profile.cells("comp")
    computes = {int(result.tree.preorder[key // len(result.places)]) for key in comp.key.tolist()}
    starts = {}
    booked = {}
    zero = result.facts["origin"]
    regions = result.run.definitions["Region"]
    region = dict(zip(regions["id"].to_pylist(), regions["name"].to_pylist(), strict=True))
    path = {tuple(result.tree.path(callpath)): callpath for callpath in range(len(result.tree))}
    for location in range(result.locations.num_rows):
        table = result.run.events(location)
        stack, since, spans, end = [], None, [], None
        begins = []
        for time, kind, number in zip(*(table[c].to_pylist() for c in ("time", "type", "region")), strict=True):
            now = (time - zero) / scale
            if stack:
                spans.append((path[tuple(stack)], since, now))
            since = now
            if kind in {"Enter", "ProgramBegin"}:
                stack.append(region.get(number, names[result.tree.region_rows[0]].name))
                if path[tuple(stack)] == marker:
                    begins.append(now)
            elif kind in {"Leave", "ProgramEnd"}:
                if path[tuple(stack)] in body and begins:
                    end = now
                stack.pop()
        bounds = [*begins, end]
        starts[location] = bounds
        for iteration, (begin, stop) in enumerate(pairwise(bounds)):
            booked[iteration, location] = sum(
                max(0.0, min(stop, until) - max(begin, since))
                for callpath, since, until in spans
                if callpath in computes
            )
    return starts, booked


@pytest.mark.parametrize("name", ["stencil", "sor_fence", "sor_gats", "sor_locks", "sor_p2p"])
def test_numbers_are_what_the_events_say(name):
    result = whywait.analyze(DATA / name)
    loop = find_loop(result)
    assert loop is not None
    starts, booked = naive(result, loop.marker, loop.body)
    table = result.iterations()
    ranks = result.places.rank.tolist()
    for row in table.to_pylist():
        i = row["iteration"]
        assert row["begin"] == pytest.approx(min(bounds[i] for bounds in starts.values()), abs=1e-9)
        assert row["end"] == pytest.approx(max(bounds[i + 1] for bounds in starts.values()), abs=1e-9)
        assert row["longest"] == pytest.approx(max(b[i + 1] - b[i] for b in starts.values()), abs=1e-9)
        latest = max(bounds[i] for bounds in starts.values())
        assert row["duration"] == pytest.approx(max(bounds[i + 1] for bounds in starts.values()) - latest, abs=1e-9)
        assert starts[ranks.index(row["pace_rank"])][i] == latest
        assert row["lead"] == pytest.approx(sum(latest - b[i] for b in starts.values()) / len(starts), abs=1e-9)
        computation = {ranks[location]: booked[i, location] for location in starts}
        assert row["computation"] == pytest.approx(sum(computation.values()) / len(ranks), rel=1e-6)
        assert computation[row["slowest_rank"]] == pytest.approx(max(computation.values()), rel=1e-9)
    # Whatever waits in the loop waits in one of its iterations.
    inside = np.zeros(table.num_rows)
    for wait in result.wait_states().to_pylist():
        bounds = starts[wait["location"]]
        if bounds[0] <= wait["enter"] and wait["leave"] <= bounds[-1]:
            for i, (begin, end) in enumerate(pairwise(bounds)):
                if begin <= wait["enter"] and wait["leave"] <= end:
                    inside[i] += wait["waiting"]
    total = sum(table[kind].to_numpy() for kind in kinds(table))
    assert np.all(total >= inside - 1e-9)
    assert total.sum() == pytest.approx(inside.sum(), rel=1e-6)


@settings(max_examples=40)
@given(trace=programs())
def test_iterations_hold_no_more_than_the_run(trace):
    with tempfile.TemporaryDirectory() as directory:
        result = whywait.analyze(trace_from_text(trace, directory))
        for callpath in range(len(result.tree)):
            try:
                table = result.iterations(callpath)
            except whywait.UsageError:
                continue
            assert table.schema.names[: len(ITERATIONS)] == ITERATIONS.names
            assert (table["ranks"].to_numpy() >= 1).all()
            assert (table["longest"].to_numpy() >= table["shortest"].to_numpy()).all()
            assert (table["duration"].to_numpy() >= 0).all()
            assert (table["lead"].to_numpy() >= 0).all()
            assert (table["parallel_efficiency"].fill_null(0).to_numpy() <= 1).all()
            for kind in kinds(table):
                assert table[kind].to_numpy().sum() <= result.metrics[kind].total * (1 + 1e-9)
            path = table["critical_path"].to_numpy().sum()
            assert path <= result.metrics["critical_path"].total + 1e-9
            for name in ("parallel_efficiency", "load_balance", "communication_efficiency"):
                values = table[name].drop_null().to_numpy()
                assert ((values >= 0) & (values <= 1 + 1e-9)).all(), name


def test_threads_share_the_boundaries_of_their_process(tmp_path):
    text = "\n".join(
        f"0: step [{t}, {t + 4}]\n0: fork [{t + 1}, {t + 3}]\n0: !$omp parallel @a.c:1 [{t + 1.1}, {t + 2.9}]\n"
        f"0: !$omp implicit barrier @a.c:3 [{t + 2}, {t + 2.9}]\n0.1: !$omp parallel @a.c:1 [{t + 1.2}, {t + 2.9}]\n"
        f"0.1: !$omp implicit barrier @a.c:3 [{t + 2.8}, {t + 2.9}]"
        for t in (1, 5, 9)
    )
    result = whywait.analyze(trace_from_text(f"threads 2\n0: main [0, 20]\n{text}", tmp_path))
    table = result.iterations("step")
    # The master: 4 s without 0.2 s of management and 0.9 s in the barrier; the other thread 1.6 s.
    assert table["computation"].to_pylist() == pytest.approx([2.9 + 1.6] * 3)
    assert table["omp_ibarrier_wait"].to_pylist() == pytest.approx([0.8] * 3)
    # Two threads for four seconds.
    assert table["parallel_efficiency"].to_pylist() == pytest.approx([4.5 / 8] * 3)


def test_calls_that_do_not_repeat_are_no_loop(tmp_path):
    text = "*: main [0, 9]\n*: f [1, 2]\n*: f [3, 4]\n0: g [5, 8]\n1: h [5, 8]"
    result = whywait.analyze(trace_from_text(text, tmp_path))
    assert result.iterations() is None
    with pytest.raises(whywait.UsageError, match="there are no events"):
        fake_native.result(fake_native.small()).iterations("MPI_Barrier")


def test_what_repeats_in_little_of_the_time_is_no_main_loop(tmp_path):
    text = "*: main [0, 10]\n*: solve [0, 6]\n" + "".join(f"*: write [{6 + i}, {7 + i}]\n" for i in range(4))
    result = whywait.analyze(trace_from_text(f"ranks 2\n{text}", tmp_path))
    assert result.iterations() is None
    assert result.iterations("write").num_rows == 4


def test_one_long_visit_among_short_ones_is_no_loop(tmp_path):
    """An interpreter of commands, the last of which is the run itself: its loop is not recorded."""
    text = "*: main [0, 40]\n" + "".join(f"*: command [{begin}, {end}]\n" for begin, end in ((0, 1), (1, 1.2), (2, 39)))
    result = whywait.analyze(trace_from_text(f"ranks 2\n{text}", tmp_path))
    assert result.iterations() is None
    # Who names it wants it.
    assert result.iterations("command").num_rows == 3


def test_parts_of_a_loop_count_together(tmp_path):
    """As in NPB LU: what is called four times has less than half of the time, and so has what is called nine times."""
    lines = ["0,1: main [0, 100]", "0,1: MPI_Init [0, 60]"]
    lines += [f"0,1: rhs [{60 + 10 * i}, {64 + 10 * i}]" for i in range(4)]
    lines += [f"0,1: buts [{64.5 + 10 * (i // 2) + 2 * (i % 2)}, {66 + 10 * (i // 2) + 2 * (i % 2)}]" for i in range(7)]
    result = whywait.analyze(trace_from_text("\n".join(lines), tmp_path))
    table = result.iterations()
    assert table.num_rows == 4
    assert result.tree.path(table["callpath_id"][0].as_py())[-1] == "rhs"


def test_ranks_may_have_different_numbers_of_iterations(tmp_path):
    result = whywait.analyze(
        trace_from_text("*: main [0, 9]\n0: f [1, 2]\n0: f [3, 4]\n1: f [2, 5]\n0: g [6, 7]", tmp_path)
    )
    table = result.iterations("f")
    assert table.select(["begin", "end", "ranks"]).to_pylist() == [
        {"begin": 1, "end": 5, "ranks": 2}, {"begin": 3, "end": 4, "ranks": 1}
    ]  # fmt: skip


def documented():
    """Yield each question of the document: the trace, what is named, and the answer."""
    heading, trace = "", ""
    document = (Path(__file__).parent / "patterns/iterations.md").read_text(encoding="utf-8")
    for block in re.finditer(
        r"^## ([^\n]+)$|^```(trace|iterations)([^\n]*)\n(.*?)^```$", document, re.MULTILINE | re.DOTALL
    ):
        if block[1]:
            heading = block[1]
        elif block[2] == "trace":
            trace = block[4]
        else:
            yield pytest.param(trace, block[3].strip() or None, block[4], id=f"{heading}{block[3]}")


def told(result, named):
    table = result.iterations(named)
    at = "/".join(result.tree.path(table["callpath_id"][0].as_py())[1:])
    marker = table["parameter"][0].as_py()
    yield at if marker is None else f"parameter {marker} in {at}"
    for row in table.to_pylist():
        value = row["value"]
        which = "" if marker is None else ", different values" if value is None else f", value {value}"
        yield f"{row['iteration']}: [{row['begin']:g}, {row['end']:g}] on {row['ranks']}{which}"


@pytest.mark.parametrize(("trace", "named", "answer"), list(documented()))
def test_what_marks_an_iteration(trace, named, answer, tmp_path):
    result = whywait.analyze(trace_from_text(trace, tmp_path / "trace"))
    assert list(told(result, named)) == answer.splitlines()
    # A written result keeps it, and shows it without the events.
    result.write(tmp_path / "result", iterations=named)
    back = whywait.load(tmp_path / "result")
    assert list(told(back, named)) == answer.splitlines()
    assert list(told(back, None)) == answer.splitlines()


PARAMETERS = """
parameters i
0,1: main [0, 20]
0,1: i(i=7) [2, 6]
0: i(i=8) [8, 12]
1: i(i=8) [8, 15]
0,1: i(i=9) [15, 16]
"""


def test_a_call_path_comes_before_a_parameter_of_its_name(tmp_path, capsys):
    trace = trace_from_text(PARAMETERS, tmp_path / "trace")
    result = whywait.analyze(trace)
    assert result.iterations("i")["parameter"].to_pylist() == [None] * 3
    assert result.iterations("parameter:i")["parameter"].to_pylist() == ["i"] * 3
    with pytest.raises(whywait.UsageError, match=r"no call path ends in j: .*; the trace has the parameters i$"):
        result.iterations("j")
    with pytest.raises(whywait.UsageError, match="no process records a parameter j: there are i"):
        result.iterations("parameter:j")
    assert main(["iterations", str(trace)]) == 0
    text = capsys.readouterr().out
    assert "each begins with another value of i\n   recorded in program → main → i" in text
    assert [line.split()[0 :: len(line.split()) - 1] for line in text.strip().splitlines()[-3:]] == [
        ["1", "8"],
        ["0", "7"],
        ["2", "9"],
    ]
    assert main(["iterations", str(trace), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameter"] == "i"
    result.write(tmp_path / "named", iterations="i")
    # What was stored is the loop of the call path; the verb analyzes the trace again for the other.
    assert main(["iterations", str(tmp_path / "named"), "--iterations", "parameter:i", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameter"] == "i"


def test_a_window_has_no_iterations():
    part = whywait.analyze(DATA / "stencil", window=(0.4, 0.5))
    with pytest.raises(whywait.UsageError, match="this is a part of a run"):
        part.iterations()


def test_a_written_result_keeps_the_iterations_of_its_loop(tmp_path, capsys):
    result = whywait.analyze(DATA / "stencil")
    result.write(tmp_path / "main")
    back = whywait.load(tmp_path / "main")
    assert back.iterations().equals(result.iterations())
    assert back.iterations("solve/exchange_halo").equals(result.iterations())
    with pytest.raises(whywait.UsageError, match="analyze the trace with `--iterations`"):
        back.iterations("residual")
    # The verb analyzes the trace again.
    assert main(["iterations", str(tmp_path / "main"), "--iterations", "residual", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["callpath"][-1] == "residual"
    result.write(tmp_path / "named", iterations="residual")
    named = whywait.load(tmp_path / "named")
    assert named.tree.path(named.iterations()["callpath_id"][0].as_py())[-1] == "residual"
    with pytest.raises(whywait.UsageError, match="no call path ends in nowhere"):
        result.write(tmp_path / "wrong", iterations="nowhere")
    assert not (tmp_path / "wrong" / "manifest.json").exists()


def test_a_rank_that_gives_its_lead_back_makes_no_outlier():
    """In the stencil, rank 5 sets the pace, and the others wait for it in an Allreduce of every fifth iteration."""
    result = whywait.analyze(DATA / "stencil")
    table = result.iterations()
    found = assess(result, table)
    assert found["outliers"] == []
    duration = table["duration"].to_numpy()
    assert duration[:-1].max() < 1.1 * np.median(duration)
    assert table["longest"].to_numpy().max() > 1.9 * np.median(duration)
    begin = table["begin"][0].as_py() + table["lead"][0].as_py()
    assert duration.sum() == pytest.approx(table["end"].to_numpy().max() - begin, rel=1e-2)
    assert np.count_nonzero(table["pace_rank"].to_numpy() == 5) >= 75


def test_trend_and_outliers_are_judged(steps):
    table = steps.iterations()
    column = table.column_names.index("duration")

    def judged(durations):
        rows = table.take([0] * len(durations)).set_column(column, "duration", [np.array(durations, float)])
        rows = rows.set_column(0, "iteration", [np.arange(len(durations))])
        return assess(steps, rows)

    assert judged([1, 1, 1, 1])["trend"] == {"slope": 0, "change": 0, "fit": 0, "kind": "steady"}
    rising = judged(np.arange(100) + 100)["trend"]
    assert rising["kind"] == "grows"
    assert rising["slope"] == pytest.approx(1)
    assert rising["change"] == pytest.approx(99 / 149.5)
    assert rising["fit"] == pytest.approx(1)
    assert judged(200 - np.arange(100))["trend"]["kind"] == "shrinks"
    assert judged([1, 1.01] * 50)["trend"]["kind"] == "steady"
    odd = judged([1.0] * 50 + [2, 1.5, 1.19] + [1.0] * 50)
    assert odd["outliers"] == [50, 51]
    assert odd["worst"] == 50
    assert odd["duration"]["median"] == 1
    # The quartiles are 1 and 1.2: the outer fence is at 1.2 + 3 x 0.2.
    assert judged([1.0] * 40 + [1.2] * 40 + [1.7, 1.9])["outliers"] == [81]
    assert judged([3.0])["trend"]["kind"] == "steady"


def test_the_verb_lists_the_slowest_iterations(capsys):
    assert main(["iterations", str(DATA / "stencil"), "--top", "2"]) == 0
    text = capsys.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.startswith("100 iterations take ")
    result = whywait.analyze(DATA / "stencil")
    worst = result.iterations().sort_by([("duration", "descending")]).slice(0, 2)
    listed = [line.split()[0] for line in text.strip().splitlines()[-2:]]
    assert listed == [str(number) for number in worst["iteration"].to_pylist()]
    assert main(["iterations", str(DATA / "stencil"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["iterations"] == len(found["table"]) == 100
    assert math.isclose(found["waiting"], pc.sum(result.iterations()["waiting"]).as_py())
    assert main(["iterations", str(DATA / "intercomm")]) == 2
    assert "--iterations" in capsys.readouterr().err


# Every third iteration has an MPI_Allreduce, and so takes longer.
PERIODIC = """
ranks 2
""" + "".join(
    f"""
    *: step [{t:g}, {t + 1 + n % 3 // 2:g}]
    *: work [{t:g}, {t + 0.9:g}]
    """
    + (f"*: MPI_Allreduce [{t + 1:g}, {t + 2:g}]" if n % 3 == 2 else "")
    for n in range(12)
    for t in [n + n // 3]
)


def test_what_every_third_iteration_has_is_named(tmp_path, capsys):
    anchor = trace_from_text(PERIODIC, tmp_path)
    result = whywait.analyze(anchor)
    found = assess(result, result.iterations())
    assert found["periodic"] == [{"name": "MPI_Allreduce", "every": 3, "first": 2}]
    # Those with it are long, and no outliers.
    assert found["outliers"] == []
    assert result.iterations()["periodic"].to_pylist() == [None, None, "MPI_Allreduce"] * 4
    assert main(["iterations", str(anchor)]) == 0
    assert "every 3rd iteration has MPI_Allreduce, from 2 on" in capsys.readouterr().out


def test_an_operation_that_comes_irregularly_is_not_periodic(tmp_path):
    irregular = PERIODIC.replace("*: MPI_Allreduce [7, 8]", "")
    assert irregular != PERIODIC
    result = whywait.analyze(trace_from_text(irregular, tmp_path))
    assert assess(result, result.iterations())["periodic"] == []


def test_the_groups_of_an_iteration_are_all_its_time(tmp_path):
    result = whywait.analyze(trace_from_text(PERIODIC, tmp_path))
    lines = result.account(by="iteration").to_pylist()
    for number, row in enumerate(result.iterations().to_pylist()):
        of_iteration = {line["group"]: line["time"] for line in lines if line["iteration"] == number}
        # Both ranks begin each iteration at the same time.
        assert sum(of_iteration.values()) == pytest.approx(2 * row["duration"], abs=1e-9)
        transfer = 2.0 if row["periodic"] else 0.0
        assert of_iteration["transfer"] == pytest.approx(transfer, abs=1e-9)
        assert of_iteration["computation"] == pytest.approx(2 * row["duration"] - transfer, abs=1e-9)


def test_the_account_by_iteration_is_that_of_the_loop():
    result = whywait.analyze(DATA / "stencil")
    lines = result.account(by="iteration").to_pylist()
    table = result.iterations()
    window = (float(table["begin"][0].as_py()), float(table["end"].to_numpy().max()))
    whole = {}
    for line in result.account(by="row", window=window).to_pylist():
        whole[line["group"]] = whole.get(line["group"], 0.0) + line["time"]
    for group in ("computation", "waiting", "transfer"):
        of_loop = sum(line["time"] for line in lines if line["group"] == group)
        # The window has what a rank does before its first iteration, and after its last.
        assert of_loop == pytest.approx(whole[group], rel=0.05)


def test_an_account_of_a_part_has_no_iterations(tmp_path):
    result = whywait.analyze(trace_from_text(PERIODIC, tmp_path))
    with pytest.raises(whywait.UsageError, match="of the run"):
        result.account("step", by="iteration")
    short = whywait.analyze(trace_from_text("0: work [0, 1]\n", tmp_path / "short"))
    with pytest.raises(whywait.UsageError, match="no main loop"):
        short.account(by="iteration")
