"""Many threads with many requests: a handle that MPI gives away again meanwhile never means the older request.

`WHYWAIT_STRESS=100` runs it a hundred times; once takes seconds.
"""

import os
from collections import Counter

import whywait

from .mpis import PROGRAMS, compiled, record

RUNS = int(os.environ.get("WHYWAIT_STRESS", "1"))
# Eight threads in two ranks.
REQUESTS, THREADS = 1024, 16


def test_all_messages_are_matched(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "stress.c", tmp_path, "-lpthread")
    for number in range(RUNS):
        done = record([*mpi.start(2), program, str(REQUESTS)], tmp_path, output=f"out.{number}")
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.splitlines()) == ["rank 0: 0 wrong", "rank 1: 0 wrong"]
        counts = Counter(whywait.open(tmp_path / f"out.{number}").info(events=True)["events_by_type"])
        messages = REQUESTS * THREADS
        kinds = ("MpiIsend", "MpiIsendComplete", "MpiIrecvRequest", "MpiIrecv")
        assert [counts[kind] for kind in kinds] == [messages] * 4
        assert counts["Enter"] == counts["Leave"]
    result = whywait.analyze(tmp_path / f"out.{RUNS - 1}")
    assert {warning["kind"] for warning in result.warnings} <= {"mpi_on_thread"}
