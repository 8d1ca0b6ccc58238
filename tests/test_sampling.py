"""Samples of the call path: kept apart from the events, and what they say about the computation between them."""

from math import sqrt
from random import Random

import numpy as np
import pyarrow as pa
import pytest
import whywait
from whywait import _native, cli
from whywait.analysis.causes import critical
from whywait.analysis.findings import findings
from whywait.analysis.functions.functions import costs, times
from whywait.hypotheses import Balance, Scale
from whywait.model.schema import tables

from .tracedsl import trace_from_text

# Rank 1 computes longer in each of two steps.
PROGRAM = """
ranks 2
frames main step exchange
*: main [1, 9]
*: step [1, 9]
0: MPI_Barrier [1, 1.5]
1: MPI_Barrier [1, 1.5]
0: exchange [2, 3]
0: MPI_Send(1, tag=1) [2, 2.2]
0: MPI_Recv(1, tag=2) [2.5, 3]
1: exchange [1.8, 3]
1: MPI_Recv(0, tag=1) [1.8, 2.3]
1: MPI_Send(0, tag=2) [2.8, 3]
0: MPI_Barrier [4, 6]
1: MPI_Barrier [5.9, 6]
0: MPI_Barrier [7, 9]
1: MPI_Barrier [8.9, 9]
"""
SAMPLES = """
0: sample main/step/kernel @0.5, 3.5
0: sample main/step/exchange/pack @2.3, 2.4
0: sample main/step/exchange/MPI_Recv @2.7
0: sample main/step/exchange @3.1
0: sample main/other/kernel @6.5
1: sample main/step/kernel/inner(stime=0.25, minflt=7) @4, 4.5
1: sample main/step/kernel(nivcsw=3) @5, 9.5
"""


# What only samples say.
OWN = {"samples", "functions", "delay_functions"}


def analyzed(directory, *parts):
    directory.mkdir(exist_ok=True)
    return whywait.analyze(whywait.open(trace_from_text("\n".join(parts), directory)))


def returned(result):
    """Return all tables that methods of a result return, but what must differ: samples, and counts of events."""
    found = {}
    for table in tables().values():
        for method in table.methods:
            if method not in OWN | {"callpaths", "loops", "queue_levels", "queue_series"}:
                rows = getattr(result, method)()
                if method == "severities":
                    rows = rows.filter(~np.isin(rows["metric"].to_pylist(), _native.sampled_metrics()))
                kept = [name for name in rows.column_names if name not in {"events", "begin_line", "end_line"}]
                found[method] = rows.select(kept).to_pylist()
    return found


def test_samples_change_no_table(tmp_path):
    without = returned(analyzed(tmp_path / "a", "contexts", PROGRAM))
    sampled = returned(analyzed(tmp_path / "b", "contexts", PROGRAM, SAMPLES))
    assert without["wait_states"]
    for method, rows in without.items():
        assert sampled[method] == rows, method


def test_callers_last_from_their_first_event_to_their_last(tmp_path):
    # The program without contexts says the same in other records.
    plain = returned(analyzed(tmp_path / "a", PROGRAM))
    sampled = returned(analyzed(tmp_path / "b", "contexts", PROGRAM, SAMPLES))
    for method, rows in plain.items():
        assert sampled[method] == rows, method


def test_a_sample_lies_below_what_the_events_say_was_running(tmp_path):
    result = analyzed(tmp_path, "contexts", PROGRAM, SAMPLES)
    rows = result.samples().to_pylist()

    def path(names):
        return None if names is None else "/".join(names[1:])

    assert [(row["rank"], row["time"], path(row["recorded_callpath"]), path(row["callpath"])) for row in rows] == [
        # Before the first call nothing is known; afterwards, exchange had gone.
        (0, pytest.approx(0.5), "", "main/step/kernel"),
        (0, pytest.approx(2.3), "main/step/exchange", "main/step/exchange/pack"),
        (0, pytest.approx(2.4), "main/step/exchange", "main/step/exchange/pack"),
        (0, pytest.approx(2.7), "main/step/exchange/MPI_Recv", "main/step/exchange/MPI_Recv"),
        (0, pytest.approx(3.1), "main/step", "main/step/exchange"),
        (0, pytest.approx(3.5), "main/step", "main/step/kernel"),
        # Not where the events say.
        (0, pytest.approx(6.5), "main/step", "main/other/kernel"),
        (1, pytest.approx(4.0), "main/step", "main/step/kernel/inner"),
        (1, pytest.approx(4.5), "main/step", "main/step/kernel/inner"),
        (1, pytest.approx(5.0), "main/step", "main/step/kernel"),
        # After the last event.
        (1, pytest.approx(9.5), None, None),
    ]
    assert [row["in_call"] for row in rows].index(True) == 3
    used = [(row["system_time"], row["minor_faults"], row["involuntary_switches"]) for row in rows if row["rank"] == 1]
    # What was used before the first sample is not known.
    assert used == [(0, 0, 0), (0.25, 7, 0), (0, 0, 3), (0, 0, 3)]


