"""Large messages need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.findings.needs import largest_region
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from whywait.analysis.findings.finding import Finding, Found, Proposed, Run

NAME = "bandwidth_bound"
TITLE = "Bandwidth of large messages"
DOCUMENT = """\
Calls that transfer 8 KiB and more between two ranks need at least 2% of the CPU time, although nobody is late and they
are not slow: what they need grows with the size, at least by half for each doubling. Send less (smaller types,
only what has changed), keep data where it is used, or overlap the transfer with work.
"""
FIGURES = Figures(
    calls=("count", "these calls, in the whole run"),
    limit=("bytes", "what each of them transfers at least"),
    lost=("s", "what they need at most in the focus: their times without waiting, up to the fastest 5% of their kind"),
    region=("name", "the function with most of it"),
    region_share=("share", "the part of it in all of these calls of this function"),
    size=("bytes", "the least bytes of the size class of this function with most of it"),
    rate=("bytes/s", "these bytes, divided by what the fastest 5% of this class take"),
)

_LARGE, _LEAST, _GROWTH = 8192, 0.02, 1.5


def detect(run: Run) -> Found:
    """Yield what calls with large messages need."""
    large = [kind for kind in run.kinds if not kind["members"] and kind["floor"] and kind["needed"] > 0]
    large = [kind for kind in large if kind["bytes_from"] >= _LARGE and _grows(run, kind)]
    loss = sum(kind["needed"] for kind in large)
    if not run.time or loss < _LEAST * run.time:
        return
    calls = sum(kind["calls"] for kind in large)
    region, most = largest_region(large)
    kind = max((kind for kind in large if kind["region"] == region), key=lambda kind: float(kind["needed"]))
    yield run.finding(
        NAME,
        FIGURES.say(
            "{calls} calls with messages of {limit} and more need {lost}, {region_share} of it in {region} (most for "
            "{size} and more, at about {rate}): most of this is bandwidth.",
            calls=calls,
            limit=_LARGE,
            lost=loss,
            region_share=most / loss,
            region=region,
            size=kind["bytes_from"],
            rate=kind["bytes_from"] / kind["floor"],
        ),
        "Send less, or overlap it with work.",
        loss,
        instances=calls,
        evidence={"kinds": large},
    )
    run.take_kinds(large)


def changes(run: Run, _: Finding) -> Proposed:
    """Yield twice the bandwidth, and the bound: an ideal network."""
    yield run.changes.twice_bandwidth()
    yield run.changes.ideal_network()


def _grows(run: Run, kind: dict[str, Any]) -> bool:
    """Return whether calls need half as much again for each doubling of the size up to this one."""
    same = ("region", "local", "exposed", "members")
    smaller = [
        other
        for other in run.kinds
        if other["floor"]
        and 0 < other["bytes_from"] < kind["bytes_from"]
        and other["basis"] in {"quantile", "few"}
        and all(other[name] == kind[name] for name in same)
    ]
    if kind["basis"] not in {"quantile", "few"} or not smaller:
        return False
    nearest = max(smaller, key=lambda other: other["bytes_from"])
    doublings = (kind["bytes_from"] // nearest["bytes_from"]).bit_length() - 1
    return bool(kind["floor"] >= _GROWTH**doublings * nearest["floor"])
