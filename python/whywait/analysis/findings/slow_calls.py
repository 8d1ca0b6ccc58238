"""Calls take longer than others of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from whywait.analysis.findings.words import Figures, Words, joined

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run
    from whywait.analysis.losses import Bearer

NAME = "slow_calls"
TITLE = "Slow calls"
DOCUMENT = """\
Calls of a library take longer than the fastest 5% of their kind, and the trace does not show why. Look at the
distribution of their times, repeat the run with one rank per core, and record counters of the network. The loss
is this excess, the time in which threads are started, joined and synchronized, and the waiting that these pass on.
Where calls are not slow themselves, the function is named that others wait for.
Inside a collective operation with a root, ranks can wait for others of the tree that it is made of, which a trace does
not record.
"""
#: What all rules about slow calls say of their loss.
FIGURES = Figures(
    excess=("s", "the time that library calls take beyond the fastest 5% of their kind, in all kinds together"),
    region_share=("share", "the part of `excess` in all calls of `region`, of whatever size"),
    region=("name", "the function with most of `excess`"),
    runtime=("s", "the time in which threads are started, joined and synchronized, without waiting"),
    passed_on=("s", "the waiting that the cost model charges to library calls"),
    of_threads=("s", "the waiting that the cost model charges to the runtime of threads"),
    idle=("s", "the time of threads that are idle because of library calls or the runtime of threads"),
    waits_region=("name", "the function with most of `passed_on`, if calls are not slow themselves"),
    waits_share=("share", "the part of `passed_on` because of it"),
)

# A call that many libraries return from when its targets have served it.
_NEEDS_TARGETS = "mpi_win_complete"
# A smaller part of the loss than this is not named beside the largest.
_SHARE = 0.1


class Slow:
    """What slow calls and the runtime of threads cost.

    Parameters
    ----------
    run
        The run.
    bearers
        The library calls and thread runtimes.

    Attributes
    ----------
    excess
        What library calls take beyond their need, in seconds.
    runtime
        The time in which threads are started, joined and synchronized.
    loss
        All of it, with what is passed on.
    """

    def __init__(self, run: Run, bearers: list[Bearer]) -> None:
        self._run, self.bearers = run, bearers
        of_regions: dict[str, float] = {}
        for bearer in bearers:
            name = run.region(bearer.callpath).name
            excess = sum(time for row, time in bearer.spent.items() if row.endswith(".excess"))
            if excess > 0:
                of_regions[name] = of_regions.get(name, 0.0) + excess
        self.of_regions = dict(sorted(of_regions.items(), key=lambda one: -one[1]))
        self.excess = sum(of_regions.values())
        spent = sum(time for one in bearers for row, time in one.spent.items() if not row.endswith(".needed"))
        self.runtime = spent - self.excess
        self._waits: dict[str, float] = {}
        for bearer in bearers:
            if bearer.kind == "library":
                name = run.region(bearer.callpath).name
                self._waits[name] = self._waits.get(name, 0.0) + bearer.waiting
        self._passed_on = sum(self._waits.values())
        self._of_threads = sum(one.waiting for one in bearers if one.kind == "threads")
        self._idle = sum(one.idle for one in bearers)
        self.loss = spent + self._passed_on + self._of_threads + self._idle

    @property
    def is_slow(self) -> bool:
        """Whether what library calls take beyond their need, or the runtime of threads, is worth naming."""
        return max(self.excess, self.runtime) >= _SHARE * max(self._passed_on, self._of_threads, self._idle)

    @property
    def is_of_calls(self) -> bool:
        """Whether library calls take longer than they need."""
        return self.excess > 0

    def words(self) -> Words:
        """Return what the loss is made of, to begin a sentence: the largest part first, and no small ones."""
        parts = []
        if self.excess > 0:
            region, most = next(iter(self.of_regions.items()))
            longer = FIGURES.say(
                "calls of {region} take {excess} longer than the fastest 5% of their kind",
                region=region,
                excess=self.excess,
            )
            if most < self.excess:
                longer = FIGURES.say(
                    "library calls take {excess} longer than the fastest 5% of their kind ({region_share} of it in "
                    "{region})",
                    excess=self.excess,
                    region_share=most / self.excess,
                    region=region,
                )
            parts.append((self.excess, longer))
        runtime = FIGURES.say("starting, joining and synchronizing threads takes {runtime}", runtime=self.runtime)
        parts.append((self.runtime, runtime))
        one = f"one {'thread' if self._run.threads > 1 else 'rank'} waits"
        wait, whose = (one, " of the other") if self._run.locations == 2 else ("others wait", "")
        waits = FIGURES.say(f"{wait} {{passed_on}} because of library calls{whose}", passed_on=self._passed_on)
        if self._passed_on > 0 and not self.is_slow:
            region, most = max(self._waits.items(), key=lambda one: one[1])
            waits += FIGURES.say(
                " ({waits_share} of it because of {waits_region})",
                waits_share=most / self._passed_on,
                waits_region=region,
            )
        parts.append((self._passed_on, waits))
        waits = FIGURES.say(f"{wait} {{of_threads}} until threads have synchronized", of_threads=self._of_threads)
        parts.append((self._of_threads, waits))
        parts.append((self._idle, FIGURES.say("threads are idle for {idle} because of library calls", idle=self._idle)))
        parts.sort(key=lambda part: -part[0])
        return joined(words for time, words in parts if time >= _SHARE * parts[0][0]).capitalized()

    def unknown(self) -> Words:
        """Return that the trace does not show the reason, to end a sentence; and what it lacks, if it is that."""
        if not self.is_slow:
            return Words(".")
        if self._run.lacks_members and self.excess > 0 and self._is_of_members(next(iter(self.of_regions))):
            return Words("; the trace does not show why, because collective operations lack members in it.")
        if self._run.unmatched:
            return Words("; the trace does not show why, because it lacks sends.")
        if self.excess > 0 and self._run.is_rooted(next(iter(self.of_regions))):
            return Words("; the trace does not show why. In such an operation, ranks can wait for others of a tree.")
        if self.excess > 0 and next(iter(self.of_regions)).lower() == _NEEDS_TARGETS:
            return Words("; the trace does not show why. In such a call, ranks can wait until their targets call MPI.")
        return Words("; the trace does not show why.")

    def _is_of_members(self, region: str) -> bool:
        """Return whether a function is a collective operation."""
        return any(kind["members"] for kind in self._run.kinds if kind["region"] == region)

    def evidence(self) -> dict[str, object]:
        """Return the numbers that a finding rests on."""
        return {
            "excess": self.excess,
            "regions": self.of_regions,
            "runtime": self.runtime,
            "passed_on": self._passed_on + self._of_threads,
            "idle": self._idle,
        }

    def take(self) -> None:
        """Take all of it as explained; what calls need remains."""
        for bearer in self.bearers:
            needed = {row: time for row, time in bearer.spent.items() if row.endswith(".needed")}
            bearer.spent, bearer.of_classes, bearer.idle = needed, {}, 0.0
            bearer.costs = np.zeros_like(bearer.costs)

    def callpaths(self) -> list[int]:
        """Return the call paths of the bearers."""
        return sorted(bearer.callpath for bearer in self.bearers)


def detect(run: Run) -> Found:
    """Yield the excess of all calls, with the function that has most of it."""
    slow = Slow(run, run.slow())
    if slow.loss <= 0:
        return
    yield run.finding(
        NAME,
        slow.words() + slow.unknown(),
        "Look at the distribution of these times, and repeat the run with one rank or thread per core."
        if slow.is_slow
        else "Make these calls earlier, or let others go on meanwhile.",
        slow.loss,
        instances=int(pc.sum(run.losses.account.cells["calls"]).as_py() or 0),
        evidence=slow.evidence(),
        merged=slow.callpaths(),
    )
    slow.take()


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