def test_calls_that_only_samples_have_stand_in_the_call_tree_after_the_others(tmp_path):
    result = analyzed(tmp_path, "contexts", PROGRAM, SAMPLES)
    recorded = result.tables.facts["callpaths"]
    names = {row["path"] for row in result.callpaths().to_pylist() if row["callpath_id"] >= recorded}
    below = {f"program/main/step/{name}" for name in ("exchange/pack", "kernel", "kernel/inner")}
    assert names == below | {"program/main/other", "program/main/other/kernel"}


def test_samples_are_stored(tmp_path):
    result = analyzed(tmp_path, "contexts", PROGRAM, SAMPLES)
    result.write(tmp_path / "result")
    assert whywait.load(tmp_path / "result").samples() == result.samples()


def test_samples_without_events_have_no_call_path_of_events(tmp_path):
    threads = "threads 2\n0: main [1, 2]\n0.1: f [1, 1]\n0.1: sample main/kernel @1.5, 1.75"
    result = analyzed(tmp_path, "contexts\nframes f", threads)
    rows = result.samples().to_pylist()
    assert [(row["recorded_callpath"], row["callpath"]) for row in rows] == [(None, ["main", "kernel"])] * 2


STEPS = 30


def steps(late="a b b b", header="contexts", count=STEPS):
    """Return a program of some steps, in which rank 0 computes 1 s and waits 1 s for rank 1, and what samples see."""
    lines = [header, "ranks 2", "frames main step", "*: MPI_Barrier [0.9, 1]"]
    for number in range(count):
        begin = 1 + 2.1 * number
        lines += [f"0: MPI_Barrier [{begin + 1}, {begin + 2.1}]", f"1: MPI_Barrier [{begin + 2}, {begin + 2.1}]"]
        for rank, seen in enumerate(("a b", late)):
            for at, name in enumerate(seen.split()):
                lines.append(f"{rank}: sample main/step/{name} @{begin + 0.25 + 0.5 * at:.2f}")
    end = 1 + 2.1 * count
    return "\n".join([*lines, f"*: main [0.9, {end}]", f"*: step [0.9, {end}]"])


def deviation(time, share, samples):
    smooth = (share * samples + 1) / (samples + 2)
    return time * sqrt(smooth * (1 - smooth) / samples)


def by_name(rows):
    return {(row["rank"], row["callpath"] and row["callpath"][-1]): row for row in rows}


def test_samples_divide_the_time_between_events(tmp_path):
    result = analyzed(tmp_path, steps())
    rows = by_name(result.functions().to_pylist())
    times = {key: row["time"] for key, row in rows.items()}
    assert times == pytest.approx({(0, "a"): 15, (0, "b"): 15, (1, "a"): 15, (1, "b"): 45})
    assert {key: row["samples"] for key, row in rows.items()} == {
        (0, "a"): 30, (0, "b"): 30, (1, "a"): 30, (1, "b"): 90,
    }  # fmt: skip
    # Wilson's interval for 30 of 60.
    assert (rows[0, "a"]["low"] / 30, rows[0, "a"]["high"] / 30) == pytest.approx((0.37735, 0.62265), abs=1e-5)
    # All of rank 1's is on the critical path.
    critical = {key: row["critical"] for key, row in rows.items()}
    assert critical == pytest.approx({(0, "a"): 0, (0, "b"): 0, (1, "a"): 15, (1, "b"): 45})


def test_the_call_tree_has_the_times_of_functions(tmp_path):
    result = analyzed(tmp_path, steps())
    assert result.profile.total("sampled_time") == pytest.approx(90)
    assert result.profile.total("samples") == 6 * STEPS
    severities = by_name(row for row in result.severities().to_pylist() if row["metric"] == "sampled_time")
    assert severities[1, "b"]["value"] == pytest.approx(45)
    result.write(tmp_path / "result")
    assert whywait.load(tmp_path / "result").profile.total("sampled_time") == pytest.approx(90)


