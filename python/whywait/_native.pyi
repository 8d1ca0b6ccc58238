"""The compiled part; only `whywait` itself uses it. See docs/architecture.md for the columns of the tables."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Protocol

from typing_extensions import Buffer

__version__: str

class Error(Exception):
    """Base of all errors of this package."""

class ArchiveError(Error):
    """The file is at fault: missing, cut off, or not what it says it is."""

class TraceError(Error):
    """The content of the trace is at fault: unmatched or inconsistent."""

class UsageError(Error):
    """The caller is at fault."""

class Table(Protocol):
    """A table that any Arrow library can take over without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Ranks(Protocol):
    """Processes that analyze a run together: `whywait.mpi.Ranks`."""

    size: int
    rank: int

    def deliver(self, parcels: Sequence[Buffer]) -> list[Buffer]: ...

class Run:
    """An archive whose definitions have been read."""

    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def anchor_path(self) -> PathLike[str]: ...
    @property
    def archive_name(self) -> str: ...
    def definitions(self, kind: str) -> Table: ...
    def definition_kinds(self) -> list[str]: ...
    def locations(self) -> Table: ...
    def events(self, index: int) -> Table: ...
    def oddities(self) -> list[tuple[str, str, str]]: ...
    def info(self, *, events: bool = False) -> dict[str, Any]: ...

class Analysis:
    """What came out of an analysis."""

    def regions(self) -> Table: ...
    def callpaths(self) -> Table: ...
    def locations(self) -> Table: ...
    def severities(self) -> Table: ...
    def window(self, begin: float, end: float) -> Table: ...
    def delay_costs(self) -> Table: ...
    def critical_path(self) -> Table: ...
    def wait_states(self) -> Table: ...
    def factors(self, rows: Sequence[int]) -> tuple[Table, Table]: ...
    def transfers(self) -> Table: ...
    def warnings(self) -> list[dict[str, Any]]: ...
    def inconsistencies(self) -> Table: ...
    def facts(self) -> dict[str, Any]: ...

def analyze(
    run: Run,
    *,
    threads: int | None = None,
    wrong_order_window: int = 100,
    causes: bool = True,
    cost_model: str = "thesis",
    transfers: bool = False,
    shard_events: int = ...,
    ranks: Ranks | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Analysis | None: ...
def limit_memory(run: Run, size: int | None, directory: str | PathLike[str], *, threads: int | None = None) -> None: ...
def peak_memory() -> int | None: ...
def stored_metrics() -> list[str]: ...
def write_perfetto(
    analysis: Analysis,
    path: str | PathLike[str],
    *,
    labels: dict[str, str],
    ranks: list[int] | None = None,
    window: tuple[float, float] | None = None,
    min_duration: float = 0.0,
    progress: Callable[[float], object] | None = None,
) -> dict[str, int]: ...
def timeline(
    analysis: Analysis,
    *,
    class_of: bytes,
    classes: int,
    waiting: list[str],
    cells: int,
    calls: int,
    most: int,
) -> dict[str, Any] | None: ...
def workloads() -> list[str]: ...
def generate(
    workload: str,
    directory: str | PathLike[str],
    *,
    ranks: int,
    iterations: int,
    seed: int,
    work: int | None = None,
    imbalance: float | None = None,
    progress: Callable[[float], object] | None = None,
) -> int: ...
def measure(run: Run, *, threads: int, causes: bool, entered: Callable[[str | None], object]) -> None: ...
