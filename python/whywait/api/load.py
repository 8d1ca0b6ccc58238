"""Load written results."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import whywait._native as _native
from whywait.api.analyze import analyze
from whywait.api.result import Result
from whywait.api.run import Run
from whywait.store.dataset import StoredDataset
from whywait.store.files import MANIFEST, is_result
from whywait.store.profile import ProfileDataset, is_profile, profile_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    import pyarrow as pa

    from whywait.store.stored import StoredTables


def load(directory: str | PathLike[str]) -> Result:
    """Load a result written by `Result.write`, or a profile.

    Parameters
    ----------
    directory
        The directory of the result; or a profile (``profile.cubex`` of Score-P, or another Cube 4 file), or the
        directory of an experiment with a profile and no trace.

    Returns
    -------
    Result
        The result. Its trace is opened only when events or definitions are needed, from its original place or next to
        the result. Transfers are available if they were written. A profile has times, visits, bytes and counters of
        call paths, but no wait states; methods that need events raise `whywait.UsageError`.

    Raises
    ------
    whywait.UsageError
        If the directory contains no result, an incomplete one, or one in a newer format.
    whywait.ArchiveError
        If a profile cannot be read.

    Examples
    --------
    >>> files = result.write(directory / "results")
    >>> whywait.load(directory / "results").metrics["mpi_latesender"].total == result.metrics["mpi_latesender"].total
    True
    """
    path = Path(directory)
    if (profile := profile_of(path)) is not None:
        measured = ProfileDataset(profile)
        return Result(measured, ProfileRun(measured))
    if not (path / MANIFEST).is_file():
        raise _native.UsageError(
            f"{path} does not contain a complete result of `whywait analyze`: {MANIFEST} is missing"
        )
    dataset = StoredDataset(path)
    run = StoredRun(dataset)
    dataset.analyze = lambda: analyze(run, **dataset.options.as_dict()).tables
    return Result(dataset, run)


def as_result(
    run: Result | str | PathLike[str],
    *,
    clocks: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> Result:
    """Return a result as it is, read a written result or a profile, or analyze a trace.

    Raises
    ------
    whywait.UsageError
        If ``clocks`` says how to correct clocks, as arguments of `whywait.analyze`, and the run is no trace.
    """
    if not isinstance(run, Result) and not can_load(run):
        return analyze(run, progress=progress, **(clocks or {}))
    known = run if isinstance(run, Result) else load(run)
    if clocks:
        raise _native.UsageError(
            f"{known.run.path if isinstance(run, Result) else run} is a result: its clocks were corrected, or not, "
            "when its trace was analyzed"
        )
    return known


def can_load(path: str | PathLike[str]) -> bool:
    """Return whether a path is a written result or a profile, so that nothing needs to be analyzed."""
    return is_result(path) or is_profile(path)


class MissingTraceError(_native.UsageError):
    """The trace of a result is needed, but no longer exists."""


class StoredRun(Run):
    """The trace of a written result, opened only for data that the result does not contain.

    Parameters
    ----------
    dataset
        The result.
    """

    def __init__(self, dataset: StoredTables) -> None:  # the archive is not opened yet
        self._dataset = dataset

    @cached_property
    def _native(self) -> _native.Run:
        trace = self._dataset.trace
        there = [path for path in (trace.path, *self._dataset.elsewhere) if path.exists()]
        for path in there:
            if trace.is_at(path):
                facts = self._dataset.facts
                return _native.Run(path, **(facts.get("traces") or facts.get("paraver") or {}).get("options", {}))
        if there:
            raise _native.UsageError(f"{there[0]} is not the trace that {self._dataset.directory} is a result of")
        raise MissingTraceError(
            f"this needs the trace that {self._dataset.directory} is a result of: {trace.path} is not there, nor is it "
            "next to the result"
        )

    @property
    def path(self) -> Path:
        """The anchor file that was analyzed."""
        return self._dataset.trace.path

    @property
    def name(self) -> str:
        """A name for the run."""
        return self._dataset.trace.name

    @cached_property
    def locations(self) -> pa.Table:
        """The streams of events."""
        return self._dataset.locations

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """Errors in the definitions whose meaning is still clear: kind, place and text of each."""
        return self._dataset.oddities


class ProfileRun(StoredRun):
    """The run of a profile, which has no trace."""

    @cached_property
    def _native(self) -> _native.Run:
        raise _native.UsageError(f"{self.path} is a profile: this needs a trace of the run")