def test_the_late_function_has_the_cost(tmp_path):
    result = analyzed(tmp_path, steps())
    (whole,) = (row for row in result.delay_costs().to_pylist() if row["callpath"][-1] == "step" and row["rank"] == 1)
    assert whole["short_term"] == pytest.approx(STEPS)
    rows = by_name(result.delay_functions().to_pylist())
    assert {key: row["cost"] for key, row in rows.items()} == pytest.approx({(1, "a"): 0, (1, "b"): STEPS}, abs=1e-9)
    error = sqrt(deviation(60, 0.75, 120) ** 2 + deviation(30, 0.5, 60) ** 2)
    assert rows[1, "b"]["deviation"] == pytest.approx(error)
    assert (rows[1, "b"]["samples"], rows[1, "b"]["waiter_samples"]) == (90, 30)
    assert remark(result) == f"By 180 samples, the difference is in step/b: all of it, 30.0 s ± {1.96 * error:.2f} s."


def remark(result):
    (found,) = (one.remarks["functions"] for one in findings(result) if "functions" in one.remarks)
    return found


def test_functions_that_cost_as_much_are_named_together(tmp_path):
    # Rank 1 does the same as rank 0, and then as much in two other functions.
    error = f"{1.96 * deviation(60, 0.25, 120):.2f} s"
    expected = " and ".join(f"step/{name}: 50% of it, 15.0 s ± {error}" for name in "cd")
    assert remark(analyzed(tmp_path, steps(late="a b c d"))) == f"By 180 samples, the differences are in {expected}."


def test_a_function_is_named_with_what_it_calls(tmp_path):
    # Each of these has a third of the difference, and the one that calls them has all of it.
    result = analyzed(tmp_path, steps(late="a b/x b/y b/z"))
    error = sqrt(deviation(60, 0.75, 120) ** 2 + deviation(30, 0.5, 60) ** 2)
    assert remark(result) == f"By 180 samples, the difference is in step/b: all of it, 30.0 s ± {1.96 * error:.2f} s."
    rows = by_name(result.delay_functions().to_pylist())
    assert (rows[1, "b"]["cost"], rows[1, "x"]["cost"]) == pytest.approx((-15, 15))
    assert rows[1, "b"]["inclusive_deviation"] == pytest.approx(error)
    assert rows[1, "x"]["inclusive_deviation"] == rows[1, "x"]["deviation"] == pytest.approx(deviation(60, 0.25, 120))
    times = by_name(result.functions().to_pylist())
    assert (times[1, "b"]["time"], times[1, "b"]["samples"]) == (0, 0)
    assert times[1, "b"]["inclusive_deviation"] == pytest.approx(deviation(60, 0.75, 120))
    (step,) = (row for row in critical(result, 5)["callpaths"] if row["callpath"][-1] == "step")
    shares = {one["callpath"][-1]: (one["share"], one["error"]) for one in step["functions"]}
    assert shares == dict.fromkeys("axyz", pytest.approx((0.25, 1.96 * deviation(1, 0.25, 120))))


def test_the_summary_says_how_much_is_known_by_samples(tmp_path):
    # In step, samples divide 90 s; rank 1 then computes for 10 s in end, without any.
    end = 1 + 2.1 * STEPS
    lines = ["*: MPI_Init [0, 0]", "1: end [{0}, {1}]", "1: MPI_Barrier [{1}, {1}]", "0: MPI_Barrier [{0}, {1}]"]
    result = analyzed(tmp_path, steps(), *(line.format(end, end + 10) for line in lines))
    (text,) = result.summary()["recording"]
    assert text == "180 samples of the call path divide 90.0% of the computation among functions."


def test_few_samples_divide_no_call_path(tmp_path):
    result = analyzed(tmp_path, steps(count=3))
    assert not any(one["functions"] for one in critical(result, 5)["callpaths"])


def test_functions_of_which_late_ranks_do_less_are_named_last(tmp_path):
    words = remark(analyzed(tmp_path, steps(late="b b b c")))
    one, half = 30.0, 15.0
    assert f"step/b: all of it, {one} s" in words
    assert f"step/c: 50% of it, {half} s" in words
    assert words.index("They spend less time in step/a: 50% of it, 15.0 s ±") > words.index("step/c")


