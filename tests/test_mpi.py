"""Several processes analyze a run together: the same result, and no hang if one of them fails."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import whywait
from hypothesis import given, settings
from hypothesis import strategies as st
from whywait import _native, mpi

from tests import mpi_job
from tests.clocked import with_offsets
from tests.device_programs import communicating_programs, device_programs
from tests.mpi_job import COMMANDS, TABLES, same
from tests.programs import programs
from tests.rma_programs import one_sided_programs
from tests.skewed import skewed
from tests.test_finding_rules import examples, repeated
from tests.test_sharing import rounds, sends, works, writes
from tests.tracedsl import trace_from_text

DATA = Path(__file__).parent / "data"
JOB = Path(__file__).parent / "mpi_job.py"
CASES = ("p2p", "collectives", "intercomm", "rma_gats_pt2pt", "rma_lock_sm", "rma_progress", "sor_fence", "sor_gats",
         "sor_locks", "sor_p2p", "stencil")  # fmt: skip
# Messages, and each night one-sided communication.
EVERYWHERE = ("stencil",)
EVERY_NIGHT = ("sor_gats",)
SIMULATED = ("mixed", "intercomm", "rma_gats_pt2pt", "rma_lock_sm", "omp_nested")
SIMULATED_EVERY_NIGHT = ("p2p", "collectives", "rma_progress", "sor_fence")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


def mpiexec(
    ranks: int, *command: str | Path, interrupt_at: Path | None = None, directory: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python under mpiexec, and press Ctrl-C when the job has made a file, of that name; no run may hang."""
    if MPIEXEC is None:
        pytest.skip("no mpiexec: pip install mpich")
    pytest.importorskip("mpi4py")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "MPI"))}
    root = Path(__file__).parents[1]
    environment["PYTHONPATH"] = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(root)])
    with subprocess.Popen(
        [MPIEXEC, "-n", str(ranks), sys.executable, *map(str, command)],
        env={**environment, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        | {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "READY": str(interrupt_at)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
    ) as job:
        while interrupt_at and not interrupt_at.exists() and job.poll() is None:
            time.sleep(0.01)
        if interrupt_at:
            job.send_signal(signal.SIGINT)
        try:
            output, errors = job.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            job.kill()
            raise
    return subprocess.CompletedProcess(job.args, job.returncode, output, errors)


def also_nightly(usual, *others):
    """Ask for a number of processes, and for others in the nightly run."""
    return pytest.mark.parametrize("ranks", [usual, *(pytest.param(n, marks=pytest.mark.nightly) for n in others)])


# Three: the first, one in the middle, and the last.
@also_nightly(3, 2, 4)
def test_results_do_not_depend_on_the_number_of_processes(ranks):
    done = mpiexec(ranks, JOB, "compare", *(DATA / case for case in CASES))
    assert done.returncode == 0, done.stderr
    count = int(done.stdout.removeprefix("compared ").removesuffix(" rows\n"))
    assert count > 20_000


FILES = """
    0: work [0, 1]
    1: work [0, 3]
    0: MPI_File_write_all(file=data, bytes=100) [1, 4]
    1: MPI_File_write_all(file=data, bytes=100) [3, 4]
    1: pwrite(file=data, of=mpi, bytes=60) [3.2, 3.6]
    2: read(file=other, bytes=7) [1, 2]
    2: aio_read(file=other, bytes=10, req=1) [5, 5.5]
    2: aio_suspend(1) [6, 7]
"""
# What one thread begins, another one completes.
OTHER_THREADS = """
    threads 2
    ranks 2
    0: main [0, 10]
    0.1: main [0, 10]
    1: main [0, 10]
    0: MPI_Isend(1, req=3) [1, 2]
    0.1: MPI_Wait [3, 6]
    0.1: raw MpiIsendComplete(request_id=3) @ 6
    1: MPI_Recv(0) [5, 6]
    0: raw ThreadTaskSwitch(thread_team="team 0", creating_thread=0, generation_number=1) @ 7
    0: raw Enter(region=task) @ 7
    0: raw ThreadTaskSwitch(thread_team="team 0", creating_thread=0, generation_number=0) @ 8
    0.1: raw ThreadTaskSwitch(thread_team="team 0", creating_thread=0, generation_number=1) @ 8.5
    0.1: raw Leave(region=task) @ 9
    0.1: raw ThreadTaskComplete(thread_team="team 0", creating_thread=0, generation_number=1) @ 9
"""


def test_files_and_what_threads_hand_over_need_no_certain_process(tmp_path):
    anchors = [trace_from_text(text, tmp_path / name) for name, text in (("io", FILES), ("threads", OTHER_THREADS))]
    assert whywait.analyze(anchors[0]).io().num_rows == 5
    done = mpiexec(3, JOB, "compare", *anchors)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compared ")


def test_reasons_and_contention_need_no_certain_process(tmp_path):
    """What speaks for a reason of lost time concerns calls of several ranks."""
    texts = list(dict.fromkeys(repeated(example.values[0]) for example in examples()))
    texts += [rounds(work, 0.5) for work in (sends, works, writes)]
    # Rank 3 needs half as much time again for a function and a call.
    both = "{0}: solve [{1}, {2:.3f}]\n{0}: MPI_Comm_rank [{2:.3f}, {3:.3f}]\n"
    takes = (0.3, 0.3, 0.3, 0.45)
    texts.append("".join(both.format(r, n, n + takes[r], n + 2 * takes[r]) for r in range(4) for n in range(30)))
    anchors = [trace_from_text(text, tmp_path / str(number)) for number, text in enumerate(texts)]
    reasons = [whywait.analyze(anchor).facts["reasons"] for anchor in anchors]
    assert {name for of_trace in reasons for name, found in of_trace.items() if found} == set(reasons[0])
    done = mpiexec(3, JOB, "reasons", *anchors)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compared ")


# By clocks that disagree, each rank waits for what the other does later; rank 2 waits for rank 0.
CIRCLE = """
    0: MPI_Recv(1) [1, 2]
    0: MPI_Send(1) [3, 3.1]
    1: MPI_Recv(0) [1, 2]
    1: MPI_Send(0) [3, 3.1]
    0: MPI_Send(2) [4, 4.1]
    2: MPI_Recv(0) [1, 5]
    2: work [5, 9]
"""


@also_nightly(3, 2)
def test_a_path_that_comes_round_again_ends(tmp_path, ranks):
    anchor = trace_from_text(CIRCLE, tmp_path)
    result = whywait.analyze(anchor, clocks="measured")
    assert [one["count"] for one in result.warnings if one["kind"] == "circular_waits"] == [1]
    # From 2, where the circle closes, to 9: no part lies beside another one.
    assert result.metrics["critical_path"].total == pytest.approx(7)
    done = mpiexec(ranks, JOB, "circle", anchor)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compared ")


# The clock of rank 1 is 0.9 s late and drifts by 1% from 50 s on; rank 2 waits for two synchronous sends at once.
BENT = "".join(
    f"""
    0: MPI_Send(1) [{10 * n}, {10 * n + 0.01}]
    1: MPI_Recv(0) [{clock(10 * n)}, {clock(10 * n + 0.1)}]
    1: MPI_Send(0) [{clock(10 * n + 1)}, {clock(10 * n + 1.01)}]
    0: MPI_Recv(1) [{10 * n + 1}, {10 * n + 1.1}]
    2: MPI_Issend(0, req={2 * n}) [{10 * n + 2}, {10 * n + 2.1}]
    2: MPI_Issend(1, req={2 * n + 1}) [{10 * n + 2.2}, {10 * n + 2.3}]
    2: MPI_Waitall({2 * n}, {2 * n + 1}) [{10 * n + 2.4}, {10 * n + 2.5}]
    0: MPI_Recv(2) [{10 * n + 3}, {10 * n + 3.1}]
    1: MPI_Recv(2) [{clock(10 * n + 3)}, {clock(10 * n + 3.1)}]
    0-2: MPI_Barrier [{10 * n + 4}, {10 * n + 4.1}]
    """
    for clock in (lambda t: round(t - 0.9 + 0.01 * max(t - 50, 0), 4),)
    for n in range(1, 11)
)


@also_nightly(3, 2)
def test_clocks_are_corrected_in_the_same_way(ranks, tmp_path):
    """Clocks of all kinds of programs are half a second apart; one needs several pieces."""
    cases = ("p2p", "collectives", "sor_gats", "sor_locks")
    anchors = [skewed(DATA / case, tmp_path / case, 500_000) for case in cases]
    anchors.append(trace_from_text(BENT, tmp_path / "bent"))
    assert all(whywait.analyze(anchor, clocks="measured").clocks["violated"] for anchor in anchors)
    assert max(whywait.analyze(anchors[-1], clocks="lines").clock_processes()["pieces"].to_pylist()) > 1
    done = mpiexec(ranks, JOB, "clocks", *anchors)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.removeprefix("compared ").removesuffix(" rows\n")) > 10_000


@also_nightly(3, 2)
def test_corrected_archives_are_equal(tmp_path, ranks):
    """Each process writes its locations. A clock that is far behind moves the whole run, so that it begins at 1."""
    cases = ("p2p", "collectives", "sor_gats", "sor_locks")
    anchors = [skewed(DATA / case, tmp_path / case, 500_000) for case in cases]
    early = [(1_000_000_000, -5_000_000_000), (2_000_000_000, -5_000_000_000)]
    anchors.append(with_offsets(DATA / "p2p", tmp_path / "early", lambda location: early if location % 2 else []))
    alone = of_this_process("correct", tmp_path / "alone", *anchors)
    assert alone.count("['") >= len(anchors), "something is corrected"
    assert alone.count(".evt ") > 5 * len(anchors)
    done = mpiexec(ranks, JOB, "correct", tmp_path / "together", *anchors)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone


def test_more_processes_than_shards():
    # Without small shards there is one, and three processes have nothing.
    done = mpiexec(4, "-m", "whywait", "analyze", DATA / "p2p", "-o", os.devnull)
    assert done.returncode == 2, "this is a file"
    done = mpiexec(4, JOB, "result", DATA / "p2p")
    assert done.returncode == 0, done.stderr
    alone = whywait.analyze(DATA / "p2p").metrics["time"].total
    assert done.stdout.startswith("0 <whywait.Result of 'p2p': ")
    assert done.stdout.endswith(f" {alone} 0\n")


def test_processes_do_not_exchange_more_often_for_more_iterations(tmp_path):
    # An exchange for each of them would make many processes slower than one.
    traces = []
    for workload in ("sor-p2p", "sor-gats"):
        for iterations in (50, 500):
            traces.append(tmp_path / f"{workload}-{iterations}")
            _native.generate(workload, traces[-1], ranks=16, iterations=iterations, seed=7)
    done = mpiexec(2, JOB, "exchanges", *traces)
    assert done.returncode == 0, done.stderr
    few_p2p, many_p2p, few_gats, many_gats = map(int, done.stdout.split())
    # How waits propagate within an iteration differs by chance.
    assert many_p2p < few_p2p + 20
    assert many_gats < few_gats + 20


RANDOM = st.one_of(
    programs(),
    programs(neighbors=True, nonblocking=True),
    one_sided_programs(),
    device_programs(),
    communicating_programs(),
)


@settings(max_examples=50)
@given(trace=RANDOM)
def test_results_do_not_depend_on_the_number_of_shards(trace):
    with tempfile.TemporaryDirectory() as directory:
        run = _native.Run(trace_from_text(trace, directory))
        many, one = (_native.analyze(run, shard_events=size) for size in (1, 1 << 40))
    for table in TABLES:
        left, right = (pa.table(getattr(analysis, table)()) for analysis in (many, one))
        same(left, right, table)
    assert many.warnings() == one.warnings()


@settings(max_examples=1)
@given(traces=st.lists(RANDOM, min_size=20, max_size=20))
def test_random_programs_have_the_same_results_with_several_processes(traces):
    with tempfile.TemporaryDirectory() as directory:
        anchors = []
        for number, trace in enumerate(traces):
            place = Path(directory, str(number))
            place.mkdir()
            anchors.append(trace_from_text(trace, place))
        done = mpiexec(3, JOB, "compare", *anchors)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compared ")


def written(directory):
    """Return the content of the files below a directory by name, without peak memory and the number of a result."""
    found = {}
    for file in sorted(file for file in directory.rglob("*") if file.is_file()):
        if file.suffix == ".parquet":
            table, data = pq.read_table(file).replace_schema_metadata(), pa.BufferOutputStream()
            with pa.ipc.new_stream(data, table.schema) as stream:
                stream.write_table(table)
            content = data.getvalue().to_pybytes()
        else:
            content = re.sub(rb'"peak_memory": \d+|[0-9a-f]{32}', b"", file.read_bytes())
        found[str(file.relative_to(directory))] = content
    return found


def of_this_process(*job):
    """Do a job in this process, and return what it prints."""
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said):
        patch.setattr(mpi, "analyze", mpi.analyze)  # The job exchanges it.
        mpi_job.main(*map(str, job))
    return said.getvalue()


