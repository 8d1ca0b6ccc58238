"""What others lose because of a call path, in words: they wait for it, and threads are idle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whywait.analysis.findings.finding import Run
    from whywait.analysis.losses import Bearer

#: What the words below say.
FIGURES = Figures(
    waiting=("s", "the waiting that the cost model charges to the call path, of all locations"),
    idle=("s", "the time of threads that are idle because of it"),
    also=("s", "the other waiting that the cost model charges to it"),
)

# A smaller part of a loss has no words.
_PART = 0.1


def who_waits(run: Run, article: str = "") -> str:
    """Return the words for those that wait, with their verb: of two locations, it is the other."""
    return "the other waits" if run.locations == 2 else f"{article}others wait"


def suffering(run: Run, bearers: Iterable[Bearer], article: str = "") -> Words:
    """Return what others lose because of a call path, or several, to follow a semicolon."""
    bearers = list(bearers)
    waiting, idle = (sum(getattr(bearer, name) for bearer in bearers) for name in ("waiting", "idle"))
    words = FIGURES.say(f"{who_waits(run, article)} {{waiting}} for it", waiting=waiting)
    if idle >= _PART * (waiting + idle):
        words += FIGURES.say(", and threads are idle for {idle} because of it", idle=idle)
    return words


def beside(run: Run, bearers: Iterable[Bearer], said: float) -> Words:
    """Return what others lose because of a call path beside some waiting that a sentence has said, to end it."""
    bearers = list(bearers)
    waiting, idle = (sum(getattr(bearer, name) for bearer in bearers) for name in ("waiting", "idle"))
    words = Words("")
    if waiting - said >= _PART * (waiting + idle):
        words += FIGURES.say(f"; {who_waits(run)} {{also}} for the same call path in other ways", also=waiting - said)
    if idle >= _PART * (waiting + idle):
        words += FIGURES.say("; threads are idle for {idle} because of it", idle=idle)
    return words + "."
