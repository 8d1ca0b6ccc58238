"""Read results that were written."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from whywait import _native
from whywait._api import Result
from whywait._run import Run
from whywait.store.upgrade import FILES, OldDataset

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

    from whywait.store.stored import StoredTables


def load(directory: str | PathLike[str]) -> Result:
    """Read a result that `Result.write` wrote.

    Parameters
    ----------
    directory
        Where it was written to.

    Returns
    -------
    Result
        The trace itself is needed only for its events and definitions. Inconsistencies and transfers are not kept.

    Raises
    ------
    whywait.UsageError
        If the directory holds no result.
    """
    path = Path(directory)
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise _native.UsageError(f"{path} holds no result of `whywait analyze`: there is no {missing[0]}")
    dataset = OldDataset(path)
    return Result(dataset, StoredRun(dataset))


class StoredRun(Run):
    """The trace of a written result; it is opened only for what the result does not know.

    Parameters
    ----------
    dataset
        The result.
    """

    def __init__(self, dataset: StoredTables) -> None:  # the archive is not opened yet
        self._dataset = dataset

    @cached_property
    def _native(self) -> _native.Run:
        return _native.Run(self.path)

    @property
    def path(self) -> Path:
        """The anchor file."""
        return Path(self._dataset.summary["run"]["path"])

    @property
    def name(self) -> str:
        """A name for the run."""
        name: str = self._dataset.summary["run"]["name"]
        return name

    @cached_property
    def locations(self) -> pa.Table:
        """The streams of events."""
        return self._dataset.locations

    @property
    def oddities(self) -> list[tuple[str, str, str]]:
        """What the definitions get wrong without leaving a doubt: kind, place and text of each finding."""
        return self._dataset.oddities
