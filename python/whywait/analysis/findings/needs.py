"""What calls need, or at least take, where nobody is late and no other call of their kind is faster: in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.findings.finding import SLICE
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whywait.analysis.findings.words import Words

FIGURES = Figures(
    calls=("count", "these calls, of all members of a collective operation, in the whole run"),
    lost=("s", "what they need at most in the focus: their times without waiting, up to the fastest 5% of their kind"),
    region=("name", "the function with most of it"),
    region_share=("share", "the part of it in all of these calls of this function"),
    each=("s", "what a call of it takes on average, without waiting"),
)

_SMALL = 8192


def disturbed(kinds: Sequence[dict[str, Any]]) -> bool:
    """Return whether most of the time is in small calls whose fastest take longer than a network needs."""
    slow = sum(kind["needed"] for kind in kinds if (kind["floor"] or 0) >= SLICE and kind["bytes_from"] < _SMALL)
    return bool(slow >= sum(kind["needed"] for kind in kinds) / 2)


def need(kinds: Sequence[dict[str, Any]], what: str) -> Words:
    """Return what calls of some kinds need; of too few calls of a kind, and of disturbed ones, what they take.

    Parameters
    ----------
    kinds
        The rows of the table `network`.
    what
        What the calls are, to follow their number.
    """
    lost = sum(kind["needed"] for kind in kinds)
    region, most = largest_region(kinds)
    is_few = sum(kind["needed"] for kind in kinds if kind["floor"] is None) >= lost / 2
    verb = "take" if is_few or disturbed(kinds) else "need"
    calls = sum(kind["calls"] for kind in kinds)
    of_region = sum(kind["calls"] for kind in kinds if kind["region"] == region)
    words = FIGURES.say(
        f"{{calls}} {what} {verb} {{lost}}, {{region_share}} of it in {{region}} ({{each}} each)",
        calls=calls,
        lost=lost,
        region_share=most / lost,
        region=region,
        each=most / of_region,
    )
    if calls == of_region:
        words = FIGURES.say(
            f"{{calls}} calls of {{region}} {verb} {{lost}} ({{each}} each)",
            calls=calls,
            region=region,
            lost=lost,
            each=most / of_region,
        )
    if is_few:
        return words + ": too few of a kind to tell what they need."
    return words + (": even the fastest take longer than a network needs." if disturbed(kinds) else ".")


def largest_region(kinds: Sequence[dict[str, Any]]) -> tuple[str, float]:
    """Return the function whose kinds of calls together need most, and how much that is."""
    needs: dict[str, float] = {}
    for kind in kinds:
        needs[kind["region"]] = needs.get(kind["region"], 0.0) + kind["needed"]
    return max(needs.items(), key=lambda one: one[1])
