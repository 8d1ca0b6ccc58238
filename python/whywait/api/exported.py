"""A result in files of other programs that show runs over time: the methods of a result that write them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import whywait._native as _native
import whywait.mpi as mpi
from whywait.api.sampled import SampledResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from os import PathLike


class ExportedResult(SampledResult):
    """A result with files for timelines: `whywait.Result` without its other methods."""

    def write_paraver(
        self,
        path: str | PathLike[str],
        *,
        ranks: Collection[int] | None = None,
        window: tuple[float, float] | None = None,
        min_duration: float = 0.0,
        progress: Callable[[str, float], object] | None = None,
    ) -> dict[str, int]:
        """Write the run as a trace for Paraver, with its wait states, their causes, and the critical path.

        Beside the trace are its labels (``.pcf``), the names of its objects (``.row``), and windows for what the
        analysis found (``.cfg``). Event types and states are those of Extrae.

        >>> written = result.write_paraver(directory / "run.prv")
        >>> written["threads"]
        8

        Parameters
        ----------
        path
            The file, ``.prv``, or ``.prv.gz`` to compress it; replaced if it exists.
        ranks, window, min_duration
            What is written, as for `write_timeline`.
        progress
            Called regularly with ``"timeline"`` and the share that is done, 0..1. An exception it raises ends the work.

        Returns
        -------
        dict
            The number of ``threads``, ``calls``, ``messages``, ``wait_states``, ``critical_path`` (stretches),
            ``records`` and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If the name has another ending, there is no such rank, the window is empty, or the result was loaded from
            disk and has no events.
        """
        from whywait.store.paraver import base_of, write_files

        if not isinstance(analysis := self.tables.analysis, _native.Analysis):
            raise _native.UsageError("a result on disk has no events: analyze the trace again")
        target = Path(path)
        base_of(target)

        def write(file: Path) -> tuple[dict[str, int], dict[str, str]]:
            return mpi.together(
                _native.write_paraver,
                analysis,
                file,
                labels={metric.name: metric.display_name for metric in self.profile.metrics},
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=progress,
            )

        return write_files(target, write)

    def write_timeline(
        self,
        path: str | PathLike[str],
        *,
        ranks: Collection[int] | None = None,
        window: tuple[float, float] | None = None,
        min_duration: float = 0.0,
        queues: bool = False,
        progress: Callable[[str, float], object] | None = None,
    ) -> dict[str, int]:
        """Write the run as a trace for the timeline viewer Perfetto (https://ui.perfetto.dev).

        Calls, wait states and the critical path become slices; messages, one-sided transfers and the causes of waits
        become flows; recorded counters become counter tracks. Slices keep their original times, in ns since the start
        of the trace, even if a window cuts them.

        >>> written = result.write_timeline(directory / "run.pftrace", ranks=range(4), window=(0.5, 0.6))
        >>> written["threads"]
        4

        Parameters
        ----------
        path
            The file; replaced if it exists.
        ranks
            The ranks to write; None for all.
        window
            Start and end in seconds since the start of the trace; everything that overlaps this window is written.
        min_duration
            The minimum length of calls, waits, transfers, and segments of the critical path, in seconds.
        queues
            Whether to replay the queues of messages, and to write their lengths, requests, and bytes in flight of each
            process as counter tracks.
        progress
            Called regularly with ``"timeline"`` and the share that is done, 0..1. An exception it raises ends the work.

        Returns
        -------
        dict
            The number of ``threads``, ``calls``, ``wait_states``, ``critical_path`` (segments), ``transfers``,
            ``message_flows``, ``cause_flows``, ``transfer_flows``, ``task_flows`` (to tasks that start on another
            thread), ``locks`` (times in which threads own locks that others wait for), ``nonblocking`` (collective
            operations), ``counters`` (tracks), ``backwards`` (flows that are omitted because they would end before they
            begin) and ``bytes``.

        Raises
        ------
        whywait.UsageError
            If there is no such rank, the window is empty, or the result was loaded from disk and has no events.
        """
        from whywait.analysis.queues import LEVELS, Queues
        from whywait.store.staging import Staging

        if not isinstance(analysis := self.tables.analysis, _native.Analysis):
            raise _native.UsageError("a result on disk has no events, so it has no timeline: analyze the trace again")
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        with Staging(target.parent) as staging:
            return mpi.together(
                _native.write_perfetto,
                analysis,
                staging.path(target.name),
                labels={**LEVELS, **{metric.name: metric.display_name for metric in self.profile.metrics}},
                queues=Queues(self).replay() if queues else None,
                ranks=None if ranks is None else list(ranks),
                window=window,
                min_duration=min_duration,
                progress=progress,
            )
