"""Samples of the call path: kept apart from the events, and what they say about the computation between them."""

import pytest
import whywait
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


def analyzed(directory, *parts):
    directory.mkdir(exist_ok=True)
    return whywait.analyze(whywait.open(trace_from_text("\n".join(parts), directory)))


def returned(result):
    """Return all tables that methods of a result return, but what must differ: samples, and counts of events."""
    found = {}
    for table in tables().values():
        for method in table.methods:
            if method not in {"samples", "callpaths", "profile", "loops", "queue_levels", "queue_series"}:
                rows = getattr(result, method)()
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
        (0, pytest.approx(6.5), "main/step", "main/step"),
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
    assert names == {f"program/main/step/{name}" for name in ("exchange/pack", "kernel", "kernel/inner")}


def test_samples_are_stored(tmp_path):
    result = analyzed(tmp_path, "contexts", PROGRAM, SAMPLES)
    result.write(tmp_path / "result")
    assert whywait.load(tmp_path / "result").samples() == result.samples()


def test_samples_without_events_have_no_call_path_of_events(tmp_path):
    threads = "threads 2\n0: main [1, 2]\n0.1: f [1, 1]\n0.1: sample main/kernel @1.5, 1.75"
    result = analyzed(tmp_path, "contexts\nframes f", threads)
    rows = result.samples().to_pylist()
    assert [(row["recorded_callpath"], row["callpath"]) for row in rows] == [(None, ["main", "kernel"])] * 2
