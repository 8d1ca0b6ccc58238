"""The native analysis as a dataset."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
import whywait.mpi as mpi
from whywait.analysis.devices.stragglers import stragglers
from whywait.model.metrics import metric_tree
from whywait.model.schema import patterns, schema_of
from whywait.model.system import system_table, topologies_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from whywait.model.options import Options
    from whywait.model.trace import Trace


#: Error for a query about the whole run if only part of it was analyzed.
PART = "this is a part of a run: ask the result of the whole run"


def _table(method: str) -> cached_property[pa.Table]:
    """Return a property of a dataset: the table that a method of the native analysis returns."""
    return cached_property(lambda dataset: pa.table(getattr(dataset.analysis, method)()))


class NativeDataset:
    """The native analysis as a `whywait.model.dataset.Dataset`.

    Parameters
    ----------
    analysis
        The native analysis.
    run
        The trace that was analyzed.
    stored
        The metrics that the analysis computes.
    options
        The options that the result depends on.
    """

    def __init__(self, analysis: _native.Analysis, run: Trace, stored: Collection[str], options: Options) -> None:
        self.analysis = analysis
        self.stored = stored
        self.options = options
        self.trace = run.identity
        self._run = run
        self._iterations: dict[tuple[int | str, int], tuple[pa.Table, int]] = {}
        self._window: tuple[tuple[float, float], pa.Table] | None = None
        #: What changes would save, once that was simulated (`whywait.analysis.proposals.prices`).
        self.prices = schema_of("prices").empty_table()

    regions = _table("regions")
    callpaths = _table("callpaths")
    locations = _table("locations")
    critical_path = _table("critical_path")
    counters = _table("counters")
    account = _table("account")
    device_account = _table("device_account")
    io = _table("io")
    function_times = _table("profile")
    function_costs = _table("delay_functions")
    network = _table("network")

    @cached_property
    def system(self) -> pa.Table:
        return system_table(self.locations, self._run.definitions)

    @cached_property
    def topologies(self) -> pa.Table:
        return topologies_table(self.locations, self._run.definitions)

    @property
    def severities(self) -> pa.Table:
        return pa.table(self.analysis.severities())

    @cached_property
    def wait_states(self) -> pa.Table:
        table = pa.table(self.analysis.wait_states())
        if (window := self.options.window) is None:
            return table
        # A completion ends with its call, other waits begin with it.
        kind, leave, waiting = (table[name] for name in ("kind", "leave", "waiting"))
        completions = [pattern.kind for pattern in patterns().values() if pattern.is_completion]
        late = pc.is_in(kind.cast(pa.string()), pa.array(completions))
        begin = pc.if_else(late, pc.subtract(leave, waiting), table["enter"])
        return table.filter(pc.and_(pc.less(begin, window[1]), pc.greater(pc.add(begin, waiting), window[0])))

    def factors(self, rows: Iterable[int] | None) -> tuple[pa.Table, pa.Table]:
        if self.options.window is not None:
            raise _native.UsageError("a window does not contain the causes of its waits: analyze the whole run")
        chosen = range(self.wait_states.num_rows) if rows is None else rows
        intervals, factors = mpi.together(self.analysis.factors, list(chosen))
        return _nullable(intervals), _nullable(factors)

    @property
    def transfers(self) -> pa.Table:
        return pa.table(mpi.together(self.analysis.transfers))

    @cached_property
    def queue_levels(self) -> pa.Table | None:
        return pa.table(self.analysis.queue_levels()) if "eager_limit_in_node" in self.facts else None

    @cached_property
    def counter_cells(self) -> pa.Table:
        if (window := self.options.window) is not None:
            return self.counter_window(*window)
        return pa.table(self.analysis.counter_cells())

    @property
    def inconsistencies(self) -> pa.Table:
        return pa.table(self.analysis.inconsistencies())

    @property
    def warnings(self) -> list[dict[str, Any]]:
        return self.analysis.warnings()

    @cached_property
    def facts(self) -> dict[str, Any]:
        traces = self._run.traces
        known = {"traces": traces, "nsight": self._run.nsight, "paraver": self._run.paraver}
        if traces is not None and self.options.window is None:
            known["stragglers"] = stragglers(self.analysis, traces)
        return self.analysis.facts() | {name: value for name, value in known.items() if value is not None}

    @property
    def peak_memory(self) -> int | None:
        return _native.peak_memory()

    @property
    def timeline(self) -> None:
        return None

    @cached_property
    def focus_costs(self) -> pa.Table | None:
        costs = self.analysis.focus_costs()
        return None if costs is None else pa.table(costs)

    @property
    def samples(self) -> pa.Table:
        return pa.table(mpi.together(self.analysis.samples))

    def clock_table(self, name: str) -> pa.Table:
        return pa.table(self.analysis.clock_table(name)).cast(schema_of(name))

    def account_window(self, begin: float, end: float) -> pa.Table:
        return pa.table(mpi.together(self.analysis.account_window, begin, end))

    def counter_window(self, begin: float, end: float) -> pa.Table:
        return pa.table(mpi.together(self.analysis.counter_window, begin, end))

    def counter_changes(self, stretches: Mapping[str, Sequence[Any]], *, shared: bool = False) -> pa.Table:
        return pa.table(mpi.together(self.analysis.counter_changes, dict(stretches), shared))

    @property
    def stored_iterations(self) -> None:
        return None

    @cached_property
    def declared_loops(self) -> tuple[list[int], pa.Table]:
        if not isinstance(self.analysis, _native.Analysis):
            return [], pa.table({"parameter": pa.array([], pa.string())})
        dynamic, parameters = mpi.together(_native.declared_loops, self.analysis)
        return dynamic, pa.table(parameters)

    def iterations(
        self, marker: int | str, every: int, body: Sequence[int], computes: npt.NDArray[np.bool_]
    ) -> tuple[pa.Table, int]:
        if (marker, every) not in self._iterations:
            found, callpath = mpi.together(
                _native.iterations, self._events, marker, every=every, body=list(body), computes=computes.tolist()
            )
            self._iterations[marker, every] = pa.table(found), callpath
        return self._iterations[marker, every]

    def communication(
        self, *, whole: bool = False, inside: npt.NDArray[np.bool_] | None = None
    ) -> tuple[pa.Table, pa.Table]:
        key = whole, None if inside is None else inside.tobytes()
        if key not in self._communication:
            waiting = [metric.name for metric in metric_tree().computed(self.stored).waiting]
            window = None
            if not whole and self.facts.get("focus_rule", "whole") != "whole":
                window = self.facts["focus_begin"], self.facts["focus_end"]
            events = self._any_events
            callpaths = None if inside is None else inside.tolist()
            pairs, block, sizes = mpi.together(
                _native.communication, events, waiting=waiting, most=_PAIRS, window=window, callpaths=callpaths
            )
            last = int(self.locations["rank"].to_numpy().max(initial=0))
            self._communication[key] = _with_ends(pa.table(pairs), block, last), pa.table(sizes)
        return self._communication[key]

    @cached_property
    def _communication(self) -> dict[tuple[bool, bytes | None], tuple[pa.Table, pa.Table]]:
        return {}

    @property
    def _any_events(self) -> _native.Analysis:
        if not isinstance(self.analysis, _native.Analysis):
            raise _native.UsageError("there are no events")
        return self.analysis

    @property
    def _events(self) -> _native.Analysis:
        events = self._any_events
        if self.options.window is not None:
            # The events cover the whole run but the waits only part of it, so sums over both would be inconsistent.
            raise _native.UsageError(PART)
        return events

    def window(self, begin: float, end: float) -> pa.Table:
        # Cache one window: headlines and efficiencies request the same one in turn.
        if self._window is None or self._window[0] != (begin, end):
            self._window = (begin, end), pa.table(mpi.together(self.analysis.window, begin, end))
        return self._window[1]


# With more pairs than this, ranks are merged into blocks.
_PAIRS = 1 << 20


def _with_ends(pairs: pa.Table, block: int, last: int) -> pa.Table:
    """Add the last rank of each block."""
    columns = {}
    for name in pairs.column_names:
        columns[name] = pairs[name]
        if name in {"rank", "peer"}:
            columns[f"last_{name}"] = np.minimum(pairs[name].to_numpy() + np.int32(block - 1), np.int32(last))
    return pa.table(columns)


def _nullable(found: _native.Table) -> pa.Table:
    """Make every column nullable: whether it has nulls differs from call to call."""
    table = pa.table(found)
    return table.cast(pa.schema([(field.name, field.type) for field in table.schema]))
