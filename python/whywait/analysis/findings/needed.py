"""Time in library calls of which the trace has no transfer: what rules about them have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from whywait.analysis.findings.finding import Finding, Run
    from whywait.model.regions import Region

FIGURES = Figures(
    needed=("s", "the row `library.needed` of the account, in such calls"),
    name=("name", "the function of the call path with most of it"),
    name_share=("share", "the part of it in all calls of this function"),
    place=("name", "this call path"),
)


class Needed(NamedTuple):
    """The time of some calls.

    Attributes
    ----------
    time
        Their time in the row `library.needed`, seconds.
    callpath
        The call path with most of it.
    words
        How long they take, to begin a sentence.
    """

    time: float
    callpath: int
    words: Words


def needed(run: Run, chosen: Callable[[Region], bool], least: float) -> Needed | None:
    """Return the time of the chosen calls, if it is at least a share of the CPU time."""
    times = {number: time for number, time in run.times_in("library.needed").items() if chosen(run.region(number))}
    loss = sum(times.values())
    if not run.time or not times or loss < least * run.time:
        return None
    callpath = max(times.items(), key=lambda one: (one[1], -one[0]))[0]
    name = run.region(callpath).name
    of_name = sum(time for number, time in times.items() if run.region(number).name == name)
    words = FIGURES.say(
        "Library calls take {needed}, {name_share} of it in {name}", needed=loss, name_share=of_name / loss, name=name
    )
    if of_name == loss:
        words = FIGURES.say("Calls of {name} take {needed}", name=name, needed=loss)
    return Needed(loss, callpath, words)


def finding(run: Run, rule: str, found: Needed, ending: str, advice: str, of_one: str) -> Finding:
    """Return the finding of a rule, with an ending of its own, and its advice; `of_one` if no rank calls it twice."""
    if run.visits(found.callpath).max() == 1:
        advice = of_one
    return run.finding(
        rule,
        found.words + ending,
        FIGURES.say(advice, place=run.place(found.callpath)),
        found.time,
        callpath=found.callpath,
        instances=int(run.visits(found.callpath).sum()),
        evidence={"library": found.time},
    )
