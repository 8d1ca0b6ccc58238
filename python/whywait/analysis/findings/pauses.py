"""Some calls take a millisecond or more longer than others of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.counters.counters import Counters
from whywait.analysis.findings.slow_calls import FIGURES as OF_CALLS
from whywait.analysis.findings.slow_calls import Slow
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "pauses"
TITLE = "Long pauses"
DOCUMENT = """\
At least 20 calls take a millisecond or more longer than the fastest 5% of their kind, and these make up a third
of all excess. Run with at most one rank or thread per core, check the binding, and look for other
processes on the node: a scheduler's slice is 1 ms and more. Only a counter tells whether a core was lost: with
`ru_nivcsw` (`whywait record --counters rusage`), the finding says how often. Without one, the trace does not show why.
"""
FIGURES = Figures(
    OF_CALLS,
    calls=("count", "the calls in the focus that take at least 1 ms longer than the fastest 5% of their kind"),
    pause_share=("share", "the part of what all library calls take beyond the fastest 5% that these calls have"),
    switches=("count", "how often the core of a rank or thread went to another thread, in the whole run: `ru_nivcsw`"),
)

_CALLS, _SHARE = 20, 1 / 3


def detect(run: Run) -> Found:
    """Yield the excess of all calls, if pauses make up much of it."""
    facts = run.result.facts
    calls, time = facts.get("pauses", 0), facts.get("pause_time", 0.0)
    excess = sum(time for row, time in run.losses.account.times.items() if row.endswith(".excess"))
    slow = Slow(run, run.slow())
    if calls < _CALLS or time < _SHARE * excess or not slow.is_of_calls:
        return
    sentence = slow.words() + FIGURES.say(
        "; {calls} calls that take 1 ms or more longer have {pause_share} of this excess",
        calls=calls,
        pause_share=time / excess,
    )
    switches = Counters(run.result).get("ru_nivcsw")
    if switches is not None and switches.total:
        sentence += FIGURES.say(
            ". The core of a rank or thread went to another one {switches} times.", switches=round(switches.total)
        )
    else:
        sentence += slow.unknown()
    yield run.finding(
        NAME,
        sentence,
        "Run with at most one rank or thread per core, check the binding, and look for other processes on the node.",
        slow.loss,
        evidence={"calls": calls, "time": time} | slow.evidence(),
        merged=slow.callpaths(),
    )
    slow.take()


def changes(run: Run, _: Finding) -> Proposed:
    """Yield trimming all calls to the fastest of their kind; at best, the network is ideal."""
    yield run.changes.trim()
    yield run.changes.ideal_network()
