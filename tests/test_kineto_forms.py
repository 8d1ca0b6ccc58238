"""One run in many forms: the order of files and threads, and how files are written, change nothing."""

from __future__ import annotations

import gzip
import json
from functools import cache

import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.results import SHARED, UNRECORDED, everything

CASES = SHARED / "kineto"
if not CASES.is_dir():
    pytest.skip(UNRECORDED, allow_module_level=True)

RUNS = ["late_loader", "late_loader_2.0", "chain", "coalesced", "pipeline", "windows_2.4", "gloo_mesh", "gloo_ddp"]


@cache
def of_case(name):
    return everything(CASES / name / "traces")


def read(name):
    """Return the traces of a case, in order of their files."""
    files = sorted((CASES / name / "traces").iterdir())
    return [json.loads(gzip.decompress(file.read_bytes())) for file in files]


def in_any_order(trace, choice):
    """Bring the events of each thread together, threads in any order; the process gets another number."""
    threads = {}
    for event in trace["traceEvents"]:
        threads.setdefault((event.get("pid"), event.get("tid")), []).append(event)
    of_host = {event["pid"] for event in trace["traceEvents"] if event.get("cat") in {"cpu_op", "user_annotation"}}
    groups = list(threads.values())
    choice.shuffle(groups)
    other = choice.randrange(100_000, 1_000_000)
    events = [
        event | {"pid": event["pid"] + other} if event.get("pid") in of_host else event
        for group in groups
        for event in group
    ]
    return trace | {"traceEvents": events}


def in_members(content, choice):
    """Compress a file in pieces, as if it was written at several times."""
    cuts = sorted(choice.randrange(len(content) + 1) for _ in range(choice.randrange(1, 6)))
    return b"".join(
        gzip.compress(content[begin:end], 1) for begin, end in zip([0, *cuts], [*cuts, len(content)], strict=True)
    )


@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=2, deadline=None)
@given(choice=st.randoms(use_true_random=False))
def test_neither_the_order_of_files_and_threads_nor_their_compression_matters(name, choice, tmp_path_factory):
    directory = tmp_path_factory.mktemp("traces")
    traces = read(name)
    names = [f"trace{number}.pt.trace.json.gz" for number in range(len(traces))]
    choice.shuffle(names)
    for trace, file in zip(traces, names, strict=True):
        content = json.dumps(in_any_order(trace, choice)).encode()
        (directory / file).write_bytes(in_members(content, choice))
    assert everything(directory) == of_case(name)


def waiting(path):
    """Return the exposed waiting of each rank between devices, in us."""
    of_all = {}
    for row in whywait.analyze(path).wait_states().to_pylist():
        if row["kind"].startswith("ccl_"):
            key = row["kind"], row["rank"]
            of_all[key] = of_all.get(key, 0) + row["waiting"] * 1e6
    return of_all


@pytest.mark.parametrize(("node", "by"), [("node1", 7_000_000), ("node1", -40_000_000), ("node0", -7_000_000)])
def test_a_constant_added_to_the_clock_of_a_node_changes_nothing_after_correction(node, by, tmp_path):
    nodes = set()
    for number, trace in enumerate(read("clocks")):
        nodes.add(trace["host_name"])
        if trace["host_name"] == node:
            trace["baseTimeNanoseconds"] += by
        (tmp_path / f"rank{number}.pt.trace.json").write_text(json.dumps(trace))
    assert nodes == {"node0", "node1"}
    assert waiting(tmp_path) == pytest.approx(waiting(CASES / "clocks" / "traces"), abs=1)
