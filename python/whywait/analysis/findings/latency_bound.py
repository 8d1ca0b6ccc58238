"""Many small messages, each of which takes a latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.finding import SLICE
from whywait.analysis.findings.needs import largest_region
from whywait.analysis.findings.words import Figures, Words

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "latency_bound"
TITLE = "Many small messages"
DOCUMENT = """\
Calls that transfer less than 8 KiB between two ranks need at least 2% of the CPU time, although nobody is late and
they are not slow: the latency of each is what they need, since those of the smallest messages need at least half as
long. Calls that synchronize two ranks (post, start, complete, wait, lock, flush) belong to them where no call transfers
more. Overlap them with work; where several go to the same rank before anything is received or completed, combine them.
If they take a millisecond or more even at their fastest, this is more than a latency.
"""
FIGURES = Figures(
    calls=("count", "these calls, in the whole run"),
    limit=("bytes", "what each of them transfers less than"),
    lost=("s", "what they need at most in the focus: their times without waiting, up to the fastest 5% of their kind"),
    region=("name", "the function with most of it"),
    region_share=("share", "the part of it in all of these calls of this function"),
    combinable=("count", "the messages of less than 8 KiB that follow on another one to the same rank at once"),
    messages=("count", "the messages of less than 8 KiB from the same call paths"),
    place=("name", "the call path with most of those that follow"),
)

_SMALL, _LEAST, _FACTOR = 8192, 0.02, 2.0
# Of fewer messages, combining is no advice.
_COMBINABLE = 0.1


def detect(run: Run) -> Found:
    """Yield what calls with small messages need."""
    transferring = {run.region(callpath).name for callpath in run.times_in("transfer.needed")}
    pairs = [kind for kind in run.kinds if not kind["members"] and kind["region"] in transferring]
    # A call that synchronizes may complete transfers of any size, but has no size of its own.
    least = 1 if any(kind["bytes_below"] > _SMALL for kind in pairs) else 0
    small = [kind for kind in pairs if least <= kind["bytes_from"] < _SMALL and kind["floor"] is not None]
    shortest: dict[tuple[str, bool, bool], float] = {}
    for kind in sorted(small, key=lambda kind: kind["bytes_from"]):
        shortest.setdefault((kind["region"], kind["local"], kind["exposed"]), kind["floor"])
    bound = [
        kind
        for kind in small
        if kind["floor"] <= _FACTOR * shortest[kind["region"], kind["local"], kind["exposed"]] and kind["needed"] > 0
    ]
    loss = sum(kind["needed"] for kind in bound)
    if not run.time or loss < _LEAST * run.time:
        return
    calls = sum(kind["calls"] for kind in bound)
    region, most = largest_region(bound)
    is_disturbed = sum(kind["needed"] for kind in bound if kind["floor"] >= SLICE) >= loss / 2
    synchronize = "" if all(kind["bytes_from"] for kind in bound) else " or only synchronize"
    sentence = FIGURES.say(
        f"{{calls}} calls transfer less than {{limit}} each{synchronize} and {'take' if is_disturbed else 'need'} "
        "{lost}, {region_share} of it in {region}: ",
        calls=calls,
        limit=_SMALL,
        lost=loss,
        region_share=most / loss,
        region=region,
    )
    sentence += "even the fastest take longer than a latency." if is_disturbed else "most of this is latency."
    yield run.finding(
        NAME,
        sentence,
        _advice(run),
        loss,
        instances=calls,
        evidence={"kinds": bound, "combinable": run.reasons("combinable")},
    )
    run.take_kinds(bound)


def _advice(run: Run) -> Words:
    """Return what to do: combine messages only where several go to the same rank at once."""
    found = run.reasons("combinable")
    messages, combinable = (sum(row[name] for row in found) for name in ("messages", "combinable"))
    if combinable < _COMBINABLE * messages or not combinable:
        return Words("Overlap them with work, or exchange less often.")
    most = max(found, key=lambda row: row["combinable"])
    return FIGURES.say(
        "Combine messages to the same rank: {combinable} of {messages} small ones follow on another one to it, most of "
        "them in {place}.",
        combinable=combinable,
        messages=messages,
        place=run.place(most["callpath"]),
    )


def changes(run: Run, _: Finding) -> Proposed:
    """Yield half the latency, and the bound: an ideal network."""
    yield run.changes.half_latency()
    yield run.changes.ideal_network()
