"""Traces of PyTorch's profiler that the test writes."""

from __future__ import annotations

import json

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
