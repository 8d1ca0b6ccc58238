"""Where the time went, and why: the methods of a result about its account."""

from __future__ import annotations

from typing import TYPE_CHECKING

import whywait._native as _native
from whywait.model import tables
from whywait.model.result import ResultData

if TYPE_CHECKING:
    import pyarrow as pa

    from whywait.analysis.account import By
    from whywait.analysis.findings import Findings


class AccountedResult(ResultData):
    """A result with an account of its time: `whywait.Result` without its other methods."""

    def account(
        self,
        focus: str | None = None,
        *,
        by: By | None = "row",
        window: tuple[float, float] | None = None,
    ) -> pa.Table:
        """Return the account of all CPU time: each moment of each CPU location belongs to exactly one row.

        The rows add up to the CPU time of the focus; docs/account.md defines them.

        >>> account = result.account()
        >>> round(sum(account["share"].to_pylist()), 9)
        1.0

        Parameters
        ----------
        focus
            The part of the run: by default the time between start-up and shutdown, ``all`` for the whole run, or a call
            path, including its callees.
        by
            What to sum over: ``"row"``, ``"callpath"``, ``"location"`` or ``"iteration"`` (of the main loop); None for
            the table of call paths and locations.
        window
            Begin and end of a time window instead, seconds since the start of the trace. This needs the events.

        Returns
        -------
        pyarrow.Table
            ``row`` (such as ``transfer.needed``, or ``wait.mpi_latesender``), ``group``, the call path or the location,
            ``time`` (s), ``share`` of the CPU time (not without sums), ``excess`` (s, what calls take beyond the
            fastest 5% of such calls) and ``calls``. By iteration: ``iteration``, ``begin``, ``duration``, ``group``,
            ``time``, and ``share`` of the time of the iteration on all threads.

        Raises
        ------
        whywait.UsageError
            If there is no such call path, or the part needs events and there are none; by iteration, if there is no
            main loop.
        """
        from whywait.analysis.account import account

        return account(self, focus, window).table(by)

    def device_account(self) -> pa.Table:
        """Return the account of devices: each moment of each device in the focus belongs to exactly one row.

        Returns
        -------
        pyarrow.Table
            ``device`` (the name of its first stream), ``row`` (what it does or why it is idle, such as ``busy.kernel``
            or ``starved.host``), ``callpath`` and ``callpath_id`` (what the host is in meanwhile, or null), ``time``
            (s). No rows without devices.
        """
        pieces = tables.device_account_pieces(self.tree, self.places, self.tables.device_account)
        return tables.table(tables.DEVICE_ACCOUNT, pieces)

    def io(self) -> pa.Table:
        """Return what was done with files, by file, call path, and location.

        >>> result.io().num_rows  # this run has no I/O
        0

        Returns
        -------
        pyarrow.Table
            ``file`` and ``paradigm`` (such as ``POSIX I/O``; null if not defined), ``operation`` (``read``, ``write``,
            ``flush``, ``open``, ``close``, ``duplicate``, ``seek``, ``delete``, ``lock`` or ``status``), ``nested``
            (whether it belongs to an operation of another paradigm, which counts it already), the call path and the
            location, ``count``, ``incomplete`` (those that were canceled or never completed), ``bytes``, ``time`` (s,
            from begin to completion, summed) and ``in_calls`` (s, the part of it in the calls that begin and complete
            them). No rows without records of I/O.
        """
        return tables.table(tables.IO, tables.io_pieces(self.tree, self.places, self.tables.io))

    def findings(self, limit: int = 5, *, focus: str | None = None, prices: bool = False) -> Findings:
        """Return the findings: the largest losses of the focus, each with its reason.

        >>> result.findings()[0].rule
        'imbalance'
        >>> first = result.findings(prices=True)[0].price
        >>> first.what, round(first.saved, 4)
        ('balance relax/work', 0.085)

        Parameters
        ----------
        limit
            How many to show at most: see ``Findings.shown``.
        focus
            A call path: only what it, and what is below it, is to blame for. None for all.
        prices
            Whether to simulate what changes would save, if that is not known yet. The result keeps it.

        Returns
        -------
        whywait.analysis.findings.Findings
            A list of findings, the largest loss first: ``rule``, ``sentence``, ``advice``, ``loss`` (s of CPU time),
            ``share`` (of the CPU time of the focus), ``callpath`` (its number), ``ranks``, ``values`` (the figures and
            names in the sentence, with unit and meaning), ``evidence``, and ``price`` and ``prices`` if these are known
            (``saved`` is the time by which the focus becomes shorter, in s: that of `whywait.whatif`); with ``shown``,
            ``rest``, ``caveats``, ``together``, ``verdict()``, and ``table(result.tree)``.

        Raises
        ------
        whywait.UsageError
            If the result has no account (a profile, or a result of version 0.2.0), or there is no such call path.
        """
        from whywait.analysis.prices import priced_findings

        if not isinstance(limit, int):
            raise _native.UsageError(
                f"limit is how many findings to show at most, not {limit!r}: a call path is focus="
            )
        return priced_findings(self, limit, focus=focus, simulate=prices)

    def verdict(self) -> str:
        """Return what to say first: how much of the CPU time is lost, why most of it, and what that costs.

        The last sentence needs prices: see `findings`.

        >>> result.verdict().partition(". ")[0]
        '31% of the CPU time is lost'
        """
        return self.findings().verdict()
