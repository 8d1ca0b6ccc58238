"""The data of a result: the dataset, and values derived from its tables alone."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import whywait._native as _native
from whywait.model.calltree import CallTree
from whywait.model.counters import as_metrics, longest_queues, metrics_of
from whywait.model.idle_threads import allocation
from whywait.model.imbalance import NAMES as IMBALANCE
from whywait.model.imbalance import imbalance
from whywait.model.metric_values import Metrics, Window
from whywait.model.profile import Profile, is_in_window
from whywait.model.tables import Locations
from whywait.model.unknown_libraries import KIND, unknown_libraries, warnings

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from whywait.model.dataset import Dataset
    from whywait.model.trace import Trace


# How many missing ranks a warning names.
_NAMED = 8


def part_of_run(window: tuple[float, float], length: float) -> tuple[float, float]:
    """Return the part of a window within a run of the given length, in seconds.

    Raises
    ------
    whywait.UsageError
        If the window is empty, or outside of the run.
    """
    if not window[0] < window[1]:
        raise _native.UsageError(f"the window from {window[0]:.9g} to {window[1]:.9g} s does not begin before it ends")
    begin, end = max(window[0], 0.0), min(window[1], length)
    if not begin < end:
        raise _native.UsageError(f"the window lies outside the run, which lasts from 0 to {length:.9g} s")
    return begin, end


class ResultData:
    """The data of a result, as used by analysis and reports; `whywait.Result` adds the public methods.

    Parameters
    ----------
    tables
        The dataset.
    run
        The trace that was analyzed.
    idle_threads
        Whether to add the time of idle threads to the times of the dataset.
    """

    def __init__(self, tables: Dataset, run: Trace, *, idle_threads: bool = False) -> None:
        self._tables = tables
        self._run = run
        self._idle_threads = idle_threads

    @property
    def tables(self) -> Dataset:
        """The dataset, whose tables have numbers where those of other methods have names."""
        return self._tables

    @property
    def run(self) -> Trace:
        """The trace that was analyzed."""
        return self._run

    @cached_property
    def locations(self) -> pa.Table:
        """The locations, as in `whywait.Run.locations`."""
        return self.tables.locations

    @cached_property
    def places(self) -> Locations:
        """Rank and thread of each location as arrays."""
        return Locations(self.locations, self._lost)

    @property
    def _lost(self) -> npt.NDArray[np.bool_]:
        """Whether the events of each location are gone: there are none, or not even the first can be read."""
        table = self.tables.inconsistencies
        kind, time = table["kind"].cast(pa.string()), table["time"].cast(pa.float64())
        timeless = pc.or_kleene(pc.is_null(time), pc.less(time, 0.0))
        gone = pc.or_(pc.equal(kind, "unreadable"), pc.and_(pc.equal(kind, "truncated"), timeless))
        lost = np.zeros(self.locations.num_rows, np.bool_)
        lost[table["location"].filter(gone).to_numpy()] = True
        return lost | self._silent

    @property
    def _silent(self) -> npt.NDArray[np.bool_]:
        """Whether each location is of a process without any event, as one whose event file is whole but empty."""
        events: npt.NDArray[np.uint64] = self.locations["events"].to_numpy()
        silent: npt.NDArray[np.bool_] = (events == 0) & bool(events.any())
        if silent.any():
            # What is declared may be wrong.
            silent[self.tables.severities["location"].to_numpy()] = False
            rank = self.locations["rank"].to_numpy()
            silent &= (rank >= 0) & ~np.isin(rank, rank[~silent])
        return silent

    @cached_property
    def tree(self) -> CallTree:
        """The call tree."""
        return CallTree(self.tables.regions, self.tables.callpaths)

    @cached_property
    def profile(self) -> Profile:
        """All severities, as arrays."""
        stored = self.tables.stored
        profile = Profile(self.tree, len(self.places), self.tables.severities, stored, self.places.works)
        # A stored dataset has them already.
        if not set(IMBALANCE) & set(stored):
            profile = profile.extended(imbalance(profile, self.places))
        profile = self._counted(profile, self.tables.counter_cells)
        return allocation(profile, self.places) if self._idle_threads else profile

    def _counted(self, profile: Profile, cells: pa.Table) -> Profile:
        """Add the counters of the trace, and the longest queues, to a profile."""
        found = list(as_metrics(self.tables.counters, cells, self.tree, len(self.places))) if cells.num_rows else []
        # Queues are replayed for the whole run only.
        if (levels := self.tables.queue_levels) is not None and self.tables.options.window is None:
            found += longest_queues(levels)
        if not found:
            return profile
        metrics, of_metrics = metrics_of(found)
        return profile.extended(of_metrics, metrics)

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics that this version computes, by unique name.

        >>> result.metrics["mpi_latesender"]
        <whywait.MetricValues mpi_latesender: 0.487... sec>
        """
        return Metrics(self.profile, self.places)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Length of the run in seconds, numbers of processes, locations, events and clock violations.

        ``origin`` is the tick of time zero for times in seconds since the begin of the trace, and ``resolution`` the
        number of ticks per second.
        """
        return self.tables.facts

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """The warnings of the analysis: ``kind``, ``count``, ``text`` and ``place`` of each."""
        found = self.tables.warnings
        ranks = self.places.lost_ranks
        # A stored dataset has it already.
        if ranks and not any(warning["kind"] == "no_events" for warning in found):
            named = ", ".join(map(str, ranks[:_NAMED])) + (", ..." if len(ranks) > _NAMED else "")
            text = (
                f"no events of rank{'s' * (len(ranks) > 1)} {named}: left out of all averages "
                f"({len(ranks):,} of {self.facts['processes']:,} processes)"
            )
            found = [{"kind": "no_events", "count": 1, "text": text, "place": None}, *found]
        if not any(warning["kind"] == KIND for warning in found):
            found = [*found, *warnings(self.unknown_libraries)]
        known = {warning["text"] for warning in found}
        failed = [text for text in self.failures.values() if text not in known]
        return [*found, *({"kind": "failure", "count": 1, "text": text, "place": None} for text in failed)]

    @cached_property
    def unknown_libraries(self) -> list[dict[str, Any]]:
        """The communication libraries whose waiting is not known: see `whywait.model.unknown_libraries`."""
        return unknown_libraries(self.profile, self.facts.get("no_records_of"))

    @cached_property
    def failures(self) -> dict[str, str]:
        """What could not be made of the result because of a fault of this program, as a sentence by a name of each."""
        return {}

    @contextmanager
    def surviving(self, what: str, name: str | None) -> Iterator[None]:
        """Go on after a fault of this program in the block, and keep it as a warning.

        Errors that tell users something, such as that of a damaged file, are raised.

        Parameters
        ----------
        what
            What the block makes, as in "a finding could not be made".
        name
            Which one; None for no warning, if something else is tried.
        """
        try:
            yield
        except (_native.Error, OSError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - a fault in one of many parts leaves the others as they are
            if name is None:
                return
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.failures[f"{what} {name}"] = f"{what} could not be made: {name} ({reason})"

    @property
    def notes(self) -> list[str]:
        """The warnings that concern the whole result: a profile, missing ranks, unknown libraries, what failed."""
        kinds = {"profile", "no_events", KIND, "failure"}
        return [warning["text"] for warning in self.warnings if warning["kind"] in kinds]

    @property
    def is_profile(self) -> bool:
        """Whether this is a profile: times of call paths without events, so without wait states."""
        return bool(self.facts.get("profile"))

    @property
    def has_causes(self) -> bool:
        """Whether the analysis computed causes: only then are there delay costs and a critical path."""
        return "critical_path" in self.profile.metrics

    def need_causes(self) -> None:
        """Raise `whywait.UsageError` if causes were not computed, or cannot be: a profile has no events."""
        if self.is_profile:
            path = self.run.path
            raise _native.UsageError(f"{path} is a profile, which has no events, so no causes: analyze a trace")
        if not self.has_causes:
            raise _native.UsageError("this result has no causes: it was analyzed with --no-causes")

    @cached_property
    def graphs(self) -> WeakValueDictionary[bool, Any]:
        """The graphs of the run without changes that are in use: see `whywait.hypotheses.lengths`."""
        return WeakValueDictionary()

    @cached_property
    def parts(self) -> dict[str | None, ResultData]:
        """Cached parts of the result: see `whywait.analysis.focus`."""
        return {}

    @property
    def in_window(self) -> set[str]:
        """The stored metrics that a window has."""
        return {metric.name for metric in self.profile.metrics if is_in_window(metric)}

    def need_whole(self) -> None:
        """Raise `whywait.UsageError` if this result covers a part of the run only."""
        if self.tables.options.window is not None:
            raise _native.UsageError("only the result of a whole run can be written, not that of a window")

    def window(self, begin: float, end: float) -> Window:
        """Return the metrics of a window of time: times, wait states and metrics derived from them.

        Parameters
        ----------
        begin, end
            Seconds since the begin of the trace, clipped to the run.

        Returns
        -------
        whywait.model.metric_values.Window
            The metrics by unique name, as in `metrics`. Adjacent windows that cover the run add up to the whole run. A
            wait is located in its call as in the timeline: usually at the begin of the call; a completion, the time
            after all others have entered the call, at its end.

        Raises
        ------
        whywait.UsageError
            If the window is outside of the run, or if this is a stored result, which has no events.

        Examples
        --------
        >>> round(result.window(0.5, 0.6)["time"].total, 6)  # eight ranks, a tenth of a second
        0.8
        """
        begin, end = part_of_run((begin, end), self.facts["length"])
        window = Window(self.tree, self.places, self.tables.window(begin, end), self.in_window)
        return allocation(window, self.places) if self._idle_threads else window
