"""The part of `whywait.Result` that tells about the clocks of the processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.api.pictured import PicturedResult

if TYPE_CHECKING:
    import pyarrow as pa


class ClockedResult(PicturedResult):
    """A result with what is known about its clocks: see docs/clocks.md."""

    @property
    def clocks(self) -> dict[str, Any] | None:
        """What contradicts the order of events, and what was done about it; None if nothing does.

        ``verdict`` (such as ``measured offsets``), ``steps`` (the times as they were read, then each correction that
        was tried: ``name``, ``kept``, and of the contradictions that were left then their number ``violated``, the
        ``worst`` and the ``sum``), ``done`` (the corrections that were kept), ``checked`` and ``violated`` (constraints
        of the times as they were read), ``left`` (violated ones in the times of this result), ``worst``, ``sum``,
        ``kinds`` (the same by kind), ``moved`` (the most that a time was corrected by), ``moved_processes`` (their
        number), ``stretch`` (the largest growth of an interval by the logical clock), ``stretched`` (the share of all
        time that is stretched by more than 1%), ``domain`` (what was asked to have a clock of its own),
        ``min_latency``, and ``contradicting`` (the number of nodes whose processes had different clock offsets, of
        these processes, and of the offsets). Times in seconds.
        """
        found: dict[str, Any] | None = self.facts.get("clocks")
        return found

    def clock_violations(self) -> pa.Table:
        """Return the contradictions in the times as they were read, by kind and pair of processes, the worst first.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if there are none.
        """
        return self.tables.clock_table("clock_violations")

    def clock_course(self) -> pa.Table:
        """Return the contradictions in the times as they were read, by kind and hundredth of the run.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if there are none.
        """
        return self.tables.clock_table("clock_course")

    def clock_processes(self) -> pa.Table:
        """Return the clock of each process, and how it was corrected.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if nothing contradicts the order of events.
        """
        return self.tables.clock_table("clock_processes")

    def clock_domains(self) -> pa.Table:
        """Return what has a clock of its own, devices among them, and the line that was fitted to it.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if nothing contradicts the order of events.
        """
        return self.tables.clock_table("clock_domains")

    def clock_moves(self) -> pa.Table:
        """Return what the clocks of processes and devices that are moved most are moved by over the run.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if nothing contradicts the order of events.
        """
        return self.tables.clock_table("clock_moves")

    def clock_pairs(self) -> pa.Table:
        """Return what the constraints say about the difference of two clocks.

        Returns
        -------
        pyarrow.Table
            See docs/tables.md; no rows if no lines were fitted.
        """
        return self.tables.clock_table("clock_pairs")
