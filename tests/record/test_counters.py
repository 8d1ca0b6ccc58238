"""`--counters`: values at both ends of each call, of the kernel, of the core, and of MPI itself."""

import os
import shutil
from collections import defaultdict

import pytest
import whywait

from . import unexpected
from .mpis import PROGRAMS, compiled, record

# Counters that the kernel counts everywhere; events of perf may be forbidden.
RUSAGE = ["ru_utime", "ru_stime", "ru_maxrss", "ru_minflt", "ru_majflt", "ru_nvcsw", "ru_nivcsw"]


@pytest.fixture
def counted(mpi, tmp_path):
    """A recording with counters, and what `whywait record` said."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--counters", "rusage,core,context-switches")
    assert done.returncode == 0, done.stderr
    return tmp_path / "out", done.stderr


def test_values_stand_at_both_ends_of_each_call(counted):
    counts = whywait.open(counted[0]).info(events=True)["events_by_type"]
    assert counts["Metric"] == counts["Enter"] + counts["Leave"]


def test_counters_of_the_kernel(counted):
    archive, said = counted
    counters = whywait.analyze(archive).counters
    assert list(counters)[:8] == [*RUSAGE, "core"]
    perf = "context-switches"
    assert (perf in counters) == (f"the counter {perf} was not recorded" not in said)
    # The largest memory of a process of MPI, in bytes.
    assert 1e6 < counters["ru_maxrss"].maximum < 1e11
    # The kernel may see all of a short time in the program or in itself.
    assert 0 < counters["ru_utime"].total + counters["ru_stime"].total < 60
    assert 0 <= counters["core"].minimum <= counters["core"].maximum < 4096
    for name in ("ru_nvcsw", "ru_nivcsw", "ru_minflt"):
        assert counters[name].kind == "total"


def test_two_ways_to_count_switches_agree(counted):
    """Of each sample, the kernel's counter of the thread is read first, and the one of perf before the next sample.

    So a switch that only one of them has counted yet is in the other one soon. On a busy machine, perf misses one in
    hundreds.
    """
    otf2 = pytest.importorskip("otf2")
    perf = "context-switches"
    if f"the counter {perf} was not recorded" in counted[1]:
        pytest.skip("the kernel does not allow to count context switches")
    samples = defaultdict(list)
    with otf2.reader.open(str(counted[0] / "traces.otf2")) as trace:
        for location, event in trace.events:
            if isinstance(event, otf2.events.Metric):
                values = {member.name: value for member, value in zip(event.metric.members, event.values, strict=True)}
                samples[location].append((values["ru_nvcsw"] + values["ru_nivcsw"], values[perf]))
    assert len(samples) == 2
    for pairs in samples.values():
        # perf begins with the first recorded call: that it starts from less is all else by which they may differ.
        least = max(kernel - event for kernel, event in pairs)
        most = min(kernel - event for (kernel, _), (_, event) in zip(pairs[1:], pairs, strict=False))
        switches = pairs[-1][0] - pairs[0][0]
        assert 0 <= least <= most + switches / 100 + 1


def test_they_belong_to_the_calls_in_which_they_grow(counted):
    """Between the last sample and the first one, nothing is lost: cells add up to the difference of both."""
    result = whywait.analyze(counted[0])
    for counter in (result.counters["ru_utime"], result.counters["ru_nvcsw"]):
        cells = counter.cells().to_pylist()
        for rank in (0, 1):
            own = [cell for cell in cells if cell["rank"] == rank and cell["samples"]]
            growth = max(cell["maximum"] for cell in own) - min(cell["minimum"] for cell in own)
            assert sum(cell["value"] for cell in cells if cell["rank"] == rank) == pytest.approx(growth)


def test_what_cannot_be_counted_is_said(mpi, tmp_path):
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    done = record([*mpi.start(2), program], tmp_path, "--counters", "core,mpi:no_such_variable")
    assert done.returncode == 0
    assert "mpi:no_such_variable was not recorded: this MPI has no such performance variable" in done.stderr
    assert list(whywait.analyze(tmp_path / "out").counters) == ["core"]


def test_unknown_counters_are_refused(tmp_path):
    done = record(["true"], tmp_path, "--counters", "rusage,nonsense")
    assert (done.returncode, "there is no counter 'nonsense'" in done.stderr) == (2, True)


def test_shared_cores_are_certain(mpi, tmp_path):
    """Four ranks that may use one core only: what the finding says comes from the kernel."""
    program = compiled(mpi, PROGRAMS / "ring.c", tmp_path)
    bound = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if shutil.which("taskset") else None
    if bound is None:
        pytest.skip("taskset is not installed")
    done = record([*mpi.start(4), *bound, program], tmp_path, "--counters", "core,rusage")
    assert done.returncode == 0, done.stderr
    result = whywait.analyze(tmp_path / "out")
    found = {finding.rule: finding for finding in result.findings()}
    said = "The 4 ranks ran on 1 core, as the kernel says. The core of one of them went to another thread"
    assert said in found["few_cores"].sentence


@pytest.mark.parametrize("arguments", [(), ("early",)], ids=["", "MPI_T before MPI"])
def test_queues_of_open_mpi(mpi, tmp_path, arguments):
    """The queue of unexpected messages is long while rank 0 computes, and empty at the end."""
    if mpi.name != "openmpi":
        pytest.skip("a queue of Open MPI")
    program = compiled(mpi, PROGRAMS / "queues.c", tmp_path)
    done = record([*mpi.start(4), program, *arguments], tmp_path, "--counters", "mpi:pml_ob1*,mpi:runtime_spc*")
    assert done.returncode == 0, done.stderr
    counters = whywait.analyze(tmp_path / "out").counters
    unexpected, posted = (counters[f"pml_ob1_{name}_length"] for name in ("unexpected_msgq", "posted_recvq"))
    assert (unexpected.unit, unexpected.mode) == ("#", "ABSOLUTE_NEXT")
    assert 50 <= unexpected.maximum <= 300
    assert (unexpected.minimum, posted.minimum) == (0, 0)


@pytest.mark.parametrize("run", ["late", "small"])
def test_software_counters_of_open_mpi(run, tmp_path):
    """They are what Open MPI prints, less what the recorder sends itself; the replay has them between two numbers."""
    if unexpected.library() is None:
        pytest.skip("no Open MPI that counts (WHYWAIT_SPC_OPENMPI)")
    found, printed, counters = unexpected.measure(run, tmp_path)
    assert found.at_least <= found.counted <= found.at_most
    assert found.out_of_sequence <= found.possible
    for name in ("SEND", "RECV", "ISEND", "IRECV", "BARRIER", "BYTES_RECEIVED_USER"):
        counted = {rank: values.get(name, 0) for rank, values in counters.items()}
        assert counted == {rank: values.get(name, 0) for rank, values in printed.items()}, name
    assert {values["BCAST"] for values in printed.values()} == {1}
    assert not any(values.get("BCAST") for values in counters.values())
    levels = [values.get("UNEXPECTED_IN_QUEUE", 0) for values in counters.values()]
    assert all(0 <= level < 4096 for level in levels)
