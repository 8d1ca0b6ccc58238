"""Transfers between nodes take longer than they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whywait.analysis.findings.device_rows import in_rows
from whywait.analysis.findings.words import Figures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from whywait.analysis.findings.finding import Finding, Run

NAME = "slow_network"
TITLE = "Slow network"
DOCUMENT = """\
Devices of several nodes transfer data for at least 2% of the time longer than the fastest 5% of such transfers
take. Look for a link or a node that is slow, and for other jobs that share the network.
"""
FIGURES = Figures(
    excess=(
        "s",
        "the time of transfers between devices beyond what the fastest 5% of their kind take, if nothing hides it",
    ),
    nodes=("count", "the nodes"),
    groups=("count", "the groups with ranks on several nodes"),
)

_LEAST = 0.02


def detect(run: Run) -> Iterator[Finding]:
    """Yield the excess of transfers of groups across nodes."""
    traces = run.result.facts.get("traces")
    loss, total = in_rows(run, "comm.excess"), run.device_time
    if not traces or loss <= _LEAST * total:
        return
    nodes = {rank["rank"]: rank["host"] for rank in traces["ranks"]}
    spans = [group for group in traces["groups"] if len({nodes.get(rank) for rank in group["ranks"]}) > 1]
    if not spans:
        return
    what = "a group" if len(spans) == 1 else "{groups} groups"
    words = FIGURES.say(
        f"Transfers of {what} across {{nodes}} nodes take {{excess}} longer than the fastest of their kind.",
        **({} if len(spans) == 1 else {"groups": len(spans)}),
        nodes=len(set(nodes.values())),
        excess=loss,
    )
    yield run.finding(NAME, words, "See which node's group is slow, and who shares its network.", loss, base="device")