def test_recursion_may_be_deep(tmp_path):
    """Deeper than calls of Python can be."""
    deep = "main/" + "/".join(["f"] * 2000)
    barriers = ["0: MPI_Barrier [1, 61]", "1: MPI_Barrier [60.9, 61]"]
    samples = [f"1: sample {deep} @{1.2 + second}" for second in range(59)]
    result = analyzed(tmp_path, "contexts", "ranks 2", "frames main", "*: main [0, 62]", *barriers, *samples)
    program, _ = critical(result, 5)["callpaths"]
    assert [one["callpath"][1:] for one in program["functions"]] == [["main", "f"]]


def test_a_function_called_at_many_depths_of_recursion_is_one(tmp_path):
    result = analyzed(tmp_path, steps(late="a n/leaf n/n/leaf n/m/n/leaf"))
    path = next(number for number in range(len(result.tree)) if result.tree.path(number)[-1] == "step")
    late = {"/".join(one["callpath"][3:]): one["cost"] for one in costs(result, path)}
    assert late == pytest.approx({"n/leaf": 45, "b": -15})
    assert "step/n/leaf" not in remark(result)
    assert "the difference is in n/leaf: " in remark(result)


def test_a_function_of_a_library_is_named_with_what_calls_it(tmp_path, monkeypatch):
    def source(result, callpath):
        return "own.c:7" if result.tree.path(callpath)[-1] == "own" else None

    for module in ("findings", "functions"):
        monkeypatch.setattr(f"whywait.analysis.{module}.functions.source", source)
    words = remark(analyzed(tmp_path, steps(late="a own/lib/x own/lib/x own/lib/x")))
    assert "the difference is in lib/x, called by step/own (own.c:7): " in words


def test_no_function_is_named_by_chance(tmp_path):
    few = analyzed(tmp_path, steps(count=9))
    assert remark(few).startswith("Which function takes longer cannot be told from 54 samples: record longer")


def test_no_function_is_named_whose_cost_may_be_chance(tmp_path):
    # Both functions cost 5 s, with standard deviations of 2.5 s.
    assert remark(analyzed(tmp_path, steps(late="a b", count=10))).startswith(
        "Which function takes longer cannot be told from 40 samples"
    )


def test_samples_of_faults_divide_no_time(tmp_path):
    faults = "\n".join(f"1: sample main/step/a(on='faults') @{1 + 2.1 * number + 0.1}" for number in range(STEPS))
    result = analyzed(tmp_path, steps(), faults)
    assert result.facts["samples"] == 7 * STEPS
    times = {key: row["time"] for key, row in by_name(result.functions().to_pylist()).items()}
    assert times == pytest.approx({(0, "a"): 15, (0, "b"): 15, (1, "a"): 15, (1, "b"): 45})
    assert {row["kind"] for row in result.samples().to_pylist()} == {"time", "count"}


def test_time_in_the_system_or_without_a_core_is_no_function(tmp_path):
    result = analyzed(tmp_path, steps(late="a b", header="contexts perf 0.5"))
    rows = by_name(result.functions().to_pylist())
    times = {key: row["time"] for key, row in rows.items()}
    assert times == pytest.approx({(0, "a"): 15, (0, "b"): 15, (1, "a"): 15, (1, "b"): 15, (1, None): 30})
    costs = {key: row["cost"] for key, row in by_name(result.delay_functions().to_pylist()).items()}
    assert costs == pytest.approx({(1, "a"): 0, (1, "b"): 0, (1, None): STEPS}, abs=1e-9)
    assert "the system, or time without a core: all of it" in remark(result)


def test_faults_and_switches_say_why_time_is_in_the_system_or_without_a_core(tmp_path):
    def with_use(use):
        lines = steps(late="a b", header="contexts perf 0.5").replace(
            "1: sample main/step/b ", f"1: sample main/step/b({use}) "
        )
        return remark(analyzed(tmp_path / use, lines))

    # Nothing is known of what the thread had used before its first sample, which is in a.
    assert with_use("stime=0.9, minflt=4096").endswith(
        "In the system it is 27.0 s more than elsewhere, with 122,880 more page faults."
    )
    preempted, slept = with_use("nivcsw=7"), with_use("nvcsw=7")
    assert preempted.endswith("Another thread took its core 210 times more often.")
    assert "the difference is in time without a core: all of it" in preempted
    assert slept.endswith("It gave up its core 210 times more often, to sleep or to read.")
    assert "the difference is in sleep, or time without a core: all of it" in slept
    # Sleep may be long, though it is rare; and time in the system is not known to be that of the function.
    assert "in sleep, or time without a core" in with_use("nivcsw=7, nvcsw=1")
    assert "in the system, or time without a core" in with_use("nivcsw=8, stime=0.2")


