"""The facade: the iterations of a program and its communication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from whywait.model.result import ResultData

if TYPE_CHECKING:
    import pyarrow as pa


class Structure(ResultData):
    """The part of a result that describes the iterations and the communication of the program."""

    def iterations(self, loop: str | int | None = None) -> pa.Table | None:
        """Return the iterations of the main loop: when each took place, how long it took, and how much it waited.

        Parameters
        ----------
        loop
            The call path that is entered once in each iteration: its last names separated by ``/``, or its number. Or
            the name of a parameter that the program records (optionally with the prefix ``parameter:``). None to use
            the loop that the program declares, or else the repeated part that takes the most time.

        Returns
        -------
        pyarrow.Table or None
            One row per ``iteration``; None if there is no main loop. Times are in seconds.

            * ``begin`` (on the first rank to begin it), ``end`` (on the last rank to end it): since the start of the
              trace.
            * ``ranks``: the number of ranks that have the iteration.
            * ``duration``, ``shortest``: the longest and the shortest time on a rank.
            * ``computation``: the mean over the ranks.
            * ``slowest_rank``, ``slowest_computation``: the rank that computes longest, and how long.
            * ``waiting``: the sum over all locations.
            * ``critical_path``: the time of the critical path in the iteration; ``critical_rank``: the rank with most
              of this time (null if there is none).
            * ``parallel_efficiency``, ``load_balance``, ``communication_efficiency``: null if nothing takes time.
            * ``callpath_id``: the call path at which the iteration begins.
            * ``parameter``, ``value``: the parameter that marks the iterations, and its value (both null if a call path
              marks them; the value is null if it differs between ranks).
            * one column per wait state that occurs, named after its metric: the sum over all locations.

        Raises
        ------
        whywait.UsageError
            If ``loop`` matches no call path or more than one, or the result has no events.

        Examples
        --------
        >>> table = result.iterations()
        >>> table.num_rows, result.tree.path(table["callpath_id"][0].as_py())[-1]
        (100, 'exchange_halo')
        """
        from whywait.analysis.iterations import iterations

        return iterations(self, loop)

    def communication(self, *, merge: Literal["node"] | int | None = None) -> pa.Table:
        """Return who communicates with whom, and who waits for whom.

        Parameters
        ----------
        merge
            ``"node"`` to add up the ranks of each node, or a number to add up blocks of that many neighboring ranks;
            None for single ranks.

        Returns
        -------
        pyarrow.Table
            One row per pair of ``rank`` and ``peer``:

            * ``messages``, ``bytes``, ``time``: messages from the rank to the peer, and their total time from send to
              receive (seconds).
            * ``transfers``, ``transfer_bytes``, ``transfer_time``: the same for one-sided communication.
            * ``waiting``: how long the rank waits for the peer, in all wait states including those of collective
              operations (seconds).

            With more than a million pairs, neighboring ranks are merged: a row stands for the ranks up to ``last_rank``
            and the peers up to ``last_peer``. Between nodes, the first columns are their names, ``node`` and
            ``peer_node``.

        Raises
        ------
        whywait.UsageError
            If the result has no events (several processes shared the analysis, or an older version wrote it), or if
            its pairs are already merged too far to separate nodes or blocks of this size.

        Examples
        --------
        >>> first = result.communication().to_pylist()[0]
        >>> first["rank"], first["peer"], first["messages"]
        (0, 1, 100)
        """
        from whywait.analysis.communication import between_nodes, in_blocks

        if merge == "node":
            return between_nodes(self)
        pairs = self.tables.communication[0]
        return pairs if merge is None else in_blocks(pairs, merge)

    def message_sizes(self) -> pa.Table:
        """Return a histogram of the sizes of messages and one-sided transfers.

        Returns
        -------
        pyarrow.Table
            One row per nonempty size class: ``kind`` (``message``, ``put``, ``get``, ``atomic``), ``least`` and
            ``below`` (bytes: from one power of two up to the next), ``count``, ``bytes`` and ``time`` (total seconds
            from send to receive).

        Raises
        ------
        whywait.UsageError
            As for `communication`.
        """
        return self.tables.communication[1]
