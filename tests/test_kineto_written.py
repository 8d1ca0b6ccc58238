"""Traces of PyTorch's profiler that the test writes."""

from __future__ import annotations

import json

import pytest
import whywait


def span(category, name, begin, end, place=(1, 1), **args):
    process, thread = place
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": begin,
        "dur": end - begin,
        "args": args,
    }


def kernel(name, begin, end):
    return span("kernel", name, begin, end, (0, 7), device=0, stream=7)


def write(directory, events):
    """Write a trace for each rank, of these events."""
    for rank, own in enumerate(events):
        info = {"rank": rank, "world_size": len(events)}
        trace = {"schemaVersion": 1, "distributedInfo": info, "traceEvents": own}
        (directory / f"rank{rank}.pt.trace.json").write_text(json.dumps(trace), encoding="utf-8")
    return directory


def test_work_before_the_first_event_of_the_host_counts(tmp_path):
    # The hosts wait for their devices from before the window, which no event tells.
    events = [
        [
            span("Trace", "PyTorch Profiler (0)", 0, 1000, ("Spans", "PyTorch Profiler")),
            kernel("ncclDevKernel_AllReduce_Sum", 100 + 150 * rank, 300),
            span("cpu_op", "aten::add", 900, 1000),
        ]
        for rank in range(2)
    ]
    result = whywait.analyze(write(tmp_path, events))
    assert "device_time" not in [warning["kind"] for warning in result.warnings]
    waits = result.wait_states().to_pylist()
    assert [(wait["kind"], round(wait["waiting"] * 1e6)) for wait in waits] == [("ccl_wait_nxn", 150)]


def test_what_is_wrong_with_traces_and_options_is_said(tmp_path):
    write(tmp_path, [[span("cpu_op", "aten::add", 0, 10), kernel("my_reduce", 5, 8)]])
    for options, words in (
        ({"comm_kernels": ["my_reduce=foo"]}, "foo is no kind of communication"),
        ({"comm_kernels": ["my_reduce"]}, "expected REGEX=KIND"),
        ({"comm_kernels": ["(=all_reduce"]}, "unclosed group|open group"),
        ({"cycle": 7}, "there is no cycle 7 of 1"),
    ):
        with pytest.raises(whywait.UsageError, match=words):
            whywait.open(tmp_path, **options)
    (file,) = tmp_path.iterdir()
    file.write_text('{"schemaVersion": 1, "traceEvents": [{"ph":', encoding="utf-8")
    with pytest.raises(whywait.Error, match="no trace has events"):
        whywait.open(tmp_path)


def test_what_the_profiler_does_is_no_work_of_the_program(tmp_path):
    def launched(number, begin):
        return [
            span("cpu_op", "aten::mm", begin, begin + 50),
            span("cuda_runtime", "cudaLaunchKernel", begin + 10, begin + 40, correlation=number),
            span("kernel", "gemm", begin + 45, begin + 90, (0, 7), device=0, stream=7, correlation=number),
        ]

    events = [
        span("user_annotation", "ProfilerStep#1", 0, 700),
        *launched(1, 10),
        # One on no thread of the process, which goes on while an operator begins; one that loads code.
        span("overhead", "Activity Buffer Request", 200, 530, (-1, 0)),
        span("cpu_op", "aten::relu", 300, 320),
        span("overhead", "Lazy Function Loading", 400, 450),
        *launched(2, 500),
    ]
    result = whywait.analyze(write(tmp_path, [events]))
    rows = {row["row"]: round(row["time"] * 1e6) for row in result.tables.device_account.to_pylist()}
    assert rows["profiler"] == 100
    assert rows["starved.compile"] == 50
    paths = ["/".join(result.tree.path(callpath)) for callpath in range(len(result.tree))]
    assert "ProfilerStep/Activity Buffer Request" in paths
    assert not any("Activity Buffer Request/" in path for path in paths)
