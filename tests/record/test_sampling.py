"""`--sample`: what threads do between their calls, and that no program notices."""

import shutil
import subprocess
from collections import Counter

import pytest
import whywait
from whywait._record import libmpi

from .mpis import MPIS, PROGRAMS, compiled, record, run
from .test_python import MPICH, VERSIONS, interpreter

# Perf needs descriptors from 512 on, so timers stand in for it where there are none.
CLOCKS = {"perf": [], "timer": ["prlimit", "--nofile=512"]}


@pytest.fixture
def program(tmp_path):
    mpi = next((mpi for mpi in MPIS if mpi.is_here), None)
    if mpi is None:
        pytest.skip("there is no MPI")
    options = ("-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-lstdc++", "-ldl")
    return compiled(mpi, PROGRAMS / "sampled.cc", tmp_path, *options)


@pytest.fixture(params=CLOCKS)
def clock(request):
    """The command that comes before a program which is to be sampled by one of the two clocks."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit is not installed")
    return request.param


def samples(archive, generator="CPU time"):
    """Return the paths of the samples of a clock, or of page faults, as the official library reads them."""
    otf2 = pytest.importorskip("otf2")
    paths, times = Counter(), []
    with otf2.reader.open(str(archive / "traces.otf2")) as trace:
        for _, event in trace.events:
            times.append(event.time)
            is_sample = isinstance(event, otf2.events.CallingContextSample)
            if is_sample and event.interrupt_generator.name == generator:
                context, names = event.calling_context, []
                while context is not None:
                    names.append(context.region.name)
                    context = context.parent
                paths["/".join(reversed(names))] += 1
    assert times == sorted(times)
    return paths


def test_shares_are_those_of_the_program(program, clock, tmp_path):
    done = record([*CLOCKS[clock], program, "shares", "1200"], tmp_path, "--sample=250")
    assert done.returncode == 0, done.stderr
    if clock == "perf" and "perf is not allowed" in done.stderr:
        pytest.skip("perf is not allowed")
    paths = samples(tmp_path / "out")
    total = sum(paths.values())
    # Where cores are shared, timers miss most ticks, and what they see is biased.
    assert total >= (300 if clock == "perf" else 40), done.stderr
    step = {name: paths[f"main/shares/step/{name}"] for name in ("most", "some", "little")}
    of_step = sum(step.values())
    for name, share in (("most", 0.6), ("some", 0.3), ("little", 0.1)):
        tolerance = 3.3 * (share * (1 - share) / of_step) ** 0.5
        assert step[name] / of_step == pytest.approx(share, abs=tolerance + (0 if clock == "perf" else 0.1)), paths
    assert paths["main/shares/copy/memcpy"] > 0, paths
    assert paths["main/shares/block/[signals blocked]"] > 0, paths
    # Of the recursion, the innermost functions.
    assert any(path.startswith(f"main/shares/{8 * 'down/'}") for path in paths), paths
    if shutil.which("otf2-print"):
        command = ["otf2-print", tmp_path / "out/traces.otf2"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True)
        assert printed.stdout.count('Interrupt Generator: "CPU time"') == total
        assert " ENTER " not in printed.stdout


def test_page_faults_are_in_the_function_that_has_them(program, tmp_path):
    done = record([program, "faults", "300"], tmp_path, "--sample")
    assert done.returncode == 0, done.stderr
    faults = samples(tmp_path / "out", "page faults")
    if not faults and samples(tmp_path / "out").total():
        pytest.skip("perf is not allowed")
    # One in 500, or fewer if they come often.
    assert faults.total() > 4, faults
    assert faults["main/faults/fill"] / faults.total() > 0.9, faults


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_of_python_and_what_they_call(version, tmp_path):
    python, mpi = interpreter(version), next((mpi for mpi in MPICH if mpi.is_here), None)
    if python is None or mpi is None:
        pytest.skip(f"Python {version}, or MPICH, is not installed")
    (library,) = libmpi.libraries_of([str(compiled(mpi, PROGRAMS / "ring.c", tmp_path))])
    command = ["env", "-u", "PYTHONPATH", python, PROGRAMS / "sampled.py", library, "0.3"]
    done = record(command, tmp_path, "--mpi", library, "--sample=500")
    assert done.returncode == 0, done.stderr
    paths = samples(tmp_path / "out")
    below = "sampled.py/main/until/Solver."
    own = sum(number for path, number in paths.items() if path.startswith(f"{below}count"))
    squeezed = sum(number for path, number in paths.items() if path.startswith(f"{below}squeeze/"))
    # Each takes half of the time; what libraries do in C is below the function that calls it.
    assert own / paths.total() == pytest.approx(0.5, abs=0.15), paths
    assert squeezed / paths.total() == pytest.approx(0.5, abs=0.15), paths


@pytest.mark.parametrize("part", ["sleeps", "children", "exceptions", "threads", "stacks", "takes"])
def test_a_program_does_not_notice(program, clock, part, tmp_path):
    command = [*CLOCKS[clock], program, part, "200"]
    alone = run(command, tmp_path)
    done = record(command, tmp_path, "--sample=1000")
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done.stderr
    taken = "not sampled: from then on: the program took signal 23 (SIGURG)"
    assert (taken in done.stderr) == (part == "takes"), done.stderr


def test_samples_change_no_figure_of_the_calls(program, tmp_path):
    """The same recording without its samples has the same figures, to the tick."""
    done = record([program, "shares", "300"], tmp_path, "--sample=1000", "--keep-spool")
    assert done.returncode == 0, done.stderr
    without = tmp_path / "without"
    shutil.copytree(tmp_path / "out/.spool", without / ".spool")
    for file in (without / ".spool").glob("*.wwp"):
        file.unlink()
    sampled, plain = (whywait.analyze(archive) for archive in (tmp_path / "out", without))
    assert sampled.facts["length"] == plain.facts["length"]
    rows = {tuple(row["callpath"]): row for row in sampled.callpaths().to_pylist()}
    for row in plain.callpaths().to_pylist():
        assert rows[tuple(row["callpath"])] == row


def test_its_rate_is_no_word_of_the_command(program, tmp_path):
    """`--sample` takes no word after it, and an option of the program of this name stays."""
    done = record([program, "none", "--sample"], tmp_path, "--sample", "--groups", "env", output="first")
    assert done.returncode == 0, done.stderr
    assert "calls" in done.stderr
    for rate in ("x", "-1", "1e9"):
        done = record([program], tmp_path, f"--sample={rate}", output="second")
        assert done.returncode == 2
        assert f"{rate!r} is no number of samples a second from 0 to 10000" in done.stderr
    done = record([program, "shares", "100"], tmp_path, "--sample=0", output="third")
    assert "samples" not in done.stderr
