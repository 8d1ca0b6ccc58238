"""What written results and profiles have in common: tables on disk, and no events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.model import tables
from whywait.model.schema import schema_of
from whywait.store.timeline import read as read_timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from whywait.model.dataset import Dataset
    from whywait.model.timeline import Timeline
    from whywait.model.trace import TraceIdentity


_NO_PARAMETERS = pa.table({"parameter": pa.array([], pa.string())})
_NO_EVENTS = "a written result holds no events: ask for a window of the trace itself"


def _optional(name: str) -> cached_property[pa.Table]:
    """Return a property of a dataset on disk: a table that a result may lack, without rows then."""
    return cached_property(lambda dataset: dataset.optional(name))


class StoredTables(ABC):
    """A dataset on disk.

    Parameters
    ----------
    directory
        The results directory.
    """

    #: A stored result has no events.
    analysis: None = None
    #: Analyzes the trace again, for results that need its events.
    analyze: Callable[[], Dataset] | None = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    @abstractmethod
    def trace(self) -> TraceIdentity:
        """The trace that was analyzed."""

    @property
    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Data outside of tables: ``facts``, ``warnings``, ``oddities`` and ``peak_memory``."""

    @property
    @abstractmethod
    def locations(self) -> pa.Table:
        """The locations."""

    @property
    def elsewhere(self) -> list[Path]:
        """Paths to look for a moved trace: next to the result."""
        name = self.trace.path.name
        return [self.directory / name, self.directory.absolute().parent / name]

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.metadata["facts"])

    @property
    def warnings(self) -> list[dict[str, Any]]:
        return list(self.metadata["warnings"])

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """Errors in the definitions: kind, place and text of each."""
        return [(odd["kind"], odd["place"], odd["text"]) for odd in self.metadata["oddities"]]

    @property
    def peak_memory(self) -> int | None:
        # The peak memory is that of the analysis, not of the process that reads the result.
        return self.metadata.get("peak_memory")

    @abstractmethod
    def has(self, name: str) -> bool:
        """Return whether there is a table of this name."""

    @abstractmethod
    def read(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a table, or some of its columns."""

    critical_path = _optional("critical_path")
    counters = _optional("counters")
    counter_cells = _optional("counter_cells")
    device_account = _optional("device_account")
    io = _optional("io")
    function_times = _optional("profile")
    function_costs = _optional("delay_functions")
    network = _optional("network")

    @property
    def prices(self) -> pa.Table:
        return self.read("prices") if self.has("prices") else schema_of("prices").empty_table()

    @property
    def samples(self) -> pa.Table:
        # Not kept, since they can be many.
        return self.optional("samples")

    @property
    def severities(self) -> pa.Table:
        return self._read_numbered("severities")

    @cached_property
    def wait_states(self) -> pa.Table:
        return self._read_numbered("wait_states")

    def factors(self, rows: Iterable[int] | None) -> tuple[pa.Table, pa.Table]:
        if not self.has("factors"):
            return self._recompute_factors(
                rows, f"{self.directory} has no factors of its waits: analyze the trace again"
            )
        intervals, factors = self._factors
        if rows is None:
            return intervals, factors
        chosen = pa.array(rows, pa.uint64())
        if (beyond := pc.max(chosen).as_py()) is not None and beyond >= self.wait_states.num_rows:
            raise _native.UsageError(f"there is no wait state {beyond}")
        # Every wait has a factor, even if only an unattributed one.
        if pc.any(pc.invert(pc.is_in(chosen, factors["wait"].cast(pa.uint64())))).as_py():
            only = "has only the factors of the longest waits: analyze the trace with `--factors all`"
            return self._recompute_factors(chosen.to_pylist(), f"{self.directory} {only}")
        return _factors_of(intervals, chosen), _factors_of(factors, chosen)

    def _recompute_factors(self, rows: Iterable[int] | None, problem: str) -> tuple[pa.Table, pa.Table]:
        """Compute factors that were not stored from the trace; without it, raise an error with `problem`."""
        if rows is None or self.analyze is None:
            raise _native.UsageError(problem)
        try:
            again = self._analyzed_again
            if not again.wait_states["waiting"].equals(self.wait_states["waiting"]):
                raise _native.TraceError("its waits differ now")
            return again.factors(rows)
        except (_native.Error, OSError) as error:
            raise _native.UsageError(f"{problem} ({error})") from error

    @cached_property
    def _analyzed_again(self) -> Dataset:
        """The dataset of the trace, analyzed again."""
        if self.analyze is None:
            raise _native.UsageError("the trace cannot be analyzed again")
        return self.analyze()

    @cached_property
    def _factors(self) -> tuple[pa.Table, pa.Table]:
        return self.read("intervals"), self.read("factors")

    @cached_property
    def queue_levels(self) -> pa.Table | None:
        columns = ["metric", "location", "maximum", "time", "mean", "unit"]
        return self.read("queue_levels", columns) if self.has("queue_levels") else None

    @property
    def transfers(self) -> pa.Table:
        if not self.has("transfers"):
            raise _native.UsageError(
                f"{self.directory} has no transfers: write them with `whywait analyze --transfers`"
            )
        return self._read_numbered("transfers")

    def _read_numbered(self, name: str) -> pa.Table:
        """Read a table with numbers in the place of names, without columns that follow from others."""
        return tables.numbered(self.read(name, tables.needed_columns(name)))

    def optional(self, name: str) -> pa.Table:
        """Return a table that a result may lack, without rows then."""
        return self._read_numbered(name) if self.has(name) else tables.empty_numbered(name)

    @cached_property
    def timeline(self) -> Timeline | None:
        # Older results have less than what is drawn.
        if not self.has("timeline_locks") or "timeline" not in self.metadata:
            return None
        return read_timeline(self.metadata["timeline"], self.read)

    @cached_property
    def focus_costs(self) -> pa.Table | None:
        return self._cells("focus_costs") if self.has("focus_costs") else None

    @cached_property
    def account(self) -> pa.Table:
        if not self.has("account"):
            raise _native.UsageError(f"{self.directory} has no account of its time: analyze the trace again")
        return self._read_numbered("account")

    def clock_table(self, name: str) -> pa.Table:
        return self.optional(name)

    def account_window(self, begin: float, end: float) -> pa.Table:
        del begin, end
        raise _native.UsageError(_NO_EVENTS)

    def _cells(self, name: str) -> pa.Table:
        table = self.read(name, ["metric", "callpath_id", "location", "value"])
        return table.rename_columns(["metric", "callpath", "location", "value"])

    def counter_window(self, begin: float, end: float) -> pa.Table:
        del begin, end
        raise _native.UsageError(_NO_EVENTS)

    def counter_changes(self, stretches: Mapping[str, Sequence[Any]], *, shared: bool = False) -> pa.Table:
        del stretches, shared
        raise _native.UsageError("a result on disk has no events: analyze the trace again to get counters")

    @cached_property
    def stored_iterations(self) -> pa.Table | None:
        return self.read("iterations") if self.has("iterations") else None

    @property
    def declared_loops(self) -> tuple[list[int], pa.Table]:
        return [], _NO_PARAMETERS

    def iterations(
        self, marker: int | str, every: int, body: Sequence[int], computes: npt.NDArray[np.bool_]
    ) -> tuple[pa.Table, int]:
        del marker, every, body, computes
        raise _native.UsageError(
            f"{self.directory} does not contain the iterations of this loop: analyze the trace with `--iterations`"
        )

    def communication(
        self, *, whole: bool = False, inside: npt.NDArray[np.bool_] | None = None
    ) -> tuple[pa.Table, pa.Table]:
        if inside is not None:
            raise _native.UsageError(_NO_EVENTS)
        if whole and self.facts.get("focus_rule", "whole") != "whole":
            raise _native.UsageError(_NO_EVENTS)
        if not self.has("communication"):
            problem = "does not say who communicates with whom: analyze the trace again"
            raise _native.UsageError(f"{self.directory} {problem}")
        return self.read("communication"), self.read("message_sizes")

    def window(self, begin: float, end: float) -> pa.Table:
        """Return the severities of the focus, the only window that is stored."""
        if self.has("focus") and (begin, end) == (self.facts.get("focus_begin"), self.facts.get("focus_end")):
            return self._cells("focus")
        raise _native.UsageError(_NO_EVENTS)


def _factors_of(table: pa.Table, waits: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["wait"].cast(pa.uint64()), waits))