def cases(usual, every_night):
    """Ask for three processes and the usual traces, and for two processes and others in the nightly run."""
    night = [pytest.param(ranks, every_night, marks=pytest.mark.nightly, id=f"{ranks}-others") for ranks in (3, 2)]
    return pytest.mark.parametrize(("ranks", "cases"), [pytest.param(3, usual, id="3"), *night])


@cases(EVERYWHERE, EVERY_NIGHT)
def test_all_commands_do_the_same_on_several_processes(tmp_path, ranks, cases):
    place, traces = tmp_path / "everywhere", [DATA / case for case in cases]
    of_this_process("everywhere", place, *traces)
    alone = written(place)
    # Outputs name their place.
    shutil.rmtree(place)
    done = mpiexec(ranks, JOB, "everywhere", place, *traces)
    assert done.returncode == 0, done.stderr
    together = written(place)
    outputs = [content for name, content in alone.items() if name.endswith("/out")]
    assert len(outputs) == len(cases) * len(COMMANDS)
    assert all(content.endswith(b"exit code 0\n") for content in outputs)
    assert together.keys() == alone.keys()
    assert [name for name, content in alone.items() if together[name] != content] == []


@cases(SIMULATED, SIMULATED_EVERY_NIGHT)
def test_changed_runs_are_the_same_on_several_processes(tmp_path, ranks, cases):
    """Times, assumptions, archives and their analyses, to the tick: the dependencies are dealt to the processes."""
    traces = [DATA / case for case in cases]
    alone = of_this_process("simulate", tmp_path / "archives", *traces)
    assert alone.count("\n") > 100 * len(traces)
    shutil.rmtree(tmp_path / "archives")
    done = mpiexec(ranks, JOB, "simulate", tmp_path / "archives", *traces)
    assert done.returncode == 0, done.stderr
    assert done.stdout == alone


