"""A result in other libraries: the methods of a result for Matplotlib and Hatchet, which need not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.api.accounted import AccountedResult

if TYPE_CHECKING:
    from collections.abc import Iterable


class PicturedResult(AccountedResult):
    """A result with pictures: `whywait.Result` without its other methods."""

    def plot(self, ax: Any = None, *, focus: str | None = None) -> Any:
        """Draw where the time went: the account of all CPU time as bars, the largest groups on top.

        Parameters
        ----------
        ax
            The axes of Matplotlib to draw on; None for new ones.
        focus
            The part of the run: see `account`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, to change and to save: ``result.plot().figure.savefig("account.png")``.

        Raises
        ------
        whywait.UsageError
            If Matplotlib is not installed, or there is no such part.
        """
        from whywait.report.plot import plot_account

        return plot_account(self, ax, focus)

    def to_graphframe(self, metrics: Iterable[str] | None = None, *, rank: int | None = None) -> Any:
        """Return the call tree with its values as a ``GraphFrame`` of Hatchet, which Thicket reads, too.

        Parameters
        ----------
        metrics, rank
            See `Result.to_hatchet`, which has the same as nested dictionaries.

        Returns
        -------
        hatchet.GraphFrame
            The call tree, with a row for each call path.

        Raises
        ------
        whywait.UsageError
            If Hatchet is not installed, or there is no such metric or rank.
        """
        from whywait.report.hatchet import literal

        try:
            from hatchet import GraphFrame
        except ImportError as error:
            raise _native.UsageError("a GraphFrame needs Hatchet: pip install hatchet") from error
        return GraphFrame.from_literal(literal(self, metrics, rank=rank))
