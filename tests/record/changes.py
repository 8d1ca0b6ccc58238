"""What changes of programs are predicted to save, and what they save: programs/changes.c, before and after."""

from __future__ import annotations

import re
import statistics
from typing import TYPE_CHECKING, NamedTuple

import whywait
from whywait.hypotheses import Balance, Cpu, Cut, CutMessages, EagerLimit, Overlap, Protocol, Scale

from .mpis import MPIS, PROGRAMS, compiled, record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from whywait.analysis.findings.finding import Finding
    from whywait.hypotheses import Hypothesis

    from .mpis import Mpi

#: What is changed in each program.
CHANGES: dict[str, tuple[str, Sequence[Hypothesis]]] = {
    "corner": ("work of a corner balanced, halo exchange", [Balance("relax")]),
    "drift": ("work that moves from rank to rank balanced, halo exchange", [Balance("advance")]),
    "residual": ("a sum over all ranks cut", [Cut("residual/sum")]),
    "checkpoint": ("checkpoints of one rank cut", [Cut("save")]),
    "pass": ("a blocking exchange overlapped", [Overlap("pass/MPI_Sendrecv")]),
    "gradient": ("a non-blocking sum overlapped", [Overlap("gradient/MPI_Wait")]),
    "hand_over": ("synchronous sends made eager", [Protocol("hand_over", "eager")]),
    "limit": ("a lower eager limit", [EagerLimit(512)]),
    "ready": ("empty messages cut", [CutMessages("size==0")]),
    "twice": ("every second exchange cut", [CutMessages("tag==2")]),
    "row": ("the rank with most to do last in the row", [Scale("prepare@0", 1 / 6), Scale("prepare@3", 6)]),
    "wavefront": ("all computing twice as fast", [Cpu(2)]),
    "locks": ("a lock held half as long", [Scale("update", 0.5)]),
    "epochs": ("a target that works a third as long", [Scale("expose", 1 / 3)]),
    "collect": ("output of one rank split among four", [Scale("output", 0.25)]),
    "scatter": ("a root that decides twice as fast", [Scale("decide@0", 0.5)]),
}
#: The pairs that are only for the check: nothing of the estimate was chosen with them.
CHECKED = tuple(CHANGES)[1::2]
# Ranks that wait leave the cores to others, as far as the library can do that.
_ENVIRONMENT = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}
# What else changes: the eager limits of Debian's MPIs.
_AFTER = {"limit": {"UCX_RNDV_THRESH": "512", "OMPI_MCA_btl_vader_eager_limit": "512"}}


class Pair(NamedTuple):
    """A recording before a change and one after it, seconds of the steps by the program's clock."""

    before: float
    after: float
    saved: float  # as predicted from the recording before
    error: float | None  # as estimated with it

    @property
    def miss(self) -> float:
        """By how much the prediction is off."""
        return abs(self.before - self.saved - self.after)

    @property
    def holds(self) -> bool:
        """Whether the stated error covers what the change saved."""
        return self.error is not None and self.miss <= self.error


def mpis() -> list[Mpi]:
    """Return the MPIs with which the pairs are recorded, as far as they are here."""
    return [mpi for mpi in MPIS if mpi.is_here and mpi.name in ("mpich", "openmpi")]


def recorded(mpi: Mpi, program: str, side: str, directory: Path) -> float:
    """Record a program; return how long its steps took, by its own clock."""
    binary = compiled(mpi, PROGRAMS / "changes.c", directory)
    environment = _ENVIRONMENT | (_AFTER.get(program, {}) if side == "after" else {})
    done = record([*mpi.start(4), binary, program, side], directory, "--force", output=side, **environment)
    match = re.search(rf"^{program} ([\d.]+)$", done.stdout, re.MULTILINE)
    assert match, done.stderr
    assert done.returncode == 0, done.stderr
    return float(match[1])


def measure(mpi: Mpi, program: str, directory: Path, turns: int = 5) -> list[Pair]:
    """Record a program before and after its change, in turn, and predict the change from each recording before."""
    pairs = []
    for _ in range(turns):
        before, after = (recorded(mpi, program, side, directory) for side in ("before", "after"))
        sim = whywait.whatif(whywait.analyze(directory / "before"), CHANGES[program][1], strict=True)
        pairs.append(Pair(before, after, sim.focus_saved, sim.error_estimate.total))
    return pairs


def found(directory: Path) -> Sequence[Finding]:
    """Return the findings of a program as recorded before its change."""
    return whywait.analyze(directory / "before").findings()


def median(pairs: Sequence[Pair], name: str) -> float:
    """Return the median of a figure of pairs; infinite if it is unknown in most of them."""
    values = [getattr(pair, name) for pair in pairs]
    return statistics.median(float("inf") if value is None else value for value in values)