def test_where_threads_were_that_have_no_samples(tmp_path):
    for use, where in (
        ("nivcsw=7", "without a core"),
        ("nvcsw=7", "asleep, or without a core"),
        ("nivcsw=0", "in the system, or without a core"),
    ):
        lines = steps(late="a b", header="contexts perf 0.5").replace(
            "1: sample main/step/b ", f"1: sample main/step/b({use}) "
        )
        result = analyzed(tmp_path / use, lines)
        path = next(number for number in range(len(result.tree)) if result.tree.path(number)[-1] == "step")
        found = [*times(result, path), *costs(result, path)]
        assert [one["away"] for one in found if one["callpath"] is None] == [where, where]


def test_page_faults_are_time_of_the_function_that_has_them(tmp_path):
    fault = "1: sample main/step/b(on='faults', stime=0.75, minflt=1000)"
    faults = [f"{fault} @{1 + 2.1 * number + 1.5}" for number in range(STEPS)]
    result = analyzed(tmp_path, steps(late="a b", header="contexts perf 0.5"), *faults)
    # Of the 30 s that samples do not stand for, 30,000 faults take 22.5 s.
    rows = by_name(result.functions().to_pylist())
    expected = {(1, "a"): 15, (1, "b"): 37.5, (1, None): 7.5}
    assert {key: row["time"] for key, row in rows.items() if row["time"]} == pytest.approx(
        expected | {(0, "a"): 15, (0, "b"): 15}
    )
    assert {key: row["critical"] for key, row in rows.items() if row["critical"]} == pytest.approx(expected)
    # The time away is known to a period times the root of the number of samples.
    error = 0.5 * sqrt(60)
    of_faults = sqrt(deviation(22.5, 1, 30) ** 2 + (0.75 * error) ** 2)
    assert rows[1, "b"]["deviation"] == pytest.approx(sqrt(of_faults**2 + deviation(30, 0.5, 60) ** 2))
    assert rows[1, None]["deviation"] == pytest.approx(0.25 * error)
    costs = {key: row["cost"] for key, row in by_name(result.delay_functions().to_pylist()).items()}
    assert costs == pytest.approx({(1, "a"): 0, (1, "b"): 22.5, (1, None): 7.5}, abs=1e-9)
    words = remark(result)
    assert "the differences are in step/b: 75% of it, 22.5 s ± " in words
    assert "the system, or time without a core: 25% of it, 7.50 s ± " in words
    assert words.endswith("In the system it is 22.5 s more than elsewhere, with 30,000 more page faults.")


def test_shards_do_not_change_what_samples_say(tmp_path):
    program = f"{steps()}\n2-3: main [0.9, 64]\n2-3: MPI_Barrier [0.9, 1]"
    program = program.replace("ranks 2", "ranks 4").replace("*: m", "0-1: m").replace("*: s", "0-1: s")
    path = trace_from_text(program, tmp_path)
    run = _native.Run(str(path))
    many, one = (_native.analyze(run, shard_events=size, threads=2) for size in (1, 1 << 40))
    for name in ("samples", "profile", "delay_functions", "callpaths"):
        assert pa.table(getattr(many, name)()) == pa.table(getattr(one, name)()), name
    assert pa.table(one.profile()).num_rows


TAKES = {"f": (2.0, 3.0), "g": (1.0, 1.0), "h": (0.5, 0.5)}


