"""Traces of PyTorch's profiler from simulated programs: other numbers, ranks and losses than those of the cases."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections import defaultdict

import numpy as np
import pytest
import whywait
from whywait.analysis.devices.groups import device_groups
from whywait.analysis.findings import findings
from whywait.analysis.iterations import assess
from whywait.cli import main
from whywait.hypotheses import Scale

from tests.results import SHARED, UNRECORDED

MAKER = SHARED / "kineto" / "make.py"
if not MAKER.is_file():
    pytest.skip(UNRECORDED, allow_module_level=True)
SPEC = importlib.util.spec_from_file_location("kineto_programs", MAKER)
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)

MS = make.MS
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def program(ranks, count, body, *, has_steps=True, groups=None):
    """Return the simulated program of some ranks, whose steps `body` gives."""
    steps = make.steps(count, body)
    programs = [steps(rank) for rank in range(ranks)]
    if not has_steps:
        programs = [
            [what for what in each if what[0] not in {"begin", "end"} or what[1:2] == (LOADER,)] for each in programs
        ]
    return make.Simulation(programs, groups or {"world": list(range(ranks))})


def loading(late, longer, transfer=2):
    """Return the body of a step in which one rank loads data for longer."""

    def body(rank, _):
        return [
            ("host", "aten::stack", (5 + (longer if rank == late else 0)) * MS),
            ("kernel", "gemm_forward", 10 * MS),
            ("coll", "all_reduce", "world", transfer * MS),
            ("kernel", "adam_step", 3 * MS),
            ("sync", 7),
        ]

    return body


def found_in(simulation, directory, **how):
    simulation.write(directory, **how)
    result = whywait.analyze(directory)
    return result, {one.rule: one for one in reversed(list(findings(result)))}


@pytest.mark.parametrize(("ranks", "late", "longer", "count"), [(2, 0, 7, 4), (8, 5, 40, 2), (3, 2, 11, 1)])
@pytest.mark.parametrize("has_steps", [True, False])
def test_waits_do_not_depend_on_the_number_of_ranks(ranks, late, longer, count, has_steps, tmp_path):
    simulation = program(ranks, count, loading(late, longer), has_steps=has_steps)
    result, found = found_in(simulation, tmp_path)
    waits = defaultdict(list)
    for wait in result.wait_states().to_pylist():
        if wait["kind"].startswith("ccl_"):
            waits[wait["rank"]].append(round(wait["waiting"] * 1e9))
    expected = defaultdict(list)
    for _, _, _, rank, waiting, *_ in simulation.waits():
        if waiting:
            expected[rank].append(waiting)
    assert waits == expected
    first = found["straggler_host"]
    assert first.ranks == [late]
    assert first.loss == pytest.approx(count * (ranks - 1) * longer / 1000, rel=1e-3)
    if count > 1 and has_steps:
        assert f"{longer:.1f}" in first.sentence
        assert f"in each of {count} steps" in first.sentence


def test_two_late_ranks_are_named_and_mended_together(tmp_path):
    def body(rank, _):
        loads = ("host", "aten::stack", {1: 30, 3: 28}.get(rank, 6) * MS)
        return [loads, ("kernel", "gemm_forward", 10 * MS), ("coll", "all_reduce", "world", 2 * MS), ("sync", 7)]

    result, found = found_in(program(4, 4, body), tmp_path)
    assert found["straggler_host"].sentence == (
        "Ranks 1 and 3 make the other 2 GPUs wait 24.0 ms in each of 4 steps of 42.0 ms: aten::stack takes 23.0 ms "
        "longer there, 4.8 times as long as elsewhere."
    )
    assert "device_starved" not in [one.rule for one in findings(result).shown[:1]]
    # As fast as the others: 6 ms instead of the mean of both, so that the slower one takes 6.2 ms.
    price = result.findings(prices=True).shown[0].price
    assert price.saved == pytest.approx(4 * 24e-3, rel=0.02)


@pytest.mark.parametrize("kind", ["kernel", "host"])
def test_ranks_that_are_all_slow_but_few_are_named_by_those_that_are_not(kind, tmp_path):
    def body(rank, _):
        work = (kind, "gemm_forward" if kind == "kernel" else "aten::stack", (4 if rank == 3 else 20) * MS)
        return [work, ("kernel", "gemm_beside", 2 * MS), ("coll", "all_reduce", "world", 2 * MS), ("sync", 7)]

    result, found = found_in(program(6, 4, body), tmp_path)
    first = found[f"straggler_{kind}"]
    # Whoever is the first of those that are equally late does not matter.
    assert first.ranks == [0, 1, 2, 4, 5]
    assert first.sentence.startswith("All ranks but 3 make the other GPU wait 16.0 ms in each of 4 steps")
    assert "takes 16.0 ms longer there, 5 times as long as elsewhere" in first.sentence
    (price,) = (one.price for one in result.findings(prices=True) if one.rule == first.rule)
    assert price.saved == pytest.approx(4 * 16e-3, rel=1e-3)
    # That all their devices are idle is lost besides, whoever waits.
    if kind == "host":
        assert found["device_starved"].loss == pytest.approx(4 * (5 * 20 + 4) * 1e-3, rel=0.01)


def test_a_rank_can_be_late_in_steps_in_which_nobody_waits(tmp_path):
    def body(rank, step):
        late = ("kernel", "gemm_late", (12 if rank == 1 else 2) * MS)
        # In every other step, another rank is later.
        later = [("host", "aten::stack", 15 * MS)] if rank == 0 and step % 2 else []
        return [*later, late, ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    _, found = found_in(program(2, 4, body), tmp_path)
    words = "Rank 1 makes the other GPU wait 10.0 ms in 2 of 4 steps: aten::gemm/gemm_late takes 10.0 ms longer there"
    assert words in found["straggler_kernel"].sentence


def test_how_much_longer_a_rank_takes_is_said_of_the_steps_in_which_it_is_late(tmp_path):
    def body(rank, step):
        loads = ("host", "aten::stack", (25 if rank == 2 and step % 2 else 5) * MS)
        return [loads, ("kernel", "gemm_forward", 6 * MS), ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    _, found = found_in(program(4, 6, body), tmp_path)
    assert found["straggler_host"].sentence == (
        "Rank 2 makes the other 3 GPUs wait 20.0 ms in 3 of 6 steps: aten::stack takes 20.0 ms longer there, 5 times "
        "as long as elsewhere."
    )


def test_what_follows_the_slow_part_of_a_late_rank_is_not_slow(tmp_path):
    def body(rank, _):
        return [
            ("kernel", "gemm_head", (15 if rank == 3 else 4) * MS),
            ("coll", "all_reduce", "world", 2 * MS, {"async": True, "as": "a"}),
            ("kernel", "gemm_body", 5 * MS),
            ("coll", "all_reduce", "world", 2 * MS, {"async": True, "as": "b"}),
            ("wait", "a"),
            ("wait", "b"),
            ("kernel", "adam_step", 3 * MS),
            ("sync", None, "cudaDeviceSynchronize"),
        ]

    result, _ = found_in(program(6, 4, body), tmp_path)
    # While both wait, the operations share the time of the device: all but what hides behind the body.
    (one,) = findings(result)
    assert one.sentence == (
        "Rank 3 makes the other 5 GPUs wait 9.00 ms in each of 4 steps of 25.0 ms: aten::gemm/gemm_head takes 11.0 ms "
        "longer there, 3.8 times as long as elsewhere."
    )
    assert one.loss == pytest.approx(5 * 4 * 9e-3, rel=1e-3)


def test_communication_that_matches_no_other_is_named(tmp_path):
    def body(rank, _):
        of_group = ("coll", "all_reduce", f"tp{rank // 2}", 1 * MS)
        late = ("kernel", "gemm_late", (20 if rank == 3 else 4) * MS)
        return [
            late,
            of_group,
            ("kernel", "gemm", 4 * MS),
            ("coll", "all_reduce", f"dp{rank % 2}", 2 * MS),
            ("sync", 7),
        ]

    groups = {"world": [0, 1, 2, 3], "tp0": [0, 1], "tp1": [2, 3], "dp0": [0, 2], "dp1": [1, 3]}
    result, _ = found_in(program(4, 4, body, groups=groups), tmp_path, style="2.0")
    share = rows(result)["comm.unmatched"] / sum(rows(result).values())
    words = f"For {100 * share:.0f}% of the time of GPUs, only kernels run whose operation on other ranks is not known"
    assert findings(result).verdict().startswith(words)


def test_a_kernel_that_runs_oftener_is_uneven_work(tmp_path):
    def body(rank, _):
        experts = [("kernel", "expert_gemm", 4 * MS)] * (3 if rank == 1 else 2)
        return [*experts, ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    _, found = found_in(program(4, 3, body), tmp_path)
    assert found["uneven_work"].ranks == [1]
    assert "runs 50% more often there" in found["uneven_work"].sentence
    assert "straggler_kernel" not in found


@pytest.mark.parametrize("missing", [0, 2, 4])
def test_ranks_keep_their_numbers_without_the_files_of_others(missing, tmp_path):
    def body(rank, _):
        late = ("kernel", "gemm_late", (18 if rank == 3 else 2) * MS)
        return [late, ("coll", "all_reduce", f"tp{rank // 2}", 1 * MS), ("sync", 7)]

    groups = {"world": list(range(6)), **{f"tp{pair}": [2 * pair, 2 * pair + 1] for pair in range(3)}}
    program(6, 4, body, groups=groups).write(tmp_path)
    (tmp_path / f"rank{missing}.pt.trace.json.gz").unlink()
    result = whywait.analyze(tmp_path)
    assert sorted(set(result.places.rank.tolist())) == [rank for rank in range(6) if rank != missing]
    waits = {
        (one["rank"], one["cause_rank"]) for one in result.wait_states().to_pylist() if one["kind"] == "ccl_wait_nxn"
    }
    assert waits == ({(2, 3)} if missing != 2 else set())
    assert {one["name"]: one["rank"] for one in result.gpu().summary()["devices"]}["GPU 5"] == 5
    if missing != 2:
        first = next(one for one in findings(result) if one.rule == "straggler_kernel")
        assert first.ranks == [3]
        assert first.sentence.startswith("Rank 3 makes 1 of the other 4 GPUs wait")
    # An archive of these traces has the same numbers.
    assert main(["clocks", str(tmp_path), "-o", str(tmp_path / "archive")]) == 0
    again = whywait.analyze(tmp_path / "archive")
    assert set(again.places.rank.tolist()) == set(result.places.rank.tolist())


@pytest.mark.parametrize("size", [2, 4])
def test_what_is_unseen_is_the_wait_for_a_rank_without_a_trace_if_transfers_are_known(size, tmp_path):
    ranks = 3 * size

    def body(rank, _):
        late = ("kernel", "gemm_late", (18 if rank == size else 2) * MS)
        return [late, ("coll", "all_reduce", f"tp{rank // size}", 1 * MS), ("sync", 7)]

    groups = {f"tp{group}": list(range(group * size, (group + 1) * size)) for group in range(3)}
    program(ranks, 4, body, groups={"world": list(range(ranks)), **groups}).write(tmp_path)
    (tmp_path / f"rank{size}.pt.trace.json.gz").unlink()
    rows = defaultdict(float)
    for line in whywait.analyze(tmp_path).device_account().to_pylist():
        rows[line["row"]] += line["time"] * 1e3
    # Two groups have all members; those of the third wait for the one that is missing, in each of four steps.
    assert rows["comm.unseen"] == pytest.approx((size - 1) * 4 * 16, abs=1e-6)
    assert rows["comm.transfer"] == pytest.approx((ranks - 1) * 4 * 1, abs=1e-6)
    assert rows["comm.unmatched"] == 0


def test_a_rank_that_waits_for_one_without_a_trace_is_not_blamed(tmp_path):
    def body(rank, _):
        pair, column = (("coll", "all_reduce", name, MS) for name in (f"tp{rank // 2}", f"dp{rank % 2}"))
        return [
            ("kernel", "gemm_late", (18 if rank == 1 else 2) * MS),
            pair,
            ("kernel", "gemm", MS),
            column,
            ("sync", 7),
        ]

    groups = {"world": [0, 1, 2, 3], "tp0": [0, 1], "tp1": [2, 3], "dp0": [0, 2], "dp1": [1, 3]}
    program(4, 4, body, groups=groups).write(tmp_path)
    (tmp_path / "rank1.pt.trace.json.gz").unlink()
    # Rank 2 waits for rank 0, and that for rank 1, which nothing is known of.
    result = whywait.analyze(tmp_path)
    waits = [one for one in result.wait_states().to_pylist() if one["kind"] == "ccl_wait_nxn"]
    assert {(one["rank"], one["cause_rank"]) for one in waits} == {(2, 0)}
    assert [one.rule for one in findings(result)] == ["missing_ranks"]
    assert "GPUs transfer data to ranks without a trace, or wait for them" in findings(result).verdict()


def with_shapes(directory, shapes):
    """Say of which shapes the inputs of kernels are, as the profiler does of the operators that launch them."""
    for rank, file in enumerate(sorted(directory.iterdir())):
        trace = json.loads(gzip.decompress(file.read_bytes()))
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        operators = [event for event in events if event["cat"] == "cpu_op"]
        for launch in (event for event in events if event["cat"] == "cuda_runtime"):
            begin = launch["ts"]
            around = [one for one in operators if one["ts"] <= begin <= one["ts"] + one["dur"]]
            for kernel in events:
                same = kernel["args"].get("correlation") == launch["args"].get("correlation")
                if around and same and kernel["cat"] == "kernel" and "Collective name" not in kernel["args"]:
                    around[-1]["args"] |= {"Input Dims": shapes(rank)}
                    kernel["args"]["External id"] = around[-1]["args"]["External id"]
        file.write_bytes(gzip.compress(json.dumps(trace | {"record_shapes": 1}).encode()))


@pytest.mark.parametrize("own", [[[96, 128], [128, 64]], [[32, 128], [128, 64]]])
def test_shapes_tell_more_work_from_a_slow_device(own, tmp_path):
    def body(rank, _):
        work = ("kernel", "gemm_forward", (12 if rank == 2 else 4) * MS)
        return [work, ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    usual = [[32, 128], [128, 64]]
    program(4, 3, body).write(tmp_path)
    with_shapes(tmp_path, lambda rank: own if rank == 2 else usual)
    (one,) = findings(whywait.analyze(tmp_path))
    assert one.ranks == [2]
    assert "gemm_forward takes 8.00 ms longer there, 3 times as long as elsewhere." in one.sentence
    if own == usual:
        assert one.rule == "straggler_kernel"
        assert one.advice.endswith("the shapes of its inputs are the same.")
    else:
        assert one.rule == "uneven_work"
        assert one.sentence.endswith(
            "Its inputs have other shapes there: mostly [[96, 128], [128, 64]], elsewhere [[32, 128], [128, 64]]."
        )


def test_transfers_that_nothing_hides_are_named(tmp_path):
    def body(_, __):
        return [("kernel", "gemm_forward", 5 * MS), ("coll", "all_reduce", "world", 4 * MS), ("sync", 7)]

    result, found = found_in(program(4, 6, body), tmp_path)
    assert found["exposed_transfer"].loss == pytest.approx(4 * 6 * 4e-3)
    assert "slow_network" not in found
    assert rows(result)["comm.transfer"] == pytest.approx(4 * 6 * 4e-3)


def test_slow_transfers_between_nodes_are_named(tmp_path):
    def body(_, step):
        transfer = (5 if step % 4 == 0 else 1) * MS
        return [("kernel", "gemm_forward", 5 * MS), ("coll", "all_reduce", "world", transfer), ("sync", 7)]

    result, found = found_in(program(4, 12, body), tmp_path, nodes=2)
    # A quarter of the operations takes 4 ms longer than the others.
    assert found["slow_network"].loss == pytest.approx(4 * 3 * 4e-3, rel=0.05)
    assert "of a group across 2 nodes take" in found["slow_network"].sentence
    assert rows(result)["comm.excess"] == pytest.approx(found["slow_network"].loss)


def test_the_group_with_a_slow_network_is_named(tmp_path):
    def body(rank, step):
        of_pair = (9 if rank % 2 and step % 2 else 1) * MS
        pair, world = ("coll", "all_reduce", f"dp{rank % 2}", of_pair), ("coll", "all_reduce", "world", MS)
        return [("kernel", "gemm_forward", 5 * MS), pair, ("sync", 7), world, ("sync", 7)]

    groups = {"world": [0, 1, 2, 3], "dp0": [0, 2], "dp1": [1, 3]}
    result, found = found_in(program(4, 12, body, groups=groups), tmp_path, nodes=2)
    assert found["slow_network"].sentence.endswith(
        "longer than the fastest of their kind, all of it in dp1 (ranks 1,3)."
    )
    (slow,) = (group for group in device_groups(result) if group["name"] == "dp1")
    assert slow["excess"] == pytest.approx(2 * 6 * 8e-3)
    assert slow["nodes"] == ["node0", "node1"]


def test_compilation_is_told_from_other_work_of_hosts(tmp_path):
    def body(_, step):
        compiles = [("host", "_compile.compile_inner (dynamo_timed)", 30 * MS, "user_annotation")] * (step == 0)
        return [*compiles, ("kernel", "gemm_forward", 5 * MS), ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    result, found = found_in(program(4, 3, body), tmp_path)
    assert found["compile_once"].loss == pytest.approx(4 * 30e-3)
    assert rows(result)["starved.compile"] == pytest.approx(4 * 30e-3)


def test_reading_results_of_devices_is_named(tmp_path):
    def body(_, __):
        item = [("begin", "aten::item", "cpu_op"), ("sync", 7), ("end",)]
        return [("kernel", "gemm_forward", 5 * MS), *item, ("coll", "all_reduce", "world", 1 * MS), ("sync", 7)]

    _, found = found_in(program(2, 3, body), tmp_path)
    assert "aten::item" in found["syncs"].sentence


def test_rows_of_the_account_add_up_to_the_time_of_devices(tmp_path):
    rng = np.random.default_rng(7)

    def body(rank, _):
        what = [("host", "aten::stack", int(rng.integers(0, 3 * MS)))]
        for _ in range(3):
            what.append(("kernel", "gemm_forward", int(rng.integers(1, 2 * MS))))
            what.append(("coll", "all_reduce", "world", int(1e5), {"async": bool(rank % 2), "as": "a"}))
        return [*what, ("wait", "a"), ("kernel", "adam_step", MS), ("sync", None, "cudaDeviceSynchronize")]

    result, _ = found_in(program(4, 4, body), tmp_path)
    by_device = defaultdict(float)
    for line in result.tables.device_account.to_pylist():
        by_device[line["device"]] += line["time"]
    begin, end = result.facts["focus_begin"], result.facts["focus_end"]
    assert list(by_device.values()) == pytest.approx([end - begin] * 4, abs=1e-9)
    hidden = sum(wait["hidden"] for wait in result.wait_states().to_pylist() if wait["hidden"] is not None)
    assert hidden <= result.profile.total("ccl_hidden") + 1e-12


def test_what_several_messages_of_a_kernel_wait_for_ends_earlier_in_the_changed_run(tmp_path):
    def ring(slow):
        def body(rank, _):
            work = ("kernel", "gemm_forward", (slow if rank == 2 else 3) * MS)
            return [work, ("coll", "exchange", "world", MS), ("kernel", "adam_step", MS), ("sync", 7)]

        return program(5, 3, body)

    ring(17).write(tmp_path)
    saved = whywait.whatif(whywait.analyze(tmp_path), [Scale("gemm_forward@2", 3 / 17)]).saved
    assert saved * 1e9 == pytest.approx(ring(17).end() - ring(3).end(), abs=1e4)


def test_iterations_of_devices_have_their_efficiency_and_the_rank_that_others_wait_for(tmp_path):
    simulation = program(4, 3, loading(2, 25))
    result, _ = found_in(simulation, tmp_path)
    rows = result.iterations().to_pylist()
    assert [row["slowest_rank"] for row in rows] == [2, 2, 2]
    for row in rows:
        assert row["computation"] == pytest.approx(13e-3)
        assert row["parallel_efficiency"] == pytest.approx(13e-3 / row["duration"])
        assert row["load_balance"] == pytest.approx(1)
        # Hosts wait for their own devices as well, which is no waiting for others.
        assert row["waiting"] == pytest.approx(3 * 25e-3)


def test_steps_that_some_ranks_lack_are_no_outliers_and_tell_no_trend(tmp_path):
    simulation = program(3, 6, loading(0, 5))
    begins = sorted(begin for _, name, begin, *_ in simulation.host[0] if name.startswith("ProfilerStep"))
    # Rank 1 records nothing of the first three steps.
    simulation.write(tmp_path, windows={1: (begins[3], simulation.end())})
    result = whywait.analyze(tmp_path)
    found = assess(result, result.iterations())
    assert (found["iterations"], found["common"]) == (6, 3)
    assert found["outliers"] == []
    assert found["trend"]["kind"] == "steady"


@pytest.mark.parametrize("late", [0, 1])
def test_a_run_whose_kernels_do_not_communicate_says_so(late, tmp_path, capsys):
    def body(rank, _):
        return [("host", "aten::stack", (9 if rank == late else 3) * MS), ("kernel", "gemm", 5 * MS), ("sync", 7)]

    result, _ = found_in(program(2, 2, body), tmp_path)
    words = "No kernel or operation was found that communicates (see --comm-kernels): who waits for whom is unknown."
    assert [one.text for one in findings(result).caveats] == [words]
    assert main(["info", str(tmp_path)]) == 0
    assert "none: no kernel or operation was found that communicates" in capsys.readouterr().out


def test_hidden_waiting_stands_beside_the_exposed():
    case = SHARED / "kineto" / "overlap"
    result = whywait.analyze(case / "traces")
    right = json.loads((case / "right.json").read_text(encoding="utf-8"))["waits"]
    waits = [wait for wait in result.wait_states().to_pylist() if wait["kind"].startswith("ccl_")]
    assert {wait["hidden"] for wait in waits} == {0.0}
    assert {wait["hidden"] for wait in result.wait_states().to_pylist()} == {0.0, None}
    # What is hidden as a whole is no wait state.
    assert result.profile.total("ccl_hidden") == pytest.approx(
        sum(wait["wait_ns"] - wait["exposed_ns"] for wait in right) / 1e9
    )


def test_what_only_the_late_rank_recorded_is_no_cause(tmp_path):
    # Rank 0 records from the second step on, which loads data before it waits for rank 2.
    simulation = program(3, 3, loading(2, 20))
    begins = [begin for _, name, begin, *_ in simulation.host[0] if name.startswith("ProfilerStep")]
    simulation.write(tmp_path, windows={0: (sorted(begins)[1], simulation.end())})
    result = whywait.analyze(tmp_path)
    (waits,) = (found.loss for found in findings(result) if found.rule == "straggler_host")
    assert waits == pytest.approx(2 * 2 * 20e-3, rel=1e-3)


def test_work_begins_after_its_caller_even_if_something_else_was_later(tmp_path):
    # On rank 0, the second operation waits for the first one, but could not begin before the second kernel has ended.
    def slow(longer):
        def body(rank, _):
            late = [("kernel", "gemm_late", (1 + longer) * MS)] if rank == 1 else []
            return [
                *late,
                ("coll", "all_reduce", "world", 1 * MS, {"async": True, "as": "a"}),
                ("kernel", "gemm_beside", 5 * MS),
                ("coll", "all_reduce", "world", 1 * MS, {"async": True, "as": "b"}),
                ("wait", "b"),
                ("kernel", "adam_step", 1 * MS),
                ("sync", None, "cudaDeviceSynchronize"),
            ]

        return program(2, 2, body)

    slow(20).write(tmp_path)
    saved = whywait.whatif(whywait.analyze(tmp_path), [Scale("gemm_late@1", 1 / 21)]).saved
    assert saved * 1e9 == pytest.approx(slow(20).end() - slow(0).end(), abs=1e4)


def rows(result):
    """Return the time of all devices in each row of their account."""
    found = defaultdict(float)
    for line in result.tables.device_account.to_pylist():
        found[line["row"]] += line["time"]
    return found
