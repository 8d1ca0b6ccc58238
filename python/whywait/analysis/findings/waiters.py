"""Who waits for each other in a training run: devices, or ranks where no device is recorded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.focus import focused
from whywait.model.profile import sum_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from whywait.analysis.findings.finding import Run
    from whywait.model.profile import Profile

_OF_MESSAGES = ("ccl_latesender", "ccl_latereceiver")
_OF_GROUPS = ("ccl_wait_nxn", "ccl_wait_barrier", "ccl_late_broadcast", "ccl_early_reduce")


class RankPlaces(NamedTuple):
    """The ranks of a trace, which may lack some.

    Attributes
    ----------
    numbers
        Their numbers.
    of_locations
        The place among these of the rank of each location.
    """

    numbers: npt.NDArray[np.int64]
    of_locations: npt.NDArray[np.int64]

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the sum of values of locations over those of each rank."""
        return sum_at(self.of_locations, values.astype(float), self.numbers.size)


def _places(run: Run) -> RankPlaces:
    rank = np.maximum(run.result.places.rank, 0)
    numbers, of_locations = np.unique(rank, return_inverse=True)
    return RankPlaces(numbers.astype(np.int64), of_locations.astype(np.int64))


def ranks_of(run: Run) -> RankPlaces:
    """Return the ranks of a run."""
    return run.once(_places)


class Waiters(ABC):
    """Those that wait for each other, and what for.

    Parameters
    ----------
    run
        The run.

    Attributes
    ----------
    word, words
        What one of them is called, and several are.
    base
        Whose time they lose: as `Finding.base`.
    """

    word: ClassVar[str]
    words: ClassVar[str]
    base: ClassVar[str]

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    @abstractmethod
    def time(self) -> float:
        """The time of all of them in the focus."""

    @property
    @abstractmethod
    def costs(self) -> dict[int, npt.NDArray[np.float64]]:
        """The waiting in the focus that each call path causes, by rank of the cause."""

    @property
    @abstractmethod
    def in_stages(self) -> bool:
        """Whether most of the waiting is for messages."""

    @property
    @abstractmethod
    def kinds(self) -> list[str]:
        """The kinds of their wait states."""

    @abstractmethod
    def computes(self, callpath: int) -> bool:
        """Return whether a call path is what a stage of a pipeline computes."""

    @abstractmethod
    def take(self, callpaths: list[int], ranks: list[int]) -> None:
        """Take what call paths make others wait for as explained: what some ranks cause, or all of it."""

    @cached_property
    def waits(self) -> pa.Table:
        """Their wait states that overlap the focus."""
        waits = focused(self.run.result).tables.wait_states
        return waits.filter(pc.is_in(waits["kind"].cast(pa.string()), pa.array(self.kinds)))


class Devices(Waiters):
    """Devices whose kernels wait for those of others."""

    word, words, base = "GPU", "GPUs", "device"

    @property
    def time(self) -> float:
        """The time of all of them in the focus."""
        return self.run.device_time

    @cached_property
    def costs(self) -> dict[int, npt.NDArray[np.float64]]:
        """The waiting in the focus that each call path causes, by rank of the cause.

        Kernels of a device that wait at the same time share its time.
        """
        profile = focused(self.run.result).profile
        numbers, rank = ranks_of(self.run)
        of_devices, of_kernels = in_rows(self.run, "comm.wait."), waiting(profile)
        shared = min(of_devices / of_kernels, 1.0) if of_kernels else 1.0
        number = numbers.size
        found: dict[int, npt.NDArray[np.float64]] = {}
        for metric in ("delay_ccl", "delay_ccl_longterm"):
            if metric not in profile.metrics:
                continue
            key, value = profile.cells(metric)
            position, location = np.divmod(key, max(profile.locations, 1))
            callpath = profile.tree.preorder[position]
            for one in np.unique(callpath).tolist():
                here = callpath == one
                found[one] = found.get(one, np.zeros(number)) + shared * sum_at(
                    rank[location[here]], value[here], number
                )
        return found

    @property
    def in_stages(self) -> bool:
        """Whether most of the waiting is for messages."""
        profile = focused(self.run.result).profile
        return _total(profile, _OF_MESSAGES) > _total(profile, _OF_GROUPS)

    @property
    def kinds(self) -> list[str]:
        """The kinds of their wait states."""
        return [*_OF_MESSAGES, *_OF_GROUPS]

    def computes(self, callpath: int) -> bool:
        """Return whether a call path is what a stage of a pipeline computes: a kernel."""
        return callpath in self.run.kernels

    def take(self, callpaths: list[int], ranks: list[int]) -> None:
        """Nothing: other rules ask about CPUs."""


class Ranks(Waiters):
    """Ranks that train on CPUs."""

    word, words, base = "rank", "ranks", "cpu"

    @property
    def time(self) -> float:
        """The time of all of them in the focus."""
        return self.run.time

    @cached_property
    def costs(self) -> dict[int, npt.NDArray[np.float64]]:
        """The waiting in the focus that each call path causes, by rank of the cause."""
        return {bearer.callpath: ranks_of(self.run).sums(bearer.costs) for bearer in self.run.own()}

    @property
    def in_stages(self) -> bool:
        """Whether most of the waiting is for messages."""
        return sum(one.of_messages for one in self.run.own()) > sum(one.waiting for one in self.run.own()) / 2

    @property
    def kinds(self) -> list[str]:
        """The kinds of their wait states."""
        return [kind.name for kind in self.run.result.profile.metrics.waiting]

    def computes(self, callpath: int) -> bool:
        """Return whether a call path is what a stage of a pipeline computes: any."""
        del callpath
        return True

    def take(self, callpaths: list[int], ranks: list[int]) -> None:
        """Take what call paths make others wait for as explained: what some ranks cause, or all of it."""
        rank = ranks_of(self.run).of_locations
        where = np.flatnonzero(np.isin(rank, ranks)) if ranks else np.arange(rank.size)
        for callpath in callpaths:
            self.run.losses.bearer(callpath).take_waiting(where)


def waiters(run: Run) -> Waiters | None:
    """Return who waits for each other in a training run; None if it is none."""
    if run.device_lines:
        return Devices(run)
    # Reports of Nsight Systems without devices are of programs with MPI.
    facts = run.result.facts
    return Ranks(run) if "traces" in facts and "nsight" not in facts else None


def waiting(profile: Profile) -> float:
    """Return the waiting of devices for each other."""
    return _total(profile, _OF_MESSAGES + _OF_GROUPS)


def _total(profile: Profile, metrics: tuple[str, ...]) -> float:
    return sum(profile.total(metric) for metric in metrics if metric in profile.metrics)
