"""Compare two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.analysis.focus import focused
from whywait.analysis.runs import compare as analysis
from whywait.api.load import as_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    import pyarrow as pa

    from whywait.analysis.runs.threshold import Threshold
    from whywait.api.result import Result


class Comparison:
    """Two runs and how they differ, as returned by `whywait.compare`.

    Parameters
    ----------
    first, second
        The runs.
    names
        The display names of the runs.
    focus
        The part of each run to compare, as for `Result.summary`.

    Attributes
    ----------
    parts
        The focus of each run: all numbers are of these, but for the lengths of the runs.
    """

    def __init__(self, first: Result, second: Result, names: tuple[str, str], focus: str | None = None) -> None:
        self.first = first
        self.second = second
        self.names = names
        self.focus = focus
        self.parts = (focused(first, focus), focused(second, focus))

    def differences(
        self,
        metrics: Iterable[str] | None = None,
        *,
        groups: int = 1,
        callpath: str | None = None,
        least: float = 0.0,
    ) -> pa.Table:
        """Return the differences by call path, metric, and group of ranks.

        Parameters
        ----------
        metrics
            The metrics to compare, by unique name or display name; None for the time and all wait states.
        groups
            The number of groups of neighboring ranks in each run.
        callpath
            Compare only these call paths and their callees: see `whywait.model.selection.find_callpaths`.
        least
            Omit differences below this share of the time, or of a count.

        Returns
        -------
        pyarrow.Table
            The largest differences first: see `whywait.analysis.runs.compare.differences`.

        Raises
        ------
        whywait.UsageError
            If neither run computes a metric, or has such a call path.

        Examples
        --------
        >>> both = whywait.compare("tests/data/sor_gats", "tests/data/sor_fence")
        >>> waits = both.differences(["mpi_rma_wait_at_fence"]).to_pylist()
        >>> waits[0]["callpath"][-1], waits[0]["first"]
        ('MPI_Win_fence', 0.0)
        """
        found = analysis.differences(*self.parts, metrics, groups=groups, callpath=callpath)
        return analysis.noticeable(found, self.totals(callpath=callpath), least) if least > 0 else found

    def totals(self, *, callpath: str | None = None) -> list[dict[str, Any]]:
        """Return every metric of both runs, over all locations.

        Parameters
        ----------
        callpath
            Only these call paths and their callees, as for `differences`.

        Returns
        -------
        list of dict
            ``metric``, ``first``, ``second``, ``difference``, ...: see `whywait.analysis.runs.compare.totals`.
        """
        return analysis.totals(*self.parts, callpath=callpath)

    def lengths(self) -> dict[str, tuple[float, float]]:
        """Return the lengths of both runs, in seconds.

        >>> whywait.compare("tests/data/sor_p2p", "tests/data/sor_fence").lengths().keys()
        dict_keys(['focus', 'run'])

        Returns
        -------
        dict
            ``focus``, the time between start-up and shutdown, and ``run``; without lengths that one of them lacks, as
            a profile does.
        """

        def length(result: Result, name: str) -> float | None:
            facts = result.facts
            if name == "focus" and "focus_end" in facts:
                return float(facts["focus_end"] - facts["focus_begin"])
            return facts.get("length") or None

        found = {name: (length(self.first, name), length(self.second, name)) for name in ("focus", "run")}
        return {name: (first, second) for name, (first, second) in found.items() if first and second}

    def accounts(self) -> list[dict[str, Any]] | None:
        """Return the accounts of both runs side by side, the largest change first.

        Returns
        -------
        list of dict or None
            See `whywait.analysis.runs.account_changes.account_changes`.
        """
        from whywait.analysis.runs.account_changes import account_changes

        return account_changes(self.first, self.second, self.focus)

    def findings(self) -> list[dict[str, Any]] | None:
        """Return which findings came, went, grew or shrank, the largest change first.

        Returns
        -------
        list of dict or None
            See `whywait.analysis.runs.account_changes.finding_changes`. None also if another focus than the default one
            is compared, of which there are no findings.
        """
        from whywait.analysis.runs.account_changes import finding_changes

        return finding_changes(self.first, self.second) if self.focus is None else None

    def functions(self, least: float = 0.001) -> dict[str, Any] | None:
        """Return the functions in which one run certainly spends more or less time than the other one, by samples.

        Parameters
        ----------
        least
            The smallest difference to return, as a share of the time of the first run.

        Returns
        -------
        dict or None
            See `whywait.analysis.runs.function_changes.function_changes`. None also if another focus than the default
            one is compared, of which functions have no times.
        """
        from whywait.analysis.runs.function_changes import function_changes

        if self.focus is not None:
            return None
        return function_changes(self.first, self.second, least * self.first.profile.total("time"))

    def exceeded(self, limits: Iterable[Threshold]) -> list[Threshold]:
        """Return the limits that the second run exceeds.

        Parameters
        ----------
        limits
            The maximum growth of metrics, see `whywait.Threshold`.

        Raises
        ------
        whywait.UsageError
            If neither run computes a metric, or a limit has the wrong unit.
        """
        return [limit for limit in limits if limit.exceeded(*self.parts)]

    def write_html(
        self,
        path: str | PathLike[str],
        *,
        timelines: Mapping[str, str] | None = None,
        simulated: str | None = None,
    ) -> None:
        """Write both runs side by side as one HTML file, to explore in a browser without network access.

        Parameters
        ----------
        path
            The file. It is replaced if it exists.
        timelines
            The blocks of their timelines, as `whywait.report.html.timeline.pair` makes them; None for none.
        simulated
            What was changed, if the second run is a simulation of the first.
        """
        from whywait.report.html import write_comparison
        from whywait.store.staging import Staging

        for run in (self.first, self.second):
            run.need_whole()
        target = Path(path)
        if target.is_dir():
            raise _native.UsageError(f"{target} is a directory, not a file to write to")
        with Staging(target.parent) as staging:
            write_comparison(*self.parts, staging.path(target.name), self.names, timelines, simulated)

    def __repr__(self) -> str:
        return f"<whywait.Comparison of {self.names[0]!r} and {self.names[1]!r}>"


def compare(
    first: Result | str | PathLike[str],
    second: Result | str | PathLike[str],
    *,
    names: tuple[str, str] | None = None,
    focus: str | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    first, second
        Results, directories of written results, Score-P profiles, or traces, which are analyzed.
    names
        The display names of the runs; None for their own names.
    focus
        The part of each run to compare, as for `Result.summary`: by default the time between start-up and shutdown.
    progress
        As for `whywait.analyze`.

    Returns
    -------
    Comparison

    Raises
    ------
    whywait.Error, OSError
        As for `whywait.load` and `whywait.analyze`.

    Examples
    --------
    >>> whywait.compare("tests/data/sor_p2p", result)
    <whywait.Comparison of 'sor_p2p' and 'stencil'>
    """
    runs = as_result(first, progress=progress), as_result(second, progress=progress)
    return Comparison(*runs, names or (runs[0].run.name, runs[1].run.name), focus)
