"""Traces of PyTorch's profiler: waits between devices, and their costs, are those of the programs."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
import whywait
from whywait.analysis.devices.groups import device_groups
from whywait.analysis.findings import findings
from whywait.analysis.focus import focused
from whywait.cli import main
from whywait.hypotheses import Scale

from tests.results import SHARED, UNRECORDED

CASES = SHARED / "kineto"
if not CASES.is_dir():
    pytest.skip(UNRECORDED, allow_module_level=True)

ROWS = {
    "barrier": "ccl_wait_barrier",
    "broadcast": "ccl_late_broadcast",
    "scatter": "ccl_late_broadcast",
    "reduce": "ccl_early_reduce",
    "gather": "ccl_early_reduce",
    "recv": "ccl_latesender",
    "send": "ccl_latereceiver",
}
# Each has the right waits; those without group names agree to the microseconds of their times.
EXACT = (
    "late_loader",
    "late_loader_2.4",
    "overlap",
    "chain",
    "generic_names",
    "host_bound",
    "host_chain",
    "pipeline",
    "directions",
    "current_stream",
    "graph",
)
# Case, rank and the end of the call path that pay, and the waiting (ms) that they pay for.
CAUSES = [
    ("late_loader", 2, "DataLoader", 225),
    ("late_loader_2.4", 2, "DataLoader", 225),
    ("late_loader_2.0", 2, "DataLoader", 225),
    ("clocks", 2, "DataLoader", 225),
    # Of the steps that their records cut, ranks have parts.
    ("windows", 2, "ProfilerStep/DataLoader", 225),
    ("windows_2.4", 2, "ProfilerStep/DataLoader", 225),
    ("chain", 3, "attention_forward", 135),
    ("generic_names", 3, "attention_forward", 135),
    ("host_bound", 1, "gc_collect", 75),
    ("host_chain", 3, "gemm_forward", 108),
    ("overlap", 1, "gemm_head", 72),
    ("graph", 1, "gemm_b", 45),
    ("current_stream", 0, "gemm_a", 45),
    ("coalesced", 1, "gemm_forward", 60),
    ("directions", 0, "gemm_work", 90),
    ("directions", 1, "gemm_work", 60),
    ("directions", 2, "gemm_work", 60),
    ("directions", 3, "gemm_work", 90),
]


def right(case):
    return json.loads((CASES / case / "right.json").read_text(encoding="utf-8"))


@cache
def analyzed(case):
    return whywait.analyze(whywait.open(CASES / case / "traces"))


def expected(case):
    """Return the exposed waits of each metric and rank in nanoseconds, and the hidden ones of each rank."""
    exposed, hidden = defaultdict(list), defaultdict(int)
    for wait in right(case)["waits"]:
        if wait["exposed_ns"]:
            exposed[ROWS.get(wait["kind"], "ccl_wait_nxn"), wait["rank"]].append(wait["exposed_ns"])
        if wait["wait_ns"] > wait["exposed_ns"]:
            hidden[wait["rank"]] += wait["wait_ns"] - wait["exposed_ns"]
    return {key: sorted(values) for key, values in exposed.items()}, dict(hidden)


def found(result):
    exposed = defaultdict(list)
    for wait in result.wait_states().to_pylist():
        if wait["kind"].startswith("ccl_"):
            exposed[wait["kind"], wait["rank"]].append(round(wait["waiting"] * 1e9))
    rank, hidden = result.places.rank, defaultdict(int)
    if "ccl_hidden" in result.profile.metrics:
        key, value = result.profile.cells("ccl_hidden")
        for location, time in zip(np.mod(key, result.profile.locations), value, strict=True):
            hidden[int(rank[location])] += round(time * 1e9)
    return {key: sorted(values) for key, values in exposed.items()}, dict(hidden)


@pytest.mark.parametrize("case", EXACT)
def test_waits_are_those_of_the_program(case):
    assert found(analyzed(case)) == expected(case)


def test_a_kernel_with_several_messages_waits_for_the_longest():
    exposed, hidden = found(analyzed("coalesced"))
    assert not hidden
    of_ranks = defaultdict(int)
    for (_, rank), values in exposed.items():
        of_ranks[rank] += sum(values)
    assert of_ranks == {wait["rank"]: wait["exposed_ns"] for wait in right("coalesced")["totals"] if wait["exposed_ns"]}


def test_waits_without_names_of_groups_agree_to_the_precision_of_their_times():
    (exposed, hidden), (of_program, _) = found(analyzed("late_loader_2.0")), expected("late_loader_2.0")
    assert exposed.keys() == of_program.keys()
    assert not hidden
    for key, values in of_program.items():
        assert exposed[key] == pytest.approx(values, abs=1000)


@pytest.mark.parametrize("case", ["windows", "windows_2.4"])
def test_only_operations_of_which_all_members_are_recorded_count(case):
    exposed, _ = found(analyzed(case))
    assert sum(map(sum, exposed.values())) == 225_000_000


def test_nobody_is_blamed_for_what_a_missing_rank_did():
    exposed, _ = found(analyzed("missing_rank"))
    assert not exposed
    assert not costs(analyzed("missing_rank"))
    # The 225 ms that three ranks wait for the one without a file, and nine transfers of 2 ms: no operation has all of
    # its members, so how long such a transfer takes is not known.
    account = analyzed("missing_rank").device_account().to_pylist()
    unseen = [line["time"] for line in account if line["row"] == "comm.unseen"]
    assert sum(unseen) == pytest.approx(0.225 + 9 * 0.002, abs=1e-9)


def costs(result):
    """Return the costs of waits between devices by rank and call path, in milliseconds."""
    found = defaultdict(float)
    for metric in ("delay_ccl", "delay_ccl_longterm"):
        if metric not in result.profile.metrics:
            continue
        key, value = result.profile.cells(metric)
        position, location = np.divmod(key, result.profile.locations)
        for callpath, where, cost in zip(result.profile.tree.preorder[position], location, value, strict=True):
            names = "/".join(result.tree.path(int(callpath)))
            found[int(result.places.rank[where]), names] += float(cost) * 1e3
    return found


@pytest.mark.parametrize(("case", "rank", "name", "waiting"), CAUSES)
def test_costs_go_to_what_made_the_rank_late(case, rank, name, waiting):
    of_all = costs(analyzed(case))
    charged = sum(cost for (here, path), cost in of_all.items() if here == rank and name in path)
    assert charged == pytest.approx(waiting, rel=0.01)


@pytest.mark.parametrize("case", EXACT)
def test_costs_add_up_to_the_waits(case):
    result = analyzed(case)
    waiting = sum(map(sum, found(result)[0].values())) / 1e6
    unattributed = (
        result.profile.total("delay_unattributed") * 1e3 if "delay_unattributed" in result.profile.metrics else 0
    )
    assert sum(costs(result).values()) + unattributed == pytest.approx(waiting, rel=1e-9, abs=1e-6)


def test_a_real_run_waits_as_its_kernels_begin():
    exposed, hidden = found(analyzed("dlrm8"))
    of_program = right("dlrm8")
    waits = np.sum([operation["wait_us"] for operation in of_program["operations"]], axis=0)
    shown = np.sum([operation["exposed_us"] for operation in of_program["operations"]], axis=0)
    for rank in range(8):
        ours = sum(sum(values) for (_, here), values in exposed.items() if here == rank)
        assert ours / 1000 == pytest.approx(shown[rank], abs=8)
        assert (ours + hidden.get(rank, 0)) / 1000 == pytest.approx(waits[rank], abs=8)


# Case, change, and what the program's own rerun saves (ms).
CHANGES = [
    ("late_loader", [Scale("aten::stack@2", 1 / 6)], 75),
    ("overlap", [Scale("gemm_head@1", 1 / 3)], 24),
    ("chain", [Scale("attention_forward@3", 1 / 4)], 45),
    ("host_bound", [Scale("<built-in function gc_collect>@1", 0)], 25),
    ("host_chain", [Scale("gemm_forward@3", 1 / 3)], 36),
    ("pipeline", [Scale("gemm_forward@2", 1 / 2), Scale("gemm_backward@2", 1 / 2)], 120),
    ("graph", [Scale("gemm_b@1", 4 / 9)], 15),
    ("current_stream", [Scale("gemm_a@0", 4 / 9)], 15),
]


@pytest.mark.parametrize(("case", "changes", "saved"), CHANGES, ids=[case for case, *_ in CHANGES])
def test_a_change_saves_what_the_program_saves(case, changes, saved):
    assert whywait.whatif(analyzed(case), changes).saved * 1e3 == pytest.approx(saved, abs=0.01)


def test_a_slow_stage_is_told_from_the_order_of_stages():
    found = findings(analyzed("pipeline"))
    stage, bubble = found.shown[:2]
    assert [(stage.rule, stage.ranks), (bubble.rule, bubble.ranks)] == [
        ("pipeline_stage", [2]),
        ("pipeline_bubble", []),
    ]
    assert "in each of 2 steps of 166 ms" in stage.sentence
    assert "2 times as long as elsewhere" in stage.sentence
    assert "one after another" in bubble.sentence
    # Both kernels of the stage become as fast as those of the others.
    priced = whywait.analyze(CASES / "pipeline" / "traces").findings(prices=True)
    assert priced.shown[0].price.saved * 1e3 == pytest.approx(120, abs=0.01)
    # Kernels that wait for each other at the same time share the time of their device.
    account = analyzed("pipeline").tables.device_account.to_pylist()
    waits = sum(line["time"] for line in account if line["row"].startswith("comm.wait."))
    assert stage.loss + bubble.loss <= waits * (1 + 1e-9)


@pytest.mark.parametrize(
    ("case", "words"), [("host_bound", "25.0 ms in 1 of 3"), ("late_loader", "25.0 ms in each of 3")]
)
def test_a_straggler_of_one_step_is_told_from_one_of_all(case, words):
    assert words in str(findings(analyzed(case)).shown[0].sentence)


def test_the_last_stage_of_a_real_run_is_slower():
    stage, bubble = findings(analyzed("straggler_stage")).shown
    assert (stage.rule, stage.ranks) == ("pipeline_stage", [6, 7])
    names = {analyzed("straggler_stage").tree.path(callpath)[-1] for callpath in stage.causes}
    assert names == {"forward_compute_kernel", "backward_compute_kernel"}
    # What filling and draining takes comes second: a stage can be mended.
    assert bubble.rule == "pipeline_bubble"


# Case, rule, and the ranks that it names.
RULES = [
    ("late_loader", "straggler_loading", [2]),
    ("host_bound", "straggler_host", [1]),
    ("chain", "straggler_kernel", [3]),
    ("overlap", "straggler_kernel", [1]),
    ("directions", "changing", []),
    ("missing_rank", "missing_ranks", []),
    ("dlrm8", "host_bound", []),
    ("dlrm8", "window_start", []),
]


@pytest.mark.parametrize(("case", "rule", "ranks"), RULES)
def test_findings_have_the_rule_of_their_reason(case, rule, ranks):
    assert ranks in [one.ranks for one in findings(analyzed(case)) if one.rule == rule]


def test_metrics_of_stragglers_are_those_that_are_published():
    found, published = analyzed("straggler_stage").facts["stragglers"], right("straggler_stage")["published"]
    assert found["per_step"] == pytest.approx(published["step_s"], rel=0.01)
    assert found["ideal_per_step"] == pytest.approx(published["ideal_step_s"], rel=0.01)
    assert found["slowdown"] == pytest.approx(published["slowdown"], rel=0.01)
    assert found["M_W"] == pytest.approx(published["M_W"], abs=0.02)
    assert found["M_S"] == pytest.approx(published["M_S"], abs=0.02)
    assert found["last_stage"] == [6, 7]


# Case, and what is lost in all because a rank is slower (ms): the mean of the ranks is faster than the slow one.
# In `chain`, transfers of 1 and 2 ms have one call path, and so the median.
UNLIKE = [("late_loader", 3 * (30 - 11.25)), ("chain", 3 * (20 - 8.75 + 1)), ("current_stream", 3 * (9 - 5.25))]


@pytest.mark.parametrize(("case", "lost"), UNLIKE)
def test_ranks_that_are_alike_would_save_what_the_slow_one_takes_longer(case, lost):
    found = analyzed(case).facts["stragglers"]
    assert (found["length"] - found["ideal"]) * 1e3 == pytest.approx(lost, abs=0.1)
    assert max(found["ranks"], key=lambda one: one["slowdown"])["rank"] == found["slowest_ranks"][0]
    assert found["M_S"] is None


def test_what_begins_late_without_a_launch_is_no_longer_kernel():
    # The host of each rank is not in these files, so what it does late is not the kernels' fault.
    of_all = costs(analyzed("straggler_stage"))
    first = sorted(of_all, key=lambda place: -of_all[place])[:2]
    assert sorted(first) == [(6, "backward_compute_kernel"), (7, "backward_compute_kernel")]


def test_a_step_has_the_same_number_on_all_ranks():
    # The ranks record steps 10 to 13, 11 to 14, 10 to 14, and 12 to 14.
    table = analyzed("windows").iterations()
    assert table["value"].to_pylist() == ["10", "11", "12", "13", "14"]
    assert table["ranks"].to_pylist() == [2, 3, 4, 4, 3]
    assert table["duration"].to_numpy() == pytest.approx(np.full(5, 0.05501), abs=1e-4)


def test_profilers_that_start_and_stop_apart_agree_on_a_part():
    result = analyzed("gloo_window")
    assert result.facts["focus_rule"] == "profiler"
    assert focused(result).focus.phrase == "the time that all ranks recorded"
    assert result.facts["focus_end"] - result.facts["focus_begin"] < 0.1 < result.facts["length"]
    assert analyzed("windows").facts["focus_end"] - analyzed("windows").facts["focus_begin"] == pytest.approx(
        0.18, abs=1e-4
    )


def test_clocks_of_several_nodes_are_corrected(tmp_path):
    traces = CASES / "clocks" / "traces"
    result = whywait.analyze(traces)
    assert result.clocks["done"] == ["lines"]
    assert result.clocks["left"] == 0
    truth = expected("clocks")[0]
    off, uncorrected = (
        max(max(abs(np.subtract(waits[key], truth[key]))) for key in truth)
        for waits in (found(result)[0], found(whywait.analyze(traces, clocks="measured"))[0])
    )
    # Each operation transfers for 2 ms, and the clocks are 3 ms apart.
    assert uncorrected == 2e6
    assert off < 30e3

    whywait.correct(traces, tmp_path)
    assert found(whywait.analyze(tmp_path))[0] == found(result)[0]


def test_the_critical_path_is_as_long_as_the_run():
    for case in EXACT:
        result = analyzed(case)
        assert result.profile.total("critical_path") <= result.facts["length"] * (1 + 1e-9), case


# Case, the begin of its verdict.
ANSWERS = [
    (
        "late_loader",
        "Rank 2 makes the other 3 GPUs wait 25.0 ms in each of 3 steps of 55.0 ms: its data loader (DataLo",
    ),
    ("chain", "Rank 3 makes the other 3 GPUs wait 15.0 ms in each of 3 steps of 31.0 ms: aten::attention/attention_f"),
    ("missing_rank", "1 of 4 ranks has no trace"),
    (
        "windows",
        "2 steps of 55.0 ms: its data loader (DataLoader.__next__/aten::stack) takes 25.0 ms longer there, 6 times as",
    ),
    ("directions", "aten::gemm/gemm_work takes longer on another rank each time; GPUs wait 300 ms for it."),
    # Without devices, ranks wait.
    (
        "gloo_allreduce",
        "Rank 2 makes the other 3 ranks wait 23.2 ms in each of 3 steps of 48.0 ms: load takes 25.0 ms l",
    ),
    (
        "gloo_async",
        "Rank 3 makes the other 3 ranks wait 29.0 ms in each of 3 steps of 83.8 ms: late_exposed takes 40.3",
    ),
    (
        "gloo_types",
        "Rank 0 makes the other 3 ranks wait 23.0 ms in each of 2 steps of 289 ms: late_scatter takes 20.4 ",
    ),
    (
        "gloo_pipe",
        "Rank 2 makes the other 3 ranks wait 58.4 ms in each of 2 steps of 258 ms: forward and backward take",
    ),
    (
        "gloo_mesh",
        "Rank 3 makes the other 3 ranks wait 17.5 ms in each of 3 steps of 32.2 ms: attention takes 20.0 ms ",
    ),
    ("gloo_window", "compute takes longer on another rank each time; ranks wait 65.8 ms for it."),
    (
        "gloo_ddp",
        "Rank 1 makes the other 3 ranks wait 24.2 ms in each of 3 steps of 97.2 ms: its data loader (DataLoad",
    ),
    (
        "gloo_fsdp",
        "Rank 3 makes the other 3 ranks wait 18.7 ms in each of 2 steps of 132 ms: SlowBackward takes 23.7 m",
    ),
    ("gloo_batch", "The peers of 16 sends and receives are not recorded (record_shapes=True has them)"),
]


@pytest.mark.parametrize(("case", "begin"), ANSWERS)
def test_the_answer_names_the_rank(case, begin):
    assert begin in findings(analyzed(case)).verdict()


@pytest.mark.parametrize(
    ("case", "saves"),
    [
        ("host_bound", "Without it, the run would be 25.0 ms (59%) shorter."),
        ("directions", "Without the differences, the run would be 100 ms (76%) shorter."),
    ],
)
def test_the_answer_has_a_price_where_no_other_rank_is_an_example(case, saves):
    assert whywait.analyze(CASES / case / "traces").findings(prices=True).verdict().endswith(saves)


# Delays are sleeps of processes that share two cores (README of the cases): rank, end of its call path, waiting (ms).
SLEEPERS = [("gloo_allreduce", 2, "load", 225), ("gloo_mesh", 3, "attention", 180)]


@pytest.mark.parametrize(("case", "rank", "name", "waiting"), SLEEPERS)
def test_operations_on_cpus_wait_for_the_rank_that_sleeps(case, rank, name, waiting):
    result = analyzed(case)
    charged = 0.0
    for metric in ("delay_n2n", "delay_n2n_longterm"):
        key, value = result.profile.cells(metric)
        position, location = np.divmod(key, result.profile.locations)
        for callpath, where, cost in zip(result.profile.tree.preorder[position], location, value, strict=True):
            if result.places.rank[where] == rank and result.tree.path(int(callpath))[-1] == name:
                charged += float(cost) * 1e3
    assert charged == pytest.approx(waiting, rel=0.15)


def test_groups_tell_where_devices_wait_and_transfer(capsys):
    groups = {group["name"]: group for group in device_groups(analyzed("chain"))}
    waiting = {name: round(group["waiting"] * 1e3, 6) for name, group in groups.items()}
    assert waiting == {"tp0": 0, "tp1": 45, "dp0": 45, "dp1": 45}
    # Of transfers with the same kernel and size, those in tp take 1 ms, in dp 2.
    assert {name: round(group["excess"] * 1e3, 6) for name, group in groups.items()} == {
        "tp0": 0, "tp1": 0, "dp0": 6, "dp1": 6,
    }  # fmt: skip
    hidden = device_groups(analyzed("overlap"))[0]
    assert (hidden["waiting"], hidden["hidden"]) == (pytest.approx(0.144), pytest.approx(0.072))
    assert main(["messages", str(CASES / "chain" / "traces")]) == 0
    shown = capsys.readouterr().out
    assert "dp1 (1,3)" in shown
    # Hosts that wait for their own devices wait for no rank.
    assert "135 ms of waiting for a known rank" in shown


def test_hidden_communication_is_that_of_other_tools(capsys):
    # Holistic Trace Analysis 0.5 on the same files.
    overlap = [4.50, 2.47, 7.88, 3.31, 0.56, 0.64, 7.56, 9.51]
    devices = whywait.Result.gpu(analyzed("dlrm8")).summary(focus="all")["devices"]
    shares = [100 * one["communication_hidden"] / one["communication"] for one in devices]
    assert shares == pytest.approx(overlap, abs=0.005)
    for one in analyzed("overlap").gpu().summary()["devices"]:
        assert one["communication_hidden"] == pytest.approx(one["communication"] / 2)
    assert main(["gpu", str(CASES / "overlap" / "traces")]) == 0
    text = capsys.readouterr().out
    assert "GPU 0                            60.0 ms     30.0 ms       50.0%     30.0 ms" in text
    # Each part of the time of a device has a column.
    heads, first = text.split("Device                           kernels       waits   transfers")[1].splitlines()[:2]
    assert not heads.strip()
    assert sum(float(share.rstrip("%")) for share in first.split()[2:]) == pytest.approx(100, abs=0.2)


def test_efficiencies_are_those_of_devices_first(capsys):
    assert main(["efficiency", str(CASES / "chain" / "traces")]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("Efficiency of devices")
    # Kernels take 201 of 372 ms.
    assert second.split() == ["Parallel", "efficiency", "of", "devices", "54.0%"]


def test_the_longest_wait_of_a_step_is_explained(capsys):
    traces = str(CASES / "windows" / "traces")
    assert main(["explain", traces, "--rank", "3", "--step", "12", "--json"]) == 0
    wait = json.loads(capsys.readouterr().out)
    assert 0.11 < wait["enter"] < 0.165
    assert main(["explain", traces, "--step", "2"]) == 2
    assert "there is no step 2: they are 10 to 14" in capsys.readouterr().err


def test_the_timeline_leads_from_the_late_kernel_to_those_that_wait(tmp_path):
    from tests.test_perfetto import written

    _, timeline = written(analyzed("late_loader"), tmp_path)
    arrows = [(cause, wait) for cause, wait in timeline.arrows("region", "wait_state") if "devices" in wait.name]
    assert {timeline.place(cause)[0] for cause, _ in arrows} == {"Rank 2"}
    assert sorted(timeline.place(wait)[0] for _, wait in arrows) == sorted(3 * ["Rank 0", "Rank 1", "Rank 3"])