def test_one_message_if_there_is_no_trace(tmp_path):
    done = mpiexec(3, "-m", "whywait", "analyze", tmp_path / "nothing", "-o", tmp_path / "results")
    assert done.returncode == 3
    assert done.stderr.count("whywait: ") == 1
    assert "No such file or directory" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


def test_an_error_at_one_rank_is_raised_at_the_first():
    done = mpiexec(3, JOB, "raise", DATA / "stencil")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "rank 1 had enough at rank 1 of the analysis",
        "rank 2 refused at rank 2 of the analysis",
        f"True {whywait.analyze(DATA / 'stencil').explain()['rank']}",
    ]


def test_an_event_file_that_cannot_be_read(tmp_path):
    shutil.copytree(DATA / "p2p", tmp_path / "p2p")
    files = sorted((tmp_path / "p2p" / "traces").glob("*.evt"), key=lambda file: int(file.stem))
    files[-1].unlink()
    alone = whywait.analyze(tmp_path / "p2p")
    assert "unreadable" in {warning["kind"] for warning in alone.warnings}
    done = mpiexec(2, JOB, "compare", tmp_path / "p2p")
    assert done.returncode == 0, done.stderr


def test_an_event_file_that_goes_away(tmp_path):
    shutil.copytree(DATA / "p2p", tmp_path / "p2p")
    locations = whywait.analyze(DATA / "p2p").facts["locations"]
    done = mpiexec(2, JOB, "remove", tmp_path / "p2p")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["unreadable", str(locations)]