def noisy(seed, count=300):
    """Return a program whose functions take about as many ms as `TAKES`, sampled at 100 Hz, and their times by rank."""
    random = Random(seed)  # noqa: S311 - samples, no secrets
    lines = ["contexts", "ranks 2", "frames main step", "*: MPI_Barrier [0.9, 1]"]
    times = [dict.fromkeys(TAKES, 0.0), dict.fromkeys(TAKES, 0.0)]
    until = [random.uniform(0, 0.01) for _ in range(2)]
    begin = 1.0
    for _ in range(count):
        ends = []
        for rank in range(2):
            now = begin
            for name, takes in TAKES.items():
                length = 1e-3 * takes[rank] * random.uniform(0.95, 1.05)
                times[rank][name] += length
                left = length
                # The clock of a thread stands still while it waits.
                while until[rank] < left:
                    now, left = now + until[rank], left - until[rank]
                    lines.append(f"{rank}: sample main/step/{name} @{now:.9f}")
                    until[rank] = random.uniform(0.0075, 0.0125)
                now, until[rank] = now + left, until[rank] - left
            ends.append(now)
        end = max(ends) + 1e-5
        lines += [f"{rank}: MPI_Barrier [{ends[rank]:.9f}, {end:.9f}]" for rank in range(2)]
        begin = end
    return "\n".join([*lines, f"*: main [0.9, {begin:.9f}]", f"*: step [0.9, {begin:.9f}]"]), times


def test_intervals_contain_the_truth(tmp_path):
    right, named = {"times": 0, "costs": 0}, 0
    for seed in range(20):
        program, times = noisy(seed)
        result = analyzed(tmp_path / str(seed), program)
        functions = by_name(result.functions().to_pylist())
        right["times"] += sum(
            functions[rank, name]["low"] <= times[rank][name] <= functions[rank, name]["high"]
            for rank in range(2)
            for name in TAKES
        )
        costs = by_name(result.delay_functions().to_pylist())
        right["costs"] += sum(
            abs(costs[1, name]["cost"] - (times[1][name] - times[0][name])) <= 1.96 * costs[1, name]["deviation"]
            for name in TAKES
        )
        words = remark(result)
        named += "step/f" in words
        assert "step/g" not in words
        assert "step/h" not in words
    # 95% of 120 and of 60; fewer are less likely than one in a thousand.
    assert right["times"] >= 106
    assert right["costs"] >= 51
    # With 240 samples, it is named in 93% of 200 runs.
    assert named >= 14


def saved(tmp_path, *hypotheses):
    result = analyzed(tmp_path, steps())
    return whywait.whatif(result, list(hypotheses)).saved


def test_a_faster_function_shortens_the_run(tmp_path):
    # Rank 1 spends 45 of 60 s in b, rank 0 15 of 30 s.
    assert saved(tmp_path / "all", Scale("b", 0.5)) == pytest.approx(22.5, abs=0.05)
    # Without b, rank 0 takes half of its time and rank 1 a quarter, as long as each other.
    assert saved(tmp_path / "none", Scale("b", 0.0)) == pytest.approx(45, abs=0.05)
    # On rank 1 alone, rank 0 becomes the later one.
    assert saved(tmp_path / "one", Scale("b@1", 0.0)) == pytest.approx(30, abs=0.05)
    # Functions of one call path are changed together.
    assert saved(tmp_path / "both", Scale("a", 0.0), Scale("b", 0.0)) == pytest.approx(60, abs=0.05)


def test_the_error_of_a_faster_function_has_that_of_its_samples(tmp_path, capsys):
    def found(name, *hypotheses):
        return whywait.whatif(analyzed(tmp_path / name, steps()), list(hypotheses)).error_estimate

    # Of 120 samples of rank 1, 90 are in b and 30 in a; rank 0 is not on the critical path.
    share = 91 / 122
    one = found("one", Scale("b", 0.5))
    assert one.sampling == pytest.approx(3 * 60 * 0.5 * sqrt(share * (1 - share) / 120))
    assert (one.noise, one.total) == (pytest.approx(0), pytest.approx(one.sampling))
    # A sample saves nothing, half, or all of its part.
    shares = {1.0: 30.5 / 122, 0.5: 90.5 / 122}
    mean = sum(part * share for part, share in shares.items())
    variance = sum(part**2 * share for part, share in shares.items()) - mean**2
    both = found("both", Scale("a", 0.0), Scale("b", 0.5))
    assert both.sampling == pytest.approx(3 * 60 * sqrt(variance / 120))
    assert found("recorded", Scale("step", 0.5)).sampling == 0
    assert cli.main(["whatif", str(tmp_path / "one"), "--scale", "b=0.5"]) == 0
    assert f" + sampling {one.sampling:.2f} s" in capsys.readouterr().out
    # Three iterations show no noise.
    few = whywait.whatif(analyzed(tmp_path / "few", steps(count=3)), [Scale("b", 0.5)]).error_estimate
    assert (few.noise, few.total) == (None, None)
    assert cli.main(["whatif", str(tmp_path / "few"), "--scale", "b=0.5"]) == 0
    assert f"no iterations show the noise; sampling alone ±{few.sampling:.2f} s" in capsys.readouterr().out


