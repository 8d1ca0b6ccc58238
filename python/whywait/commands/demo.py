"""Analyze the trace included in whywait, or one that is recorded here and now."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whywait.commands.answers import Answer
from whywait.commands.common import Progress, add_verb, refuse_file
from whywait.commands.findings import findings_data

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from whywait.report.terminal import Line

_DEMO = Path(__file__).parents[1] / "demo"
#: The trace: a stencil code on eight ranks.
TRACE = _DEMO / "stencil"
# Traces of PyTorch's profiler: a recommendation model on eight GPUs.
_TRAINING = _DEMO / "dlrm8"


def add(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "demo",
        "analyze the sample trace that comes with whywait",
        "Copy a sample trace to DIR, analyze it, and write the result with its HTML report to DIR/results: of "
        "a stencil code on eight ranks, or with pytorch, of a recommendation model that is trained on eight GPUs. With "
        "--record, run a program, record it to DIR, and analyze that: one in parallel Python, which needs mpi4py and "
        "an MPI, or with pytorch, the training of a small model on four CPUs, which needs PyTorch.",
        "whywait demo",
        run,
        operands={},
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="whywait-demo", help="where to write (default: %(default)s)"
    )  # fmt: skip
    parser.add_argument(
        "what",
        nargs="?",
        choices=("mpi", "pytorch"),
        default="mpi",
        help="of which kind of program (default: %(default)s)",
    )
    parser.add_argument("--record", action="store_true", help="record a program instead (of MPI: on Linux)")


def run(options: argparse.Namespace) -> Answer:
    """Copy or record the trace, analyze it, and suggest next steps."""
    import whywait
    from whywait.report.findings import first_screen

    directory = Path(options.output)
    refuse_file(directory)
    results = directory / "results"
    is_training = options.what == "pytorch"
    if options.record:
        trace = _trained(directory) if is_training else _recorded(directory)
    else:
        trace = _copied(_TRAINING if is_training else TRACE, directory)
    with Progress() as progress:
        result = whywait.analyze(trace, progress=progress)
        found = result.findings(prices=True)
    files = result.write(results, html=True, force=True)
    summary = result.summary()
    return Answer(
        {**summary, **findings_data(found, result), "files": [str(file) for file in files]},
        lambda screen: [
            *first_screen(result, found, summary, None, screen.width, unicode=screen.unicode),
            *_next(trace, results),
        ],
    )


def _copied(sample: Path, directory: Path) -> Path:
    """Copy a sample trace, and return where it is."""
    trace = directory / sample.name
    shutil.copytree(sample, trace, copy_function=shutil.copyfile, dirs_exist_ok=True)
    return trace


def _trained(directory: Path) -> Path:
    """Train a model on CPUs, and return the directory of the traces of its ranks."""
    import whywait

    if find_spec("torch") is None:
        raise whywait.UsageError("this needs PyTorch: pip install torch")
    traces = directory / "train"
    shutil.rmtree(traces, ignore_errors=True)
    program = [sys.executable, "-m", "whywait.demo.train", str(traces)]
    done = subprocess.run(program, check=False)  # noqa: S603
    if done.returncode != 0:
        raise whywait.UsageError(f"the training failed (exit code {done.returncode}): see above")
    return traces


def _recorded(directory: Path) -> Path:
    """Record a program, and return the archive."""
    import whywait

    # That of the environment of Python fits its mpi4py.
    own = Path(sys.prefix, "bin", "mpiexec")
    launcher = str(own) if own.is_file() else shutil.which("mpiexec")
    if launcher is None or find_spec("mpi4py") is None:
        raise whywait.UsageError("a recording needs mpi4py and an MPI: pip install mpi4py mpich")
    # Some launchers refuse to start more ranks than cores; a single rank waits for nobody.
    ranks = str(min(4, max(2, os.cpu_count() or 2)))
    program = [sys.executable, "-m", "whywait.demo.heat"]
    return whywait.record([launcher, "-n", ranks, *program], output=directory / "heat", force=True)


def _next(trace: Path, results: Path) -> Iterator[Line]:
    commands = (
        (f"whywait findings {results}", "what to do, and what that saves"),
        (f"whywait explain {trace}", "why the longest wait occurred"),
        (f"whywait iterations {results}", "the iterations of the main loop"),
        (f"whywait messages {results}", "who communicates with whom"),
        (f"whywait advise {trace}", "what would save most time"),
    )
    yield []
    yield [("Open in a browser: ", "bold"), (f"{results}/report.html", "")]
    yield []
    yield [("Next", "bold")]
    room = max(len(command) for command, _ in commands)
    for command, meaning in commands:
        yield [(f"   {command:<{room}}   ", ""), (meaning, "dim")]
