"""The facade: how a program is made up, its iterations and who communicates with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from whywait.model.result import ResultData

if TYPE_CHECKING:
    import pyarrow as pa


class Structure(ResultData):
    """What a result says of the iterations and of the communication of its program."""

    def iterations(self, loop: str | int | None = None) -> pa.Table | None:
        """Return the iterations of the main loop: when each was, how long it took, and how much of it was waiting.

        Parameters
        ----------
        loop
            The call path that is entered once in each iteration: its last names with ``/`` between them, or its number.
            Or the name of a parameter that the program records (``parameter:`` may stand in front of it).
            None to find what the program declares, or else the repeated part of it that has most of the time.

        Returns
        -------
        pyarrow.Table or None
            One row an ``iteration``: ``begin`` (on the first rank to begin it) and ``end`` (on the last to end it;
            seconds since the begin of the trace), how many ``ranks`` have it, ``duration`` (the longest on a rank) and
            ``shortest``, ``computation`` (of a rank, in the mean), ``slowest_rank`` (the one that computes longest) and
            its ``slowest_computation``, ``waiting`` (of all locations), ``critical_path`` (how much of it lies in the
            iteration) and ``critical_rank`` (with most of that; null if none of it does), ``parallel_efficiency``,
            ``load_balance`` and ``communication_efficiency`` (null where nothing takes time), ``callpath_id``
            (where each begins), and the ``parameter`` that tells the iterations with its ``value`` (null if a call path
            does; if ranks have different values). Then one column for each wait state that occurs, under the name of
            its metric (seconds, of all locations). None if there is no main loop.

        Raises
        ------
        whywait.UsageError
            If ``loop`` names nothing or several call paths, or there are no events to tell its iterations from.

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
            ``"node"`` to add up the ranks of each node, a number to add up blocks of so many neighboring ranks.

        Returns
        -------
        pyarrow.Table
            One row a pair of ``rank`` and ``peer``: ``messages`` from the rank to the peer, their ``bytes`` and their
            ``time`` from send to receive (seconds, of all of them); ``transfers``, ``transfer_bytes`` and
            ``transfer_time``, the same of one-sided communication; and ``waiting``, how long the rank waits for the
            peer (seconds; all wait states, those of collective operations too). Of more than a million pairs
            neighboring ranks are merged: a row stands for the ranks up to ``last_rank`` and the peers up to
            ``last_peer``. Between nodes the first columns are ``node`` and ``peer_node``, their names.

        Raises
        ------
        whywait.UsageError
            If there are no events: several processes have shared the analysis, or an older version wrote the result.
            If so many pairs were merged that neither nodes nor such blocks can be told apart.

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
        """Return how many messages and one-sided transfers there are of which size.

        Returns
        -------
        pyarrow.Table
            One row a class of sizes that occurs: ``kind`` (``message``, ``put``, ``get``, ``atomic``), ``least`` and
            ``below`` (bytes: from a power of two up to the next), ``count``, ``bytes`` and ``time`` (seconds from send
            to receive, of all of them).

        Raises
        ------
        whywait.UsageError
            As `communication`.
        """
        return self.tables.communication[1]