def test_functions_of_samples_cannot_be_balanced(tmp_path):
    with pytest.raises(whywait.UsageError, match="only samples have seen b, so its time can be scaled"):
        saved(tmp_path, Balance("b"))


def test_a_simulated_run_has_no_samples(tmp_path):
    result = analyzed(tmp_path, steps())
    simulation = whywait.whatif(result, [Scale("step", 0.5)])
    after = whywait.analyze(whywait.open(simulation.write(tmp_path / "after")))
    assert "samples" not in after.facts
    # As many events as the definitions say.
    assert after.facts["events"] == sum(row["events"] for row in after.locations.to_pylist())
    assert after.facts["events"] == result.facts["events"] - 6 * STEPS
    assert after.facts["length"] == pytest.approx(simulation.after.length)


def test_a_thread_computes_nothing_between_its_parts_in_teams(tmp_path):
    lines = ["contexts", "threads 2", "0: main [0, 20]"]
    for begin in (1, 11):
        lines += [f"0: fork [{begin}, {begin + 4}]", f"0: !$omp parallel [{begin}, {begin + 4}]"]
        lines += [f"0.1: !$omp parallel [{begin}, {begin + 4}]"]
        lines += [f"0.1: sample !$omp parallel/work @{begin + 0.25 * number}" for number in range(1, 15)]
    lines += [f"0: sample main/serial @{6 + 0.25 * number}" for number in range(15)]
    rows = analyzed(tmp_path, *lines).functions().to_pylist()
    times = {(row["thread"], row["callpath"][-1]): row["time"] for row in rows}
    assert times[0, "serial"] == pytest.approx(12)
    assert {name: time for (thread, name), time in times.items() if thread == 1 and time} == {}


def test_advice_has_changes_of_functions(tmp_path):
    # Rank 1 spends 45 of 60 s in b, rank 0 15 of 30 s; only rank 1 is on the critical path.
    advice = whywait.advise(analyzed(tmp_path, steps()), rounds=1)
    found = {one.option: one for one in [*advice, *advice.bounds]}
    assert found["--scale 'b=0.5'"].saved == pytest.approx(22.5, abs=0.05)
    assert found["--scale 'b=0.5'"].locations == 2
    like_others = found["--scale 'b@1=0.3333'"]
    assert like_others.saved == pytest.approx(30, abs=0.1)
    assert like_others.what == "b on rank 1 as fast as elsewhere"
    assert found["--scale 'b=0'"].is_bound
    assert advice.plan[0].option == "--scale 'b@1=0.3333'"


def test_a_comparison_names_functions_that_differ_with_certainty(tmp_path, capsys):
    first, second = (
        analyzed(tmp_path / name, steps(late=late)) for name, late in (("first", "a b"), ("second", "a b/x b/x b"))
    )
    found = whywait.compare(first, second).functions()
    assert found["samples"] == [120, 180]
    # Of 90 s, samples give b with x 45 s in the first run, and 60 s in the second one.
    rows = {row["callpath"][-1]: row for row in found["functions"]}
    assert {name: (row["first"], row["second"]) for name, row in rows.items()} == {
        "a": (pytest.approx(45), pytest.approx(30)), "b": (pytest.approx(45), pytest.approx(60)),
    }  # fmt: skip
    of_runs = deviation(60, 0.5, 60), deviation(30, 0.5, 60), deviation(60, 0.75, 120), deviation(30, 0.5, 60)
    error = 1.96 * sqrt(sum(one**2 for one in of_runs))
    assert rows["b"]["error"] == pytest.approx(error)
    assert cli.main(["diff", str(tmp_path / "first"), str(tmp_path / "second")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"main → step → b 45.0 s 60.0 s +15.0 s ± {error:.1f} s" in text


def test_a_comparison_says_when_samples_do_not_decide(tmp_path, capsys):
    for name in ("first", "second"):
        analyzed(tmp_path / name, steps(count=10))
    assert cli.main(["diff", str(tmp_path / "first"), str(tmp_path / "second")]) == 0
    assert "By 60 and 60 samples, no function differs with certainty." in capsys.readouterr().out