def test_a_killed_rank_ends_the_job(tmp_path):
    done = mpiexec(4, JOB, "command", "kill", "analyze", DATA / "stencil", "-o", tmp_path / "results")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_the_results(tmp_path):
    done = mpiexec(2, JOB, "command", "fill", "analyze", DATA / "sor_gats", "-o", tmp_path / "results")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("whywait: ") == 1
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_leaves_nothing(tmp_path):
    ready = tmp_path / "ready"
    command = [JOB, "command", "wait", "analyze", DATA / "sor_gats", "-o", tmp_path / "results"]
    done = mpiexec(2, *command, interrupt_at=ready)
    assert done.returncode != 0
    assert "sor_gats" not in done.stdout
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [ready]


def test_each_rank_keeps_the_memory_limit(tmp_path):
    command = ["-m", "whywait", "analyze", DATA / "sor_gats", "-o", tmp_path / "results", "--threads", "1"]
    done = mpiexec(2, *command, "--memory-limit", "5M")
    assert done.returncode == 2
    assert done.stderr.count("whywait: ") == 1
    assert "a memory limit of 5 MiB is too small" in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = mpiexec(2, *command, "--memory-limit", "500M", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["waiting"] == whywait.analyze(DATA / "sor_gats").summary()["waiting"]


def test_ranks_are_read_from_the_environment(monkeypatch):
    for name in (*mpi._SIZES, *mpi._RANKS):
        monkeypatch.delenv(name, raising=False)
    assert (mpi.started(), mpi.first(), mpi.ranks()) == (1, True, None)
    monkeypatch.setenv("PMI_SIZE", "1")
    assert (mpi.started(), mpi.first(), mpi.ranks()) == (1, True, None)
    monkeypatch.setenv("PMI_SIZE", "4")
    assert (mpi.started(), mpi.first()) == (4, True)
    monkeypatch.setenv("PMI_RANK", "3")
    assert (mpi.started(), mpi.first()) == (4, False)


def test_several_processes_without_mpi_say_what_to_install():
    code = "import sys; sys.modules['mpi4py'] = None; from whywait.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PMI_SIZE": "2", "PMI_RANK": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", DATA / "p2p"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("whywait: 2 processes were started, but MPI is missing")
    assert "pip install 'whywait[mpi]'" in done.stderr


def test_processes_of_another_mpi_say_so():
    pytest.importorskip("mpi4py")
    environment = {**os.environ, "OMPI_COMM_WORLD_SIZE": "7", "OMPI_COMM_WORLD_RANK": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "whywait", "analyze", DATA / "p2p"],
        env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "uses a different MPI and sees 1" in done.stderr


def test_errors_survive_pickling():
    errors = (whywait.ArchiveError("cut off"), KeyboardInterrupt(), OSError(28, "No space left", "/here"))
    for error in errors:
        there = pickle.loads(mpi._pickled(error))  # noqa: S301
        assert type(there) is type(error)
        assert there.args == error.args

    class Local(Exception):  # noqa: N818
        pass

    assert str(pickle.loads(mpi._pickled(Local("lost")))) == "Local: lost"  # noqa: S301
