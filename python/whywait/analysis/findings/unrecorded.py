"""Time of which nothing is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Run

NAME = "unrecorded"
TITLE = "Time that is not recorded"
DOCUMENT = """\
At least 5% of the CPU time is unknown: outside of all regions, in the program although its functions are recorded
elsewhere, or after the last event of a damaged stream. Record more functions, or see what the trace lacks with
`whywait info --check`. Or at least 5% are in library calls without a record of what they wait for or transfer: probes,
tests in a loop, completions of nonblocking collective operations, or the creation of communicators.
"""
FIGURES = Figures(
    unknown=("s", "the row `unknown` of the account"),
    needed=("s", "the row `library.needed` of the account"),
    name=("name", "the function of the call path with most of it"),
    name_share=("share", "the part of it in all calls of this function"),
    place=("name", "this call path"),
)

_LEAST = 0.05


def detect(run: Run) -> Iterator[Finding]:
    """Yield the time that is unknown, and that of library calls without records."""
    if not run.time:
        return
    loss = run.losses.account.times.get("unknown", 0.0)
    if loss >= _LEAST * run.time:
        yield run.finding(
            NAME,
            FIGURES.say("Of {unknown}, the trace does not say what happens.", unknown=loss),
            "Record the functions that run then, or see what the trace lacks with whywait info --check.",
            loss,
            evidence={"unknown": loss},
        )
    loss = run.losses.account.times.get("library.needed", 0.0)
    if loss >= _LEAST * run.time:
        times = run.times_in("library.needed")
        callpath, most = max(times.items(), key=lambda one: (one[1], -one[0]))
        name = run.region(callpath).name
        of_name = sum(time for number, time in times.items() if run.region(number).name == name)
        calls = FIGURES.say(
            "Library calls take {needed}, {name_share} of it in {name}",
            needed=loss,
            name_share=of_name / loss,
            name=name,
        )
        if of_name == loss:
            calls = FIGURES.say("Calls of {name} take {needed}", name=name, needed=loss)
        advice = "See where {place} is called: it may wait for others, or be called too often."
        if run.visits(callpath).max() == 1:
            advice = "See what {place} does, which no rank calls twice: it may wait for others, or set something up."
        yield run.finding(
            NAME,
            calls + "; the trace does not record what for.",
            FIGURES.say(advice, place=run.place(callpath)),
            loss,
            callpath=callpath,
            instances=int(run.visits(callpath).sum()),
            evidence={"library": loss, "callpath": most},
        )
