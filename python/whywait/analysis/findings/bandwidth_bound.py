"""Large messages need much time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whywait.analysis.findings.words import percent, seconds, volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.changes import Change
    from whywait.analysis.findings.finding import Finding, Price, Run

NAME = "bandwidth_bound"
TITLE = "Bandwidth of large messages"
DOCUMENT = """\
Calls that transfer 8 KiB and more between two ranks need at least 5% of the CPU time, although nobody is late and they
are not slow: what they need grows with the size, at least by half for each doubling. Send less (smaller types,
only what has changed), keep data where it is used, or overlap the transfer with work.
"""

_LARGE, _LEAST, _GROWTH = 8192, 0.05, 1.5


def detect(run: Run) -> Iterator[Finding]:
    """Yield what calls with large messages need."""
    large = [kind for kind in run.kinds if not kind["members"] and kind["floor"] and kind["needed"] > 0]
    large = [kind for kind in large if kind["bytes_from"] >= _LARGE and _grows(run, kind)]
    loss = sum(kind["needed"] for kind in large)
    if not run.time or loss < _LEAST * run.time:
        return
    calls = sum(kind["calls"] for kind in large)
    most = max(large, key=lambda kind: kind["needed"])
    rate = most["bytes_from"] / most["floor"]
    yield run.finding(
        NAME,
        f"{calls:,} calls with messages of {volume(_LARGE)} and more need {seconds(loss)}, "
        f"{percent(most['needed'] / loss)} of it in {most['region']} of {volume(most['bytes_from'])} and more, at "
        f"about {volume(rate)}/s: most of this is bandwidth.",
        "Send less, or overlap it with work.",
        loss,
        instances=calls,
        evidence={"kinds": large},
    )


def changes(run: Run, _: Finding) -> Iterator[Change | Price]:
    """Yield twice the bandwidth, and the bound: an ideal network."""
    if (faster := run.changes.twice_bandwidth()) is not None:
        yield faster
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
